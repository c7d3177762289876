"""The folder of a run.

config.json          the options of the run (`RunOptions`)
history.csv          one row for each generation, appended during the run
checkpoint.npz ...   the search itself (docs/checkpoints.md lists the files)
first_error.txt      the first evaluation that failed
log.txt              messages about restarts, killed workers and disk errors
result.json          the Result, written when the run ends
plot.png             the figure of `fmnes plot`
"""

import dataclasses
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from fmnes import Result, Status
from fmnes._runs import Runs
from fmnes.cli._errors import UsageError
from fmnes.cli._options import RunOptions
from fmnes.storage.lock import in_use


class Folder:
    """The paths of a run's files, and what they hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.history = path / "config.json", path / "history.csv"
        self.result, self.plot = path / "result.json", path / "plot.png"
        self.first_error, self.log = path / "first_error.txt", path / "log.txt"
        self.evaluations = path / "evaluations"  # files of programs, while they run

    @classmethod
    def new(cls, out: str | None, options: RunOptions) -> "Folder":
        """Return a folder without a run: ``out``, or one named after the objective and the time."""
        if out is not None:
            folder = cls(Path(out).absolute())
            if folder.config.exists():
                raise UsageError(
                    f"--out: expected a folder without a run, got {out} "
                    f"(fmnes resume {out} continues that run)"
                )
            return folder
        words = re.findall(r"\w+", options.title.split(":")[-1].replace("{file}", ""))
        clock = re.sub(r"[-:]", "", options.created[:19]).replace("T", "-")
        name = f"fmnes-{(words or ['run'])[0]}-{clock}"
        names = (name, *(f"{name}-{k}" for k in range(2, 100)))
        return cls(next(Path(n) for n in names if not Path(n).exists()).absolute())

    def read_options(self) -> RunOptions:
        """Return the options of the run in this folder."""
        try:
            return RunOptions(**json.loads(self.config.read_text()))
        except (OSError, TypeError, ValueError) as error:
            raise UsageError(
                f"DIR: expected the folder of a run, got {self.path} ({error})"
            ) from None

    def checkpoint(self, options: RunOptions) -> Path:
        """Return the path of the checkpoint."""
        return Path(options.checkpoint or self.path / "checkpoint.npz")

    def begin(self, options: RunOptions) -> None:
        """Prepare the folder for a run that starts or resumes."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_text(self.config, json.dumps(dataclasses.asdict(options), indent=1) + "\n")
        except OSError as error:
            raise UsageError(
                f"--out: expected a folder that can be written to, got {self.path} ({error})"
            ) from None
        self.result.unlink(missing_ok=True)
        shutil.rmtree(self.evaluations, ignore_errors=True)

    def end(self, result: Result) -> None:
        """Write the result of a run that has ended."""
        write_text(self.result, json.dumps(_plain(result), indent=1, allow_nan=False) + "\n")
        shutil.rmtree(self.evaluations, ignore_errors=True)

    def ended(self) -> dict[str, Any] | None:
        """Return the content of result.json, or None while the run has not ended."""
        try:
            found: dict[str, Any] = json.loads(self.result.read_text())
        except FileNotFoundError:
            return None
        return found

    def is_running(self, options: RunOptions) -> bool:
        """Return whether a process is working on the run."""
        return in_use(f"{self.checkpoint(options)}.lock")

    def last_result(self, options: RunOptions) -> Result:
        """Return the Result as of the last checkpoint."""
        ended = self.ended()
        status = Status.RUNNING if ended is None else Status(ended["status"])
        return Runs.read(self.checkpoint(options), status)


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step, so that readers see either the old content or the new one."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


def _plain(result: Result) -> dict[str, Any]:
    """Return a Result as JSON values; numbers that are not finite become words, such as "inf"."""

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
