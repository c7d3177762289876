"""Keep the product of sigma and D while neither of them overflows.

Separable CMA-ES and VD-CMA let both sigma and D carry the volume of the covariance. The objective
determines only their product, so nothing corrects a drift of one against the other. In a curved
valley sigma^2 D^2 stays right while sigma goes to 1e13 and D to 1e-18 within 4000 generations
(Rosenbrock, d = 10, separable CMA-ES), and later to infinity and zero. The methods that normalise
the determinant of their covariance do not have this problem.
"""

import math

from fmnes._arrays import Array, Namespace

_FAR = 1e3


def common_factor(xp: Namespace, D: Array) -> Array:
    """The factor to divide D (and paths in its units) by and to multiply sigma by.

    It is the geometric mean of D once that is larger than 1000 or smaller than 1/1000, which
    happens a few times in a long run. Otherwise it is 1, so sigma and D stay the paper's. The
    distribution is the same with and without it.
    """
    log_D = xp.mean(xp.log(D))
    return xp.exp(xp.where(xp.abs(log_D) > math.log(_FAR), log_D, xp.zeros_like(log_D)))
