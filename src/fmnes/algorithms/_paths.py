"""Evolution paths: sums of the mean's steps over the generations, and how long they get.

References by number: CMA-ES is N. Hansen's tutorial, arXiv 1604.00772; NES is M. Nomura and
I. Ono, arXiv 2201.11422, section II.
"""

import math

from fmnes._arrays import Array


def norm_of_normal(dim: int) -> float:
    """E|N(0, I)|, by the usual approximation of CMA-ES (not numbered in the tutorial)."""
    return math.sqrt(dim) * (1 - 1 / (4 * dim) + 1 / (21 * dim**2))


def path_scale(c: float, mu_eff: float) -> float:
    """sqrt(c (2 - c) mu_eff): keeps an evolution path at N(0, I) under neutral selection."""
    return math.sqrt(c * (2 - c) * mu_eff)


def next_path(path: Array, c: float, mu_eff: float, step: Array) -> Array:
    """(1 - c) p + sqrt(c (2 - c) mu_eff) step: the form of both paths (CMA-ES eqs. 43 and 45)."""
    return (1 - c) * path + path_scale(c, mu_eff) * step


def p_sigma_rate(dim: int, mu_eff: float) -> float:
    """c_sigma, the learning rate of the path p_sigma (CMA-ES eq. 55; NES eq. 2)."""
    return (mu_eff + 2) / (dim + mu_eff + 5)


def p_c_rate(dim: int, mu_eff: float) -> float:
    """c_c, the learning rate of the path p_c (CMA-ES eq. 56)."""
    return (4 + mu_eff / dim) / (dim + 4 + 2 * mu_eff / dim)


def sigma_damping(dim: int, mu_eff: float, c_sigma: float) -> float:
    """d_sigma, the damping of the step size (CMA-ES eq. 55; the same in Ros and Hansen)."""
    return 1 + c_sigma + 2 * max(0.0, math.sqrt((mu_eff - 1) / (dim + 1)) - 1)
