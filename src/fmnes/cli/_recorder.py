"""The callback of ``fmnes run``: it keeps history.csv, best.txt and first_error.txt up to date."""

import csv
import io
import logging
import math
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import Result
from fmnes.cli._folder import Folder, json_text, write_text
from fmnes.records.history import COLUMNS, History
from fmnes.storage.append_only import AppendOnlyFile
from fmnes.variables.space import plain

logger = logging.getLogger("fmnes")

HEADER = [*COLUMNS, "nfailed"]
_INTERVAL = 1.0  # seconds between two writes; more if writing is slow
_SHARE = 20  # writing takes at most 1/20 of the time


class Recorder:
    """Writes history.csv, best.txt and first_error.txt, for the last time when it is closed.

    With named variables, best.json takes the place of best.txt.

    During the run it appends the rows that stay in the history (see `History`). When it is closed,
    the file gets all rows of the history. The column nfailed counts the failures so far. It is
    empty for generations that a killed process had saved in a checkpoint but not in history.csv,
    because checkpoints hold only the sum.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._log: AppendOnlyFile | None = None  # history.csv
        self._rows = 0  # in it
        self._nfailed: dict[int, str] | None = None  # by generation; None before the first
        self._last: Result | None = None
        self._due = 0.0
        self._best = math.inf, math.inf  # violation and value of the candidate in best.txt
        self._has_error = folder.first_error.exists()

    def __call__(self, result: Result) -> None:
        """Take note of a generation, and write if it is time to."""
        self.finish(result)
        if time.monotonic() >= self._due:
            self._write_or_warn(result, result.history.kept())

    def finish(self, result: Result) -> None:
        """Take note of a result; a resumed run may end without another generation."""
        self._last = result
        if self._nfailed is None:  # the rows that an earlier process has written
            self._nfailed = dict(_read_nfailed(self._folder.history))
        # The last result may have failures of a generation that was not completed: no row has them.
        self._nfailed.setdefault(result.nit, str(result.nfailed))

    def _write_or_warn(self, result: Result, rows: NDArray[Any]) -> None:
        """Bring the files up to date; log a disk error, which does not end the search."""
        begun = time.monotonic()
        try:
            self._write(result, rows)
        except OSError as error:
            logger.warning("%s was not written: %s", self._folder.history, error.strerror)
        self._due = time.monotonic() + max(_INTERVAL, _SHARE * (time.monotonic() - begun))

    def _write(self, result: Result, rows: NDArray[Any]) -> None:
        known = self._nfailed or {}
        new = [[*row, known.get(row[0], "")] for row in rows[self._rows :].tolist()]
        if self._log is None:
            self._folder.result.unlink(missing_ok=True)  # of an earlier end: the run continues
            self._log = _new_table(self._folder.history, new)
        else:
            self._log.append(_csv(new).encode())
        self._rows += len(new)
        shown = [result.nit, *result.history["generation"].tolist()]  # forget the others
        self._nfailed = {g: known[g] for g in shown if g in known}
        best = result.constr_violation, result.fun
        if result.fun < math.inf and best < self._best:
            self._write_best(result)
            self._best = best
        if result.first_error is not None and not self._has_error:
            write_text(self._folder.first_error, result.first_error)
            self._has_error = True

    def _write_best(self, result: Result) -> None:
        if result.space is None:
            x = np.asarray(result.x).tolist()
            write_text(self._folder.best, "".join(f"{value!r}\n" for value in x))
        else:
            write_text(self._folder.named_best, json_text(plain(result.space.values(result.x))))

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self._last is not None:
            rows = self._last.history.to_array()
            if self._log is not None and len(rows) > len(self._last.history.kept()):
                self._log.close()  # there are rows to insert: write a new file
                self._log, self._rows = None, 0
            self._write_or_warn(self._last, rows)
        if self._log is not None:
            self._log.close()


def _new_table(path: Path, rows: list[list[object]]) -> AppendOnlyFile:
    """Write a new history.csv in one step; `fmnes watch` notices, and reads it from the beginning.

    The file of an earlier process stays until the new one is complete.
    """
    write_text(path, _csv([HEADER, *rows]))
    return AppendOnlyFile(path, end=path.stat().st_size)


def _csv(rows: Iterable[list[Any]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def parsed_row(line: bytes) -> dict[str, float] | None:
    """Return a row of the file by the names of its columns; None if it is damaged."""
    try:
        words = line.decode("ascii").strip().split(",")
        return dict(zip(HEADER, [float(word or "nan") for word in words], strict=True))
    except ValueError:
        return None


def read_history(path: Path) -> History:
    """Return the rows of a history.csv; none if there is no such file."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # what follows is not complete
    except FileNotFoundError:
        lines = []
    rows = [row for line in lines if (row := parsed_row(line)) is not None]
    return History.from_columns({name: np.array([row[name] for row in rows]) for name in COLUMNS})


def _read_nfailed(path: Path) -> Iterator[tuple[int, str]]:
    """Yield generation and nfailed of the rows of a history, up to the first damaged one."""
    last = 0
    try:
        with path.open("rb") as file:
            next(file, None)  # the header
            for line in file:
                word = line.partition(b",")[0]
                is_whole = line.endswith(b"\n") and line.count(b",") == len(HEADER) - 1
                if not (is_whole and word.isdigit() and int(word) > last):
                    return
                last = int(word)
                yield last, line.rpartition(b",")[2].strip().decode("ascii", "replace")
    except FileNotFoundError:
        return
