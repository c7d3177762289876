"""The worker of a cluster: an object that lives as an actor of Dask or Ray."""

import os
import pickle
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import draws, kernels
from fmnes._population import Population, Recipe
from fmnes._version import __version__
from fmnes.algorithms import METHODS
from fmnes.algorithms._records import Shape
from fmnes.draws import Address
from fmnes.evaluate._call import IN_WORKER, ChunkResult, ObjectiveCall, attempt, evaluate_chunk
from fmnes.evaluate._outcome import Failure
from fmnes.evaluate._payload import ignore_interrupts

_NO_STATE = -1  # not the fingerprint of any state


def identity() -> dict[str, Any]:
    """What has to be the same in all processes so that their updates have the same bits."""
    return {
        "fmnes": __version__,
        "numpy": np.__version__,
        "kernels": kernels.in_use,
        "probe": _probe(),  # shows any other difference
    }


def _probe() -> int:
    """The fingerprint of a small search after three updates."""
    dim, popsize, method = 50, 8, METHODS["cr-fm-nes"]
    mean, settings = np.linspace(-1.0, 1.0, dim), method.Settings()
    z = draws.normals(1, draws.initial_stream(0), 0, 0, 1, dim)[0]
    params = method.params(dim, popsize, settings)
    state = method.init(params, mean, np.asarray(0.5), Shape(np.ones(dim)), z)
    address = Address(1, draws.population_stream(0), 0)
    population = Population(Recipe("cr-fm-nes", settings, popsize, state, address, None))
    for values in np.arange(3.0 * popsize).reshape(3, popsize)[:, ::-1]:
        population.advance(values)
    return population.fingerprint()


class Replica:
    """Holds the state of a search: builds candidates, evaluates them, and repeats each update."""

    def __init__(self) -> None:
        ignore_interrupts()
        self._population: Population | None = None
        self._call: ObjectiveCall | None = None

    def join(self) -> tuple[dict[str, Any], str]:
        """The identity of this process, and where it runs."""
        return identity(), f"process {os.getpid()} on {platform.node()}"

    def hold(self, objective: bytes) -> ChunkResult:
        """Load the objective."""
        call = attempt(pickle.loads, objective)
        if isinstance(call, Failure):
            return ChunkResult(refused=("objective", call))
        self._call = call
        return ChunkResult()

    def follow(self, checkpoint: bytes, told: Sequence[NDArray[np.float64]]) -> int:
        """Load the checkpoint if there is one, then update once for each generation of values.

        Returns the fingerprint of the state.
        """
        if checkpoint:
            self._population = pickle.loads(checkpoint)  # noqa: S301  from the driver
            self._population.will_advance = True
        if self._population is None:
            return _NO_STATE
        for values in told:
            self._population.advance(values)
        return self._population.fingerprint()

    def work(
        self, generation: int, candidates: Sequence[int], seconds: float
    ) -> tuple[ChunkResult, int]:
        """Evaluate candidates of this generation.

        Returns the fingerprint of the state, too: a state that was changed by a memory error, or by
        the objective, gives wrong candidates.
        """
        population, call = self._population, self._call
        if population is None or call is None or population.generation != generation:
            return ChunkResult(missing=True), _NO_STATE

        def row(k: int) -> Any:
            return population.row(candidates[k])

        return evaluate_chunk(call, candidates, row, seconds, IN_WORKER), population.fingerprint()
