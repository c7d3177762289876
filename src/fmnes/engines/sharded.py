"""The sharded engine: CR-FM-NES whose vectors are split over several processes.

Each process holds all vectors of the search for some of the variables. It makes the draws of these
variables from their addresses, in pieces. The mathematics is that of `cr_fm_nes`: a namespace
replaces each sum over the variables by a sum over the variables of all processes. So a generation
exchanges sums for each pair of candidates, and some twenty-five others.

A failure while the processes exchange numbers leaves the state as it was.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import draws
from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms import cr_fm_nes
from fmnes.algorithms._records import Shape
from fmnes.draws import Address
from fmnes.engines import generation, sharded_draws
from fmnes.engines.contract import EngineSpec, Generation
from fmnes.engines.sharded_draws import Draws


class Share(NamedTuple):
    """What one process has of a search."""

    start: int  # the number of its first variable
    dim: int  # the number of variables of all processes
    gather: Callable[[Array], Array]  # stacks the arrays of all processes, which all call it


class AcrossProcesses:
    """An array library whose sums over the last axis include the variables of all processes.

    The partial sums of the processes are added in the same order everywhere, so that all processes
    have identical numbers. Functions without an axis, or for other axes, are those of the library.
    """

    kernels = sharded_draws

    def __init__(self, library: Namespace, share: Share) -> None:
        self.library, self._share = library, share

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def total(self, part: Array) -> Array:
        """The sum of an array of each process."""
        return self.library.sum(self._share.gather(part), axis=0)

    def sum(self, x: Array, *, axis: int | None = None) -> Array:
        """The sum over the variables if there is an axis, else over all numbers of ``x``."""
        part = self.library.sum(x, axis=axis)
        return part if axis is None else self.total(part)

    def mean(self, x: Array, *, axis: int) -> Array:
        """The mean over the variables."""
        return self.sum(x, axis=axis) / self._share.dim

    def max(self, x: Array, *, axis: int | None = None) -> Array:
        """The largest over the variables if there is an axis, else of all numbers of ``x``."""
        part = self.library.max(x, axis=axis)
        return part if axis is None else self.library.max(self._share.gather(part), axis=0)

    def min(self, x: Array, *, axis: int) -> Array:
        """The smallest over the variables."""
        return -self.max(-x, axis=axis)

    def all(self, x: Array, *, axis: int | None = None) -> Array:
        """Whether all are true: over the variables if there is an axis."""
        if axis is None:
            return self.library.all(x)
        return self.min(self.library.astype(x, self.library.int32), axis=axis) == 1


class _Sampling(NamedTuple):
    """What candidates are made of, apart from the state: draws, and numbers of all variables."""

    z: Draws
    a: Array  # <z, vbar> of each row
    norm_v: Array
    r: Array  # sqrt(1 + |v|^2)


class Prepared(NamedTuple):
    """The next generation, before all processes are known to have it."""

    values: NDArray[np.float64]
    state: cr_fm_nes.State
    best: Array | None
    sampling: _Sampling
    shown: Generation


def first_state(
    params: cr_fm_nes.Params, share: Share, mean: Array, sigma: Array, shape: Shape, seed: int
) -> cr_fm_nes.State:
    """The state that a search starts with: the part of one process."""
    address = Address(seed, draws.initial_stream(0))
    z = draws.normals_like(mean, address, 0, 1, share.start)
    xp = AcrossProcesses(array_namespace(mean), share)
    return cr_fm_nes.first_state(xp, params, mean, sigma, shape, z[0, :])


class ShardedEngine:
    """The safe variant of CR-FM-NES on PyTorch tensors, for the variables of one process."""

    def __init__(self, spec: EngineSpec, share: Share) -> None:
        self.params: cr_fm_nes.Params = spec.params
        self.state: cr_fm_nes.State = spec.state
        initial, self.best = spec.initial, spec.best
        if initial is None:
            initial = cr_fm_nes.summary(spec.params, spec.state).deviations
        self.initial: Array = initial
        self.share, self._tolx, self._address = share, spec.tolx, spec.address
        self.prepared: Prepared | None = None
        self._agreed: Prepared | None = None

    # === Exchanges, in which every process takes part ===

    def measure(self) -> None:
        """Exchange what candidates need: to be called before the first of them is made."""
        self._sampling = self._sampled(self.state, self._address)

    def tell(self, values: NDArray[np.float64], best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``.

        If this fails, the engine is in the same generation as before. It may fail in the very last
        exchange, which shows that every process has prepared the next generation; other processes
        may then have entered that generation. `prepared` has it, and `accept` enters it.
        """
        if self._agreed is None:
            self.prepared = None
            self.prepared = self._prepare(values, best_so_far)
            self.share.gather(self.state.sigma)
            self._agreed = self.prepared
        _, self.state, self.best, self._sampling, shown = self._agreed
        self._address = self._sampling.z.address
        self.prepared = self._agreed = None
        return shown

    def accept(self) -> None:
        """Let the next `tell` enter the generation that is prepared, without an exchange."""
        self._agreed = self.prepared

    def _prepare(self, values: NDArray[np.float64], best_so_far: float) -> Prepared:
        state, params, shown = self.state, self.params, generation.survey(values)
        best = self.best
        if shown.least < best_so_far:
            i = generation.best_of(values)
            best = self.ask(i, i + 1)[0, :]
        library, xp = array_namespace(state.mean), self._xp
        told = values if generation.is_float64(state.mean) else generation.ranks_of(values)
        f = constant(library, told, state.mean)
        new = cr_fm_nes.next_state(xp, params, state, self._sampling.z, f)
        summary = cr_fm_nes.summarised(xp, params, new)
        figures = generation.figures(xp, summary, new.mean, self._tolx * self.initial)
        address = self._address._replace(generation=self._address.generation + 1)
        record = generation.to_record(shown, figures)
        return Prepared(values, new, best, self._sampled(new, address), record)

    def _sampled(self, state: cr_fm_nes.State, address: Address) -> _Sampling:
        z = Draws(state.mean, address, self.params.popsize // 2, self.share.start)
        direction = vd.direction_of(self._xp, state.v)
        a, _ = vd.row_products(self._xp, direction, z)
        return _Sampling(z, a, direction.norm_v, direction.r)

    @property
    def _xp(self) -> AcrossProcesses:
        return AcrossProcesses(array_namespace(self.state.mean), self.share)

    # === Candidates, which a process makes alone ===

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """The part of candidates first to last - 1, as a fresh tensor or in ``out``."""
        mean = self.state.mean
        x = mean.new_empty((last - first, mean.shape[0]))
        for i in range(first, last):
            self.write(i, 0, x[i - first, :])
        if out is None:
            return x
        out[...] = x.cpu().numpy()
        return out

    def write(self, candidate: int, start: int, out: Array) -> None:
        """Write the coordinates of one candidate from ``start`` on into a contiguous tensor."""
        (z, a, norm_v, r), state = self._sampling, self.state
        row, sign = candidate % z.shape[0], 1.0 if candidate < z.shape[0] else -1.0
        c = (r - 1) * a[row] / norm_v
        flat = out.view(-1)
        for part in sharded_draws.spans(start, start + flat.shape[0]):
            y = z.part(row, row + 1, part)[0, :] + c * state.v[part]
            x = state.mean[part] + sign * state.sigma * state.D[part] * y
            flat[part.start - start : part.stop - start] = x
