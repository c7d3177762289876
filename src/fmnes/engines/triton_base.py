"""What the Triton engines share: asking, telling, what crosses to the host, and the graphs.

The state, the draws and the ranking stay on the device. A generation copies popsize values to the
device and some twenty numbers back. On a GPU the kernels of `tell` are recorded once as a CUDA
graph, so that a small problem does not wait for the host to launch them one by one.
"""

import contextlib
import functools
import importlib.util
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from numpy.typing import NDArray

from fmnes import kernels
from fmnes._arrays import Array
from fmnes.draws import Address
from fmnes.engines import generation
from fmnes.engines.contract import EngineSpec, Generation
from fmnes.engines.triton_exchange import Exchange
from fmnes.engines.triton_graph import Recorded

PROGRAMS = 2048  # at most so many programs share the tiles of a pass
FEW_BLOCKS = 128  # Philox blocks of a tile for a small d: each makes two coordinates
ROWS, ROW_BLOCKS = 4, 128  # pairs and blocks of a tile of the products of each row
PAIRS = 8  # pairs of candidates that one program of `write_rows` builds
_TOGETHER = 2048  # partial sums that one program adds
_SMALL = 2**22  # a population of so many numbers at most is built by `tell` already
_PIECE = 2**24  # coordinates that are looked at together where memory is short


def power_of_2(n: int) -> int:
    """The smallest power of 2 that is at least n, but 2 or more."""
    return 1 << max(1, (n - 1).bit_length())


@functools.cache
def available() -> bool:
    """Whether kernels are wanted and Triton is installed; if it is not, a warning says so once."""
    if kernels.wanted == "agnostic":
        return False
    found = importlib.util.find_spec("triton") is not None
    if not found:
        warnings.warn(
            "Triton is not installed, so searches on CUDA tensors are computed by the array "
            "engine, which is 10 to 100 times slower: pip install triton",
            RuntimeWarning,
            stacklevel=2,
        )
    return found


class Triton(ABC):
    """A method on CUDA tensors of float32 or float64."""

    _vectors: dict[str, Array]  # of the state; kernels change them in place
    _z: Array  # the draws, or nothing of them
    _exchange: Exchange

    def __init__(self, spec: EngineSpec) -> None:
        """Take over a state: memory, its figures and the first draws."""
        import torch

        from fmnes.draws import triton_draws
        from fmnes.engines import triton_kernels

        self._draws, self._kernels, self._torch = triton_draws, triton_kernels, torch
        self.params, mean = spec.params, spec.state.mean
        self.address, self._device = spec.address, mean.device
        self._dtype, self._dim = mean.dtype, self.params.dim
        self._half = self.params.popsize // 2
        self._double = mean.dtype == torch.float64
        self._blocks = triton_draws.blocks_of(self._dim)
        self.initial, self._initial_is_one_number = self._initial(spec)
        stored, size = self.params.store_draws, 2 * self._half * self._dim
        self._z = self._vector(self._half if stored else 0)
        self._population = self._vector(2 * self._half) if stored and size <= _SMALL else None
        self._allocate(spec)
        self._has_best = spec.best is not None
        self._best: Array = self._place_of_best()
        if spec.best is not None:
            self._best.copy_(spec.best)
        self._tell, self._sample = Recorded(mean.device), Recorded(mean.device)
        self._whole = True  # no generation failed while its kernels were launched
        with triton_draws.on_device(mean):
            self._settle()
            self._sample(self._next_draws)

    @abstractmethod
    def _allocate(self, spec: EngineSpec) -> None:
        """Memory of the engine, with the vectors and numbers of a state."""

    @abstractmethod
    def _deviations(self, spec: EngineSpec, part: slice) -> Array:
        """The standard deviations of some coordinates in a state."""

    @abstractmethod
    def _update(self) -> None:
        """All of `tell` on the device; the figures go to the outbox."""

    @abstractmethod
    def _settle(self) -> None:
        """The figures of the state, and what the next generation needs of it."""

    @abstractmethod
    def _draw(self) -> None:
        """The products of the draws of this generation with vectors, and their lengths."""

    @abstractmethod
    def _write_rows(self, out: Array, first: int, last: int, start: int, size: int) -> None:
        """Some coordinates of some candidates."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """The state, in tensors that change with the next `tell`."""

    # === Memory ===

    def _float64(self, *shape: int) -> Array:
        return self._torch.zeros(shape, dtype=self._torch.float64, device=self._device)

    def _on_device(self, values: Any) -> Array:
        return self._torch.tensor(np.asarray(values, np.float64), device=self._device)

    def _vector(self, rows: int = 1) -> Array:
        return self._torch.empty((rows, self._dim), dtype=self._dtype, device=self._device)

    def _own(self, spec: EngineSpec, names: tuple[str, ...]) -> dict[str, Array]:
        """Vectors of a state that the kernels may update in place: shared with nobody."""
        contiguous = self._torch.contiguous_format
        given = {name: getattr(spec.state, name) for name in names}
        return {
            name: value if spec.owned else value.clone(memory_format=contiguous)
            for name, value in given.items()
        }

    def _tables(
        self, spec: EngineSpec, names: Any, constants: dict[str, float], rates: dict[str, Any]
    ) -> tuple[Array, Array]:
        """The constants and the rates on the device, in the order of the kernels."""
        given = {"dim": self._dim, "popsize": 2 * self._half, "tolx": spec.tolx, **constants}
        given["eps"] = self._torch.finfo(self._dtype).eps
        by_feasible = np.stack([rates[name] for name in self._kernels.RATES])
        return self._on_device([given[name] for name in names]), self._on_device(by_feasible)

    def _by_rank(self, weights: NDArray[np.float64]) -> tuple[Array, Array, Array]:
        """Weights by rank, their sums, and room for those by candidate, for the kernel `rank`."""
        cumulated = np.concatenate([[0.0], np.cumsum(weights)])
        return self._on_device(weights), self._on_device(cumulated), self._float64(len(weights))

    def _initial(self, spec: EngineSpec) -> tuple[Array, bool]:
        """The initial deviations, and whether one number stands for all of them.

        It does if they are equal and, where memory is short, if they are almost equal: they only
        scale a tolerance.
        """
        parts = [slice(a, a + _PIECE) for a in range(0, self._dim, _PIECE)]

        def deviations(part: slice) -> Array:
            if spec.initial is not None:  # on the host, perhaps, if it comes from a file
                return spec.initial[part].to(self._device)
            return self._deviations(spec, part)

        limits = self._torch.stack([x for part in parts for x in deviations(part).aminmax()])
        least, most = limits.aminmax()
        if least == most or (not spec.params.store_draws and most <= 1.001 * least):
            return most.reshape(1).expand(self._dim), True
        return self._torch.cat([deviations(part) for part in parts]), False

    # === Ask ===

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Candidates first to last - 1, as a fresh tensor or in ``out``."""
        self._check_whole()
        if self._population is not None:
            x = self._population[first:last].clone()
        else:
            x = self._vector(last - first)
            self._write_rows(x, first, last, 0, self._dim)
        if out is None:
            return x
        out[...] = x.cpu().numpy()
        return out

    def write(self, candidate: int, start: int, out: Array) -> None:
        """Write the coordinates of one candidate from ``start`` on into a contiguous tensor."""
        self._check_whole()
        if self._population is None:
            self._write_one(out, candidate, start)
            return
        row = self._population[candidate, start : start + out.numel()]
        out.copy_(row.view(out.shape))

    def _write_one(self, out: Array, candidate: int, start: int) -> None:
        self._write_rows(out, candidate, candidate + 1, start, out.numel())

    def _rows_of(self, first: int, last: int) -> tuple[int, int]:
        """The pairs that `write_rows` has to look at for some candidates."""
        if last - first == 1:
            return first % self._half, first % self._half + 1
        return 0, self._half

    # === Tell ===

    def reads(self, values: Any) -> bool:
        """Whether these are floating-point numbers of the population, on the state's device."""
        return (
            is_torch_array(values)
            and values.device == self._device
            and values.shape == (self.params.popsize,)
            and values.is_floating_point()
        )

    def tell(self, values: Array, best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``.

        What can fail for lack of memory comes before anything changes, so that the same call can be
        made again.
        """
        self._check_whole()
        following = self.address._replace(generation=self.address.generation + 1)
        with self._draws.on_device(self._z):
            self._tell.record(self._update)
            self._sample.record(self._next_draws)
            self._send(values, best_so_far, following)
            with self.in_one_piece():
                self._tell(self._update)
                arrived = self._exchange.mark()
                self._sample(self._next_draws)
                arrived()
        self.address = following
        figures = self._exchange.arrived()[: len(Generation._fields)]
        record = generation.from_numbers(figures)
        self._has_best |= record.least < best_so_far
        return record

    def _send(self, values: Array, best_so_far: float, following: Address) -> None:
        """What the update needs goes to the device."""
        self._exchange.send(values, best_so_far, following)

    def _next_draws(self) -> None:
        """The draws of this generation; a small population is built too: `ask` only copies it."""
        self._draw()
        if self._population is not None:
            self._write_rows(self._population, 0, 2 * self._half, 0, self._dim)

    @contextlib.contextmanager
    def in_one_piece(self) -> Iterator[None]:
        """If this fails, nobody may use what is left of the generation."""
        self._whole = False
        yield
        self._whole = True

    def _check_whole(self) -> None:
        if not self._whole:
            raise RuntimeError(
                "tell: an earlier call failed while the GPU computed the generation, so that the "
                "state is incomplete; continue from a checkpoint, or create the search again"
            )

    def _place_of_best(self) -> Array:
        return self._vector()[0]

    @property
    def best(self) -> Array | None:
        """The best candidate so far, on the device."""
        self._check_whole()
        return self.best_of_all

    @property
    def best_of_all(self) -> Array | None:
        """The same while a generation is computed."""
        return self._best.to(self._device) if self._has_best else None

    def _add(self, partial: Array, out: Array, count: int, programs: int) -> None:
        """Add what the programs of a pass have found of `count` numbers."""
        width = power_of_2(programs)
        together = max(1, _TOGETHER // width)
        self._kernels.add_row_sums[(-(-count // together),)](
            partial, out, count, programs, together, width, **self._options
        )

    @property
    def _options(self) -> dict[str, bool]:
        """float64 follows the CPU to the last digits, so nothing is fused."""
        return {"enable_fp_fusion": not self._double}
