"""The compiled engine of the method auto, on NumPy arrays, until a full matrix takes over."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import kernels
from fmnes.algorithms import auto
from fmnes.engines.array import ArrayEngine
from fmnes.engines.compiled import Compiled
from fmnes.engines.contract import EngineSpec, Generation

if kernels.in_use == "native":
    from fmnes.kernels import _native

_VIEWS = "mean", "D", "p_sigma", "p_c", "D_gradient", "m_gradient"  # the extension's own memory
_NUMBERS = "sigma", "D_signal", "D_noise", "eta"
_OF_A_FULL_MATRIX = "B", "axis_ratio"


class CompiledAutoEngine(Compiled):
    """The method auto on NumPy arrays of float64 or float32.

    With a full matrix its generations are matrix products: the array engine computes them.
    """

    def __init__(self, spec: EngineSpec) -> None:
        self.params: auto.Params = spec.params
        self._generation = spec.address.generation
        self._spec = spec._replace(state=None, initial=None, best=None)  # for the array engine
        self._array: ArrayEngine | None = None  # once the matrix is full
        if spec.state.B.shape[0]:
            self._array = ArrayEngine(spec)
            return
        self._dtype, self._dim = spec.state.mean.dtype, self.params.dim
        make = _native.Auto64 if self._dtype == np.float64 else _native.Auto32
        constants, rates = auto.tables(self.params)
        self._compiled = make(
            dim=self._dim,
            popsize=self.params.popsize,
            constants=constants,
            noise=self.params.rates._asdict(),
            w_hat=self.params.phase.w_hat,
            scores=self.params.scores,
            rates=rates,
            **spec.address._asdict(),
            record=Generation,
        )
        self._set_state(spec.state, spec.initial)
        if spec.best is not None:
            self._compiled.best[...] = spec.best

    def _set_state(self, state: auto.State, initial: NDArray[Any] | None) -> None:
        fields = state._asdict() | {name: float(getattr(state, name)) for name in _NUMBERS}
        for name in _OF_A_FULL_MATRIX:
            del fields[name]
        self._compiled.set_state(**fields, initial=initial, tolx=self._spec.tolx)

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return candidates ``first`` to ``last - 1`` as a fresh array, or fill ``out``."""
        if self._array is not None:
            return np.asarray(self._array.ask(first, last, out))
        return super().ask(first, last, out)

    def tell(self, values: NDArray[np.float64], best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``."""
        if self._array is not None:
            return self._array.tell(values, best_so_far)
        shown: Generation = self._compiled.tell(values, best_so_far)
        self._generation += 1
        if self._generation % self.params.refresh_every == 0:
            self._resize()
        return shown

    def _resize(self) -> None:
        """Make room for more axes, or hand over to a full matrix."""
        axes, room = self._compiled.axes, self._compiled.room
        full_from = self.params.full_from
        if not 0 < full_from <= axes and (axes + 1 < room or room >= self.params.most_axes):
            return
        state, initial = auto.resized(self.params, self.state), np.array(self.initial)
        if not state.B.shape[0]:
            self._set_state(state, initial)
            return
        self._array = ArrayEngine(
            self._spec._replace(
                state=auto.State(*(np.array(field) for field in state)),
                address=self._spec.address._replace(generation=self._generation),
                initial=initial,
                best=np.array(self.best),
            )
        )
        del self._compiled

    @property
    def state(self) -> auto.State:
        """The state; some fields are views that change with the next `tell`."""
        if self._array is not None:
            state: auto.State = self._array.state
            return state
        now, dim, dtype = self._compiled, self._dim, self._dtype
        copies = {
            "V": np.empty((dim, now.room), dtype),
            "S": np.empty(now.room, dtype),
            "scouts": np.empty((dim, 2), dtype),
            "evidence": np.empty(2, dtype),
            "m_averages": np.empty(3, dtype),
            "sigma_averages": np.empty(2, dtype),
        }
        now.get_state(**copies)
        views = {name: getattr(now, name) for name in _VIEWS}
        numbers = {name: np.asarray(getattr(now, name), dtype) for name in _NUMBERS}
        none = {"B": np.zeros((0, 0), dtype), "axis_ratio": np.ones((), dtype)}
        return auto.State(**copies, **views, **numbers, **none)

    @property
    def initial(self) -> NDArray[Any]:
        """The standard deviations of the coordinates at the start of the run."""
        if self._array is not None:
            return np.asarray(self._array.initial)
        return np.broadcast_to(self._compiled.initial, (self._dim,))

    @property
    def best(self) -> NDArray[Any] | None:
        """The best candidate so far; None before the first if the matrix starts full."""
        if self._array is not None:
            return None if self._array.best is None else np.asarray(self._array.best)
        best: NDArray[Any] = self._compiled.best
        return best
