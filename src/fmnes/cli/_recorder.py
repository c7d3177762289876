"""The callback of ``fmnes run``: it keeps history.csv, best.txt and first_error.txt up to date."""

import csv
import io
import logging
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fmnes import Result
from fmnes._history import COLUMNS
from fmnes.cli._folder import Folder, write_text

logger = logging.getLogger("fmnes")

HEADER = [*COLUMNS, "nfailed"]
_INTERVAL = 1.0  # seconds between two writes; more if writing is slow
_SHARE = 20  # writing takes at most 1/20 of the time


class Recorder:
    """Writes history.csv, best.txt and first_error.txt, for the last time when it is closed.

    The column nfailed counts the failures so far. It is empty for generations that a killed process
    had saved in a checkpoint but not in history.csv, because checkpoints hold only the sum.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._process = os.getpid()
        self._table: _Table | None = None
        self._known: int | None = None  # generations of earlier processes; None before the first
        self._nfailed: dict[int, int] = {}  # by generation, of those that are not written yet
        self._last: Result | None = None
        self._due = 0.0
        self._best = math.inf  # the value of the candidate in best.txt
        self._has_error = folder.first_error.exists()

    def __call__(self, result: Result) -> None:
        """Take note of a generation, and write if it is time to."""
        if os.getpid() != self._process:
            sys.exit("fmnes: a process that the objective forked must not continue the search")
        self._note(result, known=result.nit - 1)
        self._nfailed[result.nit] = result.nfailed
        if time.monotonic() >= self._due:
            self._write_or_warn(result)

    def finish(self, result: Result) -> None:
        """Take note of the end; a resumed run may end without another generation."""
        self._note(result, known=result.nit)

    def _note(self, result: Result, known: int) -> None:
        self._last = result
        if self._known is None:
            self._known = known

    def _write_or_warn(self, result: Result) -> None:
        """Bring the files up to date; log a disk error, which does not end the search."""
        begun = time.monotonic()
        try:
            self._write(result)
        except OSError as error:
            logger.warning("%s was not written: %s", self._folder.history, error.strerror)
        self._due = time.monotonic() + max(_INTERVAL, _SHARE * (time.monotonic() - begun))

    def _write(self, result: Result) -> None:
        if self._table is None:
            self._table = _Table(self._folder.history, self._known or 0)
        self._table.append(result, self._nfailed)
        self._nfailed.clear()
        if result.fun < self._best:
            x = np.asarray(result.x).tolist()
            write_text(self._folder.best, "".join(f"{value!r}\n" for value in x))
            self._best = result.fun
        if result.first_error is not None and not self._has_error:
            write_text(self._folder.first_error, result.first_error)
            self._has_error = True

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self._last is not None:
            self._write_or_warn(self._last)
        if self._table is not None:
            self._table.close()


class _Table:
    """The file history.csv. Rows are appended whole: if the disk is full, none of them."""

    def __init__(self, path: Path, known: int) -> None:
        """Begin a new file with the rows of an earlier one, up to generation ``known``.

        It is a new file, so that `fmnes watch` notices and reads it from the beginning.
        """
        self._generation = 0  # of the last row
        temporary = path.with_name(f"{path.name}.tmp")
        with temporary.open("wb") as file:
            file.write(_csv([HEADER]))
            for generation, line in _rows(path):
                if generation > known:
                    break
                file.write(line)
                self._generation = generation
        self._size = temporary.stat().st_size
        temporary.replace(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))

    def append(self, result: Result, nfailed: dict[int, int]) -> None:
        """Append the generations that the file lacks, each with its ``nfailed`` if it is known."""
        history, missing = result.history, result.nit - self._generation
        rows = history.to_array(max(0, len(history) - missing))
        rows = rows[rows["generation"] > self._generation]
        data = _csv([*row, nfailed.get(row[0], "")] for row in rows.tolist())
        left = data
        try:
            while left:  # a disk that is nearly full may accept only a part
                left = left[os.write(self._file, left) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)
        self._generation = result.nit

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _csv(rows: Iterator[list[object]] | list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _rows(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a history with their generations, up to the first damaged one."""
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
                yield last, line
    except FileNotFoundError:
        return
