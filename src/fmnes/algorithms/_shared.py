"""What several papers share: records, ranking, and how a population is laid out.

Every function is pure and written against the array API standard: no item assignment, no
Python ``if`` on array values. ``xp`` is the array library, resolved once by the caller.
"""

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np
from array_api_compat import device  # unlike x.device it works under JAX's jit too
from numpy.typing import NDArray

from fmnes import kernels
from fmnes._arrays import Array, Namespace


class Shape(NamedTuple):
    """The shape of a distribution, sigma aside: D (I + v v^T) D, or the full matrix C.

    It starts a search, and carries one from method to method: each method takes of it what its
    own covariance can hold (see `diagonal_of` and `matrix_of`).
    """

    D: Array
    v: Array | None = None
    C: Array | None = None


class Report(NamedTuple):
    """What the history and the stopping rules look at after each generation."""

    sigma: Array  # the step size
    deviations: Array  # (d,): standard deviation of each coordinate
    axis_ratio: Array  # longest over shortest axis; for D(I + vv^T)D an upper bound
    norm_v: Array  # |v|; NaN for a method that has no v
    phase: Array  # 1 movement, 2 stagnation, 3 convergence; 0 for a method that has none


def default_popsize(dim: int) -> int:
    """4 + floor(3 ln d), the default of CMA-ES and of most methods since."""
    return 4 + math.floor(3 * math.log(dim))


def even_default_popsize(dim: int) -> int:
    """The same, rounded up to an even number for methods that sample in pairs."""
    popsize = default_popsize(dim)
    return popsize + popsize % 2


def norm_of_normal(dim: int) -> float:
    """E|N(0, I)|, by the approximation every paper of this family uses."""
    return math.sqrt(dim) * (1 - 1 / (4 * dim) + 1 / (21 * dim**2))


def nes_weights(popsize: int) -> NDArray[np.float64]:
    """Positive rank weights of NES, best first, sum 1: max(0, ln(lambda/2 + 1) - ln i)."""
    w_hat = [max(0.0, math.log(popsize / 2 + 1) - math.log(i)) for i in range(1, popsize + 1)]
    return np.asarray(w_hat) / math.fsum(w_hat)


def effective_size(weights: NDArray[np.float64]) -> float:
    """mu_eff: how many equally weighted samples would average as well as these weights do."""
    return math.fsum(weights) ** 2 / math.fsum(weights**2)


def path_scale(c: float, mu_eff: float) -> float:
    """sqrt(c (2 - c) mu_eff): keeps an evolution path at N(0, I) under neutral selection."""
    return math.sqrt(c * (2 - c) * mu_eff)


def check_rates(**rates: float | None) -> None:
    """Learning rates that a user may set: each is None or a number from 0 upwards."""
    for name, rate in rates.items():
        if rate is None:
            continue
        is_number = np.ndim(rate) == 0 and np.asarray(rate).dtype.kind in "iuf"
        if not (is_number and math.isfinite(rate) and rate >= 0):
            raise ValueError(f"{name}: expected a finite number >= 0, got {rate!r}")


def norm2(xp: Namespace, x: Array) -> Array:
    """|x|^2 of each row, or of a vector."""
    return xp.sum(x * x, axis=-1)


def at_most(xp: Namespace, x: Array, limit: float) -> Array:
    """The smaller of x and a number (`clip` of the standard costs ten times as much)."""
    return xp.where(x < limit, x, limit)


def at_least(xp: Namespace, x: Array, limit: float) -> Array:
    """The larger of x and a number."""
    return xp.where(x > limit, x, limit)


def mirrored(xp: Namespace, mean: Array, step: Array) -> Array:
    """The antithetic population: rows mean + step, then rows mean - step, in the same order."""
    return xp.concat([mean + step, mean - step], axis=0)


def pair_sums(weights: Array) -> tuple[Array, Array]:
    """(w+ - w-, w+ + w-): the weights of odd and of even functions of z, per antithetic pair."""
    half = weights.shape[0] // 2
    return weights[:half] - weights[half:], weights[:half] + weights[half:]


def is_feasible(xp: Namespace, f: Array) -> Array:
    """True where a value can be ranked by itself; +inf and NaN mean infeasible."""
    return f < xp.inf


def feasible_count(xp: Namespace, f: Array, like: Array) -> Array:
    """lambda_F: the number of feasible candidates, as a 0-d array of the state's dtype."""
    return xp.sum(xp.astype(is_feasible(xp, f), like.dtype))


def weights_by_candidate(
    xp: Namespace, by_rank: Array, f: Array, norm_z2: Array, *, share_ties: bool = True
) -> Array:
    """Hand each candidate the weight of its rank; see `fmnes.kernels.agnostic`."""
    return kernels.select(xp, by_rank.dtype).weights_by_candidate(
        xp, by_rank, f, norm_z2, share_ties=share_ties
    )


def is_flat(xp: Namespace, f: Array) -> Array:
    """Whether all values are equal, and finite."""
    return xp.all(f == f[0]) & xp.isfinite(f[0])


StateT = TypeVar("StateT", bound=tuple[Any, ...])


def unless_flat(xp: Namespace, f: Array, old: StateT, new: StateT) -> StateT:
    """``new``, but ``old`` to the bit after a generation whose values are all equal.

    Such a generation says nothing, yet the evolution paths would go on moving the distribution.
    """
    flat = is_flat(xp, f)
    kept = (b if a is b else xp.where(flat, a, b) for a, b in zip(old, new, strict=True))
    return type(old)(*kept)


def unchanged(params: Any, state: StateT) -> StateT:
    """The `refresh` of a method whose update keeps all of its state up to date."""
    return state


def copied(xp: Namespace, shape: Shape) -> Shape:
    """The same shape in arrays of its own: what users hold is never what a search works with."""
    return Shape(*(None if part is None else xp.asarray(part, copy=True) for part in shape))


def diagonal_of(xp: Namespace, shape: Shape) -> Array:
    """The square roots of the diagonal of a shape: what a separable method keeps of it."""
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
