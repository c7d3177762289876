"""Worker processes: how they start, what they do, and how they end."""

import atexit
import contextlib
import functools
import multiprocessing
import os
import pickle
import select
import signal
import socket
import threading
import weakref
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

from fmnes.evaluate._cargo import Parcel, hold, ignore_interrupts, work
from fmnes.evaluate._guard import Answer
from fmnes.evaluate._slot import PoolBrokenError

_PATIENCE = 2.0  # seconds until a process that closed its pipe has ended


class Process:
    """A running process and our end of its pipe."""

    def __init__(self) -> None:
        context = _context()
        self.connection, theirs = context.Pipe()
        # Not a daemon, because daemons may not have children and an objective may want some.
        self._process = context.Process(target=serve, args=(theirs,), name="fmnes-worker")
        with _one_thread_each():
            self._process.start()
        theirs.close()
        self.sentinel: int = self._process.sentinel
        self.has_answered = False  # there is something to read
        self.room = _room(self.connection)
        _running.add(self)

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def send(self, message: Any) -> int:
        """Hand it over; how many bytes it has."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        with contextlib.suppress(OSError):  # it died: `receive` will tell
            self.connection.send_bytes(data)
        return len(data)

    def receive(self) -> Answer:
        with contextlib.suppress(EOFError, OSError):
            # A death shows in the sentinel even where a child of the objective's own holds the
            # other end of the pipe open; then there is nothing to receive.
            if self.has_answered or self.connection.poll():
                self.has_answered = False
                answer: Answer = self.connection.recv()
                return answer
        raise PoolBrokenError(self._obituary())

    def end(self, patience: float) -> None:
        """Close the pipe, which an idle worker takes as its leave, and make sure."""
        self.connection.close()
        self._process.join(patience)
        if self._process.is_alive():
            _kill_group(self._process.pid)
            self._process.kill()
            self._process.join()
        self._process.close()
        _running.discard(self)

    def _obituary(self) -> str:
        self._process.join(_PATIENCE)
        code = self._process.exitcode
        if code == -9:  # SIGKILL, a name that Windows does not have
            return "the worker process was killed (SIGKILL; often for want of memory)"
        return f"the worker process died (exit code {code})"


def _room(connection: Any) -> int:
    """Bytes that may lie in a pipe unread without anybody waiting for them to be read."""
    if not hasattr(socket, "AF_UNIX"):  # pipes of Windows
        return 0
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        return end.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 3


def ready(processes: Sequence[Process], seconds: float | None) -> list[Process]:
    """Those that answered or died, after waiting for the first of them."""
    owner: dict[int, Process] = {process.sentinel: process for process in processes}
    owner.update((process.connection.fileno(), process) for process in processes)
    if hasattr(select, "poll"):  # a fraction of what `wait` costs
        poll = select.poll()
        for descriptor in owner:
            poll.register(descriptor, select.POLLIN)
        seen = [found for found, _ in poll.poll(None if seconds is None else 1000 * seconds)]
    else:
        ends = [end for process in processes for end in (process.connection, process.sentinel)]
        seen = [end if isinstance(end, int) else end.fileno() for end in wait(ends, seconds)]
    for descriptor in seen:
        process = owner[descriptor]
        process.has_answered |= descriptor != process.sentinel
    return list(dict.fromkeys(owner[descriptor] for descriptor in seen))


def serve(connection: Any) -> None:
    """The life of a worker: hold what is a parcel, evaluate what is a chunk, until told to go."""
    ignore_interrupts()
    if hasattr(os, "setsid"):
        os.setsid()  # so that killing a worker also kills the programs that the objective started
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the driver closed the pipe, or is gone
        while True:
            message = connection.recv()
            loads = isinstance(message, Parcel)
            connection.send((hold(message) or Answer(())) if loads else work(*message))


def _end_with_the_driver() -> None:
    """A worker that hangs in its objective would not notice that nobody waits for it any more."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
    _kill_group(os.getpid())
    os._exit(1)


@functools.cache
def _context() -> Any:
    """How processes are started.

    Never by fork: the driver may hold threads (BLAS, JAX), and a forked copy of their locks hangs.
    A fork server that has loaded us brings up a worker in 10 milliseconds, where spawning takes
    some hundreds; but one that somebody else has started has not, and its BLAS has its threads.
    """
    if "forkserver" in multiprocessing.get_all_start_methods():
        from multiprocessing import forkserver

        server: Any = forkserver._forkserver
        if server._forkserver_pid is None:
            server.set_forkserver_preload([*server._preload_modules, __name__])
            return multiprocessing.get_context("forkserver")
    return multiprocessing.get_context("spawn")


_THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started meanwhile run BLAS in one thread; what the user has set stays.

    It has to be in the environment before the process starts: libraries read it when they are
    loaded, which is before any code of ours runs there.
    """
    asked = "OMP_NUM_THREADS" in os.environ  # what all of them follow, unless told otherwise
    added = [] if asked else [name for name in _THREAD_LIMITS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _kill_group(pid: int) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):  # it has not come as far as `setsid`
            os.killpg(pid, signal.SIGKILL)


# At exit multiprocessing waits for every process that is not a daemon. What runs here first, since
# it was registered later, sees to it that none is left.
_running: "weakref.WeakSet[Process]" = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for process in list(_running):
        process.end(patience=0)
