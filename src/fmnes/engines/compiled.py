"""The compiled engine: CR-FM-NES on NumPy arrays, two calls a generation into native/."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import kernels
from fmnes.algorithms import cr_fm_nes
from fmnes.engines.contract import EngineSpec, Generation

if kernels.in_use == "native":
    from fmnes.kernels import _native


class CompiledEngine:
    """CR-FM-NES on NumPy arrays of float64 or float32."""

    def __init__(self, spec: EngineSpec) -> None:
        params: cr_fm_nes.Params = spec.params
        state: cr_fm_nes.State = spec.state
        self.params = params
        dtype = state.mean.dtype
        make = _native.CRFMNES64 if dtype == np.float64 else _native.CRFMNES32
        numbers, rates = cr_fm_nes.tables(params)
        self._search = make(
            params.dim, params.popsize, params.safe, params.store_draws,
            numbers, params.w_hat, rates, *spec.address,
        )  # fmt: skip
        self._search.set_state(state.mean, float(state.sigma), *state[2:], spec.initial, spec.tolx)
        self.initial = np.broadcast_to(self._search.initial, (params.dim,))
        self.best = self._search.best  # a view: it changes when a better candidate is told
        if spec.best is not None:
            self.best[...] = spec.best
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

    def tell(self, values: NDArray[np.float64], best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``."""
        return Generation._make(self._search.tell(values, best_so_far))

    @property
    def state(self) -> cr_fm_nes.State:
        """The state, in views that change with it."""
        s = self._search
        sigma = np.asarray(s.sigma, self._dtype)
        return cr_fm_nes.State(s.mean, sigma, s.D, s.v, s.p_sigma, s.p_c)
