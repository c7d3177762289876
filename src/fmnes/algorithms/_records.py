"""What every method exchanges with the search: the shape of its distribution, and a summary.

Every function is pure and written against the array API standard: no item assignment, no
Python ``if`` on array values. ``xp`` is the array library, resolved once by the caller.
"""

from typing import Any, NamedTuple, TypeVar

from array_api_compat import device  # unlike x.device it works under JAX's jit too

from fmnes._arrays import Array, Namespace
from fmnes.algorithms._vectors import choose
from fmnes.algorithms._weights import is_flat


class Shape(NamedTuple):
    """The covariance matrix without sigma: D (I + v v^T) D, or the full matrix C.

    A shape starts a search, and a warm start carries it from one method to another. Each method
    takes over the part that its own covariance can represent (`diagonal_of`, `matrix_of`).
    """

    D: Array
    v: Array | None = None
    C: Array | None = None


class Summary(NamedTuple):
    """What the history and the stopping rules read after each generation."""

    sigma: Array  # the step size
    deviations: Array  # (d,): standard deviation of each coordinate
    axis_ratio: Array  # longest over shortest axis; for D (I + v v^T) D an upper bound
    norm_v: Array  # |v|; NaN for a method without v
    phase: Array  # 1 movement, 2 stagnation, 3 convergence; 0 for a method without phases


def summary_without_v(xp: Namespace, sigma: Array, deviations: Array, axis_ratio: Array) -> Summary:
    """The summary of a method that has neither v nor phases."""
    no_v, no_phase = xp.full_like(sigma, xp.nan), xp.zeros_like(sigma)
    return Summary(sigma, deviations, axis_ratio, no_v, no_phase)


StateT = TypeVar("StateT", bound=tuple[Any, ...])
ParamsT = TypeVar("ParamsT")


def unless_flat(xp: Namespace, f: Array, old: StateT, new: StateT) -> StateT:
    """Return ``new``, or exactly ``old`` if all values of the generation are equal.

    Such a generation carries no information, yet the evolution paths would go on moving the
    distribution.
    """
    flat = is_flat(xp, f)
    kept = (b if a is b else choose(xp, flat, a, b) for a, b in zip(old, new, strict=True))
    return type(old)(*kept)


def unchanged(params: Any, state: StateT) -> StateT:
    """Return the state: the `refresh` and the `resized` of a method that needs neither."""
    return state


def same_popsize(params: Any, state: StateT, least: int) -> tuple[int, StateT]:
    """Return the size and the state: the `next_popsize` of a method that never changes it."""
    return params.popsize, state


def as_they_are(params: ParamsT) -> ParamsT:
    """Return the Params: the `fixed` of a method whose arrays never grow."""
    return params


def copied_shape(xp: Namespace, shape: Shape) -> Shape:
    """A copy of a shape: a search never works with arrays that the user holds."""
    return Shape(*(None if part is None else xp.asarray(part, copy=True) for part in shape))


def diagonal_of(xp: Namespace, shape: Shape) -> Array:
    """Square roots of the diagonal of a shape: the part that a separable method takes over."""
    if shape.C is not None:
        return xp.sqrt(xp.linalg.diagonal(shape.C))
    if shape.v is None:
        return shape.D
    return shape.D * xp.sqrt(1 + shape.v * shape.v)


def matrix_of(xp: Namespace, shape: Shape) -> Array:
    """The full matrix of a shape."""
    if shape.C is not None:
        return shape.C
    eye = xp.eye(shape.D.shape[0], dtype=shape.D.dtype, device=device(shape.D))
    if shape.v is not None:
        eye = eye + shape.v[:, None] * shape.v[None, :]
    return shape.D[:, None] * eye * shape.D[None, :]
