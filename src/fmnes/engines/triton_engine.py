"""The Triton engine: CR-FM-NES on CUDA tensors, by the kernels of `triton_kernels`.

The state, the draws and the ranking stay on the device. A generation copies popsize values to the
device and fifteen numbers back. On a GPU the kernels of `tell` are recorded once as a CUDA graph,
so that a small problem does not wait for the host to launch them one by one.

With ``store_draws=False`` no array of size lambda x d exists: the draws are made again, and
`ask` and `write` make candidates one by one. The device then holds seven vectors: the mean, D, v,
the two paths, and two vectors of the update; the best candidate is kept in memory of the host.
"""

import functools
import importlib.util
import warnings
from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from numpy.typing import NDArray

from fmnes._arrays import Array
from fmnes.algorithms import cr_fm_nes
from fmnes.engines import generation
from fmnes.engines.contract import EngineSpec, Generation
from fmnes.engines.triton_exchange import Exchange
from fmnes.engines.triton_graph import Recorded

_TILE = 1024  # coordinates of a tile in passes over vectors
_BLOCKS = 512  # Philox blocks of a tile in passes over draws: each makes two coordinates
_FEW_BLOCKS = 128  # the same for a small d, so that more programs share the work
_SMALL = 2**22  # a population of so many numbers at most is built by `tell` already
_ROWS, _ROW_BLOCKS = 4, 128  # pairs and blocks of a tile of `row_sums`
_PAIRS = 8  # pairs of candidates that one program of `write_rows` builds
_PROGRAMS = 2048  # at most so many programs share the tiles of a pass
_WRITE_BLOCKS, _WRITE_WARPS = 512, 4  # Philox blocks of a tile of `write_row`, warps of a program
_WRITE_PROGRAMS = 132 * 32  # at most so many programs share its tiles
_PIECE = 2**24  # coordinates that are looked at together where memory is short


@functools.cache
def available() -> bool:
    """Whether Triton is installed; if not, a warning says once that the array engine is used."""
    found = importlib.util.find_spec("triton") is not None
    if not found:
        warnings.warn(
            "Triton is not installed, so CR-FM-NES on CUDA tensors is computed by the array "
            "engine, which is 10 to 100 times slower: pip install triton",
            RuntimeWarning,
            stacklevel=2,
        )
    return found


class TritonEngine:
    """CR-FM-NES on CUDA tensors of float32 or float64."""

    def __init__(self, spec: EngineSpec) -> None:
        import torch

        from fmnes.draws import triton_draws
        from fmnes.engines import triton_kernels

        self._draws, self._kernels, self._torch = triton_draws, triton_kernels, torch
        self.params: cr_fm_nes.Params = spec.params
        mean = spec.state.mean
        self._address, self._device = spec.address, mean.device
        self._dtype, self._dim = mean.dtype, self.params.dim
        self._half = self.params.popsize // 2
        self._double = mean.dtype == torch.float64
        self.initial, self._initial_is_one_number = self._initial(spec)
        # The kernels update these vectors in place, so they must not be shared with anybody.
        self._vectors = {
            name: value if spec.owned else value.clone(memory_format=torch.contiguous_format)
            for name, value in spec.state._asdict().items()
            if name != "sigma"
        }
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

    def _allocate(self, spec: EngineSpec) -> None:
        torch, kernels, half, dim = self._torch, self._kernels, self._half, self._dim
        self._blocks = self._draws.blocks_of(dim)

        def float64(*shape: int) -> Array:
            return torch.zeros(shape, dtype=torch.float64, device=self._device)

        def on_device(values: Any) -> Array:
            return torch.tensor(np.asarray(values, np.float64), device=self._device)

        def vector(rows: int = 1) -> Array:
            return torch.empty((rows, dim), dtype=self._dtype, device=self._device)

        stored = self.params.store_draws
        self._z = vector(half if stored else 0)
        self._population = vector(2 * half) if stored and 2 * half * dim <= _SMALL else None
        self._az, self._s = vector()[0], vector()[0]
        self._numbers = float64(len(kernels.NUMBERS))
        self._pairs = float64(len(kernels.PAIRS), half)
        started = {"sigma": float(spec.state.sigma), "d_scale": 1.0, "v_scale": 1.0}
        for name, value in started.items():
            self._numbers[kernels.NUMBERS.index(name)] = value
        constants, rates = cr_fm_nes.tables(self.params)
        eps = torch.finfo(self._dtype).eps
        given = {"dim": dim, "popsize": 2 * half, "eps": eps, "tolx": spec.tolx, **constants}
        self._constants = on_device([given[name] for name in kernels.CONSTANTS])
        self._rates = on_device(np.stack([rates[name] for name in kernels.RATES]))
        w_hat = np.asarray(self.params.phase.w_hat)
        self._by_rank, self._weights = on_device(w_hat), float64(2 * half)
        self._cumulated = on_device(np.concatenate([[0.0], np.cumsum(w_hat)]))
        self._exchange = Exchange(2 * half, len(kernels.FIGURES), spec.address, spec.state.mean)
        self._words = self._exchange.words
        self._programs = min(-(-dim // _TILE), _PROGRAMS)
        self._tile = _BLOCKS if self._blocks >= 128 * _BLOCKS else _FEW_BLOCKS
        self._draw_programs = min(-(-self._blocks // self._tile), _PROGRAMS)
        self._row_programs = min(-(-self._blocks // _ROW_BLOCKS), _PROGRAMS // 4)
        self._partial = float64(kernels.KINDS * _PROGRAMS)
        self._row_partial = float64(3 * half * self._row_programs)

    def _initial(self, spec: EngineSpec) -> tuple[Array, bool]:
        """The initial deviations, and whether one number stands for all of them.

        It does if they are equal and, where memory is short, if they are almost equal: they only
        scale a tolerance.
        """
        parts = [slice(a, a + _PIECE) for a in range(0, self._dim, _PIECE)]

        def deviations(part: slice) -> Array:
            if spec.initial is not None:  # on the host, perhaps, if it comes from a file
                return spec.initial[part].to(self._device)
            fields = (field[part] if field.ndim else field for field in spec.state)
            return cr_fm_nes.summary(spec.params, cr_fm_nes.State(*fields)).deviations

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
            shape = last - first, self._dim
            x = self._torch.empty(shape, dtype=self._dtype, device=self._device)
            self._write_rows(x, first, last, 0, self._dim)
        if out is None:
            return x
        out[...] = x.cpu().numpy()
        return out

    def write(self, candidate: int, start: int, out: Array) -> None:
        """Write the coordinates of one candidate from ``start`` on into a contiguous tensor."""
        self._check_whole()
        if self._population is not None:
            row = self._population[candidate, start : start + out.numel()]
            out.copy_(row.view(out.shape))
            return
        if self.params.store_draws:
            self._write_rows(out, candidate, candidate + 1, start, out.numel())
        else:
            self._write_row(out, candidate, start)

    def _write_row(self, out: Array, candidate: int, start: int) -> None:
        size, state = out.numel(), self._vectors
        tiles = -(-(start % 16 + size) // (2 * _WRITE_BLOCKS))
        with self._draws.on_device(self._z):
            self._kernels.write_row[(min(tiles, _WRITE_PROGRAMS),)](
                out, self._words, state["mean"], state["D"], state["v"], self._numbers,
                self._pairs, self._half, candidate, start, size, start % 16 == size % 16 == 0,
                self._double, _WRITE_BLOCKS, num_warps=_WRITE_WARPS, **self._options,
            )  # fmt: skip

    def _write_rows(self, out: Array, first: int, last: int, start: int, size: int) -> None:
        blocks = -(-(start + size) // 16) * 8 - start // 16 * 8
        low, high = 0, self._half
        if last - first == 1:
            low, high = first % self._half, first % self._half + 1
        grid = -(-blocks // self._tile), -(-(high - low) // _PAIRS)
        state = self._vectors
        with self._draws.on_device(self._z):
            self._kernels.write_rows[grid](
                out, self._z, self._words, state["mean"], state["D"], state["v"], self._numbers,
                self._pairs, self._dim, self._half, first, last, low, high, start,
                size, self.params.store_draws, self._double, _PAIRS, self._tile, **self._options,
            )  # fmt: skip

    # === Tell ===

    def reads(self, values: Any) -> bool:
        """Whether these are floating-point numbers of the population, on the state's device.

        A search that streams keeps its best candidate on the host, which has to know the values.
        """
        return (
            is_torch_array(values)
            and values.device == self._device
            and values.shape == (self.params.popsize,)
            and values.is_floating_point()
            and self.params.store_draws
        )

    def tell(self, values: Array, best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``.

        What can fail for lack of memory comes before anything changes, so that the same call can be
        made again.
        """
        self._check_whole()
        following = self._address._replace(generation=self._address.generation + 1)
        with self._draws.on_device(self._z):
            self._tell.record(self._update)
            self._sample.record(self._next_draws)
            self._exchange.send(values, best_so_far, following)
            if not self.params.store_draws and generation.survey(values).least < best_so_far:
                self.write(generation.best_of(values), 0, self._az)  # the update fills it later
                self._best.copy_(self._az, non_blocking=True)
            self._whole = False
            self._tell(self._update)
            arrived = self._exchange.mark()
            self._sample(self._next_draws)
            arrived()
        self._whole, self._address = True, following
        record = generation.from_numbers(self._exchange.arrived())
        self._has_best |= record.least < best_so_far
        return record

    def _check_whole(self) -> None:
        if not self._whole:
            raise RuntimeError(
                "tell: an earlier call failed while the GPU computed the generation, so that the "
                "state is incomplete; continue from a checkpoint, or create the search again"
            )

    def _place_of_best(self) -> Array:
        """Memory for a candidate: of the device, or of the host where the device has no room."""
        on_device = self.params.store_draws
        return self._torch.empty(
            self._dim,
            dtype=self._dtype,
            device=self._device if on_device else "cpu",
            pin_memory=not on_device and self._device.type == "cuda",
        )

    @property
    def best(self) -> Array | None:
        """The best candidate so far, on the device."""
        return self._best.to(self._device) if self._has_best else None

    def _update(self) -> None:
        """All of `tell` on the device; the figures go to the outbox."""
        k, state, partial = self._kernels, self._vectors, self._partial
        numbers, constants, pairs = self._numbers, self._constants, self._pairs
        exchange = self._exchange
        half, dim, blocks, draws = self._half, self._dim, self._blocks, self._draw_programs
        safe, options, stored = self.params.safe, self._options, self.params.store_draws
        values, best, figures = exchange.values, exchange.best_so_far, exchange.figures
        k.survey[(1,)](values, best, numbers, figures, half, safe, 256, **options)
        if stored:
            k.keep[(self._programs,)](
                self._best, self._z, state["mean"], state["D"], state["v"], numbers, pairs, dim,
                half, _TILE, **options,
            )  # fmt: skip
        k.rank[(-(-2 * half // 32),)](
            values, pairs, numbers, self._by_rank, self._cumulated, self._weights, half,
            safe, 32, **options,
        )  # fmt: skip
        k.weigh[(1,)](
            values, self._weights, pairs, numbers, constants, self._rates, half, 256,
            **options,
        )  # fmt: skip
        k.path_length[(draws,)](
            self._z, self._words, state["p_sigma"], pairs, numbers, constants, partial, dim, half,
            blocks, stored, self._double, self._tile, **options,
        )  # fmt: skip
        k.decide[(1,)](
            pairs, numbers, constants, self._rates, partial, half, draws, safe, self._double, 256,
            _PROGRAMS, **options,
        )  # fmt: skip
        k.sums[(draws,)](
            self._z, self._words, state["mean"], state["D"], state["v"], state["p_sigma"],
            state["p_c"], self._az, self._s, pairs, numbers, constants, partial, dim, half, blocks,
            stored, self._double, self._tile, **options,
        )  # fmt: skip
        k.solve[(1,)](numbers, partial, draws, _PROGRAMS, **options)
        many, vectors = self._programs, (state["v"], self._az, self._s)
        if safe:
            k.step_size[(many,)](*vectors, numbers, partial, dim, _TILE, **options)
            k.limit_step[(1,)](numbers, constants, partial, many, _PROGRAMS, **options)
        k.move[(many,)](
            state["D"], *vectors, numbers, constants, partial, dim, safe, _TILE, **options
        )
        k.normalise[(1,)](
            numbers, constants, partial, many, safe, self._double, _PROGRAMS, **options
        )
        self._settle()
        exchange.go_on()  # the draws of this generation are used

    def _settle(self) -> None:
        """The figures of the state, and what the next natural gradient needs of it."""
        k, state, many, options = self._kernels, self._vectors, self._programs, self._options
        numbers, partial = self._numbers, self._partial
        k.settle[(many,)](
            state["mean"], state["D"], state["v"], state["p_sigma"], self.initial, numbers,
            self._constants, partial, self._dim, self._initial_is_one_number, _TILE, **options,
        )  # fmt: skip
        k.report[(1,)](
            numbers, self._constants, self._exchange.figures, partial, many, _PROGRAMS, **options
        )
        k.prepare[(many,)](
            state["D"], state["v"], state["p_c"], numbers, partial, self._dim, _TILE, **options
        )
        k.prepared[(1,)](numbers, partial, many, _PROGRAMS, **options)
        self._exchange.report()

    def _next_draws(self) -> None:
        """The products of the draws of this generation with v and p_sigma, and their lengths.

        A small population is built too: `ask` then only copies it.
        """
        state, half, many = self._vectors, self._half, self._row_programs
        self._kernels.row_sums[(-(-half // _ROWS), many)](
            self._z, self._words, state["v"], state["p_sigma"], self._row_partial, self._dim, half,
            self._blocks, self.params.store_draws, self._double, _ROWS, _ROW_BLOCKS,
            **self._options,
        )  # fmt: skip
        self._kernels.add_row_sums[(half, 3)](
            self._row_partial, self._pairs, half, many, _PROGRAMS // 4, **self._options
        )
        if self._population is not None:
            self._write_rows(self._population, 0, 2 * half, 0, self._dim)

    @property
    def _options(self) -> dict[str, bool]:
        """float64 follows the CPU to the last digits, so nothing is fused."""
        return {"enable_fp_fusion": not self._double}

    @property
    def state(self) -> cr_fm_nes.State:
        """The state, in tensors that change with the next `tell`."""
        sigma = self._numbers[self._kernels.SIGMA.value].to(self._dtype)
        return cr_fm_nes.State(sigma=sigma, **self._vectors)
