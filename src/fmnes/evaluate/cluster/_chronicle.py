"""What somebody has to be told to arrive where the search is: a checkpoint, and values since."""

import pickle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes._population import Population

_EVERY = 16  # generations from one checkpoint to the next, which is the most that is replayed


class Place(NamedTuple):
    """A generation of a course: of a run, from where it was first seen here."""

    course: int
    generation: int


class Chronicle:
    """A checkpoint of the run in memory, and the journal of values that were told after it.

    A new checkpoint is taken only of a state that a worker arrived at by itself, too: bits that
    were flipped in the memory of the driver do not get into it.
    """

    def __init__(self) -> None:
        self._population: Population | None = None  # as it is now
        self._checkpoint, self._checkpoint_at = b"", 0
        # From a generation before the checkpoint on: those who are a little late need no more.
        self._journal: list[NDArray[np.float64]] = []
        self._journal_from = 0
        self.place = Place(0, 0)
        self.fingerprint = 0

    def go_on(self, population: Population) -> None:
        """Take in the next generation; or the first of another course."""
        last, self._population = self._population, population
        generation = population.address.generation
        if (
            last is not None
            and population.told is not None
            and population.search is last.search
            and generation == self.place.generation + 1
        ):
            self._journal.append(population.told)
            self.place = Place(self.place.course, generation)
        else:
            self._journal, self._journal_from = [], generation
            self.place = Place(self.place.course + 1, generation)
            self._take_checkpoint(population)
        self.fingerprint = population.fingerprint()

    def agree(self) -> None:
        """A worker has arrived here by itself."""
        if self._population is None or self.place.generation - self._checkpoint_at < _EVERY:
            return
        del self._journal[: self._checkpoint_at - self._journal_from]
        self._journal_from = self._checkpoint_at
        self._take_checkpoint(self._population)

    def since(self, place: Place | None) -> tuple[bytes, list[NDArray[np.float64]]]:
        """What leads here: values for those at a known place, for others after a checkpoint."""
        if place is not None and place.course == self.place.course:
            known = place.generation - self._journal_from
            if known >= 0:
                return b"", self._journal[known:]
        return self._checkpoint, self._journal[self._checkpoint_at - self._journal_from :]

    def _take_checkpoint(self, population: Population) -> None:
        self._checkpoint = pickle.dumps(population, protocol=pickle.HIGHEST_PROTOCOL)
        self._checkpoint_at = population.address.generation
