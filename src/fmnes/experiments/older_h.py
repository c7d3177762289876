"""CR-FM-NES with the H that was printed in 2014: a method for experiments.

The natural gradient divides by S = H + b vv vv^T, the Schur complement of a Fisher matrix whose
blocks between v and D are multiplied by alpha. The right H is 2 - (b + 2 alpha^2) vv. Lemma 3.4 of
Akimoto, Auger and Hansen (GECCO 2014) has 2 - (b + 2 alpha) vv according to those who transcribed
it, and the CR-FM-NES paper corrects it (docs/appendix.md). Both agree while alpha = 1, which holds
unless one coordinate has a quarter to a half of |v|^2.

Everything else is `fmnes.algorithms.cr_fm_nes`: this module offers the same functions.
"""

from array_api_compat import array_namespace

from fmnes._arrays import Array, Namespace
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms import cr_fm_nes
from fmnes.algorithms._vectors import at_most

COVARIANCE, LINEAR, ANTITHETIC = cr_fm_nes.COVARIANCE, cr_fm_nes.LINEAR, cr_fm_nes.ANTITHETIC
Settings, params, init = cr_fm_nes.Settings, cr_fm_nes.params, cr_fm_nes.init
default_popsize, transform, ask = cr_fm_nes.default_popsize, cr_fm_nes.transform, cr_fm_nes.ask
shape, summary = cr_fm_nes.shape, cr_fm_nes.summary
refresh, resized, fixed = cr_fm_nes.refresh, cr_fm_nes.resized, cr_fm_nes.fixed
next_popsize = cr_fm_nes.next_popsize
GROWING, draws_of = cr_fm_nes.GROWING, cr_fm_nes.draws_of
Params, State = cr_fm_nes.Params, cr_fm_nes.State


def tell(params: cr_fm_nes.Params, state: cr_fm_nes.State, z: Array, f: Array) -> cr_fm_nes.State:
    """The next state, by the natural gradient with the older H."""
    xp = array_namespace(z)
    estimate = cr_fm_nes.estimated(xp, params, state, z, f)
    gradient = natural_gradient(xp, estimate.direction, estimate.moments)
    return cr_fm_nes.moved(xp, params, state, f, estimate, gradient)


def natural_gradient(xp: Namespace, direction: vd.Direction, moments: vd.Moments) -> vd.Gradient:
    """Steps 1 to 5 of section III-B as the papers write them, with the older H in step 4."""
    vbar, norm_v, g, r = direction
    az, zz, aa, total = moments
    vv, n2 = vbar * vbar, g - 1
    kappa, alpha = constants(xp, direction)
    b = kappa - 2 * alpha**2
    H = 2 - (b + 2 * alpha) * vv  # the right one has alpha**2

    s = zz - total + (r - 1) ** 2 / r * vbar * az
    t = r * az + g / 2 * (aa - total) * vbar
    s = s - alpha / g * ((2 + n2) * vbar * t - n2 * xp.sum(vbar * t) * vv)
    vv_H = vv / H
    s = s / H - b / (1 + b * xp.sum(vv * vv_H)) * xp.sum(vv_H * s) * vv_H
    t = t - alpha * ((2 + n2) * vbar * s - xp.sum(vv * s) * vbar)
    return vd.Gradient(s, t / norm_v, t / norm_v + norm_v * vbar * s)


def constants(xp: Namespace, direction: vd.Direction) -> tuple[Array, Array]:
    """The kappa and alpha of `_vd_gaussian.natural_gradient`."""
    g = direction.g
    kappa = at_most(xp, (2 - 1 / direction.r) / xp.max(direction.vbar * direction.vbar), 4.0)
    return kappa, xp.sqrt(1 - (4 - kappa) / (g + 1) * (g / (g + 1)))
