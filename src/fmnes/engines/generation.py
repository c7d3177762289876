"""What several engines share: the figures of a generation, and values as ranks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import kernels
from fmnes._arrays import Array, Namespace, to_host
from fmnes.algorithms import Algorithm
from fmnes.algorithms._records import Summary
from fmnes.algorithms._vectors import VARIABLES
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


def described(xp: Namespace, summary: Summary, mean: Array, converged: Array) -> dict[str, Array]:
    """The fields of a `Generation` that describe the state, as 0-d arrays of its dtype."""
    size = xp.abs(mean)
    resolved = xp.maximum(converged, xp.finfo(mean.dtype).eps * size)
    return {
        "sigma": summary.sigma,
        "axis_ratio": summary.axis_ratio,
        "norm_v": summary.norm_v,
        "phase": xp.astype(summary.phase, mean.dtype),
        "deviation_min": xp.min(summary.deviations, axis=VARIABLES),
        "deviation_max": xp.max(summary.deviations, axis=VARIABLES),
        "mean_max": xp.max(size, axis=VARIABLES),
        "shrunk": xp.astype(xp.all(summary.deviations <= resolved, axis=VARIABLES), mean.dtype),
    }


def figures(xp: Namespace, summary: Summary, mean: Array, converged: Array) -> Array:
    """The same as one array, in the order of the fields."""
    named = described(xp, summary, mean, converged)
    return xp.stack([named[name] for name in _FIGURES])


def to_record(shown: Survey, state: Array) -> Generation:
    """The record of a generation, from its `survey` and its `figures`, which move to the host."""
    named = dict(zip(_FIGURES, to_host(state).tolist(), strict=True))
    named["phase"], named["shrunk"] = int(named["phase"]), named["shrunk"] == 1
    return Generation(*shown, **named)


def surveyed(xp: Namespace, f: Array) -> tuple[Survey, Array]:
    """The `survey` of values on a device, as 0-d arrays of their dtype, and `best_of` them."""
    feasible = is_feasible(xp, f)
    count, some = xp.sum(xp.astype(feasible, f.dtype)), xp.any(feasible)
    value = xp.where(feasible, f, xp.inf)
    best = xp.argmin(value)
    least = xp.min(value)
    most = xp.where(some, xp.max(xp.where(feasible, f, -xp.inf)), xp.inf)
    halves, n = xp.sort(value) / 2, f.shape[0]  # the mean of two values of 1e308 would overflow
    flat = (count == n) & (least == most) & xp.isfinite(least)
    shown = Survey(
        nan=xp.sum(xp.astype(xp.isnan(f), f.dtype)),
        feasible=count,
        least=least,
        most=most,
        size=xp.maximum(xp.abs(least), xp.abs(most)),
        median=xp.where(some, halves[(n - 1) // 2] + halves[n // 2], xp.inf),
        flat=xp.astype(flat, f.dtype),
    )
    return shown, best


def from_numbers(
    numbers: NDArray[Any], shown: Survey | None = None, figures: NDArray[Any] | None = None
) -> Generation:
    """The record from one array, `surveyed` then `figures`; or from parts made elsewhere."""
    k = len(Survey._fields)
    if shown is None:
        told = Survey(*numbers[:k].tolist())
        nan, feasible = int(told.nan), int(told.feasible)
        shown = told._replace(nan=nan, feasible=feasible, flat=told.flat == 1)
    return to_record(shown, numbers[k:] if figures is None else figures)


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
