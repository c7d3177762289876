"""One process of our own at the other end of a pipe.

Why not ProcessPoolExecutor: there one dead worker takes everything in flight with it, and nobody
can say which candidate was to blame, or for how long each of them ran. With a process and a pipe
for each worker, a death or a hang costs exactly one candidate. It is quicker, too: with two
workers 47 microseconds a task against 223 for two executors of one process each and 132 for one
executor of two; 3 file descriptors a worker against 8.5; no threads.
"""

import atexit
import contextlib
import functools
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import weakref
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

from fmnes.evaluate._cargo import Cargo, Parcel, hold, ignore_interrupts, work
from fmnes.evaluate._guard import Answer
from fmnes.evaluate._outcome import EvaluationError
from fmnes.evaluate._slot import PoolBrokenError

_MOST_STARTS = 3  # in a row, without getting as far as loading the objective
_PATIENCE = 2.0  # seconds that an idle worker may take to leave


class Worker:
    """A slot of the driver: a process that evaluates one chunk at a time.

    The process starts when there is something to do, and anew after it died or was killed.
    """

    width = 1
    isolates = replaceable = can_stop = builds = True
    leaves_stragglers = False
    allowance = 0.0

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._holds: dict[str, str] = {}  # kind of a parcel -> key
        self._loading: Parcel | None = None
        self._starts = 0

    def prepare(self, cargo: Cargo) -> "_Process | None":
        """See that the process runs and holds what it needs; None once that is so."""
        if self._process is not None and not self._process.is_alive():  # it died while idle
            self.kill()
        if self._process is None:
            self._process, self._holds = self._start(), {}
        for parcel in cargo.parcels:
            if self._holds.get(parcel.kind) != parcel.key:
                self._loading = parcel
                return self._process.send(parcel)
        return None

    def submit(self, cargo: Cargo, candidates: Sequence[int], seconds: float) -> "_Process":
        """Start a chunk; the handle that stands for it is the process."""
        if self._process is None:
            raise RuntimeError("prepare() comes before submit()")
        rows = cargo.rows(candidates, built_there=True)
        return self._process.send((cargo.names, candidates, rows, seconds))

    def result(self, handle: "_Process") -> Answer:
        """What a chunk came to, or an empty answer where a parcel was loaded."""
        answer = handle.receive()
        if self._loading is not None and answer.refused is None:
            self._holds[self._loading.kind] = self._loading.key
        self._loading = None
        self._starts = 0
        return answer

    @staticmethod
    def completed(handles: Sequence["_Process"], seconds: float | None) -> list["_Process"]:
        """Those that answered or died, after waiting for the first of them."""
        # A death shows in the sentinel even where a child of the objective's own holds the other
        # end of the pipe open.
        owner: dict[Any, _Process] = {process.connection: process for process in handles}
        owner.update((process.sentinel, process) for process in handles)
        return list(dict.fromkeys(owner[ready] for ready in wait(list(owner), seconds)))

    def is_queued(self, handle: "_Process") -> bool:
        """Nothing is: a chunk goes to a process that is free."""
        return False

    def stop(self, handle: "_Process") -> bool:
        """End the process, which takes nothing else with it."""
        self.kill()
        return True

    def drop(self, handles: Sequence["_Process"]) -> None:
        """`kill` comes next."""

    def kill(self) -> None:
        """End the process at once, whatever it does; the next candidate starts another."""
        if self._process is not None:
            self._process.end(patience=0)
        self._process = self._loading = None

    def close(self) -> None:
        """Let an idle process leave."""
        if self._process is not None:
            self._process.end(patience=_PATIENCE)
        self._process = self._loading = None

    def _start(self) -> "_Process":
        if self._starts >= _MOST_STARTS:
            raise EvaluationError(
                f"workers: {_MOST_STARTS} worker processes in a row died while starting; a script "
                'that uses processes needs its main part under `if __name__ == "__main__":`, '
                "because each worker imports the script"
            )
        self._starts += 1
        return _Process()


class _Process:
    """A running process and our end of its pipe."""

    def __init__(self) -> None:
        context = _context()
        self.connection, theirs = context.Pipe()
        # Not a daemon, because daemons may not have children and an objective may want some.
        self._process = context.Process(target=serve, args=(theirs,), name="fmnes-worker")
        with _one_thread_each():
            self._process.start()
        theirs.close()
        self.sentinel = self._process.sentinel
        _running.add(self)

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def send(self, message: Any) -> "_Process":
        with contextlib.suppress(OSError):  # it died: `receive` will tell
            self.connection.send(message)
        return self

    def receive(self) -> Answer:
        with contextlib.suppress(EOFError, OSError):
            if self.connection.poll():
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


def serve(connection: Any) -> None:
    """The life of a worker: hold what is a parcel, evaluate what is a chunk, until told to go."""
    ignore_interrupts()
    if hasattr(os, "setsid"):
        os.setsid()  # so that killing a worker also kills the programs that the objective started
    with contextlib.suppress(EOFError, OSError):  # the driver closed the pipe, or is gone
        while True:
            message = connection.recv()
            if isinstance(message, Parcel):
                connection.send(hold(message) or Answer(()))
            else:
                connection.send(work(*message))


@functools.cache
def _context() -> Any:
    """How processes are started.

    Never by fork: the driver may hold threads (BLAS, JAX), and a forked copy of their locks hangs.
    A fork server that has loaded us brings up a worker in 10 milliseconds, where spawning takes
    some hundreds; but one that somebody else has started has not, and its BLAS has its threads.
    """
    if "forkserver" in multiprocessing.get_all_start_methods():
        server: Any = multiprocessing.forkserver._forkserver
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
    added = [name for name in _THREAD_LIMITS if name not in os.environ]
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
_running: "weakref.WeakSet[_Process]" = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for process in list(_running):
        process.end(patience=0)
