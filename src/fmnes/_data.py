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

_GAMMA = 0.1  # the share of the points that count as good
_ALPHA = 0.1  # the deviation around each of them, in parts of the deviation of all points


class Data(NamedTuple):
    """A start from data."""

    mean: NDArray[np.float64]
    deviations: NDArray[np.float64]  # standard deviation of each variable
    correlation: NDArray[np.float64] | None  # (d, d), for methods with a full matrix
    best: NDArray[np.float64]  # the best of the points


def is_data(x0: Any) -> bool:
    """Return whether x0 is a pair of points and values, and not a point."""
    return isinstance(x0, tuple) and len(x0) == 2 and np.ndim(x0[0]) == 2 and np.ndim(x0[1]) == 1


def read_data(x0: Any, *, full: bool = False) -> Data:
    """Return the start from a pair ``(X, F)``; ``full`` asks for the correlations too."""
    X = checks.numbers("x0[0]", x0[0], "points, shape (n, d)")
    F = checks.numbers("x0[1]", x0[1], "values, shape (n,)")
    if X.shape[0] != F.shape[0] or X.shape[0] < 2 or X.shape[1] == 0:
        raise ValueError(
            "x0: expected (X, F) with at least two points X of shape (n, d) and n values F, got "
            f"shapes {X.shape} and {F.shape}"
        )
    usable = np.isfinite(F)
    if not usable.any() or not np.isfinite(X).all():
        raise ValueError("x0: expected finite points and some finite values, got others")
    order = np.argsort(np.where(usable, F, np.inf), kind="stable")
    good = X[order[: min(max(2, math.ceil(_GAMMA * len(F))), int(usable.sum()))]]
    spread = X.std(axis=0)
    mean, centred = good.mean(axis=0), good - good.mean(axis=0)
    floor = (_ALPHA * spread) ** 2
    deviations = np.sqrt(floor + (centred**2).mean(axis=0))
    correlation = None
    if full and (deviations > 0).all():
        C = np.diag(floor) + centred.T @ centred / len(good)
        correlation = C / np.outer(deviations, deviations)
    return Data(mean, deviations, correlation, X[order[0]])
