"""The folder of a run.

config.json          the options of the run (`RunOptions`)
history.csv          the rows of the history, appended during the run
best.txt             the best candidate so far, one number per line
best.json            the same with named variables, by name
checkpoint.npz ...   the search itself (docs/checkpoints.md lists the files)
first_error.txt      the first evaluation that failed
log.txt              messages about restarts, killed workers and disk errors
result.json          the Result, written when the run ends
plot.png             the figure of `fmnes plot`
run.lock             which process is working on the run; removed when it ends
"""

import contextlib
import dataclasses
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fmnes import Result, Status
from fmnes._files import replacing
from fmnes._json import with_words
from fmnes.cli._errors import UsageError
from fmnes.cli._options import RunOptions
from fmnes.runs.parallel import read_result
from fmnes.storage.lock import Lock, is_locked

_SHOWN = (  # of a Result in result.json
    *("fun", "nfev", "nit", "success", "status", "message", "nfailed", "first_error", "sigma"),
    *("restarts", "x", "mean", "stds", "best", "constr", "constr_violation", "multipliers"),
)


class Folder:
    """The paths of a run's files, and what they hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shown = os.path.relpath(path)  # now: `fmnes resume` changes the working directory
        self.config, self.history = path / "config.json", path / "history.csv"
        self.result, self.plot = path / "result.json", path / "plot.png"
        self.first_error, self.log = path / "first_error.txt", path / "log.txt"
        self.best, self.named_best = path / "best.txt", path / "best.json"
        self.lock = path / "run.lock"
        self.evaluations = path / "evaluations"  # files of programs, while they run

    @classmethod
    def new(cls, out: str | None, options: RunOptions) -> "Folder":
        """Make a folder: ``out``, or one named after the objective and the time."""
        if out is not None:
            folder = cls(Path(out).absolute())
            with folder._writing():
                folder.path.mkdir(parents=True, exist_ok=True)
            return folder
        words = re.findall(r"\w+", options.title.split(":")[-1].replace("{file}", ""))
        clock = re.sub(r"[-:]", "", options.created[:19]).replace("T", "-")
        name = f"fmnes-{(words or ['run'])[0]}-{clock}"
        for k in range(1, 1000):  # another run may have started in the same second
            folder = cls(Path(name if k == 1 else f"{name}-{k}").absolute())
            with folder._writing(), contextlib.suppress(FileExistsError):
                folder.path.mkdir()
                return folder
        raise UsageError(f"--out: expected a folder, got none, and {name} and others exist")

    @contextlib.contextmanager
    def claimed(self, flag: str) -> Iterator[None]:
        """Lock the folder, so that one process at a time writes to it; ``flag`` named it."""
        lock = Lock(self.lock, flag, self.shown)
        try:
            with self._writing():
                lock.acquire()
        except RuntimeError as error:
            raise UsageError(str(error)) from None
        with lock:
            yield

    def check_new(self) -> None:
        """Raise a UsageError if there is a run in the folder."""
        if self.config.exists():
            raise UsageError(
                f"--out: expected a folder without a run, got {self.shown} (fmnes resume "
                f"{self.shown} continues that run; delete the folder to start again)"
            )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn an OSError into a UsageError about the folder."""
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"--out: expected a folder that can be written to, got {self.path} ({error})"
            ) from None

    def read_options(self) -> RunOptions:
        """Return the options of the run in this folder."""
        try:
            return RunOptions.from_saved(json.loads(self.config.read_text(encoding="utf-8")))
        except (OSError, TypeError, ValueError) as error:
            why = error if isinstance(error, OSError) else f"config.json: {error}"
            raise UsageError(
                f"DIR: expected the folder of a run, got {self.path} ({why})"
            ) from None

    def checkpoint(self, options: RunOptions) -> Path:
        """Return the path of the checkpoint."""
        return Path(options.checkpoint or self.path / "checkpoint.npz")

    def begin(self, options: RunOptions) -> None:
        """Prepare the folder for a run that starts or resumes."""
        checkpoint = self.checkpoint(options)
        if is_locked(f"{checkpoint}.lock"):
            raise UsageError(
                f"--checkpoint: expected a file that nobody else is using, got {checkpoint}"
            )
        with self._writing():
            write_text(self.config, json_text(dataclasses.asdict(options)))
        shutil.rmtree(self.evaluations, ignore_errors=True)

    def end(self, result: Result) -> None:
        """Write the result of a run that has ended."""
        shutil.rmtree(self.evaluations, ignore_errors=True)
        write_text(self.result, result_json(result))

    def ended(self) -> dict[str, Any] | None:
        """Return the content of result.json, or None while the run has not ended."""
        try:
            found = json.loads(self.result.read_text(encoding="utf-8"))
            Status(found["status"])
        except FileNotFoundError:
            return None
        except (OSError, LookupError, TypeError, ValueError) as error:
            raise UsageError(
                f"DIR: expected the folder of a run, got {self.path} (result.json: {error})"
            ) from None
        return dict(found)

    def is_running(self) -> bool:
        """Return whether a process is working on the run."""
        return is_locked(self.lock)

    def last_result(self, options: RunOptions) -> Result:
        """Return the Result as of the last checkpoint."""
        ended = self.ended()
        status = Status.RUNNING if ended is None else Status(ended["status"])
        return read_result(self.checkpoint(options), status)


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step, so that readers see either the old content or the new one."""
    with replacing(path, f"{path}.tmp") as temporary:
        # An error message may hold what is no valid Unicode, such as parts of file names.
        Path(temporary).write_text(text, "utf-8", "backslashreplace", newline="")


def result_json(result: Result) -> str:
    """Return the content of result.json: a Result without history and shape."""
    content = result.to_dict()
    return json_text({name: content[name] for name in _SHOWN})


def json_text(content: dict[str, Any]) -> str:
    """Return the text of a JSON file, in which numbers that are not finite are words."""
    return json.dumps(with_words(content), indent=1, allow_nan=False) + "\n"
