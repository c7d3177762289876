"""A population in O(d) numbers, from which any worker builds the candidates that it evaluates."""

import math
import zlib
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import kernels
from fmnes._arrays import Array
from fmnes._coordinates import Box
from fmnes._version import __version__
from fmnes.algorithms import METHODS
from fmnes.draws import Address
from fmnes.engines import Engine, EngineSpec, registration


class Population:
    """One generation of a linear-time method: its state, and the address of its draws.

    Every candidate has the bits that `Optimizer.ask` gives it. Therefore what loads a pickled
    population has to be the same version of fmnes, on the same kernels.
    """

    def __init__(
        self,
        method: str,
        settings: Any,
        popsize: int,
        state: Any,
        address: Address,
        box: Box | None,
    ) -> None:
        self._recipe = method, settings, popsize, state, address, box
        self._engine: Engine | None = None
        self.stays = False  # whether it is going to advance, so that draws are worth keeping
        self.address = address
        # For those who follow a search in its own process: what tells one search from another, and
        # the values that led here from the generation before.
        self.search: object = None
        self.told: NDArray[np.float64] | None = None
        dim = state.mean.shape[0] if box is None else box.free.shape[0]
        self.shape = popsize, int(dim)

    def row(self, candidate: int) -> Array:
        """One candidate, in the user's coordinates."""
        x, box = self._build().ask(candidate, candidate + 1), self._recipe[-1]
        return (x if box is None else box.to_user(array_namespace(x), x))[0, ...]

    def rows(self) -> Array:
        """All of them."""
        return np.stack([self.row(i) for i in range(self.shape[0])])

    def advance(self, values: NDArray[np.float64]) -> None:
        """Become the next generation: what `Optimizer.tell` does to the distribution."""
        engine = self._build()
        engine.tell(values, -math.inf)
        method, settings, popsize, _, address, box = self._recipe
        self.address = address._replace(generation=address.generation + 1)
        self._recipe = method, settings, popsize, engine.state, self.address, box

    def fingerprint(self) -> int:
        """CRC-32 over where the draws are and every bit of the state; 10 ms for 10^6 variables."""
        crc = zlib.crc32(repr(self.address).encode())
        for field in self._recipe[3]:
            crc = zlib.crc32(np.ascontiguousarray(field).data, crc)
        return crc

    def _build(self) -> Engine:
        """The engine that the candidates come from."""
        if self._engine is None:
            method, settings, popsize, state, address, _ = self._recipe
            algorithm = METHODS[method]
            params = algorithm.params(state.mean.shape[0], popsize, settings)
            if not self.stays:
                params = params._replace(store_draws=False)
            spec = EngineSpec(algorithm, params, state, address, tolx=0.0)
            self._engine = registration(method, state.mean).engine(spec)
        return self._engine

    def __getstate__(self) -> dict[str, Any]:
        method, settings, popsize, state, address, box = self._recipe
        state = type(state)(*(np.asarray(field) for field in state))
        recipe = method, settings, popsize, state, address, box
        return {"made_by": _maker(), "recipe": recipe, "shape": self.shape}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["made_by"] != _maker():
            raise ImportError(
                f"workers: expected {state['made_by']} as in the driver, got {_maker()}"
            )
        self._recipe, self.shape, self._engine = state["recipe"], state["shape"], None
        self.address, self.stays = self._recipe[4], False
        self.search = self.told = None


def _maker() -> str:
    return f"fmnes {__version__} with {kernels.in_use} kernels"
