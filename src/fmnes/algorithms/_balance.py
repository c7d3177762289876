"""Keep sigma and D from running away from each other.

Separable CMA-ES and VD-CMA let both sigma and D carry the volume of the covariance, and the
objective holds but the product of the two: nothing brings back what one gains and the other
loses. In a curved valley sigma^2 D^2 stays as it should while sigma goes to 1e13 and D to 1e-18
within 4000 generations (Rosenbrock, d = 10, separable CMA-ES), and on to infinity and zero. The
methods that normalise the determinant of their covariance do not have this trouble.
"""

import math

from fmnes._arrays import Array, Namespace

_FAR = 1e3


def common_factor(xp: Namespace, D: Array) -> Array:
    """What to take out of D (and of paths in its units) and to multiply sigma by.

    The geometric mean of D once it is a thousand times too large or too small, which happens a
    few times in a long run; 1 otherwise, so that sigma and D are the paper's in between. The
    distribution, and all that follows from it, is the same as without.
    """
    log_D = xp.mean(xp.log(D))
    return xp.exp(xp.where(xp.abs(log_D) > math.log(_FAR), log_D, xp.zeros_like(log_D)))
