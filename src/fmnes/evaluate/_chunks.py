"""Chunks: the candidates that go to a worker at a time, and how many that should be."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fmnes.evaluate._group import WorkerGroup
from fmnes.evaluate._outcome import EvaluationRecord

_LEAST, _MOST = 0.01, 0.25  # seconds of work in a chunk
_OVERHEAD = 0.04  # largest share of a chunk's time that the round trip may cost
_MEMORY = 0.8  # weight of the past in the moving averages


class Chunk(NamedTuple):
    """Candidates that were submitted together and have not come back."""

    group: WorkerGroup
    candidates: Sequence[int]  # empty: the group prepares a worker
    started: float
    seconds: float  # after which the chunk is overdue
    sent: float | None  # when, if a worker was free for it
    is_alone: bool  # if the worker dies, only this chunk can be the cause
    record: EvaluationRecord  # of the evaluation that the chunk belongs to

    @property
    def deadline(self) -> float:
        """When the chunk is overdue."""
        return self.started + self.seconds


def candidates_of(chunks: Sequence[Chunk]) -> list[int]:
    """The candidates of several chunks."""
    return [candidate for chunk in chunks for candidate in chunk.candidates]


class ChunkSizer:
    """Chooses chunk sizes from the measured cost of evaluations and round trips.

    A chunk takes much longer than a round trip, and little of a worker's time. Towards the end of a
    generation chunks get smaller, so that all workers finish together. Values do not depend on it.
    """

    def __init__(self, chunksize: int | None, timeout: float | None = None) -> None:
        self._fixed, self._timeout = chunksize, math.inf if timeout is None else timeout
        self._cost: float | None = None  # seconds of one evaluation
        self._trip = 0.0  # seconds of a round trip without the work

    @property
    def seconds(self) -> float:
        """How long a chunk should work."""
        return min(max(self._trip / _OVERHEAD, _LEAST), _MOST)

    @property
    def limit(self) -> float:
        """After how many seconds a chunk returns the values it has, even if it is not finished."""
        return min(math.inf if self._fixed else 2 * self.seconds, self._timeout)

    def longest(self, candidates: int) -> float:
        """How many seconds a chunk may take if each of its candidates keeps to the timeout.

        Loading the objective, without candidates, may take as long as one of them.
        """
        return min(self._timeout * max(1, candidates), self._timeout + self.limit)

    @property
    def is_quick(self) -> bool:
        """Whether a worker should receive its next chunk before it finishes this one."""
        return self._cost is not None and self._cost < _MOST / 10 and self._fixed is None

    def size(self, waiting: int, lanes: int, popsize: int) -> int:
        """How many of the waiting candidates go next, if ``lanes`` chunks run in parallel."""
        if self._fixed is not None:
            return min(self._fixed, waiting)
        if self._cost is None:
            return 1
        cost, share = max(self._cost, 1e-9), popsize / lanes
        if share * cost < 10 * self._trip:  # round trips are too slow for load balancing
            fair = math.ceil(share)
        else:
            fair = max(math.ceil(waiting / lanes / 2), math.ceil(self._trip / cost))
        return max(1, min(int(self.seconds / cost), fair, waiting))

    def note(self, done: int, seconds: float) -> None:
        """Learn from a chunk how long its evaluations took."""
        if done:
            cost = seconds / done
            self._cost = cost if self._cost is None else _average(self._cost, cost)

    def note_trip(self, seconds: float) -> None:
        """Learn how long a chunk was away, without its work."""
        self._trip = _average(self._trip, max(seconds, 0.0))


def _average(past: float, now: float) -> float:
    return _MEMORY * past + (1 - _MEMORY) * now
