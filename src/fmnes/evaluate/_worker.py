"""One process of our own at the other end of a pipe.

Why not ProcessPoolExecutor: there one dead worker takes everything in flight with it, and nobody
can say which candidate was to blame, or for how long each of them ran. With a process and a pipe
for each worker, a death or a hang costs exactly one candidate. It is quicker, too: with two
workers 47 microseconds a task against 223 for two executors of one process each and 132 for one
executor of two; 3 file descriptors a worker against 8.5; no threads.
"""

import atexit
import contextlib
import multiprocessing
import os
import pickle
import signal
import weakref
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

from fmnes.evaluate._driver import PoolBrokenError
from fmnes.evaluate._guard import Task, attempt, guarded, pickled
from fmnes.evaluate._outcome import EvaluationError, Failure

# Never fork: the driver may hold threads (BLAS, JAX), and a forked copy of their locks hangs.
_METHODS = multiprocessing.get_all_start_methods()
_CONTEXT: Any = multiprocessing.get_context("forkserver" if "forkserver" in _METHODS else "spawn")
_MOST_STARTS = 3  # in a row, without getting as far as loading the objective
_PATIENCE = 2.0  # seconds that an idle worker may take to leave


class Worker:
    """A slot of the driver: a process that evaluates one candidate at a time.

    The process starts when there is something to do, and anew after it died or was killed.
    """

    width = 1
    rebuildable = True

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._loaded: bytes | None = None
        self._loading = False  # perhaps since an evaluation that ended before this worker was up
        self._starts = 0

    def payload(self, task: Task) -> bytes:
        """The objective is pickled once for all workers, and sent once to each."""
        return pickled(task)

    def prepare(self, payload: bytes) -> "_Process | None":
        """See that the process runs and holds the objective; None once that is so."""
        if self._process is not None and not self._process.is_alive():  # it died while idle
            self.kill()
        if self._process is None:
            self._process, self._loaded, self._loading = self._start(), None, False
        if self._loading:
            return self._process
        if self._loaded == payload:
            return None
        self._loaded, self._loading = payload, True
        return self._process.send(payload)

    def submit(self, payload: bytes, candidate: int, x: Any) -> "_Process":
        """Start one candidate; the handle that stands for it is the process."""
        if self._process is None:
            raise RuntimeError("prepare() comes before submit()")
        return self._process.send((candidate, x))

    def result(self, handle: "_Process") -> float | Failure | None:
        """A value, a failure, or None where the objective was loaded."""
        answer = handle.receive()
        self._loading = False
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

    def kill(self) -> None:
        """End the process at once, whatever it does; the next candidate starts another."""
        if self._process is not None:
            self._process.end(patience=0)
        self._process = None

    def close(self) -> None:
        """Let an idle process leave."""
        if self._process is not None:
            self._process.end(patience=_PATIENCE)
        self._process = None

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
        self.connection, theirs = _CONTEXT.Pipe()
        # Not a daemon, because daemons may not have children and an objective may want some.
        self._process = _CONTEXT.Process(target=serve, args=(theirs,), name="fmnes-worker")
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

    def receive(self) -> float | Failure | None:
        with contextlib.suppress(EOFError, OSError):
            if self.connection.poll():
                answer: float | Failure | None = self.connection.recv()
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
    """The life of a worker: load what is bytes, evaluate what is a candidate, until told to go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver to deal with
    if hasattr(os, "setsid"):
        os.setsid()  # so that killing a worker also kills the programs that the objective started
    task: Any = None
    with contextlib.suppress(EOFError, OSError):  # the driver closed the pipe, or is gone
        while True:
            message = connection.recv()
            if isinstance(message, bytes):
                task = attempt(pickle.loads, message)
                connection.send(task if isinstance(task, Failure) else None)
            else:
                connection.send(guarded(task, *message))


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
