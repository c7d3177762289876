"""The callback of ``fmnes run``: it keeps history.csv and first_error.txt up to date."""

import csv
import logging
import time
from pathlib import Path
from typing import IO

from fmnes import Result
from fmnes._history import COLUMNS
from fmnes.cli._folder import Folder, write_text

logger = logging.getLogger("fmnes")

HEADER = [*COLUMNS, "nfailed"]
_INTERVAL = 1.0  # seconds between two writes; more if writing is slow
_SHARE = 20  # writing takes at most 1/20 of the time


class Recorder:
    """Writes history.csv and first_error.txt, the last rows when it is closed.

    The column nfailed counts the failures so far. It is empty for generations that a killed process
    had saved in a checkpoint but not in history.csv, because checkpoints hold only the sum.
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
        """Take note of a generation, and write if it is time to."""
        self._note(result, known=len(result.history) - 1).append(str(result.nfailed))
        if time.monotonic() >= self._due:
            self._write_or_warn(result)

    def finish(self, result: Result) -> None:
        """Take note of the end; a resumed run may end without another generation."""
        self._note(result, known=len(result.history))

    def _note(self, result: Result, known: int) -> list[str]:
        """Keep the result; at first read nfailed of the ``known`` generations of earlier runs."""
        self._last = result
        if self._nfailed is None:
            found = _read_nfailed(self._folder.history)[:known]
            self._nfailed = found + [""] * (known - len(found))
        return self._nfailed

    def _write_or_warn(self, result: Result) -> None:
        """Bring the files up to date; log a disk error, which does not end the search."""
        begun = time.monotonic()
        try:
            self._write(result)
        except OSError as error:
            logger.warning("%s was not written: %s", self._folder.history, error.strerror)
            self._drop_file()  # the next write makes a new one
        self._due = time.monotonic() + max(_INTERVAL, _SHARE * (time.monotonic() - begun))

    def _write(self, result: Result) -> None:
        if result.first_error is not None and not self._has_error:
            write_text(self._folder.first_error, result.first_error)
            self._has_error = True
        if self._file is None:
            write_text(self._folder.history, "")  # a new file: `fmnes watch` reads it anew
            self._file, self._rows = self._folder.history.open("a", newline=""), 0
            csv.writer(self._file).writerow(HEADER)
        rows, nfailed = result.history.to_array(self._rows), self._nfailed or []
        new = zip(rows.tolist(), nfailed[self._rows :], strict=True)
        csv.writer(self._file).writerows([*row, failed] for row, failed in new)
        self._file.flush()
        self._rows += len(rows)

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self._last is not None:
            self._write_or_warn(self._last)
        self._drop_file()

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _read_nfailed(path: Path) -> list[str]:
    """Return the last column of an existing history, for all complete rows."""
    try:
        lines = path.read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [line.rpartition(",")[2].strip() for line in lines[1:]]
