"""What a worker needs to reach the current state: a checkpoint, and the values told since."""

import pickle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes._population import Population

_EVERY = 16  # generations between two checkpoints, and the most that a new worker replays


class Position(NamedTuple):
    """A generation of one run; the log counts the runs that it has seen."""

    run: int
    generation: int


class UpdateLog:
    """A checkpoint of the run in memory, and the values that were told after it.

    The log takes a new checkpoint only of a state that a worker reached by its own updates. So a
    memory error in the driver does not get into the checkpoint.
    """

    def __init__(self) -> None:
        self._population: Population | None = None  # the current one
        self._checkpoint, self._checkpoint_at = b"", 0
        # From the checkpoint before the last one on, so that workers that are a little late need
        # no checkpoint.
        self._values: list[NDArray[np.float64]] = []
        self._values_from = 0
        self.position = Position(0, 0)
        self.fingerprint = 0

    def append(self, population: Population) -> None:
        """Add the next generation, or the first one of another run."""
        last, self._population = self._population, population
        before, after = last and last.lineage, population.lineage
        run, generation = self.position.run, population.generation
        follows = before and after and before.run is after.run
        values = after.values if after and follows else None
        if values is not None and generation == self.position.generation + 1:
            self._values.append(values)
        else:
            run += 1
            self._values, self._values_from = [], generation
            self._take_checkpoint(population)
        self.position = Position(run, generation)
        self.fingerprint = population.fingerprint()

    def confirm(self) -> None:
        """Note that a worker reached the current state by its own updates."""
        if self._population is None or self.position.generation - self._checkpoint_at < _EVERY:
            return
        del self._values[: self._checkpoint_at - self._values_from]
        self._values_from = self._checkpoint_at
        self._take_checkpoint(self._population)

    def since(self, position: Position | None) -> tuple[bytes, list[NDArray[np.float64]]]:
        """The values that lead from a position to the current state.

        If the log does not reach back to it, a checkpoint and the values since that checkpoint.
        """
        if position is not None and position.run == self.position.run:
            known = position.generation - self._values_from
            if known >= 0:
                return b"", self._values[known:]
        return self._checkpoint, self._values[self._checkpoint_at - self._values_from :]

    def _take_checkpoint(self, population: Population) -> None:
        self._checkpoint = pickle.dumps(population, protocol=pickle.HIGHEST_PROTOCOL)
        self._checkpoint_at = population.generation
