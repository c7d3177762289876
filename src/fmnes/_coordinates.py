"""Box bounds: a smooth map from the whole space, where the method searches, into the box.

Inside the box, at a distance ``margin`` from its faces, the map is the identity. So bounds that the
search never touches change nothing. Within the margin the map bends into a parabola whose vertex
lies on the face, and beyond the face it mirrors:

    x = lb + (y - a)^2 / (4 margin),  a = lb - margin,    for y in [lb - margin, lb + margin].

An optimum on a face becomes the minimum of a parabola in y. The search reaches it at the full rate
and to full precision, and no penalty has to be weighted. (A plain reflection would leave a kink at
the face, and the condition number would grow as the other variables converge.)
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace, constant

_MARGIN = 0.1  # of the width between two bounds; at most the initial standard deviation


class Bounds(NamedTuple):
    """Lower and upper bounds on the variables.

    `minimize` also accepts a sequence of (low, high) pairs, an array of shape (d, 2), or
    `scipy.optimize.Bounds`.

    Parameters
    ----------
    lb, ub : float or array_like of shape (d,)
        Lower and upper bounds, one number for all variables or one each. Infinite values mean that
        there is no bound.

    Examples
    --------
    >>> import fmnes
    >>> bounds = fmnes.Bounds(lb=0.0, ub=[1.0, 2.0, float("inf")])
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [0.5] * 3, 0.2, bounds=bounds, rng=1)
    >>> bool((result.x >= 0).all())
    True
    """

    lb: ArrayLike = -np.inf
    ub: ArrayLike = np.inf


def read_bounds(bounds: Any, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds as vectors, from any of the forms that `minimize` accepts."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        low, high = (_read_side(bounds, name, dim) for name in ("lb", "ub"))
    else:
        low, high = _read_pairs(bounds, dim)
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError("bounds: expected numbers (None or inf for no bound), got NaN")
    bad = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
    if bad.size:
        j = int(bad[0])
        raise ValueError(f"bounds[{j}]: expected low <= high, got ({low[j]}, {high[j]})")
    return low, high


def _read_side(bounds: Any, name: str, dim: int) -> NDArray[np.float64]:
    expected = f"a number or shape ({dim},)"
    side = checks.numbers(f"bounds.{name}", getattr(bounds, name), expected)
    if side.shape not in ((), (1,), (dim,)):
        raise ValueError(f"bounds.{name}: expected {expected}, got shape {side.shape}")
    return np.broadcast_to(side, (dim,))


def _read_pairs(bounds: Any, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    expected = (
        f"{dim} pairs (low, high), or fmnes.Bounds(lb, ub) with numbers for all variables or "
        "vectors"
    )
    try:
        sides = [[(-np.inf, np.inf)[k] if p[k] is None else p[k] for p in bounds] for k in (0, 1)]
        lengths = {len(p) for p in bounds}
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise TypeError(f"bounds: expected {expected}, got {bounds!r:.60} ({error})") from None
    low, high = checks.numbers("bounds", sides, expected)
    if low.shape != (dim,) or lengths != {2}:
        raise ValueError(f"bounds: expected {expected}, got shape ({len(low)}, {sorted(lengths)})")
    return low, high


class Box(NamedTuple):
    """The map between search coordinates y (free variables only) and the user's x."""

    free: Array  # (d,) bool: variables that are searched
    position: Array  # (d,) int: column of y that holds a free variable; 0 where fixed
    fixed: Array  # (d,): value of the variables with lb == ub
    has_low: Array  # the rest has shape (free variables,)
    has_high: Array
    low: Array  # 0 where there is no bound, which avoids inf - inf
    high: Array
    margin: Array

    @classmethod
    def build(
        cls,
        xp: Namespace,
        like: Array,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        deviations: NDArray[np.float64],
    ) -> "Box":
        """Return the map for given bounds and initial standard deviations."""
        free = low < high
        if not free.any():
            raise ValueError("bounds: expected at least one variable with low < high, got none")
        lo, hi, dev = low[free], high[free], deviations[free]
        margin = np.minimum(_MARGIN * (hi - lo), dev)

        def number(value: Any) -> Array:
            return constant(xp, value, like)

        def index(value: Any) -> Array:  # booleans and integers keep their dtype
            return xp.asarray(value, device=like.device)

        return cls(
            free=index(free),
            position=index(np.where(free, np.cumsum(free) - 1, 0)),
            fixed=number(np.where(free, 0.0, low)),
            has_low=index(np.isfinite(lo)),
            has_high=index(np.isfinite(hi)),
            low=number(np.where(np.isfinite(lo), lo, 0.0)),
            high=number(np.where(np.isfinite(hi), hi, 0.0)),
            margin=number(margin),
        )

    def to_user(self, xp: Namespace, y: Array) -> Array:
        """Return the point inside the bounds for search coordinates; rows are mapped one by one."""
        a, b = self.low - self.margin, self.high + self.margin
        width = b - a
        both = self.has_low & self.has_high
        # Mirror into [a, b]: with two bounds the map has the period 2 (b - a).
        turns = xp.remainder(y - a, xp.where(both, 2 * width, xp.ones_like(width)))
        wrapped = a + xp.where(turns > width, 2 * width - turns, turns)
        outside = (self.has_low & (y < a)) | (self.has_high & (y > b))
        mirrored = xp.where(self.has_low, 2 * a - y, 2 * b - y)
        y = xp.where(outside, xp.where(both, wrapped, mirrored), y)

        near_low = self.low + (y - a) ** 2 / (4 * self.margin)
        near_high = self.high - (b - y) ** 2 / (4 * self.margin)
        x = xp.where(self.has_low & (y < self.low + self.margin), near_low, y)
        x = xp.where(self.has_high & (y > self.high - self.margin), near_high, x)
        # Rounding may leave x outside by the last digit.
        x = xp.where(self.has_low & (x < self.low), self.low, x)
        x = xp.where(self.has_high & (x > self.high), self.high, x)
        return xp.where(self.free, xp.take(x, self.position, axis=-1), self.fixed)

    def to_search(self, xp: Namespace, x: Array) -> Array:
        """Return the search coordinates of a point inside the bounds, or of points in rows."""
        x = x[self.free] if x.ndim == 1 else x[:, self.free]
        a, b = self.low - self.margin, self.high + self.margin
        low_gap = xp.where(self.has_low, x - self.low, self.margin)
        high_gap = xp.where(self.has_high, self.high - x, self.margin)
        near_low = a + 2 * xp.sqrt(self.margin * low_gap)
        near_high = b - 2 * xp.sqrt(self.margin * high_gap)
        y = xp.where(self.has_low & (low_gap < self.margin), near_low, x)
        return xp.where(self.has_high & (high_gap < self.margin), near_high, y)
