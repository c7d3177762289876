"""A lock on a path, which the operating system releases when its holder dies."""

import contextlib
import logging
import os
import platform
import sys
import threading

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger("fmnes")

# A record lock belongs to a process. The workers that the process forks do not inherit it, so a
# worker that outlives the process does not block the path. All threads of the process share the
# lock, so this table tells them apart.
_held: dict[str, int] = {}
_guard = threading.Lock()


def in_use(path: str | os.PathLike[str]) -> bool:
    """Return whether another process holds the lock of this file.

    The process that holds the lock must not call this function: it would release its own lock.
    """
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(file)
    finally:
        os.close(file)  # releases the lock


def _try_lock(file: int) -> bool:
    """Lock an open file; return False if another process holds it, or on Windows."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


class Lock:
    """A lock in the form of a file, which is removed when the lock is released.

    ``path`` is the path that is locked, with ``.lock`` appended. ``name`` is the name of the user's
    argument, for error messages. On Windows, and on file systems without locks, nothing is locked.
    """

    def __init__(self, path: str | os.PathLike[str], name: str = "checkpoint") -> None:
        self._path = os.path.realpath(path)
        self._name = name
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock unless we hold it already; RuntimeError if somebody else holds it."""
        if self._file is not None:
            return
        with _guard:
            if _held.get(self._path) == os.getpid():
                raise self._refusal("this process")
            self._file = self._locked_file()
            _held[self._path] = os.getpid()
        os.ftruncate(self._file, 0)
        with contextlib.suppress(OSError):  # a full disk: the text is only for error messages
            os.write(self._file, f"process {os.getpid()} on {platform.node()}".encode())

    def release(self) -> None:
        """Release the lock if we hold it."""
        if self._file is None:
            return
        with _guard:
            with contextlib.suppress(OSError):  # the folder may be gone or read-only by now
                os.unlink(self._path)
            os.close(self._file)
            self._file = None
            del _held[self._path]

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    def _locked_file(self) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                self._lock(file)
                # The last holder may have removed the file after we opened it and before we
                # locked it.
                if os.path.samestat(os.fstat(file), os.stat(self._path)):
                    return file
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _lock(self, file: int) -> None:
        if sys.platform == "win32":
            return
        try:
            if not _try_lock(file):
                raise self._refusal(os.pread(file, 100, 0).decode() or "?")
        except OSError as error:
            logger.warning(
                "%s: this file system has no locks (%s); run one search at a time on this path",
                self._path,
                error,
            )

    def _refusal(self, holder: str) -> RuntimeError:
        path = self._path.removesuffix(".lock")
        return RuntimeError(
            f"{self._name}: expected a path that nobody else is using, got {path}, used by {holder}"
        )
