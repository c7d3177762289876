"""What the page of ``fmnes watch`` shows of a run, read from the files in its folder."""

import itertools
import json
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

from fmnes.cli._errors import UsageError
from fmnes.cli._folder import Folder
from fmnes.cli._recorder import HEADER, parsed_row

_POINTS = 800  # of a curve, at most
_RATE = 50  # generations over which the speed is measured
_VARIABLES = 1000  # of the best candidate, at most
_WIDTH = 200  # characters of a named value, which may be an array, at most
_BLOCK = 2**20  # bytes of history.csv that are read at a time
_QUIET = 5.0  # seconds without a new row until we check whether a process is running


class View:
    """The data that the page shows; reads only the new rows of history.csv each time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()  # several pages may request data at the same time
        self._forget(0)
        self._written = 0.0  # when history.csv was

    def _forget(self, inode: int) -> None:
        self._inode, self._offset, self._rows = inode, 0, _Rows()

    def data(self) -> dict[str, Any]:
        """Return the state of the run as JSON values, with null for numbers that are not finite."""
        with self._lock:
            self._read()
            rows, recent = self._rows.shown(), self._rows.recent()
            names = [*HEADER, "evaluation"]
            last = recent[-1] if recent else dict.fromkeys(HEADER, math.nan)
            return {
                **self._standing(self._rows.count),
                "rows": self._rows.count,
                "last": {name: _finite(last[name]) for name in HEADER},
                "rate": _rate(recent),
                "x": _numbers(self._folder.best),
                "named": _named(self._folder.named_best),
                "curves": {name: [_finite(row[name]) for row in rows] for name in names},
            }

    def _standing(self, rows: int) -> dict[str, Any]:
        """Return the run's options, whether it is running, and its first error."""
        if not self._folder.config.exists():
            return {"state": "waiting", "message": "There is no run in this folder yet."}
        try:
            options, ended = self._folder.read_options(), self._folder.ended()
        except UsageError as error:
            return {"state": "stopped", "message": str(error)}
        about = {
            "title": options.title,
            "folder": self._folder.path.resolve().name,
            "method": options.method,
            "dim": len(options.space["variables"]) if options.space else options.dim,
            "maxfevals": options.maxfevals,
            "error": _text(self._folder.first_error),
        }
        if ended is not None and not self._folder.is_running():  # it may have been resumed
            message = str(ended.get("message", ""))
            return {**about, "state": "ended", "message": message, "status": ended["status"]}
        is_quiet = time.time() - self._written > _QUIET
        if is_quiet and not self._folder.is_running():
            message = f"No process is running: fmnes resume {self._folder.path} continues."
            return {**about, "state": "stopped", "message": message}
        message = "" if rows else "The first generation is being evaluated."
        return {**about, "state": "running", "message": message}

    def _read(self) -> None:
        """Add the new rows of history.csv that are complete, a block at a time."""
        try:
            with self._folder.history.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._offset:
                    self._forget(status.st_ino)
                self._written = status.st_mtime
                file.seek(self._offset)
                while block := file.read(_BLOCK):
                    lines = (block + file.readline()).split(b"\n")
                    self._offset = file.tell() - len(lines[-1])  # not complete yet, or empty
                    self._rows.add(lines[:-1])
        except FileNotFoundError:
            return


class _Rows:
    """The rows of a history: some of them for curves, and the last ones.

    If there are more rows than points of a curve, every second, fourth, ... row is kept. Other rows
    are not even parsed. Rows that are damaged are left out.
    """

    def __init__(self) -> None:
        self.count = 0
        self._step = 1
        self._kept: list[dict[str, float] | None] = []  # of rows 0, step, 2 step, ...
        self._recent: list[bytes] = []

    def add(self, lines: list[bytes]) -> None:
        """Add lines of the file; the first one of all is the header."""
        if not self._recent and lines and lines[0].startswith(HEADER[0].encode()):
            lines = lines[1:]
        known = len(self._recent)
        self._recent += lines
        for k in range(-self.count % self._step, len(lines), self._step):
            self._kept.append(self._parsed(known + k))
        self.count += len(lines)
        while len(self._kept) > _POINTS:
            self._kept, self._step = self._kept[::2], 2 * self._step
        self._recent = self._recent[-_RATE - 1 :]

    def shown(self) -> list[dict[str, float]]:
        """Return the rows for curves, and the last one."""
        last = [] if (self.count - 1) % self._step == 0 else self.recent()[-1:]
        return [row for row in self._kept if row is not None] + last

    def recent(self) -> list[dict[str, float]]:
        """Return the last rows."""
        rows = (self._parsed(k) for k in range(len(self._recent)))
        return [row for row in rows if row is not None]

    def _parsed(self, k: int) -> dict[str, float] | None:
        """Return row k of the recent ones, with the seconds per evaluation; None if damaged."""
        row = parsed_row(self._recent[k])
        if row is None:
            return None
        if math.isnan(row["nfailed"]):  # see `Recorder`
            earlier = [kept["nfailed"] for kept in self._kept if kept is not None]
            row["nfailed"] = earlier[-1] if earlier else 0.0
        before = parsed_row(self._recent[k - 1]) if k else None
        count = row["nfev"] - (0.0 if before is None else before["nfev"])
        row["evaluation"] = row["seconds_objective"] / count if count > 0 else math.nan
        return row


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _rate(rows: list[dict[str, float]]) -> float | None:
    """Return the evaluations per second over these generations."""
    if len(rows) <= _RATE:  # from the start: the first one counts too
        rows = [{"nfev": 0.0}, *rows]
    count = rows[-1]["nfev"] - rows[0]["nfev"]
    seconds = sum(row["seconds_objective"] + row["seconds_optimizer"] for row in rows[1:])
    return _finite(count / seconds) if seconds > 0 else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _numbers(path: Path) -> list[float | None] | None:
    """Return the first numbers of a file with one on each line; None if there is no such file."""
    try:
        with path.open(encoding="utf-8") as file:
            return [_finite(float(line)) for line in itertools.islice(file, _VARIABLES)]
    except (FileNotFoundError, ValueError):
        return None


def _named(path: Path) -> list[list[str]] | None:
    """Return the first names and values of best.json as text; None if there is no such file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return [
            [name, json.dumps(value)[:_WIDTH]]
            for name, value in itertools.islice(values.items(), _VARIABLES)
        ]
    except (FileNotFoundError, ValueError, AttributeError):
        return None
