"""Population sizes, rank weights, and which candidate gets which weight.

References by number: CMA-ES is N. Hansen's tutorial, arXiv 1604.00772; NES is M. Nomura and
I. Ono, arXiv 2201.11422.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fmnes import kernels
from fmnes._arrays import Array, Namespace


def default_popsize(dim: int) -> int:
    """4 + floor(3 ln d), the default of CMA-ES (eq. 48) and of most methods since."""
    return 4 + math.floor(3 * math.log(dim))


def even_default_popsize(dim: int) -> int:
    """The same, rounded up to an even number for methods that sample in pairs (NES eq. 32)."""
    popsize = default_popsize(dim)
    return popsize + popsize % 2


def nes_weights(popsize: int) -> NDArray[np.float64]:
    """Positive rank weights of NES, best first, sum 1: max(0, ln(lambda/2 + 1) - ln i).

    NES eqs. (3) and (4), without the -1/lambda of eq. (3).
    """
    first = math.log(popsize / 2 + 1)
    positive = [first - math.log(i) for i in range(1, (popsize + 1) // 2 + 1)]
    w_hat = np.zeros(popsize)  # the weights of the worse half
    w_hat[: len(positive)] = positive
    return w_hat / math.fsum(positive)


def cma_weights(popsize: int) -> NDArray[np.float64]:
    """Rank weights of CMA-ES before any scaling (eq. 49): ln((lambda + 1)/2) - ln i."""
    first = math.log((popsize + 1) / 2)
    return np.asarray([first - math.log(i) for i in range(1, popsize + 1)])


def effective_size(weights: NDArray[np.float64]) -> float:
    """mu_eff (NES eq. 5): how many equally weighted samples average as precisely as these do."""
    return math.fsum(weights) ** 2 / math.fsum(weights**2)


def by_candidate(
    xp: Namespace, by_rank: Array, f: Array, norm_z2: Array, *, share_ties: bool = True
) -> Array:
    """The weight of each candidate's rank; see `fmnes.kernels.agnostic`."""
    return kernels.select(xp, by_rank.dtype).weights_by_candidate(
        xp, by_rank, f, norm_z2, share_ties=share_ties
    )


def for_candidates(xp: Namespace, by_row: Array, f: Array) -> Array:
    """An even function of the draws, by row, as one for each candidate.

    There are twice as many candidates as rows if the rows are antithetic pairs, and as many if each
    row is the draw of one candidate: an asynchronous search tells single candidates.
    """
    return by_row if f.shape[0] == by_row.shape[0] else xp.concat([by_row, by_row])


def pair_sums(weights: Array, rows: int) -> tuple[Array, Array]:
    """(w+ - w-, w+ + w-): the weights of odd and of even functions of z, for each row of draws.

    A sum over all candidates, sum_i w_i h(z_i), is a sum over the pairs (z, -z): with the former
    weights if h(-z) = -h(z), with the latter if h(-z) = h(z). A number that is added to all w
    cancels in the former. It has to cancel, too, if each row is the draw of one candidate: then
    the two are w less its mean, and w.
    """
    if weights.shape[0] == rows:
        return weights - weights.sum() / rows, weights
    return weights[:rows] - weights[rows:], weights[:rows] + weights[rows:]


def is_feasible(xp: Namespace, f: Array) -> Array:
    """True where a value can be ranked by itself; +inf and NaN mean infeasible."""
    return f < xp.inf


def feasible_count(xp: Namespace, f: Array, like: Array) -> Array:
    """lambda_F: the number of feasible candidates, as a 0-d array of the dtype of ``like``."""
    return xp.sum(xp.astype(is_feasible(xp, f), like.dtype))


def is_flat(xp: Namespace, f: Array) -> Array:
    """Whether all values are equal, and finite."""
    return xp.all(f == f[0]) & xp.isfinite(f[0])
