"""The functions of `fmnes.kernels.agnostic` in forms that JAX's compiler fuses into few passes.

A sort, a cumulative sum and a search are a launch each on a GPU, or a loop of them, and so is each
matrix product. Comparisons of all pairs of candidates and sums over rows are part of one kernel. A
matrix product of float32 numbers is also rounded to fewer digits on some GPUs; a sum is not.
"""

from fmnes._arrays import Array, Namespace
from fmnes.kernels import agnostic
from fmnes.kernels.agnostic import candidates as candidates
from fmnes.kernels.agnostic import row_products as row_products

_MOST_COMPARED = 4096  # candidates; beyond that sorting is quicker


def moments(
    xp: Namespace,
    z: Array,
    w1: Array | None = None,
    w2: Array | None = None,
    w3: Array | None = None,
) -> tuple[Array | None, Array | None, Array | None]:
    """Sums over the rows: of w1_i z_i, of w2_i z_i, of w3_i z_i*z_i; None without the weights.

    One reduction of several arrays is one pass over z; several sums would be a pass each.
    """
    from jax import lax

    weights = {i: w for i, w in enumerate((w1, w2, w3)) if w is not None}
    rows = [w[:, None] * (z * z if i == 2 else z) for i, w in weights.items()]
    zeros = [xp.zeros((), dtype=z.dtype) for _ in rows]
    sums = lax.reduce(rows, zeros, lambda a, b: [x + y for x, y in zip(a, b, strict=True)], (0,))
    first, second, squares = (dict(zip(weights, sums, strict=True)).get(i) for i in range(3))
    return first, second, squares


def weights_by_candidate(
    xp: Namespace, by_rank: Array, f: Array, norm_z2: Array, *, share_ties: bool = True
) -> Array:
    """Return the weight of each candidate's rank; see `agnostic.weights_by_candidate`.

    A candidate's rank is the number of candidates before it, and those that compare equal to it
    share the mean of their weights.
    """
    count = f.shape[0]
    if count > _MOST_COMPARED:
        return agnostic.weights_by_candidate(xp, by_rank, f, norm_z2, share_ties=share_ties)
    feasible = f < xp.inf  # neither +inf nor NaN
    value = xp.where(feasible, f, xp.inf)
    distance = xp.where(feasible, xp.zeros_like(norm_z2), norm_z2)
    same_value = value[:, None] == value[None, :]
    same = same_value & (distance[:, None] == distance[None, :])
    before = (value[None, :] < value[:, None]) | (
        same_value & (distance[None, :] < distance[:, None])
    )
    number = xp.arange(count)
    if not share_ties:  # then the earlier one is before
        before = before | (same & (number[None, :] < number[:, None]))
        same = number[None, :] == number[:, None]
    first = xp.sum(xp.astype(before, xp.int32), axis=1)
    ties = xp.sum(xp.astype(same, xp.int32), axis=1)
    shared = (number >= first[:, None]) & (number < (first + ties)[:, None])
    total = xp.sum(xp.where(shared, by_rank, xp.zeros_like(by_rank)), axis=1)
    return total / xp.astype(ties, by_rank.dtype)
