"""A population described by O(d) numbers, from which any worker builds its own candidates."""

import math
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes import kernels
from fmnes._arrays import Array
from fmnes._version import __version__
from fmnes.algorithms import METHODS, MethodName
from fmnes.draws import Address
from fmnes.engines import Engine, EngineSpec, registration
from fmnes.variables.bounds import Box
from fmnes.variables.discrete import Discrete, Margin, to_user, told


class Recipe(NamedTuple):
    """Everything that the candidates of one generation are computed from."""

    method: MethodName
    settings: Any
    popsize: int
    state: Any  # the method's State
    address: Address  # of the draws
    box: Box | None
    extra: Array | None = None  # (n, d): points of the user that are evaluated too, as last rows
    discrete: Discrete | None = None
    margin: Margin | None = None


class Lineage(NamedTuple):
    """How a population follows from the previous one, for workers that repeat the update."""

    run: object  # the same object for all generations of one run
    values: NDArray[np.float64] | None  # of the previous generation; None for the first one


class Population:
    """One generation of a linear-time method.

    Each candidate has exactly the bits that `Optimizer.ask` gives it. Therefore the process that
    unpickles a population needs the same version of fmnes and the same kernels. The lineage stays
    in the process of the search: a pickled population does not contain it.
    """

    def __init__(self, recipe: Recipe, lineage: Lineage | None = None) -> None:
        self._recipe, self.lineage = recipe, lineage
        self._engine: Engine | None = None
        self.will_advance = False  # if True, the engine keeps the draws for the update

    @property
    def generation(self) -> int:
        """The number of the generation."""
        return self._recipe.address.generation

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points to evaluate and number of the user's variables."""
        popsize, box, state = self._recipe.popsize, self._recipe.box, self._recipe.state
        rows = popsize + (0 if self._recipe.extra is None else self._recipe.extra.shape[0])
        return rows, int((state.mean if box is None else box.free).shape[0])

    def row(self, candidate: int) -> Array:
        """One candidate, or the point that comes after them, in the user's coordinates."""
        engine, recipe = self._build(), self._recipe
        if candidate >= recipe.popsize and recipe.extra is not None:
            return recipe.extra[candidate - recipe.popsize]
        y = engine.ask(candidate, candidate + 1)
        if recipe.discrete is not None and recipe.margin is not None:
            y = recipe.discrete.latent(recipe.margin, engine.state.mean, y)
        return to_user(recipe.box, recipe.discrete, y)[0, ...]

    def rows(self) -> Array:
        """All candidates."""
        return np.stack([self.row(i) for i in range(self.shape[0])])

    def advance(self, values: NDArray[np.float64]) -> None:
        """Become the next generation: what `Optimizer.tell` does to the distribution."""
        engine, recipe = self._build(), self._recipe
        algorithm = METHODS[recipe.method]
        _, margin = told(algorithm, engine, recipe.discrete, recipe.margin, values, -math.inf)
        address = recipe.address._replace(generation=self.generation + 1)
        self._recipe = recipe._replace(
            state=engine.state, address=address, extra=None, margin=margin
        )

    def fingerprint(self) -> int:
        """CRC-32 of the address of the draws, the state and the variables (10 ms at d = 10^6).

        The engine has its own copy of the state, from which it computes the candidates.
        """
        state = self._recipe.state if self._engine is None else self._engine.state
        crc = zlib.crc32(repr(self._recipe.address).encode())
        recipe = self._recipe
        for field in (
            *state,
            *(recipe.box or ()),
            *(recipe.discrete or ()),
            *(recipe.margin or ()),
        ):
            crc = zlib.crc32(np.ascontiguousarray(field).data, crc)
        return crc

    def _build(self) -> Engine:
        """The engine that computes the candidates."""
        if self._engine is None:
            recipe, mean = self._recipe, self._recipe.state.mean
            algorithm = METHODS[recipe.method]
            params = algorithm.params(mean.shape[0], recipe.popsize, recipe.settings)
            if not self.will_advance:
                params = params._replace(store_draws=False)
            spec = EngineSpec(
                algorithm=algorithm,
                params=params,
                state=recipe.state,
                address=recipe.address,
                tolx=0.0,
            )
            self._engine = registration(recipe.method, mean).engine(spec)
        return self._engine

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._recipe.state
        copied = type(state)(*(np.asarray(field) for field in state))
        return _unpickle, (software(), self._recipe._replace(state=copied))


def _unpickle(made_by: str, recipe: Recipe) -> Population:
    if made_by != software():
        raise ImportError(f"workers: expected {made_by} as in the driver, got {software()}")
    return Population(recipe)


def software() -> str:
    """The versions that decide the bits of a candidate."""
    return f"fmnes {__version__} with {kernels.in_use} kernels"
