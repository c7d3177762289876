"""What an Optimizer drives: a method, one generation after the other, in search coordinates.

`Engine` calls the pure functions of a method's module, on arrays of any library. `NativeEngine`
does the same for CR-FM-NES on NumPy arrays with two calls a generation into the compiled kernels.
Both keep the draws from ask to tell, the best candidate, and what convergence is measured by.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes import _random as random
from fmnes import kernels
from fmnes.algorithms import Algorithm, cr_fm_nes
from fmnes.algorithms._shared import Array, Report, constant, is_feasible

_PIECE = 2**16  # numbers that are worked on at a time where a whole population would be copied


def pieces(algorithm: Algorithm, first: int, last: int, dim: int) -> Iterator[tuple[int, int]]:
    """Ranges of candidates so small that copies of them do not count.

    Of a method with a full matrix the whole range: it builds its population at once anyway.
    """
    step = max(1, _PIECE // dim) if algorithm.LINEAR else last - first
    for a in range(first, last, step):
        yield a, min(a + step, last)


class Address(NamedTuple):
    """Where the draws of a run are found, and how many generations it has behind it."""

    seed: int
    stream: int
    generation: int = 0


class Generation(NamedTuple):
    """What one generation showed: the values by themselves, then the state after them.

    The compiled `tell` returns a plain tuple in this order.
    """

    nan: int
    feasible: int
    least: float  # smallest and largest feasible value; inf where there is none
    most: float
    size: float  # largest |value| of the feasible ones
    median: float  # infeasible ones count as inf
    flat: bool  # all equal, and finite
    sigma: float
    axis_ratio: float
    norm_v: float
    phase: int
    deviation_min: float
    deviation_max: float
    mean_max: float  # largest |coordinate| of the mean
    shrunk: bool  # every deviation is below tolx times its initial value, or what is resolved


class Engine:
    """Any method, any array library."""

    def __init__(
        self,
        algorithm: Algorithm,
        params: Any,
        state: Any,
        address: Address,
        tolx: float,
        initial: Array | None = None,
        best: Array | None = None,
    ) -> None:
        self.algorithm, self.params, self.state = algorithm, params, state
        self.initial = algorithm.report(params, state).deviations if initial is None else initial
        self.best = best
        self._address, self._generation = address, address.generation
        self._converged = tolx * self.initial
        self._z: Array | None = None
        self._store_draws = getattr(params, "store_draws", True)
        self._memory: NDArray[Any] | None = None  # of the draws, where the library lets us keep it

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Candidates first to last - 1, as a fresh array or in ``out``."""
        if out is None:
            out = self._candidates(first, last)
        else:
            self._draws()
            for a, b in pieces(self.algorithm, first, last, self.params.dim):
                out[a - first : b - first] = self._candidates(a, b)
        if not self._store_draws:
            self._z = None
        return out

    def tell(self, values: NDArray[np.float64], best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``."""
        z = self._draws()
        xp = array_namespace(z)
        survey = kernels.select(np, np.dtype(np.float64)).survey(values)
        if survey[2] < best_so_far:
            best = int(np.argmin(np.where(is_feasible(np, values), values, np.inf)))
            self.best = self._candidates(best, best + 1)[0, :]
        # A narrower dtype may not hold the values, but it does hold their ranks.
        f = constant(xp, values if z.dtype == xp.float64 else _dense_ranks(values), z)
        self.state = self.algorithm.tell(self.params, self.state, z, f)
        self._generation += 1
        self._z = None
        every = getattr(self.params, "refresh_every", 0)  # full-matrix methods only
        if every and self._generation % every == 0:
            self.state = self.algorithm.refresh(self.params, self.state)  # type: ignore[attr-defined]
        report = self.algorithm.report(self.params, self.state)
        return Generation(*survey, *_figures(report, self.state.mean, self._converged))

    def _candidates(self, first: int, last: int) -> Array:
        algorithm, params, state = self.algorithm, self.params, self.state
        popsize = params.popsize
        if last - first == popsize:
            return algorithm.ask(params, state, self._draws())
        if not algorithm.LINEAR:  # bits of a matrix product depend on the number of rows
            return self._candidates(0, popsize)[first:last, :]
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
            if self.algorithm.ANTITHETIC:
                rows //= 2
            if isinstance(mean, np.ndarray) and self._store_draws and self._memory is None:
                self._memory = np.empty((rows, mean.shape[0]), mean.dtype)
            self._z = self._normals(0, rows, self._memory)
        return self._z

    def _normals(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        mean, (seed, stream, _) = self.state.mean, self._address
        z = random.normals(seed, stream, self._generation, first, last, mean.shape[0], out)
        return z if out is not None else constant(array_namespace(mean), z, mean)


class NativeEngine:
    """CR-FM-NES on NumPy arrays of float64 or float32, compiled; made and used like `Engine`."""

    def __init__(
        self,
        algorithm: Algorithm,
        params: cr_fm_nes.Params,
        state: cr_fm_nes.State,
        address: Address,
        tolx: float,
        initial: Array | None = None,
        best: Array | None = None,
    ) -> None:
        from fmnes.kernels import _native

        self.params = params
        dtype = state.mean.dtype
        make = _native.CRFMNES64 if dtype == np.float64 else _native.CRFMNES32
        numbers, rates = cr_fm_nes.tables(params)
        self._search = make(
            params.dim, params.popsize, params.safe, params.store_draws,
            numbers, params.w_hat, rates, *address,
        )  # fmt: skip
        self._search.set_state(state.mean, float(state.sigma), *state[2:], initial, tolx)
        self.initial = np.broadcast_to(self._search.initial, (params.dim,))
        self.best = self._search.best  # a view: it changes when a better candidate is told
        if best is not None:
            self.best[...] = best
        self.tell = self._search.tell
        self._dtype, self._dim = dtype, params.dim

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Candidates first to last - 1, as a fresh array or in ``out``."""
        if out is None:
            x = out = np.empty((last - first, self._dim), self._dtype)
        elif out.flags.carray and out.dtype == self._dtype:
            x = out
        else:
            x = np.empty(out.shape, self._dtype)
        self._search.ask(x, first)
        if x is not out:
            out[...] = x
        return out

    @property
    def state(self) -> cr_fm_nes.State:
        """The state, in views that change with it."""
        s = self._search
        sigma = np.asarray(s.sigma, self._dtype)
        return cr_fm_nes.State(s.mean, sigma, s.D, s.v, s.p_sigma, s.p_c)


def engine_for(algorithm: Any, mean: Array) -> type[Engine] | type[NativeEngine]:
    """The engine for a method and the arrays of its state."""
    compiled = (
        kernels.in_use == "native"
        and algorithm is cr_fm_nes
        and isinstance(mean, np.ndarray)
        and mean.dtype in (np.float64, np.float32)
    )
    return NativeEngine if compiled else Engine


def _figures(report: Report, mean: Array, converged: Array) -> tuple[Any, ...]:
    """The other fields, from a report: one small transfer from the device."""
    xp = array_namespace(mean)
    size = xp.abs(mean)
    resolved = xp.maximum(converged, xp.finfo(mean.dtype).eps * size)
    figures = (
        report.sigma,
        report.axis_ratio,
        report.norm_v,
        xp.astype(report.phase, mean.dtype),
        xp.min(report.deviations),
        xp.max(report.deviations),
        xp.max(size),
        xp.astype(xp.all(report.deviations <= resolved), mean.dtype),
    )
    *numbers, shrunk = checks.to_host(xp.stack(list(figures))).tolist()
    numbers[3] = int(numbers[3])
    return *numbers, shrunk == 1


def _dense_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values' ranks, equal for equal values."""
    ranks = np.unique(values, return_inverse=True)[1].astype(np.float64)
    return np.where(np.isfinite(values) | (values == -np.inf), ranks, np.inf)
