"""Box bounds: a smooth map from the whole space, where the method searches, into the box.

Inside the box, a margin away from its faces, the map is the identity, so a box that is never
touched changes nothing. Within the margin it bends into a parabola whose vertex lies on the face,
and beyond it mirrors:

    x = lb + (y - a)^2 / (4 margin),  a = lb - margin,    for y in [lb - margin, lb + margin].

An optimum on a face is then the bottom of a parabola in y, like any other optimum: reached at the
full rate and to full precision, with no penalty to weigh. (A plain reflection would leave a kink
there, and a condition number that grows for ever as the other variables go on converging.)
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes._arrays import Array, Namespace, constant

_MARGIN = 0.1  # of the width between two bounds; never more than the initial deviation


class Bounds(NamedTuple):
    """Lower and upper bounds, each one number or one per variable; infinite where there is none.

    For those who have two arrays at hand. `minimize` also takes a sequence of (low, high) pairs,
    an array of shape (d, 2), or `scipy.optimize.Bounds`.

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
    """Lower and upper bounds as vectors, from any of the forms that users have."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        pairs = [np.asarray(bounds.lb, np.float64), np.asarray(bounds.ub, np.float64)]
        for name, side in zip(("lb", "ub"), pairs, strict=True):
            if side.shape not in ((), (1,), (dim,)):
                raise ValueError(
                    f"bounds.{name}: expected a number or shape ({dim},), got shape {side.shape}"
                )
        low, high = (np.broadcast_to(side, (dim,)) for side in pairs)
    else:
        low, high = _read_pairs(bounds, dim)
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError("bounds: expected numbers (None or inf where there is none), got NaN")
    bad = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
    if bad.size:
        j = int(bad[0])
        raise ValueError(f"bounds[{j}]: expected low <= high, got ({low[j]}, {high[j]})")
    return low, high


def _read_pairs(bounds: Any, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    expected = f"bounds: expected {dim} pairs (low, high), fmnes.Bounds(lb, ub) or SciPy's Bounds"
    try:
        sides = [[(-np.inf, np.inf)[k] if p[k] is None else p[k] for p in bounds] for k in (0, 1)]
        low, high = np.asarray(sides, dtype=np.float64)
        lengths = {len(p) for p in bounds}
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise TypeError(f"{expected}, got {type(bounds).__name__} ({error})") from None
    if low.shape != (dim,) or lengths != {2}:
        raise ValueError(f"{expected}, got shape ({len(low)}, {sorted(lengths)})")
    return low, high


class Box(NamedTuple):
    """The map between search coordinates y (free variables only) and the user's x."""

    free: Array  # (d,) bool: variables that are searched
    position: Array  # (d,) int: column of y that holds a free variable; 0 where fixed
    fixed: Array  # (d,): value of the variables with lb == ub
    has_low: Array  # the rest has shape (free variables,)
    has_high: Array
    low: Array  # finite stand-ins where there is no bound, so that no inf - inf arises
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
        """The map for given bounds; the margin follows the initial standard deviations."""
        free = low < high
        if not free.any():
            raise ValueError("bounds: expected at least one variable with low < high, got none")
        lo, hi, dev = low[free], high[free], deviations[free]
        margin = np.minimum(_MARGIN * (hi - lo), dev)

        def place(value: Any) -> Array:
            return constant(xp, value, like)

        def place_other(value: Any) -> Array:
            return xp.asarray(value, device=like.device)

        return cls(
            free=place_other(free),
            position=place_other(np.where(free, np.cumsum(free) - 1, 0)),
            fixed=place(np.where(free, 0.0, low)),
            has_low=place_other(np.isfinite(lo)),
            has_high=place_other(np.isfinite(hi)),
            low=place(np.where(np.isfinite(lo), lo, 0.0)),
            high=place(np.where(np.isfinite(hi), hi, 0.0)),
            margin=place(margin),
        )

    def to_user(self, xp: Namespace, y: Array) -> Array:
        """Search coordinates to a point, or points in rows, inside the bounds."""
        a, b = self.low - self.margin, self.high + self.margin
        width = b - a
        both = self.has_low & self.has_high
        # Mirror into [a, b]: with two bounds the picture repeats with period 2 (b - a).
        turns = xp.remainder(y - a, xp.where(both, 2 * width, xp.ones_like(width)))
        wrapped = a + xp.where(turns > width, 2 * width - turns, turns)
        outside = (self.has_low & (y < a)) | (self.has_high & (y > b))
        mirrored = xp.where(self.has_low, 2 * a - y, 2 * b - y)
        y = xp.where(outside, xp.where(both, wrapped, mirrored), y)

        near_low = self.low + (y - a) ** 2 / (4 * self.margin)
        near_high = self.high - (b - y) ** 2 / (4 * self.margin)
        x = xp.where(self.has_low & (y < self.low + self.margin), near_low, y)
        x = xp.where(self.has_high & (y > self.high - self.margin), near_high, x)
        # Rounding may leave a last bit outside.
        x = xp.where(self.has_low & (x < self.low), self.low, x)
        x = xp.where(self.has_high & (x > self.high), self.high, x)
        return xp.where(self.free, xp.take(x, self.position, axis=-1), self.fixed)

    def to_search(self, xp: Namespace, x: Array) -> Array:
        """The search coordinates of a point inside the bounds."""
        x = x[self.free] if x.ndim == 1 else x[:, self.free]
        a, b = self.low - self.margin, self.high + self.margin
        low_gap = xp.where(self.has_low, x - self.low, self.margin)
        high_gap = xp.where(self.has_high, self.high - x, self.margin)
        near_low = a + 2 * xp.sqrt(self.margin * low_gap)
        near_high = b - 2 * xp.sqrt(self.margin * high_gap)
        y = xp.where(self.has_low & (low_gap < self.margin), near_low, x)
        return xp.where(self.has_high & (high_gap < self.margin), near_high, y)
