"""What several engines share: the figures of a generation, and values as ranks."""

from collections.abc import Iterator

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import kernels
from fmnes._arrays import Array, to_host
from fmnes.algorithms import Algorithm
from fmnes.algorithms._records import Summary
from fmnes.algorithms._weights import is_feasible
from fmnes.engines.contract import Generation
from fmnes.kernels.agnostic import Survey

_PIECE = 2**16  # numbers that are copied at a time, instead of a whole population
_KERNELS = kernels.select(np, np.dtype(np.float64))  # values are float64 on the host
_FIGURES = Generation._fields[len(Survey._fields) :]  # those that describe the state


def survey(values: NDArray[np.float64]) -> Survey:
    """What a generation's values say by themselves."""
    shown: Survey = _KERNELS.survey(values)
    return shown


def best_of(values: NDArray[np.float64]) -> int:
    """The index of the first of the best candidates."""
    return int(np.argmin(np.where(is_feasible(np, values), values, np.inf)))


def figures(summary: Summary, mean: Array, converged: Array) -> Array:
    """The fields of a `Generation` that describe the state, as one array in their order."""
    xp = array_namespace(mean)
    size = xp.abs(mean)
    resolved = xp.maximum(converged, xp.finfo(mean.dtype).eps * size)
    named = {
        "sigma": summary.sigma,
        "axis_ratio": summary.axis_ratio,
        "norm_v": summary.norm_v,
        "phase": xp.astype(summary.phase, mean.dtype),
        "deviation_min": xp.min(summary.deviations),
        "deviation_max": xp.max(summary.deviations),
        "mean_max": xp.max(size),
        "shrunk": xp.astype(xp.all(summary.deviations <= resolved), mean.dtype),
    }
    return xp.stack([named[name] for name in _FIGURES])


def to_record(shown: Survey, state: Array) -> Generation:
    """The record of a generation, from its `survey` and its `figures`, which move to the host."""
    named = dict(zip(_FIGURES, to_host(state).tolist(), strict=True))
    named["phase"], named["shrunk"] = int(named["phase"]), named["shrunk"] == 1
    return Generation(*shown, **named)


def is_float64(x: Array) -> bool:
    """Whether an array of any library holds double precision."""
    return str(x.dtype).endswith("float64")


def ranks_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ranks of values, equal for equal values; inf for infeasible ones.

    A narrower dtype cannot represent all float64 values, but it can represent their ranks.
    """
    ranks = np.unique(values, return_inverse=True)[1].astype(np.float64)
    return np.where(np.isfinite(values) | (values == -np.inf), ranks, np.inf)


def pieces(algorithm: Algorithm, first: int, last: int, dim: int) -> Iterator[tuple[int, int]]:
    """Split a range of candidates into ranges so small that copying one takes little memory.

    A method with a full matrix builds its population at once, so it gets the whole range.
    """
    step = max(1, _PIECE // dim) if algorithm.LINEAR else last - first
    for a in range(first, last, step):
        yield a, min(a + step, last)
