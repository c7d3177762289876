"""The array engine: any method on arrays of any library, by the pure functions of its module."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import draws
from fmnes._arrays import Array, constant
from fmnes.engines import generation
from fmnes.engines.contract import EngineSpec, Generation
from fmnes.kernels import blas
from fmnes.kernels.agnostic import Survey


class ArrayEngine:
    """Any method, any array library."""

    def __init__(self, spec: EngineSpec) -> None:
        self._algorithm, self.params, self.state = spec.algorithm, spec.params, spec.state
        self.initial = spec.initial
        if self.initial is None:
            self.initial = spec.algorithm.summary(spec.params, spec.state).deviations
        self.best = spec.best
        self._address = spec.address
        self._converged = spec.tolx * self.initial
        self._is_float64 = generation.is_float64(spec.state.mean)
        self._z: Array | None = None
        self._population: Array | None = None  # until `tell`, of a method that builds it as a whole
        self._memory: NDArray[Any] | None = None  # for draws, reused in each generation (NumPy)

    @blas.one_thread
    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Candidates first to last - 1, as a fresh array or in ``out``."""
        if out is None:
            out = self._candidates(first, last)
        else:
            self._draws()
            for a, b in generation.pieces(self._algorithm, first, last, self.params.dim):
                out[a - first : b - first] = self._candidates(a, b)
        if not self.params.store_draws:
            self._z = None
        return out

    @blas.one_thread
    def tell(self, values: NDArray[np.float64], best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``."""
        z, shown = self._draws(), generation.survey(values)
        if shown.least < best_so_far:
            best = generation.best_of(values)
            self.best = self._candidates(best, best + 1)[0, :]
        return self._update(z, values, shown)

    def _update(self, z: Array, values: NDArray[np.float64], shown: Survey) -> Generation:
        """The next state, from draws and the values of their candidates."""
        f = constant(
            array_namespace(z), values if self._is_float64 else generation.ranks_of(values), z
        )
        self.state = self._told(z, f)
        self._address = self._address._replace(generation=self._address.generation + 1)
        self._z = self._population = None
        every = self.params.refresh_every
        if every and self._address.generation % every == 0:
            refreshed = self._algorithm.refresh(self.params, self.state)
            self.state = self._algorithm.resized(self.params, refreshed)
        summary, mean = self._algorithm.summary(self.params, self.state), self.state.mean
        return generation.to_record(
            shown, generation.figures(array_namespace(mean), summary, mean, self._converged)
        )

    def _told(self, z: Array, f: Array) -> Any:
        return self._algorithm.tell(self.params, self.state, z, f)

    def _candidates(self, first: int, last: int) -> Array:
        algorithm, params, state = self._algorithm, self.params, self.state
        popsize = params.popsize
        if last - first == popsize:
            return algorithm.ask(params, state, self._draws())
        if not algorithm.LINEAR:  # rounding in a matrix product depends on the number of rows
            if self._population is None:
                self._population = algorithm.ask(params, state, self._draws())
            rows = self._population[first:last, :]
            return array_namespace(rows).asarray(rows, copy=True)
        half = popsize // 2 if algorithm.ANTITHETIC else popsize
        parts = []
        for low, sign in ((0, 1.0), (half, -1.0)):  # candidate half + i mirrors candidate i
            a, b = max(first, low) - low, min(last, low + half) - low
            if a < b:
                z = self._normals(a, b) if self._z is None else self._z[a:b, :]
                parts.append(state.mean + sign * algorithm.transform(params, state, z))
        return array_namespace(parts[0]).concat(parts, axis=0)

    def _draws(self) -> Array:
        """The draws z of this generation, kept from ask to tell."""
        if self._z is None:
            mean, rows = self.state.mean, self.params.popsize
            if self._algorithm.ANTITHETIC:
                rows //= 2
            if isinstance(mean, np.ndarray) and self.params.store_draws and self._memory is None:
                self._memory = np.empty((rows, mean.shape[0]), mean.dtype)
            self._z = self._normals(0, rows, self._memory)
        return self._z

    def _normals(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        mean = self.state.mean
        if out is None:
            return draws.normals_like(mean, self._address, first, last)
        return draws.normals(*self._address, first, last, mean.shape[0], out)
