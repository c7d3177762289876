"""The Triton engine of the method auto: axes on CUDA tensors, until a full matrix takes over."""

from typing import Any

from numpy.typing import NDArray

from fmnes._arrays import Array
from fmnes.algorithms import auto
from fmnes.engines.array import ArrayEngine
from fmnes.engines.contract import EngineSpec, Generation
from fmnes.engines.triton_auto_steps import AutoSteps

# That the kernels have room for. One program holds k x k numbers, and with more it takes minutes to
# compile.
_MOST_AXES = 16


class TritonAutoEngine(AutoSteps):
    """The method auto on CUDA tensors of float32 or float64.

    With a full matrix its generations are matrix products, and with very many axes they are mostly
    work on these: the array engine computes both.
    """

    def __init__(self, spec: EngineSpec) -> None:
        self._array: ArrayEngine | None = None
        self._spec = spec._replace(state=None, initial=None, best=None)
        self._start(spec)

    def _start(self, spec: EngineSpec) -> None:
        """Take over a state by the kernels, or by the array engine if they cannot."""
        self.params, self._address = spec.params, spec.address
        if spec.state.B.shape[0] or spec.state.S.shape[0] > _MOST_AXES:
            self._array = ArrayEngine(spec)
            self.initial = self._array.initial
        else:
            super()._start(spec)

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Candidates first to last - 1, as a fresh tensor or in ``out``."""
        if self._array is None:
            return super().ask(first, last, out)
        x = self._array.ask(first, last)
        if out is None:
            return x
        out[...] = x.cpu().numpy()
        return out

    def write(self, candidate: int, start: int, out: Array) -> None:
        """Write the coordinates of one candidate from ``start`` on into a contiguous tensor."""
        if self._array is None:
            super().write(candidate, start, out)
        else:
            row = self._array.ask(candidate, candidate + 1)[0, start : start + out.numel()]
            out.copy_(row.view(out.shape))

    def reads(self, values: Any) -> bool:
        """Whether these are floating-point numbers of the population, on the state's device."""
        return self._array is None and super().reads(values)

    def tell(self, values: Array, best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``."""
        if self._array is not None:
            return self._array.tell(values, best_so_far)
        shown = super().tell(values, best_so_far)
        if self._address.generation % self.params.refresh_every == 0:
            self._resize()
        return shown

    def _resize(self) -> None:
        """Make room for more axes, or hand over to a full matrix."""
        axes, room, full_from = self._axes_in_use, self._room, self.params.full_from
        if not 0 < full_from <= axes and (axes + 1 < room or room >= self.params.most_axes):
            return
        self._start(
            self._spec._replace(
                state=auto.resized(self.params, self.state),
                address=self._address,
                initial=self.initial,
                best=self.best,
            )
        )

    @property
    def state(self) -> auto.State:
        """The state, in tensors that change with the next `tell`."""
        if self._array is None:
            return self._state
        state: auto.State = self._array.state
        return state

    @property
    def best(self) -> Array | None:
        """The best candidate so far, on the device."""
        return super().best if self._array is None else self._array.best
