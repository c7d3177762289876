"""A process of our own as a slot of the driver.

Why not ProcessPoolExecutor: there one dead worker takes everything in flight with it, and nobody
can say which candidate was to blame, or for how long each of them ran. With a process and a pipe
for each worker, a death or a hang costs exactly one chunk. It is quicker, too.
"""

import math
from collections import deque
from collections.abc import Sequence

from fmnes.evaluate._cargo import Cargo
from fmnes.evaluate._guard import Answer
from fmnes.evaluate._outcome import EvaluationError
from fmnes.evaluate._process import Process, ready

_MOST_STARTS = 3  # in a row, without getting as far as loading the objective
_PATIENCE = 2.0  # seconds that an idle worker may take to leave


class Worker:
    """A slot of the driver: a process that evaluates one chunk after the other.

    The process starts when there is something to do, and anew after it died or was killed. A second
    chunk may wait in its pipe, so that it need not wait for the driver; the first is then the one
    to blame for what happens.
    """

    width = 1
    isolates = in_order = replaceable = can_stop = builds = True
    leaves_stragglers = False
    allowance = 0.0
    patience = math.inf

    def __init__(self) -> None:
        self._process: Process | None = None
        self._queue: deque[_Ticket] = deque()  # what the process was sent and has not answered
        self._cargo: Cargo | None = None  # the last one
        self._holds: dict[str, str] = {}  # kind of a parcel -> key
        self._is_light = False
        self._starts = 0

    @property
    def lookahead(self) -> int:
        """Chunks that may wait in the pipe: none if they do not fit into it."""
        return int(self._is_light)

    def prepare(self, cargo: Cargo) -> "_Ticket | None":
        """See that the process runs and holds what it needs; None once that is so."""
        if cargo is not self._cargo:
            self._cargo = cargo
            if self._process is not None and not self._process.is_alive():  # it died while idle
                self.kill()
        if self._process is None:
            self._process, self._holds = self._start(), {}
        for parcel in cargo.parcels:
            if self._holds.get(parcel.kind) != parcel.key:
                self._holds[parcel.kind] = parcel.key  # or else the driver will not go on
                self._process.send(parcel)
                return self._ticket(self._process)
        return None

    def submit(self, cargo: Cargo, candidates: Sequence[int], seconds: float) -> "_Ticket":
        """Start a chunk."""
        if self._process is None:
            raise RuntimeError("prepare() comes before submit()")
        rows = cargo.rows(candidates, built_there=True)
        nbytes = self._process.send((cargo.names, candidates, rows, seconds))
        self._is_light = nbytes < self._process.room
        return self._ticket(self._process)

    def _ticket(self, process: Process) -> "_Ticket":
        self._queue.append(_Ticket(process))
        return self._queue[-1]

    def result(self, handle: "_Ticket") -> Answer:
        """What a chunk came to, or an empty answer where a parcel was loaded."""
        answer = handle.process.receive()
        self._queue.popleft()
        self._starts = 0
        return answer

    @staticmethod
    def completed(handles: Sequence["_Ticket"], seconds: float | None) -> list["_Ticket"]:
        """The oldest one of each process that answered or died, after waiting for the first."""
        oldest: dict[Process, _Ticket] = {}
        for handle in handles:
            oldest.setdefault(handle.process, handle)
        return [oldest[process] for process in ready(list(oldest), seconds)]

    def is_queued(self, handle: "_Ticket") -> bool:
        """The driver counts from when the one before it was done."""
        return False

    def stop(self, handle: "_Ticket") -> bool:
        """`kill` ends the process, and what waits in its pipe is lost, too."""
        return False

    def drop(self, handles: Sequence["_Ticket"]) -> None:
        """`kill` comes next."""

    def kill(self) -> None:
        """End the process at once, whatever it does; the next candidate starts another."""
        self._end(patience=0)

    def close(self) -> None:
        """Let an idle process leave."""
        self._end(patience=_PATIENCE)

    def _end(self, patience: float) -> None:
        if self._process is not None:
            self._process.end(patience)
        self._process = None
        self._queue.clear()

    def _start(self) -> "Process":
        if self._starts >= _MOST_STARTS:
            raise EvaluationError(
                f"workers: {_MOST_STARTS} worker processes in a row died while starting; a script "
                'that uses processes needs its main part under `if __name__ == "__main__":`, '
                "because each worker imports the script"
            )
        self._starts += 1
        return Process()


class _Ticket:
    """Stands for a message that a process has to answer."""

    def __init__(self, process: Process) -> None:
        self.process = process
