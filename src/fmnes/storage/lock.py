"""A lock on a path, which the operating system releases when its holder dies."""

import contextlib
import logging
import os
import platform
import sys
import threading
import time

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

logger = logging.getLogger("fmnes")

_ATTEMPTS, _PAUSE = 5, 0.02  # `is_locked` holds a lock for a moment; seconds between attempts
_BEYOND = 2**20  # on Windows, nobody can read the byte that is locked: one behind the text

# The locks that this process holds, by path. A lock belongs to an open file, not to the process:
# closing another descriptor of the file, as a copy of the folder does, must not release it.
_held: dict[str, "Lock"] = {}
_guard = threading.Lock()


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Return whether a process holds the lock of this file."""
    with _guard:
        if os.path.realpath(path) in _held:
            return True
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            return not _try_lock(file, shared=True)
        except OSError:  # this file system has no locks
            return False
        finally:
            os.close(file)  # releases the lock


def _try_lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed; return False if another open file has the lock."""
    try:
        if sys.platform == "win32":
            os.lseek(file, _BEYOND, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            os.lseek(file, 0, os.SEEK_SET)
        else:
            fcntl.flock(file, fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX))
    except (BlockingIOError, PermissionError):
        return False
    return True


def _leave_locks_to_the_parent() -> None:
    """Close the locked files that a forked child inherits.

    They stay locked until all copies are closed: a child that outlives its parent would block the
    path. The child never unlocks them, because that would release the lock of the parent.
    """
    for lock in _held.values():
        os.close(lock.file)
    _held.clear()
    _guard.release()


if sys.platform != "win32":
    os.register_at_fork(  # under the guard: no other thread is taking a lock meanwhile
        before=_guard.acquire,
        after_in_parent=_guard.release,
        after_in_child=_leave_locks_to_the_parent,
    )


class Lock:
    """A lock in the form of a file, which is removed when the lock is released.

    ``name`` is the name of the user's argument, for error messages, and ``locked`` what it names:
    by default the path without ``.lock``. On file systems without locks, nothing is locked.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "checkpoint",
        locked: str | os.PathLike[str] | None = None,
    ) -> None:
        self._path = os.path.realpath(path)
        self._name, self._locked = name, locked or self._path.removesuffix(".lock")
        self.file = -1  # open while the lock is held

    def acquire(self) -> None:
        """Take the lock unless we hold it already; RuntimeError if somebody else holds it."""
        with _guard:
            holder = _held.get(self._path)
            if holder is self:
                return
            if holder is not None:
                raise self._refusal("this process")
            self.file = self._locked_file()
            _held[self._path] = self
        os.ftruncate(self.file, 0)
        with contextlib.suppress(OSError):  # a full disk: the text is only for error messages
            os.write(self.file, f"process {os.getpid()} on {platform.node()}".encode())

    def release(self) -> None:
        """Release the lock if this process holds it; a forked child does not."""
        with _guard:
            if _held.get(self._path) is not self:
                return
            try:
                if sys.platform != "win32":  # where an open file cannot be removed
                    self._remove()
            finally:
                del _held[self._path]
                os.close(self.file)
            if sys.platform == "win32":
                self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):  # the folder may be gone or read-only by now
            os.unlink(self._path)

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
        try:
            for _ in range(_ATTEMPTS):
                if _try_lock(file):
                    return
                time.sleep(_PAUSE)
            os.lseek(file, 0, os.SEEK_SET)
            raise self._refusal(os.read(file, 100).decode(errors="replace") or "?")
        except OSError as error:
            logger.warning(
                "%s: this file system has no locks (%s); run one search at a time on this path",
                self._path,
                error,
            )

    def _refusal(self, holder: str) -> RuntimeError:
        return RuntimeError(
            f"{self._name}: expected a path that nobody else is using, got {self._locked}, used by "
            f"{holder}"
        )
