"""The step in v and D of CR-FM-NES: the published one, and the one that cannot break."""

from fmnes._arrays import Array, Namespace
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms._vectors import VARIABLES, at_least, norm2, with_length_within

# A step may take away at most this share of any D_j, or of |v|: the limit of VD-CMA. On the paper's
# functions it acts in less than one generation of a hundred.
LARGEST_STEP = 0.7
# Beyond these limits D and v do not matter beside the rest of the covariance, in either dtype.
D_LIMIT = 1e15
V_LIMITS = (1e-4, 1e7)


def next_axes(
    xp: Namespace, D: Array, v: Array, norm_v: Array, gradient: vd.Gradient, *, safe: bool
) -> tuple[Array, Array]:
    """D and v after the natural-gradient step.

    The paper adds the step to v and to D, eqs. (23) to (26):

        v <- v + t / |v|,   D <- D + D s

    To first order that is right. To second order it is not, once v is long. The gradient of v
    holds the term -v*s, which undoes what D (1 + s) does to the long axis u = D v; the product
    D (1 + s) v (1 - s) leaves -D v s^2, a turn of u by |v| s^2 in units of the short axes. With
    |v| = 1000, as a cigar of condition 1e6 asks for, and s = 0.05 that is a step of 2.5 standard
    deviations out of the valley in every generation: D and v diverge, and the method ends in NaN.

    The safe variant takes the step in the coordinates D and u, where the model is nearly flat:
    the covariance is D^2 + u u^T. The natural gradient and the first order are the same, and no
    second-order term grows with v:

        u <- u + D (t / |v| + v*s),   D <- D + D s,   v = u / D
    """
    s = gradient.log_D
    if not safe:
        return D * (1 + s), v + gradient.v  # eqs. (23) and (24)
    largest = xp.max(xp.abs(s), axis=VARIABLES)
    size = xp.maximum(largest, xp.sqrt(norm2(xp, gradient.u)) / norm_v)
    fraction = 1 / at_least(xp, size / LARGEST_STEP, 1.0)
    growth = 1 + fraction * s
    D = xp.clip(D * growth, 1 / D_LIMIT, D_LIMIT)
    v = (v + fraction * gradient.u) / growth
    return D, with_length_within(xp, v, V_LIMITS)
