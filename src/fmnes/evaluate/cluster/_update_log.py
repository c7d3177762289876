"""What a worker needs to reach the current state: a checkpoint, and the values told since."""

import pickle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes._population import Lineage, Population

_EVERY = 16  # generations between two checkpoints, and the most that a new worker replays


class LogPosition(NamedTuple):
    """A generation of one run."""

    run: object  # see `Lineage`
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
        self.position = LogPosition(None, 0)
        self.fingerprint = 0

    def append(self, population: Population) -> None:
        """Add the next generation, or begin again with a generation that is not the next one."""
        run, values = population.lineage or Lineage(object(), None)
        last, self.position = self.position, LogPosition(run, population.generation)
        if self.position == (last.run, last.generation + 1) and values is not None:
            self._values.append(values)
        else:
            self._values, self._values_from = [], population.generation
            self._take_checkpoint(population)
        self._population, self.fingerprint = population, population.fingerprint()

    def confirm(self) -> None:
        """Note that a worker reached the current state by its own updates."""
        if self._population is None or self.position.generation - self._checkpoint_at < _EVERY:
            return
        del self._values[: self._checkpoint_at - self._values_from]
        self._values_from = self._checkpoint_at
        self._take_checkpoint(self._population)

    def since(self, position: LogPosition | None) -> tuple[bytes, list[NDArray[np.float64]]]:
        """The values that lead from a position to the current state.

        If the log does not reach back to it, a checkpoint and the values since that checkpoint.
        """
        if position is not None and position.run is self.position.run:
            known = position.generation - self._values_from
            if known >= 0:
                return b"", self._values[known:]
        return self._checkpoint, self._values[self._checkpoint_at - self._values_from :]

    def _take_checkpoint(self, population: Population) -> None:
        self._checkpoint = pickle.dumps(population, protocol=pickle.HIGHEST_PROTOCOL)
        self._checkpoint_at = population.generation
