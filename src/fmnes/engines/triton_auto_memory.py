"""What the Triton engine of auto keeps on the device, and how a state goes there and comes back."""

import math

import numpy as np

from fmnes._arrays import Array
from fmnes.algorithms import auto
from fmnes.engines.contract import EngineSpec
from fmnes.engines.triton_base import PROGRAMS, ROW_BLOCKS, Triton, power_of_2
from fmnes.engines.triton_exchange import Exchange

_VECTORS = "mean", "D", "p_sigma", "p_c", "D_gradient", "m_gradient"


class AutoMemory(Triton):
    """Tensors of the device by name, and the state in them."""

    params: auto.Params

    def _allocate(self, spec: EngineSpec) -> None:
        k, half, room = self._kernels.auto, self._half, int(spec.state.S.shape[0])
        directions = room + k.SCOUTS
        self._room, self._directions, self._axes = room, directions, power_of_2(room)
        self._vectors = self._own(spec, _VECTORS)
        self._frame = self._vector(directions).zero_()
        # The rows of the work space: sums, then log D, the path, and the axes once more.
        sums = len(k.WEIGHTS) + directions
        self._work = self._vector(sums + 2 + room)
        self._log_D, self._path = self._work[sums], self._work[sums + 1]
        self._turned = self._work[sums + 2 :]
        self._numbers = self._float64(len(k.NUMBERS))
        self._table = self._float64(len(k.TABLE), directions)
        self._pairs = self._float64(len(self._kernels.PAIRS), half)
        self._along, self._by_row = self._float64(directions, half), self._float64(sums, half)
        self._rounded = self._torch.zeros_like(self._by_row, dtype=self._dtype)
        self._M, self._H = self._float64(directions, room), self._float64(room, room)
        self._added, self._shared = self._float64(directions), self._float64(4, room + 4)
        self._scratch = self._float64(8, self._axes, self._axes)
        self._of_V, self._of_Y = self._float64(2, self._axes, self._axes)
        self._allocate_tables(spec)
        self._allocate_partial()
        self._take(spec.state)

    def _allocate_tables(self, spec: EngineSpec) -> None:
        k, params = self._kernels.auto, self.params
        constants, rates = auto.tables(params)
        constants |= {f"noise_{name}": value for name, value in params.rates._asdict().items()}
        finfo = self._torch.finfo(self._dtype)
        rounding = 4 * math.sqrt(params.popsize) * finfo.eps * float(params.scores[0])
        constants |= {"tiny": finfo.tiny, "rounding": rounding}
        self._constants, self._rates = self._tables(spec, k.CONSTANTS, constants, rates)
        self._w_hat = self._by_rank(np.asarray(params.phase.w_hat))
        self._scores = self._by_rank(params.scores)
        self._exchange = Exchange(params.popsize, len(k.FIGURES), spec.address, spec.state.mean)
        self._words = self._exchange.words

    def _allocate_partial(self) -> None:
        """How many programs share a pass, and memory for their results."""
        k, room = self._kernels.auto, self._room
        self._tile = 256 if self._axes <= 8 else 128
        tiles = -(-self._dim // self._tile)
        self._programs = min(tiles, PROGRAMS)
        self._pair_programs = min(tiles, max(PROGRAMS // room, 1))  # for each row of products
        self._draw_programs = min(-(-self._blocks // ROW_BLOCKS), PROGRAMS)
        self._row_programs = min(-(-self._blocks // ROW_BLOCKS), PROGRAMS // 4)
        kinds = max(k.KINDS + self._directions, 2 * room)
        self._partial = self._float64(kinds * PROGRAMS)
        self._pair_partial = self._float64((room + 4) * (room + 4) * self._pair_programs)
        self._row_partial = self._float64(2 + self._directions, self._half, self._row_programs)

    def _deviations(self, spec: EngineSpec, part: slice) -> Array:
        return auto.summary(spec.params, spec.state).deviations[part]

    def _take(self, state: auto.State) -> None:
        """Put a state where `finish` finds that of a generation."""
        k, table, work = self._kernels.auto, self._table, self._work
        used = self._torch.nonzero(state.S != 1)[:, 0]
        count = int(used.shape[0])
        first = len(k.WEIGHTS) + k.SCOUTS
        work[: k.SCOUTS].copy_(state.scouts.T)
        work[first : first + count].copy_(state.V.T[used])
        for name in ("S", "S_out"):
            table[k.TABLE.index(name), :count] = state.S[used].double()
        numbered = self._torch.arange(self._directions, device=self._device).double()
        for name in ("identity", "order"):
            table[k.TABLE.index(name)] = numbered
        table[k.TABLE.index("ones")] = 1.0
        numbers = {name: getattr(state, name) for name in ("sigma", "D_signal", "D_noise", "eta")}
        numbers |= dict(zip(("evidence_long", "evidence_short"), state.evidence, strict=True))
        numbers |= dict(zip(("signal", "noise", "seen"), state.m_averages, strict=True))
        numbers |= dict(zip(("gradient", "square"), state.sigma_averages, strict=True))
        numbers |= {"axes": count, "axes_out": count, "current": first, "live": 1}
        numbers |= {"place": -1, "base_short": 1, "factor_long": 1, "factor_short": 1}
        numbers |= {"D_divisor": 1}
        given = [float(numbers.get(name, 0.0)) for name in k.NUMBERS]
        self._numbers.copy_(self._on_device(given))

    @property
    def lacks_room(self) -> bool:
        """Whether it is time for more axes, or for a full matrix."""
        if self.address.generation % self.params.refresh_every:
            return False
        axes = int(self._exchange.arrived()[self._kernels.auto.FIGURES.index("axes")])
        becomes_full = 0 < self.params.full_from <= axes
        return becomes_full or (self._room <= axes + 1 and self._room < self.params.most_axes)

    @property
    def state(self) -> auto.State:
        """The state, in tensors that change with the next `tell`."""
        self._check_whole()
        return self.read_state()

    def read_state(self) -> auto.State:
        """The same while a generation is computed."""
        k, torch = self._kernels.auto, self._torch
        numbers = dict(zip(k.NUMBERS, self._numbers.tolist(), strict=True))
        count, room, like = int(numbers["axes"]), self._room, self._vectors["mean"]

        def tensor(*names: str) -> Array:
            values = [numbers[name] for name in names]
            return torch.tensor(values, dtype=like.dtype, device=like.device)

        # Columns that are not in use stand between the long and the short ones.
        S_used = self._table[k.TABLE.index("S"), :count].to(like.dtype)
        long = int((S_used > 1).sum())
        columns = [*range(long), *range(room - count + long, room)]
        V, S = (
            torch.zeros(room, self._dim, dtype=like.dtype, device=like.device),
            like.new_ones(room),
        )
        V[columns], S[columns] = self._frame[k.SCOUTS : k.SCOUTS + count], S_used
        return auto.State(
            **self._vectors,
            sigma=tensor("sigma")[0],
            V=V.T,
            S=S,
            B=like.new_zeros(0, 0),
            scouts=self._frame[: k.SCOUTS].T.clone(),
            evidence=tensor("evidence_long", "evidence_short"),
            D_signal=tensor("D_signal")[0],
            D_noise=tensor("D_noise")[0],
            eta=tensor("eta")[0],
            m_averages=tensor("signal", "noise", "seen"),
            sigma_averages=tensor("gradient", "square"),
            axis_ratio=like.new_ones(()),
        )
