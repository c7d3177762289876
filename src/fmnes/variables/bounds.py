"""Box bounds: a smooth map from the whole space, where the method searches, into the box.

Inside the box, at a distance ``margin`` from its faces, the map is the identity. So bounds that the
search never touches change nothing. Within the margin the map bends into a parabola whose vertex
lies on the face, and beyond the face it mirrors:

    x = lb + (y - a)^2 / (4 margin),  a = lb - margin,    for y in [lb - margin, lb + margin].

An optimum on a face becomes the minimum of a parabola in y. The search reaches it at the full rate
and to full precision, and no penalty has to be weighted. (A plain reflection would leave a kink at
the face, and the condition number would grow as the other variables converge.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace, beside, constant

_AS_SIDES = "; for lower and upper bounds write fmnes.Bounds(lower, upper)"
_MARGIN = 0.1  # of the width between two bounds; at most the initial standard deviation


@dataclass(frozen=True)
class Bounds:
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

    def __post_init__(self) -> None:
        for name, side in (("lb", self.lb), ("ub", self.ub)):
            numbers = checks.numbers(name, side, "a number or a vector")
            if numbers.ndim > 1 or np.isnan(numbers).any():
                raise ValueError(f"{name}: expected a number or a vector, got {side!r:.60}")


class HasSides(Protocol):
    """What `Bounds` and `scipy.optimize.Bounds` have in common."""

    @property
    def lb(self) -> Any:
        """Lower bounds."""

    @property
    def ub(self) -> Any:
        """Upper bounds."""


BoundsLike = HasSides | Sequence[Sequence[float | None]] | NDArray[Any]


class Sides(NamedTuple):
    """Lower and upper bounds as vectors; infinite where there is none."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


def read_bounds(bounds: Any, dim: int) -> Sides:
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
        hint = _AS_SIDES if dim == 2 else ""
        raise ValueError(f"bounds[{j}]: expected low <= high, got ({low[j]}, {high[j]}){hint}")
    return Sides(low, high)


def _read_side(bounds: Any, name: str, dim: int) -> NDArray[np.float64]:
    expected = f"a number or shape ({dim},)"
    side = checks.numbers(f"bounds.{name}", getattr(bounds, name), expected)
    if side.shape not in ((), (1,), (dim,)):
        raise ValueError(f"bounds.{name}: expected {expected}, got shape {side.shape}")
    return np.broadcast_to(side, (dim,))


def _read_pairs(bounds: Any, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    expected = (
        f"{dim} pairs (low, high), such as [(0, 2)] * {dim}, or fmnes.Bounds(0, 2) with numbers "
        "for all variables or vectors"
    )
    if dim == 2 and type(bounds) is tuple and all(isinstance(p, list | np.ndarray) for p in bounds):
        raise ValueError(
            f"bounds: expected {expected}, got a tuple of two lists, which can mean two pairs, or "
            "lower and upper bounds: give a list of tuples, or fmnes.Bounds(lower, upper)"
        )
    try:
        sides = [[(-np.inf, np.inf)[k] if p[k] is None else p[k] for p in bounds] for k in (0, 1)]
        lengths = {len(p) for p in bounds}
        low, high = checks.numbers("bounds", sides, expected)
    except (TypeError, ValueError, IndexError, KeyError):
        raise TypeError(f"bounds: expected {expected}, got {bounds!r:.60}") from None
    if low.shape != (dim,) or lengths != {2}:
        of_length = " or ".join(map(str, sorted(lengths)))
        is_transposed = len(low) == 2 and lengths == {dim}
        hint = _AS_SIDES * is_transposed
        raise ValueError(
            f"bounds: expected {expected}, got {checks.count(len(low), 'row')} of length "
            f"{of_length}{hint}"
        )
    return low, high


def representable(sides: Sides, info: Any) -> Sides:
    """Return the bounds of the numbers of a floating-point type that lie inside the given bounds.

    The number nearest to 0.1 in float32 is larger than 0.1, so an upper bound is rounded down and a
    lower bound is rounded up. The value of a variable with equal bounds is rounded to the nearest.
    """
    both = np.concatenate(sides)
    advice = "use None for no bound, or rescale your variables"
    checks.in_scale("bounds", both[np.isfinite(both)], info, advice=advice)
    if info.bits == 64:
        return sides
    low, high = (side.astype(np.float32) for side in sides)
    free = sides.low < sides.high
    low = np.where(free & (low < sides.low), np.nextafter(low, np.float32(np.inf)), low)
    high = np.where(free & (high > sides.high), np.nextafter(high, -np.float32(np.inf)), high)
    if (low > high).any():
        j = int(np.argmax(low > high))
        raise ValueError(
            f"bounds[{j}]: expected a number of {info.bits} bits between the bounds, got "
            f"({sides.low[j]}, {sides.high[j]}); use an x0 of 64 bits, or subtract an offset"
        )
    return Sides(low.astype(np.float64), high.astype(np.float64))


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
        cls, xp: Namespace, like: Array, sides: Sides, deviations: NDArray[np.float64]
    ) -> Box:
        """Return the map for bounds that `representable` returned, and initial deviations."""
        low, high = sides
        free = low < high
        if not free.any():
            bits = xp.finfo(like.dtype).bits
            raise ValueError(
                "bounds: expected at least one variable with low < high (as numbers of "
                f"{bits} bits), got none{_AS_SIDES if low.shape == (2,) else ''}"
            )
        lo, hi, dev = low[free], high[free], deviations[free]
        margin = np.minimum(_MARGIN * (hi - lo), dev)
        bent = np.isfinite(lo) | np.isfinite(hi)
        _check_margin(margin[bent], np.flatnonzero(free)[bent], xp.finfo(like.dtype))

        def number(value: Any) -> Array:
            return constant(xp, value, like)

        def index(value: Any) -> Array:
            return beside(xp, value, like)

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
        with np.errstate(over="ignore"):  # of the parabola far from its face, where it is not used
            return self._to_user(xp, y)

    def _to_user(self, xp: Namespace, y: Array) -> Array:
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
        return self._with_fixed(xp, x, self.fixed)

    def _with_fixed(self, xp: Namespace, values: Array, fixed: Array) -> Array:
        """Return values of the free variables as values of all, with those of the fixed ones."""
        return xp.where(self.free, xp.take(values, self.position, axis=-1), fixed)

    def deviations_to_user(self, xp: Namespace, y: Array, deviations: Array) -> Array:
        """Return the standard deviations of the user's variables if y is normal with these.

        Gauss-Hermite quadrature with three nodes: exact where the map is linear or quadratic.
        """
        step = math.sqrt(3) * deviations
        low, middle, high = (self.to_user(xp, node) for node in (y - step, y, y + step))
        mean = (low + 4 * middle + high) / 6
        bent = xp.sqrt(((low - mean) ** 2 + 4 * (middle - mean) ** 2 + (high - mean) ** 2) / 6)
        linear = (low == self._with_fixed(xp, y - step, low)) & (
            high == self._with_fixed(xp, y + step, high)
        )
        zero = xp.zeros_like(self.fixed)
        return xp.where(linear, self._with_fixed(xp, deviations, zero), bent)

    def contains(self, xp: Namespace, x: Array) -> bool:
        """Return whether a point of the user lies inside the bounds."""
        free = x[self.free]
        outside = (self.has_low & (free < self.low)) | (self.has_high & (free > self.high))
        moved = ~self.free & (x != self.fixed)
        return not bool(xp.any(outside)) and not bool(xp.any(moved))

    def to_search(self, xp: Namespace, x: Array) -> Array:
        """Return the search coordinates of a point inside the bounds, or of points in rows."""
        x = x[self.free] if x.ndim == 1 else x[:, self.free]
        a, b = self.low - self.margin, self.high + self.margin
        at_low = self.has_low & (x - self.low < self.margin)
        at_high = self.has_high & (self.high - x < self.margin)
        near_low = a + 2 * xp.sqrt(self.margin * xp.where(at_low, x - self.low, self.margin))
        near_high = b - 2 * xp.sqrt(self.margin * xp.where(at_high, self.high - x, self.margin))
        return xp.where(at_high, near_high, xp.where(at_low, near_low, x))


def _check_margin(margin: NDArray[np.float64], variables: NDArray[np.intp], info: Any) -> None:
    """Raise an error if squares of the margins, which the map computes, are no normal numbers."""
    least = math.sqrt(float(info.smallest_normal) / float(info.eps))
    most = math.sqrt(float(info.max)) / 4
    bad = np.flatnonzero((margin < least) | (margin > most))
    if bad.size:
        j = int(bad[0])
        raise ValueError(
            f"bounds[{variables[j]}]: expected a tenth of the range between the bounds, or sigma0 "
            f"if that is smaller, between {least:.2g} and {most:.2g} for numbers of {info.bits} "
            f"bits, got {margin[j]:.2g}; rescale your variables"
        )
