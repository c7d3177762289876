"""One user of a path: a lock that the system takes back when its holder dies."""

import contextlib
import logging
import os
import threading

logger = logging.getLogger("fmnes")

# A record lock belongs to a process: not to the workers it forks, which may outlive it, but to all
# of its threads, so that those have to be told apart here.
_held: dict[str, int] = {}
_guard = threading.Lock()


def in_use(path: str | os.PathLike[str]) -> bool:
    """Whether somebody else holds the lock of this file; its holder would lose it by asking."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, BlockingIOError, PermissionError):  # Windows; or it is held
        return True
    finally:
        os.close(file)  # which gives the lock back
    return False


class Lock:
    """A lock by means of a file, which is removed with it. Where the system knows none: no lock.

    The path is that of what is locked, with ``.lock`` at its end; the name is that of the argument
    by which the user gave it.
    """

    def __init__(self, path: str | os.PathLike[str], name: str = "checkpoint") -> None:
        self._path = os.path.realpath(path)
        self._name = name
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock, if not held already; RuntimeError where somebody else has it."""
        if self._file is not None:
            return
        with _guard:
            if _held.get(self._path) == os.getpid():
                raise RuntimeError(self._refusal("this process"))
            self._file = self._locked_file()
            _held[self._path] = os.getpid()
        import socket  # here: it would take long to import

        os.ftruncate(self._file, 0)
        with contextlib.suppress(OSError):  # a full disk; others only read it for their message
            os.write(self._file, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def release(self) -> None:
        """Give the lock back, if held."""
        if self._file is None:
            return
        with _guard:
            with contextlib.suppress(OSError):  # the folder may be gone, or read-only by now
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
                # Its last holder may have removed it between our opening and our locking it.
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
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise RuntimeError(self._refusal(os.pread(file, 100, 0).decode() or "?")) from None
        except OSError as error:
            logger.warning(
                "%s: locks do not work there (%s); use it once at a time", self._path, error
            )

    def _refusal(self, holder: str) -> str:
        path = self._path.removesuffix(".lock")
        return (
            f"{self._name}: expected a path that nobody else is using, got {path}, used by {holder}"
        )
