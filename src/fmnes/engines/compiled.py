"""The compiled engine: CR-FM-NES on NumPy arrays, with one call each for ask and tell."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import kernels
from fmnes.algorithms import cr_fm_nes
from fmnes.engines.contract import EngineSpec, Generation

if kernels.in_use == "native":
    from fmnes.kernels import _native


class Compiled:
    """What the engines that call the extension have in common."""

    _compiled: Any
    _dtype: np.dtype[Any]
    _dim: int

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return candidates ``first`` to ``last - 1`` as a fresh array, or fill ``out``."""
        if out is None:
            x = out = np.empty((last - first, self._dim), self._dtype)
        elif out.flags.carray and out.dtype == self._dtype:
            x = out
        else:
            x = np.empty(out.shape, self._dtype)
        self._compiled.ask(x, first)
        if x is not out:
            out[...] = x
        return out


class CompiledEngine(Compiled):
    """CR-FM-NES on NumPy arrays of float64 or float32."""

    def __init__(self, spec: EngineSpec) -> None:
        params: cr_fm_nes.Params = spec.params
        state: cr_fm_nes.State = spec.state
        self.params = params
        dtype = state.mean.dtype
        make = _native.CRFMNES64 if dtype == np.float64 else _native.CRFMNES32
        constants, rates = cr_fm_nes.tables(params)
        self._compiled = make(
            dim=params.dim,
            popsize=params.popsize,
            safe=params.safe,
            store_draws=params.store_draws,
            constants=constants,
            w_hat=params.phase.w_hat,
            rates=rates,
            **spec.address._asdict(),
            record=Generation,
        )
        vectors = state._asdict() | {"sigma": float(state.sigma)}
        self._compiled.set_state(**vectors, initial=spec.initial, tolx=spec.tolx)
        self.initial = np.broadcast_to(self._compiled.initial, (params.dim,))
        self.best = self._compiled.best  # a view: it changes when a better candidate is told
        if spec.best is not None:
            self.best[...] = spec.best
        self.tell = self._compiled.tell  # the compiled method itself, without a Python wrapper
        self._dtype, self._dim = dtype, params.dim

    @property
    def state(self) -> cr_fm_nes.State:
        """The state, in views that change with the next `tell`."""
        now = self._compiled
        sigma = np.asarray(now.sigma, self._dtype)
        return cr_fm_nes.State(now.mean, sigma, now.D, now.v, now.p_sigma, now.p_c)
