"""The search phases of DX-NES-IC, which FM-NES and CR-FM-NES took over.

M. Nomura, I. Ono: "Distance-weighted exponential natural evolution strategy for implicitly
constrained black-box function optimization", CEC 2021. Far from the optimum the path p_sigma is
long, and candidates are weighted by their distance too, so that the mean moves fast. Near the
optimum the path is short, and the step size may fall fast.

Step and equation numbers are those of section II of arXiv 2201.11422, which restates the method.
That text leaves alpha and the rates eta_sigma to the CEC 2021 paper; here they are as in the
public implementations of the authors (see docs/methods/dx-nes-ic.md).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._paths import next_path, norm_of_normal, p_sigma_rate
from fmnes.algorithms._vectors import at_least, norm2

MOVEMENT, STAGNATION, CONVERGENCE = 1, 2, 3


class PhaseParams(NamedTuple):
    """Constants of the phases; those that depend on lambda_F are functions below."""

    dim: int
    popsize: int
    w_hat: NDArray[np.float64]  # positive rank weights, best first, sum 1
    mu_eff: float
    c_sigma: float
    chi_n: float  # E|N(0, I)|
    alpha: float  # strength of the distance weights when every candidate is feasible


class Selection(NamedTuple):
    """The result of steps 3 to 6, and the scalar part of step 8."""

    p_sigma: Array
    phase: Array
    lam_F: Array  # number of feasible candidates
    odd: Array  # weights of the antithetic pairs, for odd functions of z; see `pair_sums`
    even: Array  # and for even functions
    G_sigma: Array


def phase_params(dim: int, popsize: int) -> PhaseParams:
    """Constants of the phases for a dimension and a population size."""
    w_hat = weights.nes_weights(popsize)  # eq. (4)
    mu_eff = weights.effective_size(w_hat)  # eq. (5)
    # Eq. (7) uses alpha; section II does not give its value.
    alpha = _h_inv(dim) * min(1.0, math.sqrt(popsize / dim))
    c_sigma = p_sigma_rate(dim, mu_eff)  # eq. (2)
    # Step 5 compares |p_sigma| with E|N(0, I)|.
    return PhaseParams(dim, popsize, w_hat, mu_eff, c_sigma, norm_of_normal(dim), alpha)


def select(
    xp: Namespace,
    params: PhaseParams,
    p_sigma: Array,
    z: Array,
    norm_z2: Array,
    f: Array,
    *,
    share_ties: bool = True,
) -> Selection:
    """Rank the candidates, update the path p_sigma, and weight the candidates by phase.

    The -1/lambda of the weights, eqs. (3) and (6), cancels in sums of odd functions of z, so the
    path needs w_hat alone. In G_sigma the -I of eq. (8) drops out, as the weights sum to 0.
    """
    norms2 = weights.for_candidates(xp, norm_z2, f)  # |z| = |-z|
    by_rank = constant(xp, params.w_hat, z)  # eq. (4)
    w_hat = weights.by_candidate(xp, by_rank, f, norms2, share_ties=share_ties)  # step 3
    lam_F = weights.feasible_count(xp, f, z)  # not in section II: from the authors' code
    odd, _ = weights.pair_sums(w_hat, z.shape[0])
    p_sigma = next_path(p_sigma, params.c_sigma, params.mu_eff, odd @ z)  # eq. (1)
    phase = phase_of(xp, params, p_sigma)  # step 5
    w_dist = distance_weights(xp, params, w_hat, xp.sqrt(norms2), lam_F)  # eq. (6)
    w = xp.where(phase == MOVEMENT, w_dist, w_hat) - 1 / params.popsize  # step 6
    odd, even = weights.pair_sums(w, z.shape[0])
    G_sigma = xp.sum(even * norm_z2) / params.dim  # eq. (8): tr(G_M) / d
    return Selection(p_sigma, phase, lam_F, odd, even, G_sigma)


def phase_of(xp: Namespace, params: PhaseParams, p_sigma: Array) -> Array:
    """1 movement, 2 stagnation, 3 convergence, by the length of the path p_sigma (step 5)."""
    length = xp.sqrt(norm2(xp, p_sigma))
    not_moving = xp.astype(length < params.chi_n, length.dtype)
    converging = xp.astype(length < 0.1 * params.chi_n, length.dtype)
    return MOVEMENT + not_moving + converging


def eta_sigma(
    xp: Namespace, params: PhaseParams, phase: Array, lam_F: Array, least: float = 0.0
) -> Array:
    """The learning rate of sigma in each phase (step 7); in stagnation at least ``least``.

    Section II names the three rates and does not give their values.
    """
    d = params.dim
    stagnation = at_least(xp, xp.tanh(stagnation_argument(d, lam_F)), least)  # eta^stag
    convergence = 2 * xp.tanh((0.025 * lam_F + 0.75 * d + 10) / (d + 4))  # eta^conv
    settled = xp.where(phase == STAGNATION, stagnation, convergence)
    return xp.where(phase == MOVEMENT, 1.0, settled)  # eta^move = 1


def stagnation_argument(dim: int, lam_F: Array | float) -> Array:
    """The number whose tanh is the learning rate of sigma in the stagnation phase (step 7)."""
    return (0.024 * lam_F + 0.7 * dim + 20) / (dim + 12)


def distance_weights(
    xp: Namespace, params: PhaseParams, w_hat: Array, norm_z: Array, lam_F: Array
) -> Array:
    """Distance weights, eqs. (6) and (7): w_hat exp(alpha |z|), normalised to sum 1.

    The largest |z| is subtracted first. The normalisation cancels this factor, and exp() cannot
    overflow in any dimension.
    """
    alpha = distance_strength(xp, params, lam_F)
    w = w_hat * xp.exp(alpha * (norm_z - xp.max(norm_z)))  # eq. (7)
    return w / xp.sum(w)  # eq. (6)


def neutral_growth(xp: Namespace, params: PhaseParams, norm_z: Array, lam_F: Array) -> Array:
    """What the distance weights add to G_sigma if the ranking is chance: sigma grows with them."""
    w = xp.exp(distance_strength(xp, params, lam_F) * (norm_z - xp.max(norm_z)))
    return xp.sum((w / xp.sum(w) - 1 / norm_z.shape[0]) * norm_z * norm_z) / params.dim


def distance_strength(xp: Namespace, params: PhaseParams, lam_F: Array) -> Array:
    """The alpha of eq. (7), smaller by sqrt(lambda_F / lambda) if candidates are infeasible."""
    return params.alpha * xp.sqrt(lam_F / params.popsize)


def _h_inv(dim: int) -> float:
    """The root a > 0 of (1 + a^2) exp(a^2 / 2) / 0.24 = 10 + d, for the alpha of eq. (7).

    Its closed form is sqrt(2 W(0.12 sqrt(e) (d + 10)) - 1) with Lambert's W. The papers take damped
    Newton steps until the residual is below 1e-10, which rounding makes unreachable for most
    d > 1e5.
    """
    return math.sqrt(2 * _lambert_w(0.12 * math.exp(0.5) * (dim + 10)) - 1)


def _lambert_w(x: float) -> float:
    """The w > 0 with w exp(w) = x > 0, by Newton's method on w + ln w = ln x."""
    w = math.log1p(x)  # above the root, where the function is convex: the steps fall monotonically
    for _ in range(30):  # six are enough from d = 1 to 1e9
        step = (w + math.log(w / x)) * w / (w + 1)
        w -= step
        if abs(step) <= 1e-16 * w:
            break
    return w
