"""Passes over draws z of shape (n, d), and over values, for arrays of any library.

This is the reference implementation; `fmnes.kernels.native` has the same functions compiled for
NumPy arrays. A row of the result does not depend on the other rows: a candidate that is built alone
is exactly equal to its row of the population.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes._arrays import Array, Namespace


class Survey(NamedTuple):
    """Figures of a generation's values alone: the first fields of a `Generation`."""

    nan: int
    feasible: int
    least: float
    most: float
    size: float
    median: float
    flat: bool


def row_products(xp: Namespace, z: Array, vbar: Array | None = None) -> tuple[Array | None, Array]:
    """<z_i, vbar> and |z_i|^2 of each row; the former is None without a vbar.

    Each row is summed by itself, because rounding in a matrix product depends on the number of
    rows.
    """
    along = None if vbar is None else xp.vecdot(z, vbar)
    return along, xp.sum(z * z, axis=-1)


def candidates(
    xp: Namespace,
    mean: Array | None,
    scale: Array,
    z: Array,
    c: Array | None = None,
    vbar: Array | None = None,
    *,
    mirrored: bool = False,
) -> Array:
    """Rows mean + scale (z_i + c_i vbar); if mirrored then also rows mean - scale (z_i + c_i vbar).

    Without c and vbar the rows are mean + scale z_i. Without a mean the function returns only the
    steps from the mean.
    """
    step = scale * (z if c is None else z + c[:, None] * vbar)
    if mean is None:
        return step
    return xp.concat([mean + step, mean - step], axis=0) if mirrored else mean + step


def moments(
    xp: Namespace,
    z: Array,
    w1: Array | None = None,
    w2: Array | None = None,
    w3: Array | None = None,
) -> tuple[Array | None, Array | None, Array | None]:
    """Sums over the rows: of w1_i z_i, of w2_i z_i, of w3_i z_i*z_i; None without the weights."""
    first = None if w1 is None else w1 @ z
    second = None if w2 is None else w2 @ z
    squares = None if w3 is None else w3 @ (z * z)
    return first, second, squares


def weights_by_candidate(
    xp: Namespace, by_rank: Array, f: Array, norm_z2: Array, *, share_ties: bool = True
) -> Array:
    """Return the weight of each candidate's rank.

    Feasible candidates come first, ordered by value, then infeasible ones, ordered by |z|: the one
    closest to the mean counts as the best of them. Candidates that compare equal share the mean of
    their weights. A stable sort alone would favour the first half of an antithetic population and
    push the mean along +z on a plateau.
    """
    feasible = f < xp.inf  # neither +inf nor NaN
    value = xp.where(feasible, f, xp.inf)
    distance = xp.where(feasible, xp.zeros_like(norm_z2), norm_z2)
    nearest_first = xp.argsort(distance, stable=True)
    best_first = xp.argsort(xp.take(value, nearest_first, axis=0), stable=True)
    order = xp.take(nearest_first, best_first, axis=0)
    if share_ties:
        value, distance = xp.take(value, order, axis=0), xp.take(distance, order, axis=0)
        by_rank = _share_ties(xp, by_rank, value, distance)
    rank = xp.argsort(order, stable=True)  # the inverse permutation
    return xp.take(by_rank, rank, axis=0)


def _share_ties(xp: Namespace, by_rank: Array, value: Array, distance: Array) -> Array:
    """Replace the weights of each run of equal (value, distance) by their mean."""
    differs = (value[1:] != value[:-1]) | (distance[1:] != distance[:-1])
    run = xp.cumulative_sum(xp.astype(differs, xp.int32), include_initial=True)
    first = xp.searchsorted(run, run, side="left")
    last = xp.searchsorted(run, run, side="right")
    total = xp.cumulative_sum(by_rank, include_initial=True)
    count = last - first
    mean = (xp.take(total, last, axis=0) - xp.take(total, first, axis=0)) / xp.astype(
        count, by_rank.dtype
    )
    return xp.where(count == 1, by_rank, mean)


def survey(values: NDArray[np.float64]) -> Survey:
    """Return the figures of a generation's values alone."""
    nan = int(np.isnan(values).sum())
    feasible = values[values < np.inf]
    if not feasible.size:
        return Survey(nan, 0, np.inf, np.inf, np.inf, np.inf, False)
    least, most = float(feasible.min()), float(feasible.max())
    halves = np.sort(np.where(values < np.inf, values, np.inf)) / 2  # 1e308 + 1e308 would overflow
    with np.errstate(invalid="ignore"):  # -inf and inf
        median = float(halves[(values.size - 1) // 2] + halves[values.size // 2])
    flat = feasible.size == values.size and least == most and np.isfinite(least)
    size = max(abs(least), abs(most))
    return Survey(nan, feasible.size, least, most, size, median, bool(flat))
