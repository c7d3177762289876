"""The kernels that a generation of the Triton engine of auto launches, in their order."""

from typing import Any

from fmnes._arrays import Array
from fmnes.engines.triton_auto_memory import AutoMemory
from fmnes.engines.triton_base import FEW_BLOCKS, PAIRS, PROGRAMS, ROW_BLOCKS, ROWS, power_of_2

_DIRECTIONS = 8  # at most, in one pass over the draws, which makes them again for the others
_WEIGHTS = 16  # of sums at most, in one pass over the draws
_SUM_BLOCKS = 256  # of a tile of these sums: two coordinates each
_FEW_PAIRS = 32  # of a tile of numbers of pairs


class AutoSteps(AutoMemory):
    """`tell` by the kernels of `triton_kernels.auto`."""

    def _write_rows(self, out: Array, first: int, last: int, start: int, size: int) -> None:
        blocks = -(-(start + size) // 16) * 8 - start // 16 * 8
        low, high = self._rows_of(first, last)
        grid = -(-blocks // FEW_BLOCKS), -(-(high - low) // PAIRS)
        state = self._vectors
        with self._draws.on_device(self._z):
            self._kernels.auto.write_rows[grid](
                out, self._z, self._words, state["mean"], state["D"], self._frame, self._along,
                self._table, self._numbers, self._dim, self._half, self._directions, first, last,
                low, high, start, size, self.params.store_draws, self._double, PAIRS, FEW_BLOCKS,
                **self._options,
            )  # fmt: skip

    def _update(self) -> None:
        self._rank()
        self._weigh()
        self._sum()
        self._step()
        self._turn()
        self._hand_over()
        self._wake()
        self._settle()
        self._exchange.go_on()  # the draws of this generation are used

    def _rank(self) -> None:
        """The best candidate, and the weights of the ranks."""
        k, state, exchange, half = self._kernels, self._vectors, self._exchange, self._half
        values, numbers, options = exchange.values, self._numbers, self._options
        k.survey[(1,)](
            values, exchange.best_so_far, numbers, exchange.figures, half, True, 256, **options
        )
        k.auto.keep[(self._draw_programs,)](
            self._best, self._z, self._words, state["mean"], state["D"], self._frame, self._along,
            self._table, numbers, self._dim, half, self._blocks, self._directions,
            self.params.store_draws, self._double, FEW_BLOCKS, **options,
        )  # fmt: skip
        for by_rank, cumulated, weights in (self._w_hat, self._scores):
            k.rank[(-(-2 * half // 32),)](
                values, self._pairs, numbers, by_rank, cumulated, weights, half, True, 32,
                **options,
            )  # fmt: skip

    def _weigh(self) -> None:
        """The phase, the weights of each pair, and their sums with the directions."""
        k, state, half, options = self._kernels, self._vectors, self._half, self._options
        pairs, numbers, constants = self._pairs, self._numbers, self._constants
        weights, scores = self._w_hat[2], self._scores[2]
        k.weigh[(1,)](
            self._exchange.values, weights, pairs, numbers, constants, self._rates, half, 256,
            **options,
        )  # fmt: skip
        k.path_length[(self._draw_programs,)](
            self._z, self._words, state["p_sigma"], pairs, numbers, constants, self._partial,
            self._dim, half, self._blocks, self.params.store_draws, self._double, FEW_BLOCKS,
            **options,
        )  # fmt: skip
        k.auto.decide[(1,)](
            scores, pairs, numbers, constants, self._rates, self._partial, self._along,
            self._by_row, half, self._draw_programs, self._directions,
            power_of_2(self._directions), _FEW_PAIRS, PROGRAMS, **options,
        )  # fmt: skip
        k.auto.moments[(self._directions,)](
            self._along, self._by_row, pairs, self._table, self._M, numbers, half, self._room,
            self._directions, self._axes, _FEW_PAIRS, **options,
        )  # fmt: skip

    def _sum(self) -> None:
        """The sums over the draws, the gradients, and the learning rates."""
        k, state, many, options = self._kernels.auto, self._vectors, self._programs, self._options
        table, numbers, constants = self._table, self._numbers, self._constants
        weights = self._by_row.shape[0]
        together = min(power_of_2(weights), _WEIGHTS)
        self._rounded.copy_(self._by_row)  # once, and not again for each tile
        k.sums[(self._draw_programs, -(-weights // together))](
            self._z, self._words, self._work, self._log_D, self._rounded, self._pairs, numbers,
            self._dim, self._half, self._blocks, weights, self.params.store_draws, self._double,
            together, _SUM_BLOCKS, num_warps=2, **options,
        )  # fmt: skip
        k.gradient[(many,)](
            self._work, self._log_D, self._path, self._frame, state["D"], state["p_sigma"],
            state["p_c"], state["D_gradient"], state["m_gradient"], self._M, table, numbers,
            constants, self._partial, self._dim, self._room, self._directions, self._axes,
            self._tile, **options,
        )  # fmt: skip
        k.judge[(1,)](
            table, numbers, constants, self._rates, self._partial, self._half, many,
            self._directions, self._double, power_of_2(self._directions), PROGRAMS, **options,
        )  # fmt: skip

    def _step(self) -> None:
        """The mean and the paths, and the step within the axes."""
        k, state, options, many = self._kernels.auto, self._vectors, self._options, self._programs
        table, numbers, constants = self._table, self._numbers, self._constants
        k.steps[(many,)](
            self._work, self._log_D, self._path, self._frame, state["mean"], state["D"],
            state["p_c"], state["D_gradient"], table, numbers, constants, self._partial, self._dim,
            self._room, self._directions, self._axes, self._tile, **options,
        )  # fmt: skip
        self._add_squares()
        self._gram(self._frame[k.SCOUTS :], "identity", k.LIVE, k.K, scale=self._log_D)
        k.step_within[(1,)](
            self._H, self._added[1:], self._M, self._scratch, self._of_V, self._of_Y, table,
            numbers, constants, self._partial, many, self._room, self._directions, self._axes,
            PROGRAMS, num_warps=self._warps, **options,
        )  # fmt: skip

    def _turn(self) -> None:
        """D grows, the axes and the scouts turn."""
        k, options = self._kernels.auto, self._options
        k.turn[(self._programs,)](
            self._work, self._log_D, self._path, self._turned, self._frame, self._vectors["D"],
            self._of_V, self._of_Y, self._M, self._table, self._numbers, self._constants,
            self._partial, self._dim, self._room, self._directions, self._axes, self._tile,
            **options,
        )  # fmt: skip
        self._add_squares()
        self._step_out(self._turned, self._in_place, "identity", self._added[1:], "S_within")
        k.largest_entries[(self._room,)](
            self._table, self._partial, self._room, self._programs, self._directions, PROGRAMS,
            **options,
        )  # fmt: skip

    def _hand_over(self) -> None:
        """Axes along a coordinate become scales: if there are any, the others turn once more."""
        self._kernels.auto.hand_over[(1,)](
            self._work, self._vectors["D"], self._table, self._numbers, self._constants,
            self._added, self._dim, self._room, self._directions, self._axes, **self._options,
        )  # fmt: skip
        self._step_out(self._in_place, self._turned, "source", self._row("ones"), "S_kept")

    def _wake(self) -> None:
        """Axes are dropped, scouts become axes and start again."""
        k, options, many, room = self._kernels.auto, self._options, self._programs, self._room
        table, numbers, constants = self._table, self._numbers, self._constants
        k.products[(self._pair_programs, 4)](
            self._work, numbers, self._pair_partial, self._dim, room, self._axes, self._tile,
            **options,
        )  # fmt: skip
        self._add(self._pair_partial, self._shared, 4 * (room + 4), self._pair_programs)
        k.drop_axes[(1,)](
            self._shared, table, numbers, constants, room, self._directions, self._double,
            self._axes, **options,
        )  # fmt: skip
        k.scout_sizes[(many,)](
            self._work, table, numbers, self._partial, self._dim, self._directions, self._axes,
            self._tile, **options,
        )  # fmt: skip
        k.wake[(1,)](
            self._shared, table, numbers, constants, self._partial, many, room, self._directions,
            self._axes, PROGRAMS, **options,
        )  # fmt: skip

    def _settle(self) -> None:
        """The axes and scales of the next generation, and the figures of the state."""
        k, state, many, options = self._kernels.auto, self._vectors, self._programs, self._options
        table, numbers, constants = self._table, self._numbers, self._constants
        k.finish[(many,)](
            self._work, self._frame, state["mean"], state["D"], state["p_sigma"], state["p_c"],
            self.initial, table, numbers, constants, self._partial, self._dim, self._room,
            self._directions, self._initial_is_one_number, self._axes, self._tile, **options,
        )  # fmt: skip
        self._add(self._partial[k.KINDS * many :], self._added, self._directions, many)
        k.report[(1,)](
            table, numbers, constants, self._exchange.figures, self._partial, self._added, many,
            self._room, self._directions, power_of_2(self._directions), PROGRAMS, **options,
        )  # fmt: skip
        self._exchange.report()

    def _draw(self) -> None:
        half, many, directions = self._half, self._row_programs, self._directions
        together = min(power_of_2(directions), _DIRECTIONS)
        self._kernels.auto.row_products[(-(-half // ROWS), many, -(-directions // together))](
            self._z, self._words, self._frame, self._vectors["p_sigma"], self._row_partial,
            self._dim, half, self._blocks, directions, self.params.store_draws, self._double, ROWS,
            together, ROW_BLOCKS, **self._options,
        )  # fmt: skip
        of_pairs = self._pairs[self._kernels.NORM_Z2.value :]
        self._add(self._row_partial, of_pairs, 2 * half, many)
        self._add(self._row_partial[2:], self._along, directions * half, many)

    # === What several steps do ===

    def _row(self, name: str) -> Array:
        return self._table[self._kernels.auto.TABLE.index(name)]

    @property
    def _in_place(self) -> Array:
        """The axes among the rows of the work space."""
        k = self._kernels.auto
        first = len(k.WEIGHTS) + k.SCOUTS
        return self._work[first : first + self._room]

    @property
    def _warps(self) -> int:
        """Of a program that works on matrices: few wait for each other less."""
        return {2: 1, 4: 1, 8: 1, 16: 4, 32: 4}.get(self._axes, 8)

    def _add_squares(self) -> None:
        """The sums of squares of each axis, behind another number."""
        self._add(self._partial, self._added, 1 + self._room, self._programs)

    def _gram(self, axes: Array, source: str, when: Any, count: Any, scale: Array | None) -> None:
        """The products of all axes, if `when`; `count` is the place of their number."""
        many, room = self._pair_programs, self._room
        self._kernels.auto.gram[(many, room)](
            axes, axes if scale is None else scale, self._row(source), self._numbers,
            self._pair_partial, self._dim, room, scale is not None, when.value, count.value,
            self._axes, self._tile, **self._options,
        )  # fmt: skip
        self._add(self._pair_partial, self._H, room * room, many)

    def _step_out(
        self, axes: Array, out: Array, source: str, before2: Array, S_before: str
    ) -> None:
        """The step out of the span of the axes, from `axes` to `out`: all of them, or what is left.

        `before2` has their squared lengths before D grew.
        """
        k = self._kernels.auto
        when, count = (k.LIVE, k.K_WITHIN) if source == "identity" else (k.HANDED, k.K_KEPT)
        self._gram(axes, source, when, count, None)
        k.step_out[(1,)](
            self._H, before2, self._row(S_before), self._scratch, self._of_V, self._table,
            self._numbers, self._constants, self._room, self._directions, when.value, count.value,
            self._double, self._axes, num_warps=self._warps, **self._options,
        )  # fmt: skip
        k.set_axes[(self._programs,)](
            axes, self._row(source), out, self._of_V, self._numbers, self._partial, self._dim,
            self._room, when.value, count.value, self._axes, self._tile, **self._options,
        )  # fmt: skip
