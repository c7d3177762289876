"""The search phases of DX-NES-IC, which FM-NES and CR-FM-NES took over.

M. Nomura, I. Ono: "Distance-weighted exponential natural evolution strategy for implicitly
constrained black-box function optimization", CEC 2021. Far from the optimum (the path p_sigma is
long) candidates are weighted by their distance too, so that the mean moves fast; near it (the
path is short) the step size may fall fast.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fmnes._arrays import Array, Namespace
from fmnes.algorithms._shared import at_least

MOVEMENT, STAGNATION, CONVERGENCE = 1, 2, 3


class PhaseParams(NamedTuple):
    """Constants of the phases; those that depend on lambda_F are functions below."""

    dim: int
    popsize: int
    chi_n: float  # E|N(0, I)|
    alpha: float  # strength of the distance weights when every candidate is feasible


def phase_params(dim: int, popsize: int, chi_n: float) -> PhaseParams:
    """Constants of the phases for a dimension and a population size."""
    return PhaseParams(dim, popsize, chi_n, _h_inv(dim) * min(1.0, math.sqrt(popsize / dim)))


def phase_of(xp: Namespace, params: PhaseParams, norm_p_sigma: Array) -> Array:
    """1 movement, 2 stagnation, 3 convergence, by the length of the path p_sigma."""
    not_moving = xp.astype(norm_p_sigma < params.chi_n, norm_p_sigma.dtype)
    converging = xp.astype(norm_p_sigma < 0.1 * params.chi_n, norm_p_sigma.dtype)
    return MOVEMENT + not_moving + converging


def eta_sigma(
    xp: Namespace, params: PhaseParams, phase: Array, lam_F: Array, least: float = 0.0
) -> Array:
    """The learning rate of sigma in each phase; in stagnation at least ``least``."""
    d = params.dim
    stagnation = at_least(xp, stagnation_rate(xp.tanh, d, lam_F), least)
    convergence = 2 * xp.tanh((0.025 * lam_F + 0.75 * d + 10) / (d + 4))
    settled = xp.where(phase == STAGNATION, stagnation, convergence)
    return xp.where(phase == MOVEMENT, 1.0, settled)


def stagnation_rate(tanh: Callable[[Any], Any], dim: int, lam_F: Any) -> Any:
    """The learning rate of sigma in stagnation."""
    return tanh((0.024 * lam_F + 0.7 * dim + 20) / (dim + 12))


def distance_weights(
    xp: Namespace, params: PhaseParams, w_hat: Array, norm_z: Array, lam_F: Array
) -> Array:
    """w_hat exp(alpha |z|), normalised to sum 1, with alpha shrunk by sqrt(lambda_F / lambda).

    The largest |z| is subtracted first: the same weights after the normalisation, and exp()
    cannot overflow whatever the dimension.
    """
    alpha = distance_strength(xp, params, lam_F)
    w = w_hat * xp.exp(alpha * (norm_z - xp.max(norm_z)))
    return w / xp.sum(w)


def distance_strength(xp: Namespace, params: PhaseParams, lam_F: Array) -> Array:
    """The alpha of the distance weights."""
    return params.alpha * xp.sqrt(lam_F / params.popsize)


def _h_inv(dim: int) -> float:
    """The root a > 0 of (1 + a^2) exp(a^2 / 2) / 0.24 = 10 + d.

    In closed form sqrt(2 W(0.12 sqrt(e) (d + 10)) - 1) with Lambert's W. The papers take damped
    Newton steps until the residual is below 1e-10, which rounding makes unreachable for most
    d > 1e5.
    """
    return math.sqrt(2 * _lambert_w(0.12 * math.exp(0.5) * (dim + 10)) - 1)


def _lambert_w(x: float) -> float:
    """The w > 0 with w exp(w) = x > 0, by Newton's method on w + ln w = ln x."""
    w = math.log1p(x)  # above the root and convex there: the steps fall monotonically
    for _ in range(30):  # six are enough from d = 1 to 1e9
        step = (w + math.log(w / x)) * w / (w + 1)
        w -= step
        if abs(step) <= 1e-16 * w:
            break
    return w
