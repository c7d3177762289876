"""A worker process of our own, as a group of one.

Why not ProcessPoolExecutor: there, one dead worker takes all running chunks with it, and nobody can
say which candidate was the cause, or how long each of them ran. With one process and one pipe per
worker, a death or a hang costs exactly one chunk. It is also quicker.
"""

from collections.abc import Sequence

from fmnes.evaluate._call import ChunkResult
from fmnes.evaluate._group import WorkerGroup
from fmnes.evaluate._outcome import EvaluationError
from fmnes.evaluate._payload import Workload
from fmnes.evaluate._process import WorkerProcess, ready

_MOST_STARTS = 3  # in a row, without a process that loads the objective
_LEAVE_SECONDS = 2.0  # that an idle worker may take to end


class _Request:
    """A message that a process has to answer."""

    def __init__(self, process: WorkerProcess) -> None:
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

    def _start(self) -> WorkerProcess:
        if self._starts >= _MOST_STARTS:
            raise EvaluationError(
                f"workers: {_MOST_STARTS} worker processes in a row died while starting; a script "
                'that uses processes needs its main part under `if __name__ == "__main__":`, '
                "because each worker imports the script"
            )
        self._starts += 1
        return WorkerProcess()
