"""Small operations on vectors of any array library."""

import numpy as np

from fmnes._arrays import Array, Namespace

# The axis of the variables: the last one. Functions that a search on several processes shares name
# it in each sum, largest value and so on over the variables. Those over candidates have no axis:
# all processes have all candidates, and each has some of the variables (`engines.sharded`).
VARIABLES = -1


def norm2(xp: Namespace, x: Array) -> Array:
    """|x|^2 of each row, or of a vector."""
    return xp.sum(x * x, axis=VARIABLES)


def at_most(xp: Namespace, x: Array, limit: float) -> Array:
    """The smaller of x and a number (`clip` of the standard costs ten times as much)."""
    return xp.where(x < limit, x, limit)


def at_least(xp: Namespace, x: Array, limit: float) -> Array:
    """The larger of x and a number."""
    return xp.where(x > limit, x, limit)


def choose(xp: Namespace, condition: Array, new: Array, old: Array) -> Array:
    """``new`` if a single condition holds, else ``old``.

    NumPy knows the condition at once, and then nothing is copied. With other libraries a branch
    would wait for the device, or fail under JAX's jit.
    """
    if isinstance(condition, np.bool_):
        return np.asarray(new if condition else old)
    return xp.where(condition, new, old)


def with_length_within(xp: Namespace, v: Array, limits: tuple[float, float]) -> Array:
    """The vector v, made longer or shorter if its length is outside the limits."""
    length = xp.sqrt(norm2(xp, v))
    return v * (xp.clip(length, *limits) / length)
