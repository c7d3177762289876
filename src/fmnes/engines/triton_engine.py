"""The Triton engine: CR-FM-NES on CUDA tensors, by the kernels of `triton_kernels`.

With ``store_draws=False`` no array of size lambda x d exists: the draws are made again, and
`ask` and `write` make candidates one by one. The device then holds seven vectors: the mean, D, v,
the two paths, and two vectors of the update; the best candidate is kept in memory of the host.
"""

from typing import Any

import numpy as np

from fmnes._arrays import Array
from fmnes.algorithms import cr_fm_nes
from fmnes.draws import Address
from fmnes.engines import generation
from fmnes.engines.contract import EngineSpec
from fmnes.engines.triton_base import FEW_BLOCKS, PAIRS, PROGRAMS, ROW_BLOCKS, ROWS, Triton
from fmnes.engines.triton_exchange import Exchange

_TILE = 1024  # coordinates of a tile in passes over vectors
_BLOCKS = 512  # Philox blocks of a tile in passes over draws, if d is not small
_WRITE_BLOCKS, _WRITE_WARPS = 512, 4  # Philox blocks of a tile of `write_row`, warps of a program
_WRITE_PROGRAMS = 132 * 32  # at most so many programs share its tiles


class TritonEngine(Triton):
    """CR-FM-NES on CUDA tensors of float32 or float64."""

    params: cr_fm_nes.Params

    def _allocate(self, spec: EngineSpec) -> None:
        kernels, half, dim = self._kernels, self._half, self._dim
        self._vectors = self._own(spec, ("mean", "D", "v", "p_sigma", "p_c"))
        self._az, self._s = self._vector()[0], self._vector()[0]
        self._numbers = self._float64(len(kernels.NUMBERS))
        self._pairs = self._float64(len(kernels.PAIRS), half)
        started = {"sigma": float(spec.state.sigma), "d_scale": 1.0, "v_scale": 1.0}
        for name, value in started.items():
            self._numbers[kernels.NUMBERS.index(name)] = value
        tables = cr_fm_nes.tables(self.params)
        self._constants, self._rates = self._tables(spec, kernels.CONSTANTS, *tables)
        self._w_hat, self._cumulated, self._weights = self._by_rank(
            np.asarray(self.params.phase.w_hat)
        )
        self._exchange = Exchange(2 * half, len(kernels.FIGURES), spec.address, spec.state.mean)
        self._words = self._exchange.words
        self._programs = min(-(-dim // _TILE), PROGRAMS)
        self._tile = _BLOCKS if self._blocks >= 128 * _BLOCKS else FEW_BLOCKS
        self._draw_programs = min(-(-self._blocks // self._tile), PROGRAMS)
        self._row_programs = min(-(-self._blocks // ROW_BLOCKS), PROGRAMS // 4)
        self._partial = self._float64(kernels.KINDS * PROGRAMS)
        self._row_partial = self._float64(3 * half * self._row_programs)

    def _deviations(self, spec: EngineSpec, part: slice) -> Array:
        fields = (field[part] if field.ndim else field for field in spec.state)
        return cr_fm_nes.summary(spec.params, cr_fm_nes.State(*fields)).deviations

    # === Candidates ===

    def _write_one(self, out: Array, candidate: int, start: int) -> None:
        if self.params.store_draws:
            super()._write_one(out, candidate, start)
            return
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
        low, high = self._rows_of(first, last)
        grid = -(-blocks // self._tile), -(-(high - low) // PAIRS)
        state = self._vectors
        with self._draws.on_device(self._z):
            self._kernels.write_rows[grid](
                out, self._z, self._words, state["mean"], state["D"], state["v"], self._numbers,
                self._pairs, self._dim, self._half, first, last, low, high, start,
                size, self.params.store_draws, self._double, PAIRS, self._tile, **self._options,
            )  # fmt: skip

    # === The best candidate of a search that streams is on the host ===

    def reads(self, values: Any) -> bool:
        """Whether these are floating-point numbers of the population, on the state's device.

        A search that streams keeps its best candidate on the host, which has to know the values.
        """
        return super().reads(values) and self.params.store_draws

    def _send(self, values: Array, best_so_far: float, following: Address) -> None:
        super()._send(values, best_so_far, following)
        if not self.params.store_draws and generation.survey(values).least < best_so_far:
            self.write(generation.best_of(values), 0, self._az)  # the update fills it later
            self._best.copy_(self._az, non_blocking=True)

    def _place_of_best(self) -> Array:
        """Memory for a candidate: of the device, or of the host where the device has no room."""
        if self.params.store_draws:
            return super()._place_of_best()
        pin = self._device.type == "cuda"
        return self._torch.empty(self._dim, dtype=self._dtype, device="cpu", pin_memory=pin)

    # === The update ===

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
            values, pairs, numbers, self._w_hat, self._cumulated, self._weights, half,
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
            PROGRAMS, **options,
        )  # fmt: skip
        k.sums[(draws,)](
            self._z, self._words, state["mean"], state["D"], state["v"], state["p_sigma"],
            state["p_c"], self._az, self._s, pairs, numbers, constants, partial, dim, half, blocks,
            stored, self._double, self._tile, **options,
        )  # fmt: skip
        k.solve[(1,)](numbers, partial, draws, PROGRAMS, **options)
        many, vectors = self._programs, (state["v"], self._az, self._s)
        if safe:
            k.step_size[(many,)](*vectors, numbers, partial, dim, _TILE, **options)
            k.limit_step[(1,)](numbers, constants, partial, many, PROGRAMS, **options)
        k.move[(many,)](
            state["D"], *vectors, numbers, constants, partial, dim, safe, _TILE, **options
        )
        k.normalise[(1,)](
            numbers, constants, partial, many, safe, self._double, PROGRAMS, **options
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
            numbers, self._constants, self._exchange.figures, partial, many, PROGRAMS, **options
        )
        k.prepare[(many,)](
            state["D"], state["v"], state["p_c"], numbers, partial, self._dim, _TILE, **options
        )
        k.prepared[(1,)](numbers, partial, many, PROGRAMS, **options)
        self._exchange.report()

    def _draw(self) -> None:
        state, half, many = self._vectors, self._half, self._row_programs
        self._kernels.row_sums[(-(-half // ROWS), many)](
            self._z, self._words, state["v"], state["p_sigma"], self._row_partial, self._dim, half,
            self._blocks, self.params.store_draws, self._double, ROWS, ROW_BLOCKS,
            **self._options,
        )  # fmt: skip
        self._add(self._row_partial, self._pairs, 3 * half, many)

    @property
    def state(self) -> cr_fm_nes.State:
        """The state, in tensors that change with the next `tell`."""
        self._check_whole()
        sigma = self._numbers[self._kernels.SIGMA.value].to(self._dtype)
        return cr_fm_nes.State(sigma=sigma, **self._vectors)
