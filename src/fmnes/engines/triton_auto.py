"""The Triton engine of the method auto: axes on CUDA tensors, until a full matrix takes over."""

import warnings
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


class TritonAutoEngine:
    """The method auto on CUDA tensors of float32 or float64.

    Kernels compute the generations while they have room for the axes. With a full matrix a
    generation is matrix products, and with very many axes it is mostly work on these: the array
    engine computes both.
    """

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec._replace(state=None, initial=None, best=None)
        self._engine = _chosen(spec)

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Candidates first to last - 1, as a fresh tensor or in ``out``."""
        if isinstance(self._engine, AutoSteps):
            return self._engine.ask(first, last, out)
        x = self._engine.ask(first, last)
        if out is None:
            return x
        out[...] = x.cpu().numpy()
        return out

    def write(self, candidate: int, start: int, out: Array) -> None:
        """Write the coordinates of one candidate from ``start`` on into a contiguous tensor."""
        if isinstance(self._engine, AutoSteps):
            self._engine.write(candidate, start, out)
        else:
            row = self._engine.ask(candidate, candidate + 1)[0, start : start + out.numel()]
            out.copy_(row.view(out.shape))

    def reads(self, values: Any) -> bool:
        """Whether these are floating-point numbers of the population, on the state's device."""
        return isinstance(self._engine, AutoSteps) and self._engine.reads(values)

    def tell(self, values: Array, best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``."""
        engine = self._engine
        shown = engine.tell(values, best_so_far)
        if isinstance(engine, AutoSteps) and engine.lacks_room:
            self._resize(engine)
        return shown

    def _resize(self, kernels: AutoSteps) -> None:
        """Make room for more axes, or hand over to a full matrix.

        The new engine is made beside the old one, which goes on if memory is short.
        """
        import torch

        with kernels.in_one_piece():
            spec = self._spec._replace(address=kernels.address, initial=kernels.initial)
            try:
                state = auto.resized(self.params, kernels.read_state())
                self._engine = _chosen(spec._replace(state=state, best=kernels.best_of_all))
            except torch.OutOfMemoryError:
                warnings.warn(
                    "method: 'auto' needs memory on the device for more axes, and there is none. "
                    "The search goes on with those it has, and tries again later",
                    RuntimeWarning,
                    stacklevel=5,
                )

    @property
    def params(self) -> auto.Params:
        """The method's constants."""
        params: auto.Params = self._engine.params
        return params

    @property
    def state(self) -> auto.State:
        """The state, in tensors that change with the next `tell`."""
        state: auto.State = self._engine.state
        return state

    @property
    def initial(self) -> Array:
        """The standard deviations of the coordinates at the start."""
        return self._engine.initial

    @property
    def best(self) -> Array | None:
        """The best candidate so far, on the device."""
        return self._engine.best


def _chosen(spec: EngineSpec) -> AutoSteps | ArrayEngine:
    """The kernels, or the array engine if they cannot."""
    if spec.state.B.shape[0] or spec.state.S.shape[0] > _MOST_AXES:
        return ArrayEngine(spec)
    return AutoSteps(spec)
