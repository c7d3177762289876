"""From bounds and integrality to the maps between the search and the user's variables."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace, constant
from fmnes.variables.bounds import Box, Sides
from fmnes.variables.discrete import Discrete


def read_integrality(value: Any, dim: int) -> NDArray[np.bool_]:
    """Return for each variable whether it takes integers only."""
    if value is None:
        return np.zeros(dim, np.bool_)
    expected = f"0 or 1 for each of {dim} variables, or one of them for all"
    flags = checks.numbers("integrality", value, expected)
    if flags.shape not in ((), (1,), (dim,)):
        raise ValueError(f"integrality: expected {expected}, got shape {flags.shape}")
    bad = flags[(flags != 0) & (flags != 1)]
    if bad.size:
        raise ValueError(f"integrality: expected {expected}, got {bad[0]:g}")
    return np.broadcast_to(flags == 1, (dim,))


def integer_sides(sides: Sides | None, is_integer: NDArray[np.bool_], info: Any) -> Sides:
    """Return the bounds with those of integer variables rounded to the integers inside."""
    dim = is_integer.shape[0]
    low, high = (np.full(dim, -np.inf), np.full(dim, np.inf)) if sides is None else sides
    most = 2.0 ** (24 if info.bits == 32 else 53)  # beyond this, not all integers are numbers
    size = np.maximum(np.abs(low), np.abs(high))
    bad = np.flatnonzero(is_integer & ~(size <= most))
    if bad.size:
        j = int(bad[0])
        raise ValueError(
            f"bounds[{j}]: expected two finite bounds of at most {most:.0f} in size for a variable "
            f"with integrality 1, got ({low[j]}, {high[j]})"
        )
    first, last = (
        np.where(is_integer, np.ceil(low), low),
        np.where(is_integer, np.floor(high), high),
    )
    empty = np.flatnonzero(first > last)
    if empty.size:
        j = int(empty[0])
        raise ValueError(f"bounds[{j}]: expected an integer inside, got ({low[j]}, {high[j]})")
    return Sides(first, last)


def between_integers(
    xp: Namespace, x0: Array, sides: Sides, is_integer: NDArray[np.bool_]
) -> Array:
    """Return x0 with each integer variable between the first and the last integer inside."""
    if not is_integer.any():
        return x0
    low = constant(xp, np.where(is_integer, sides.low, -np.inf), x0)
    high = constant(xp, np.where(is_integer, sides.high, np.inf), x0)
    return xp.minimum(xp.maximum(x0, low), high)


def map_variables(
    xp: Namespace,
    like: Array,
    sides: Sides | None,
    is_integer: NDArray[np.bool_],
    deviations: NDArray[np.float64],
    choices: tuple[tuple[int, int], ...] = (),
) -> tuple[Box | None, Discrete | None]:
    """Return the map of the bounds, and the rounding of the variables that are not fixed.

    Integers and choices keep inside their bounds by themselves: the map does not bend them.
    """
    box = discrete = None
    if sides is not None:
        searched = is_integer & (sides.low < sides.high)
        searched[[column for column, _ in choices]] = True
        open_low, open_high = (
            np.where(searched, -np.inf, sides.low),
            np.where(searched, np.inf, sides.high),
        )
        box = Box.build(xp, like, Sides(open_low, open_high), deviations)
    if is_integer.any() or choices:
        low, high = (np.zeros_like(deviations),) * 2 if sides is None else sides
        free = np.ones_like(is_integer) if sides is None else low < high
        discrete = Discrete.build(xp, like, low[free], high[free], is_integer[free], choices)
    return box, discrete
