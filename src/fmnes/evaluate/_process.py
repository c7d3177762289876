"""Worker processes of our own: how they start, what they do, and how they end.

Why not ProcessPoolExecutor: there, one dead worker takes all running chunks with it, and nobody can
say which candidate was the cause, or how long each of them ran. With one process and one pipe per
worker, a death or a hang costs exactly one chunk. It is also quicker.

`multiprocessing` is imported inside functions, because it would make `import fmnes` several percent
slower.
"""

import contextlib
import itertools
import os
import pickle
import threading
from collections.abc import Sequence
from typing import Any

from fmnes.evaluate._call import ChunkResult
from fmnes.evaluate._group import STARTUP_SECONDS, GroupBrokenError, WorkerGroup
from fmnes.evaluate._launch import (
    UNGUARDED,
    kill_process_group,
    launch,
    running,
    unblock_interrupts,
)
from fmnes.evaluate._outcome import EvaluationError
from fmnes.evaluate._payload import Payload, Workload, ignore_interrupts, load, work
from fmnes.evaluate._pipe import WorkerPipe, ready

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
    lookahead = 1
    in_order = True
    keeps_late_chunks = False

    def __init__(self) -> None:
        self._process: WorkerProcess | None = None
        self._workload: Workload | None = None  # the last one
        self._holds: dict[str, str] = {}  # kind of payload -> key
        self._is_loading = False
        self._starts = 0

    @property
    def startup_seconds(self) -> float:
        """Time to start and to import the modules of the objective."""
        return STARTUP_SECONDS if self._is_loading else 0.0

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
                self._is_loading = True
                return _Request(self._process)
        self._is_loading = False
        return None

    def submit(self, workload: Workload, candidates: Sequence[int], seconds: float) -> _Request:
        """Send a chunk to the process that `prepare` started."""
        if self._process is None:
            raise RuntimeError("prepare() comes before submit()")
        rows = workload.rows(candidates, built_by_worker=True)
        self._process.send((workload.names, candidates, rows, seconds))
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
        return [oldest[process] for process in completed(list(oldest), seconds)]

    def end(self, *, force: bool) -> None:
        if self._process is not None:
            self._process.end(0.0 if force else _LEAVE_SECONDS)
        self._process = None

    def _start(self) -> "WorkerProcess":
        if self._starts >= _MOST_STARTS:
            raise EvaluationError(
                f"workers: {_MOST_STARTS} worker processes in a row died while starting; the "
                "standard error of this program says why"
            )
        self._starts += 1
        return WorkerProcess()


class WorkerProcess:
    """A running process and the driver's end of its pipe.

    Requests have numbers, and the process answers them in order. An answer with another number
    comes from somebody else, who has got hold of the pipe.
    """

    def __init__(self) -> None:
        self.process, connection = launch(serve)
        self._sent, self._answered = itertools.count(), itertools.count()
        self.pipe = WorkerPipe(connection)
        self.sentinel: int = self.process.sentinel
        self.has_answered = False  # there is something to read
        self._has_started = False
        running.add(self)

    def is_alive(self) -> bool:
        return bool(self.process.is_alive())

    def send(self, message: Any) -> int:
        """Send a message; return its size in bytes."""
        data = pickle.dumps((next(self._sent), message), protocol=pickle.HIGHEST_PROTOCOL)
        self.pipe.send(data)
        return len(data)

    def receive(self) -> ChunkResult:
        with contextlib.suppress(EOFError, OSError):
            # The sentinel shows a death even if a child of the objective holds the other end of the
            # pipe open; then there is nothing to receive.
            if self.has_answered or self.pipe.connection.poll():
                self.has_answered = False
                number, result = self.pipe.connection.recv()
                if number != next(self._answered):
                    raise GroupBrokenError("the worker process gave an answer out of turn")
                self._has_started = True
                answer: ChunkResult = result
                return answer
        self.process.join(_EXIT_SECONDS)
        code = self.process.exitcode
        if code == UNGUARDED and not self._has_started:
            raise EvaluationError(
                "workers: each worker process imports the script, and this script starts workers "
                'when it is imported; put its main part under `if __name__ == "__main__":`'
            )
        if code == -9:  # SIGKILL, a name that Windows does not have
            raise GroupBrokenError("the worker process was killed (SIGKILL; often out of memory)")
        raise GroupBrokenError(f"the worker process died (exit code {code})")

    def end(self, seconds: float) -> None:
        """Close the pipe, which makes an idle worker end; kill the process after ``seconds``."""
        self.pipe.close()
        self.process.join(seconds)
        if self.process.is_alive():
            kill_process_group(self.process.pid)
            self.process.kill()
            self.process.join()
        self.process.close()
        running.discard(self)


def completed(processes: Sequence[WorkerProcess], seconds: float) -> list[WorkerProcess]:
    """Wait for the first answer or death; return the processes that answered or died."""
    pipes, sentinels = zip(
        *((process.pipe, process.sentinel) for process in processes), strict=True
    )
    seen = ready(pipes, sentinels, seconds)
    for process in processes:
        process.has_answered |= process.pipe.connection.fileno() in seen
    # A child that the objective forked may hold the sentinel open, too. So look for the dead now
    # and then.
    return [
        process
        for process in processes
        if process.has_answered or process.sentinel in seen or (not seen and not process.is_alive())
    ]


# === In the worker ===


def serve(connection: Any) -> None:
    """Load payloads and evaluate chunks until the driver closes the pipe."""
    ignore_interrupts()
    unblock_interrupts()
    if hasattr(os, "setsid"):
        os.setsid()  # so that killing a worker also kills the programs that the objective started
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the driver closed the pipe or is gone
        while True:
            number, message = connection.recv()
            result = load(message) if isinstance(message, Payload) else work(*message)
            connection.send((number, result))


def _end_with_the_driver() -> None:
    """End this process when the driver is gone, even if the objective hangs."""
    import multiprocessing

    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
    kill_process_group(os.getpid())
    os._exit(1)
