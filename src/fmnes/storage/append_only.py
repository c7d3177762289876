"""A file that only grows: a search's journal, a run's history, a benchmark's trials.

A kill leaves at most a part of the last record behind. Readers ignore that part, and a writer that
continues the file removes it. How records are told apart is up to the file: lines of text, which
people and other programs read, or bytes with checksums.
"""

import contextlib
import os


class AppendOnlyFile:
    """Appends to a file: to a new one that begins with ``head``, or to the first ``end`` bytes."""

    def __init__(self, path: str | os.PathLike[str], head: bytes = b"", end: int = 0) -> None:
        self.open(path)
        self.size = end
        try:
            os.ftruncate(self._file, end)
            if not end:
                self.append(head)
        except BaseException:
            self.close()
            raise

    def open(self, path: str | os.PathLike[str]) -> None:
        """Open the file, at first or after it was closed to rename it: Windows demands that."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o666)

    def append(self, data: bytes) -> None:
        """Write all of ``data``, so that a kill does not lose it; or nothing, if that fails."""
        left = data
        try:
            while left:  # a disk that is nearly full may accept only a part
                left = left[os.write(self._file, left) :]
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.size)
            raise
        self.size += len(data)

    def sync(self) -> None:
        """Force the file to the disk, so that a power failure does not lose it."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
