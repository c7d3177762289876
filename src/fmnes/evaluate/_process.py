"""Worker processes of our own: how they start, what they do, and how they end.

Why not ProcessPoolExecutor: there, one dead worker takes all running chunks with it, and nobody can
say which candidate was the cause, or how long each of them ran. With one process and one pipe per
worker, a death or a hang costs exactly one chunk. It is also quicker.

`multiprocessing` and `socket` are imported inside functions, because they would make `import fmnes`
several percent slower.
"""

import atexit
import contextlib
import functools
import os
import pickle
import select
import signal
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from fmnes.evaluate._call import ChunkResult
from fmnes.evaluate._group import GroupBrokenError, WorkerGroup
from fmnes.evaluate._outcome import EvaluationError
from fmnes.evaluate._payload import Payload, Workload, ignore_interrupts, load, work

_MOST_STARTS = 3  # in a row, without a process that loads the objective
_LEAVE_SECONDS = 2.0  # that an idle worker may take to end
_EXIT_SECONDS = 2.0  # that a process may take to end after it closed its pipe


class _Request:
    """A message that a process has to answer."""

    def __init__(self, process: "WorkerProcess") -> None:
        self.process = process


class ProcessWorker(WorkerGroup):
    """One process that evaluates one chunk after the other.

    The process starts when it is needed first, and again after it died or was killed. A second
    chunk may wait in its pipe, so that the process need not wait for the driver. If the process
    dies, the first chunk in the pipe was the cause.
    """

    width = 1
    in_order = True
    keeps_late_chunks = False

    def __init__(self) -> None:
        self._process: WorkerProcess | None = None
        self._workload: Workload | None = None  # the last one
        self._holds: dict[str, str] = {}  # kind of payload -> key
        self._chunks_are_small = False
        self._starts = 0

    @property
    def lookahead(self) -> int:
        """One more chunk if it fits into the pipe."""
        return int(self._chunks_are_small)

    def prepare(self, workload: Workload) -> _Request | None:
        """Start the process and send it what it lacks, one payload at a time."""
        if workload is not self._workload:
            self._workload = workload
            if self._process is not None and not self._process.is_alive():  # it died while idle
                self.end(force=True)
        if self._process is None:
            self._process, self._holds = self._start(), {}
        for payload in workload.payloads:
            if self._holds.get(payload.kind) != payload.key:
                self._holds[payload.kind] = payload.key  # if loading fails, the evaluation ends
                self._process.send(payload)
                return _Request(self._process)
        return None

    def submit(self, workload: Workload, candidates: Sequence[int], seconds: float) -> _Request:
        """Send a chunk to the process that `prepare` started."""
        if self._process is None:
            raise RuntimeError("prepare() comes before submit()")
        rows = workload.rows(candidates, built_by_worker=True)
        nbytes = self._process.send((workload.names, candidates, rows, seconds))
        self._chunks_are_small = nbytes < self._process.pipe_capacity
        return _Request(self._process)

    def result(self, handle: _Request) -> ChunkResult:
        """The result of a chunk; an empty one if a payload was loaded."""
        result = handle.process.receive()
        self._starts = 0
        return result

    def completed(self, handles: Sequence[_Request], seconds: float) -> list[_Request]:
        """The oldest request of each process that answered or died."""
        oldest: dict[WorkerProcess, _Request] = {}
        for handle in handles:
            oldest.setdefault(handle.process, handle)
        return [oldest[process] for process in ready(list(oldest), seconds)]

    def end(self, *, force: bool) -> None:
        if self._process is not None:
            self._process.end(0.0 if force else _LEAVE_SECONDS)
        self._process = None

    def _start(self) -> "WorkerProcess":
        if self._starts >= _MOST_STARTS:
            raise EvaluationError(
                f"workers: {_MOST_STARTS} worker processes in a row died while starting; a script "
                'that uses processes needs its main part under `if __name__ == "__main__":`, '
                "because each worker imports the script"
            )
        self._starts += 1
        return WorkerProcess()


class WorkerProcess:
    """A running process and the driver's end of its pipe."""

    def __init__(self) -> None:
        context = _context()
        self.connection, theirs = context.Pipe()
        # Not a daemon: daemons may not have children, and an objective may start some.
        self._process = context.Process(target=serve, args=(theirs,), name="fmnes-worker")
        with _one_thread_each():
            self._process.start()
        theirs.close()
        self.sentinel: int = self._process.sentinel
        self.has_answered = False  # there is something to read
        self.pipe_capacity = _pipe_capacity(self.connection)
        _running.add(self)

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def send(self, message: Any) -> int:
        """Send a message; return its size in bytes."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        with contextlib.suppress(OSError):  # the process died: `receive` will say so
            self.connection.send_bytes(data)
        return len(data)

    def receive(self) -> ChunkResult:
        with contextlib.suppress(EOFError, OSError):
            # The sentinel shows a death even if a child of the objective holds the other end of the
            # pipe open; then there is nothing to receive.
            if self.has_answered or self.connection.poll():
                self.has_answered = False
                result: ChunkResult = self.connection.recv()
                return result
        self._process.join(_EXIT_SECONDS)
        code = self._process.exitcode
        if code == -9:  # SIGKILL, a name that Windows does not have
            raise GroupBrokenError("the worker process was killed (SIGKILL; often out of memory)")
        raise GroupBrokenError(f"the worker process died (exit code {code})")

    def end(self, seconds: float) -> None:
        """Close the pipe, which makes an idle worker end; kill the process after ``seconds``."""
        self.connection.close()
        self._process.join(seconds)
        if self._process.is_alive():
            _kill_process_group(self._process.pid)
            self._process.kill()
            self._process.join()
        self._process.close()
        _running.discard(self)


def ready(processes: Sequence[WorkerProcess], seconds: float) -> list[WorkerProcess]:
    """Wait for the first answer or death; return the processes that answered or died."""
    owner: dict[int, WorkerProcess] = {process.sentinel: process for process in processes}
    owner.update((process.connection.fileno(), process) for process in processes)
    if hasattr(select, "poll"):  # much quicker than `wait`
        poll = select.poll()
        for descriptor in owner:
            poll.register(descriptor, select.POLLIN)
        seen = [found for found, _ in poll.poll(1000 * seconds)]
    else:
        from multiprocessing.connection import wait

        ends = [end for process in processes for end in (process.connection, process.sentinel)]
        seen = [end if isinstance(end, int) else end.fileno() for end in wait(ends, seconds)]
    for descriptor in seen:
        process = owner[descriptor]
        process.has_answered |= descriptor != process.sentinel
    return list(dict.fromkeys(owner[descriptor] for descriptor in seen))


def _pipe_capacity(connection: Any) -> int:
    """Bytes that can be sent without waiting until the other side reads them."""
    import socket

    if not hasattr(socket, "AF_UNIX"):  # pipes of Windows
        return 0
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        return end.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 3


# === In the worker ===


def serve(connection: Any) -> None:
    """Load payloads and evaluate chunks until the driver closes the pipe."""
    ignore_interrupts()
    if hasattr(os, "setsid"):
        os.setsid()  # so that killing a worker also kills the programs that the objective started
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the driver closed the pipe or is gone
        while True:
            message = connection.recv()
            connection.send(load(message) if isinstance(message, Payload) else work(*message))


def _end_with_the_driver() -> None:
    """End this process when the driver is gone, even if the objective hangs."""
    import multiprocessing

    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
    _kill_process_group(os.getpid())
    os._exit(1)


# === Start and end ===


@functools.cache
def _context() -> Any:
    """The way in which processes are started.

    Never by fork: the driver may have threads (BLAS, JAX), and a forked copy of their locks hangs.
    A fork server that has loaded this module starts a worker in 10 milliseconds, where spawning
    takes some hundreds. A fork server that somebody else started has not loaded this module, and
    its BLAS may have started threads.
    """
    import multiprocessing.util

    # At exit, multiprocessing waits for every process that is not a daemon. `_end_all` is
    # registered later than that, so it runs first and leaves none.
    atexit.register(_end_all)
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
    """Let processes that start in this context run BLAS in one thread, unless the user set it.

    Libraries read the environment when they are loaded, which is before our code runs there.
    """
    asked = "OMP_NUM_THREADS" in os.environ  # all libraries follow it by default
    added = [] if asked else [name for name in _THREAD_LIMITS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _kill_process_group(pid: int) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):  # the process has not called `setsid` yet
            os.killpg(pid, signal.SIGKILL)


_running: "weakref.WeakSet[WorkerProcess]" = weakref.WeakSet()


def _end_all() -> None:
    for process in list(_running):
        process.end(0.0)
