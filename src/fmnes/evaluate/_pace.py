"""How many candidates go to a worker at a time."""

import math

_LEAST, _MOST = 0.01, 0.25  # seconds of work in a chunk
_SHARE = 0.04  # of a chunk's time that a round trip may cost
_MEMORY = 0.8  # weight of the past in the averages


class Pace:
    """Sizes of chunks, by what evaluations and round trips were seen to cost.

    A chunk is worth many round trips and little of a worker's time. Towards the end of a generation
    chunks get smaller, so that all workers finish together. The answer does not depend on it.
    """

    def __init__(self, chunksize: int | None) -> None:
        self._fixed = chunksize
        self._cost: float | None = None  # seconds of one evaluation
        self._trip = 0.0  # seconds of a round trip beside the work; the first ones are slow

    @property
    def seconds(self) -> float:
        """How long a chunk should work."""
        return min(max(self._trip / _SHARE, _LEAST), _MOST)

    @property
    def limit(self) -> float:
        """After how long a chunk comes back even if it is not finished."""
        return math.inf if self._fixed else 2 * self.seconds

    @property
    def is_quick(self) -> bool:
        """Whether a worker should have its next chunk before it is done with this one."""
        return self._cost is not None and self._cost < _MOST / 10 and self._fixed is None

    def size(self, waiting: int, lanes: int) -> int:
        """How many of those waiting go next, where ``lanes`` work at the same time."""
        if self._fixed is not None:
            return min(self._fixed, waiting)
        if self._cost is None:
            return 1
        cost = max(self._cost, 1e-9)
        fair = math.ceil(waiting / (2 * lanes))
        worth_a_trip = math.ceil(self._trip / cost)
        return max(1, min(int(self.seconds / cost), max(fair, worth_a_trip), waiting))

    def note(self, done: int, seconds: float, round_trip: float) -> None:
        """Learn from a chunk that came back."""
        if not done:
            return
        cost, trip = seconds / done, max(round_trip - seconds, 0.0)
        if self._cost is None:
            self._cost = cost
        self._cost += (1 - _MEMORY) * (cost - self._cost)
        self._trip += (1 - _MEMORY) * (trip - self._trip)
