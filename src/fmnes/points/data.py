"""A start from data: mean, standard deviations and shape from points with known values.

After M. Nomura, S. Watanabe, Y. Akimoto, Y. Ozaki, M. Onishi: "Warm starting CMA-ES for
hyperparameter optimization", AAAI 2021. The best tenth of the points, each with a small Gaussian
around it, describe where good values are. The search starts from the one Gaussian that is nearest
to this mixture (in the Kullback-Leibler divergence): it has the same mean and the same covariance

    m = mean of the best points,   C = alpha^2 S^2 + covariance of the best points.

S is the standard deviation of each variable over all points, where the paper assumes variables
scaled to [0, 1], so the start does not depend on units. A method with linear cost takes over the
diagonal of C, which takes O(d) time and memory for each point.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes.points.injected import read_named_points
from fmnes.variables.space import Space

_GAMMA = 0.1  # the share of the points that count as good
_ALPHA = 0.1  # the deviation around each of them, in parts of the deviation of all points


class Data(NamedTuple):
    """A start from data."""

    mean: NDArray[np.float64]
    deviations: NDArray[np.float64]  # of each variable; 0 for equal values and choices
    correlation: NDArray[np.float64] | None  # (d, d), for methods with a full matrix
    best: NDArray[np.float64]  # the best of the points


class Points(NamedTuple):
    """Points with known values, in the place of x0."""

    X: NDArray[np.float64]  # (n, d)
    F: NDArray[np.float64]  # (n,)
    space: Space | None = None  # of named variables


def read_points_of(x0: Any) -> Any:
    """Return x0, as `Points` if it is a pair ``(X, F)`` or a triple ``(space, X, F)``."""
    if isinstance(x0, Points) or not isinstance(x0, tuple | list):
        return x0
    if len(x0) == 3 and isinstance(x0[0], Space):
        space, X, F = x0
        return _checked(np.array(read_named_points(X, space, "x0[1]")), F, space)
    if len(x0) != 2 or (getattr(x0[0], "ndim", 0) != 2 and not _is_table(x0[0])):
        return x0
    if isinstance(x0, list):
        raise TypeError("x0: expected points and values as a tuple (X, F), got a list")
    return _checked(*x0)


def _is_table(X: Any) -> bool:
    """Return whether X is a sequence of sequences of numbers."""
    rows = isinstance(X, tuple | list) and len(X) > 0
    return rows and all(isinstance(row, tuple | list | np.ndarray) for row in X)


def _checked(X: Any, F: Any, space: Space | None = None) -> Points:
    X = checks.numbers("x0[0]", X, "points, shape (n, d)")
    F = checks.numbers("x0[1]", F, "values, shape (n,)")
    if X.ndim != 2 or F.shape != X.shape[:1] or X.shape[0] < 2 or X.shape[1] == 0:
        raise ValueError(
            "x0: expected (X, F) with at least two points X of shape (n, d) and n values F, got "
            f"shapes {X.shape} and {F.shape}"
        )
    checks.all_finite("x0[0]", X)
    return Points(X, F, space)


def read_data(points: Points, *, full: bool = False) -> Data:
    """Return the start from points and values; ``full`` asks for the correlations too."""
    X, F = points.X, points.F
    usable = np.isfinite(F)
    if not usable.any():
        raise ValueError(f"x0[1]: expected some finite values, got {F[0]} and {len(F) - 1} others")
    order = np.argsort(np.where(usable, F, np.inf), kind="stable")
    good = X[order[: min(max(2, math.ceil(_GAMMA * len(F))), int(usable.sum()))]]
    is_constant = X.min(axis=0) == X.max(axis=0)  # exactly, which a standard deviation is not
    spread = np.where(is_constant, 0.0, X.std(axis=0))
    mean = np.where(is_constant, X[0, :], good.mean(axis=0))
    centred = good - mean
    floor = (_ALPHA * spread) ** 2
    deviations = np.sqrt(floor + (centred**2).mean(axis=0))
    correlation = None
    if full:
        C = np.diag(np.where(is_constant, 1.0, floor)) + centred.T @ centred / len(good)
        sizes = np.where(is_constant, 1.0, deviations)
        correlation = C / np.outer(sizes, sizes)
    for column, options in () if points.space is None else points.space.choices:
        mean[column] = np.argmax(np.bincount(good[:, column].astype(int), minlength=options))
        deviations[column] = 0.0
        if correlation is not None:  # options have no order
            correlation[column, :] = correlation[:, column] = 0.0
            correlation[column, column] = 1.0
    return Data(mean, deviations, correlation, X[order[0]])
