"""The folder of a run: what is asked for, what has happened, and what came out.

config.json          what was asked for (`Config`)
history.csv          a row for each generation, as they come
checkpoint.npz ...   the search itself (docs/checkpoints.md says which files go with it)
first_error.txt      the first evaluation that failed
log.txt              messages: restarts, workers that were killed, disks that fail
result.json          the Result, once there is one
plot.png             what `fmnes plot` draws
"""

import csv
import json
import logging
import math
import re
import shutil
import time
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from fmnes import Result, Status
from fmnes._history import COLUMNS
from fmnes._runs import Runs
from fmnes.cli._config import Config, write_text
from fmnes.cli._errors import UsageError
from fmnes.storage.lock import in_use

logger = logging.getLogger("fmnes")

HEADER = [*COLUMNS, "nfailed"]
_EVERY = 1.0  # seconds between two additions to history.csv; more where one takes long
_SHARE = 20  # writing takes at most one part in so many of the time


class Folder:
    """The paths of a run, and what is read from them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.history = path / "config.json", path / "history.csv"
        self.result, self.plot = path / "result.json", path / "plot.png"
        self.first_error, self.log = path / "first_error.txt", path / "log.txt"
        self.evaluations = path / "evaluations"  # while programs run: their files

    @classmethod
    def new(cls, out: str | None, config: Config) -> "Folder":
        """A folder that holds no run yet: ``out``, or one named after objective and time."""
        if out is not None:
            folder = cls(Path(out).absolute())
            if folder.config.exists():
                raise UsageError(
                    f"--out: expected a folder without a run, got {out} "
                    f"(fmnes resume {out} goes on with that one)"
                )
        else:
            words = re.findall(r"\w+", config.title.split(":")[-1].replace("{file}", ""))
            clock = re.sub(r"[-:]", "", config.created[:19]).replace("T", "-")
            name = f"fmnes-{(words or ['run'])[0]}-{clock}"
            names = (name, *(f"{name}-{k}" for k in range(2, 100)))
            folder = cls(next(Path(n) for n in names if not Path(n).exists()).absolute())
        return folder

    def checkpoint(self, config: Config) -> Path:
        """Where the search itself is."""
        return Path(config.checkpoint or self.path / "checkpoint.npz")

    def begin(self, config: Config) -> None:
        """A run starts, or goes on."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            config.write(self.config)
        except OSError as error:
            raise UsageError(
                f"--out: expected a folder that can be written to, got {self.path} "
                f"({error.strerror})"
            ) from None
        self.result.unlink(missing_ok=True)
        shutil.rmtree(self.evaluations, ignore_errors=True)

    def end(self, result: Result) -> None:
        """A run has ended."""
        write_text(self.result, json.dumps(_plain(result), indent=1, allow_nan=False) + "\n")
        shutil.rmtree(self.evaluations, ignore_errors=True)

    def ended(self) -> dict[str, Any] | None:
        """What result.json says; None while there is none."""
        try:
            found: dict[str, Any] = json.loads(self.result.read_text())
        except FileNotFoundError:
            return None
        return found

    def is_running(self, config: Config) -> bool:
        """Whether a process is at work on it."""
        return in_use(f"{self.checkpoint(config)}.lock")

    def search(self, config: Config) -> Result:
        """The Result so far, as of the last checkpoint."""
        ended = self.ended()
        status = Status.RUNNING if ended is None else Status(ended["status"])
        return Runs.read(self.checkpoint(config), status)


def _plain(result: Result) -> dict[str, Any]:
    """A Result as JSON knows it; what is not finite as a word that float() takes."""

    def number(value: float) -> float | str:
        return float(value) if math.isfinite(value) else str(float(value))

    return {
        "fun": number(result.fun),
        "nfev": result.nfev,
        "nit": result.nit,
        "success": result.success,
        "status": str(result.status),
        "message": result.message,
        "nfailed": result.nfailed,
        "first_error": result.first_error,
        "sigma": number(result.sigma),
        "restarts": [
            {**vars(run), "fun": number(run.fun), "status": str(run.status)}
            for run in result.restarts
        ],
        "x": [number(value) for value in np.asarray(result.x).tolist()],
        "mean": [number(value) for value in np.asarray(result.mean).tolist()],
    }


class Recorder:
    """The callback that keeps history.csv and first_error.txt; a context, for the last rows.

    The column nfailed counts failures so far. It is empty where a kill came between a checkpoint
    and the rows that lead to it, since checkpoints only hold the sum.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._file: IO[str] | None = None
        self._rows = 0  # in the file
        self._nfailed: list[str] | None = None  # of each generation; None before the first
        self._last: Result | None = None
        self._due = 0.0
        self._has_error = folder.first_error.exists()

    def __call__(self, result: Result) -> None:
        """After each generation."""
        self._last = result
        if self._nfailed is None:
            self._nfailed = self._known(len(result.history) - 1)
        self._nfailed.append(str(result.nfailed))
        if time.monotonic() >= self._due:
            self._write_or_warn(result)

    def finish(self, result: Result) -> None:
        """At the end, which may come without any generation where a run goes on."""
        self._last = result
        if self._nfailed is None:
            self._nfailed = self._known(len(result.history))

    def _known(self, rows: int) -> list[str]:
        """What the file has of the generations before this process began."""
        known = _read_nfailed(self._folder.history)[:rows]
        return known + [""] * (rows - len(known))

    def _write_or_warn(self, result: Result) -> None:
        """Bring the files up to date; a disk that fails is no reason to end the search."""
        begun = time.monotonic()
        try:
            self._write(result)
        except OSError as error:
            logger.warning("%s was not written: %s", self._folder.history, error.strerror)
            self._close()  # and begin again next time
        self._due = time.monotonic() + max(_EVERY, _SHARE * (time.monotonic() - begun))

    def _write(self, result: Result) -> None:
        if result.first_error is not None and not self._has_error:
            write_text(self._folder.first_error, result.first_error)
            self._has_error = True
        if self._file is None:
            temporary = self._folder.history.with_suffix(".tmp")
            self._file, self._rows = temporary.open("w", newline=""), 0
            csv.writer(self._file).writerow(HEADER)
            temporary.replace(self._folder.history)
        rows, nfailed = result.history.to_array(self._rows), self._nfailed or []
        new = zip(rows.tolist(), nfailed[self._rows :], strict=True)
        csv.writer(self._file).writerows([*row, failed] for row, failed in new)
        self._file.flush()
        self._rows += len(rows)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._last is not None:
            self._write_or_warn(self._last)
        self._close()


def _read_nfailed(path: Path) -> list[str]:
    """The last column of a history that is already there, for all rows that are whole."""
    try:
        lines = path.read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [line.rpartition(",")[2].strip() for line in lines[1:]]
