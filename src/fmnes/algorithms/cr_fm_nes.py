"""CR-FM-NES: cost-reduced fast moving natural evolution strategy.

M. Nomura, I. Ono: "Fast moving natural evolution strategy for high-dimensional problems",
CEC 2022, arXiv 2201.11422. Equation numbers are those of that text, line numbers those of its
Algorithm 1.

Covariance sigma^2 D (I + v v^T) D (eq. 22): separable scaling plus one free direction, O(d) time
for each candidate and O(d) memory. The first choice from about ten variables to millions of them.

The default variant departs from the paper where the published method breaks, or needs more
evaluations than VD-CMA on functions that suit its covariance; ``variant="paper"`` is the published
method. The reasons are given at `next_axes` (_vd_step.py), `_eta_B`, `_least_eta_sigma` and in
`params` (c_1), the evidence in docs/safe-variant.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace
from fmnes.algorithms import _phases as phases
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms._paths import next_path, p_c_rate, path_scale
from fmnes.algorithms._records import (
    Shape,
    Summary,
    as_they_are,
    same_popsize,
    unchanged,
    unless_flat,
)
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vd_step import D_LIMIT, LARGEST_STEP, V_LIMITS, next_axes
from fmnes.algorithms._vectors import VARIABLES, at_most, norm2
from fmnes.algorithms._weights import even_default_popsize

COVARIANCE = "sigma^2 D (I + v v^T) D"
LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = True  # z has lambda/2 rows; the other half of the population is mirrored
GROWING: dict[str, tuple[str, ...]] = {}
default_popsize = even_default_popsize  # eq. (32)


@dataclass(frozen=True, kw_only=True)
class CRFMNES(MethodSettings):
    """Settings of CR-FM-NES.

    Parameters
    ----------
    variant : {"safe", "paper"}
        "safe" is the paper's method with a step in v and D that cannot break. Candidates with
        equal values share their weights. "paper" is the published method; it ranks candidates with
        equal values in the order of their numbers.
    D : array_like of shape (d,), optional
        Initial scale of each coordinate, multiplied by sigma0. Ones by default.
    v : array_like of shape (d,), optional
        Initial direction. Normal with standard deviation 1/sqrt(d) by default, as in the paper.
    eta_B : float, optional
        Learning rate of v and D. By default the paper's fit, which depends on d and on the number
        of feasible candidates. The safe variant lowers either where v is long.
    c_1 : float, optional
        Learning rate of the rank-one update; 0 switches it off. By default the paper's,
        (d - 5) / 3 / ((d + 1.3)^2 + mu_eff), which the safe variant keeps positive for small d.
        Either is multiplied by the share of feasible candidates.
    eta_sigma : float, optional
        Learning rate of sigma in all phases. By default the paper's three, one for each phase.
    distance_weights : bool
        Weigh candidates by their distance too in the movement phase. False: by rank alone.
    store_draws : bool
        Keep the draws, popsize/2 vectors, from ask to tell. False makes them again when they are
        needed: less memory for more time, and the same steps.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> for method in (fmnes.CRFMNES(), fmnes.CRFMNES(variant="paper")):
    ...     fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    True
    """

    variant: Literal["safe", "paper"] = "safe"
    D: ArrayLike | None = None
    v: ArrayLike | None = None
    eta_B: float | None = None
    c_1: float | None = None
    eta_sigma: float | None = None
    distance_weights: bool = True
    store_draws: bool = True

    def __post_init__(self) -> None:
        checks.fields(
            self,
            variant=partial(checks.choice, options=("safe", "paper")),
            eta_B=checks.rate,
            c_1=checks.rate,
            eta_sigma=checks.rate,
            distance_weights=checks.boolean,
            store_draws=checks.boolean,
        )


Settings = CRFMNES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    safe: bool
    c_c: float
    eta_B: float | None  # None: fitted, by lambda_F
    c_1: float  # when every candidate is feasible
    eta_sigma: float | None  # None: by phase and lambda_F
    least_eta_sigma: float  # in the stagnation phase
    phase: phases.PhaseParams
    refresh_every: int = 0
    store_draws: bool = True  # keep the draws from ask to tell; else make them again
    patience: int = 1


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    D: Array
    v: Array
    p_sigma: Array
    p_c: Array


def params(dim: int, popsize: int, settings: CRFMNES = CRFMNES()) -> Params:
    """The constants of section III-C, and those of section II that it refers to."""
    phase = phases.phase_params(dim, popsize)  # eqs. (2), (4) and (5)
    mu_eff = phase.mu_eff
    safe = settings.variant == "safe"
    # VD-CMA has the lower limit 1/2 for this factor. The paper drops it, so that for d < 5 c_1 is
    # negative and the covariance is driven away from its own path.
    factor = max((dim - 5) / 6, 0.5) if safe else (dim - 5) / 6
    c_1 = factor * 2 / ((dim + 1.3) ** 2 + mu_eff)  # eqs. (29) and (30)
    return Params(
        dim=dim,
        popsize=popsize,
        safe=safe,
        # Line 12 uses c_c without giving a value; this is eq. (56) of the CMA-ES tutorial.
        c_c=p_c_rate(dim, mu_eff),
        eta_B=settings.eta_B,
        c_1=c_1 if settings.c_1 is None else settings.c_1,
        eta_sigma=settings.eta_sigma,
        least_eta_sigma=_least_eta_sigma(dim, mu_eff) if safe else 0.0,
        store_draws=settings.store_draws,
        phase=phase if settings.distance_weights else phase._replace(alpha=0.0),
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; ``z`` of shape (d,) is the draw that v starts from if none is given."""
    return first_state(array_namespace(mean), params, mean, sigma, shape, z)


def first_state(
    xp: Namespace, params: Params, mean: Array, sigma: Array, shape: Shape, z: Array
) -> State:
    """The same for a given namespace."""
    D, v = vd.initial(xp, params.dim, shape, z)
    scale = _volume_to_move(xp, params.dim, shape, D, v)
    return State(mean, sigma * scale, D / scale, v, xp.zeros_like(mean), xp.zeros_like(mean))


def _volume_to_move(xp: Namespace, dim: int, shape: Shape, D: Array, v: Array) -> Array:
    """The factor that belongs to sigma and not to a given D; 1 if D is not given (line 1).

    The first update would drop this factor (lines 16 and 17), and all deviations would change by
    it. A factor near 1 is left in D: it is that of a shape of this method, up to rounding.
    """
    log = xp.mean(xp.log(D), axis=VARIABLES)
    if shape.v is not None:
        log = log + xp.log1p(norm2(xp, v)) / (2 * dim)
    keep = xp.all(D == 1, axis=VARIABLES) | (xp.abs(log) < 1e-3)
    return xp.exp(xp.where(keep, xp.zeros_like(log), log))


transform = vd.transform  # lines 4 to 6
draws_of = vd.draws_of
ask = vd.mirrored_ask  # lines 3 to 7


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    return next_state(array_namespace(z), params, state, z, f)


def next_state(xp: Namespace, params: Params, state: State, z: Array, f: Array) -> State:
    """The same for a given namespace."""
    estimate = estimated(xp, params, state, z, f)
    gradient = vd.natural_gradient(xp, estimate.direction, estimate.moments)
    return moved(xp, params, state, f, estimate, gradient)


class Estimate(NamedTuple):
    """What a generation contributes to the next state, before the natural gradient of v and D."""

    selection: phases.Selection
    direction: vd.Direction  # of the old v
    moments: vd.Moments  # of the samples, with weights eta_B w, and of the path p_c, with c_1
    gy: Array  # sum w (x - m) / sigma
    p_c: Array


def estimated(xp: Namespace, params: Params, state: State, z: Array, f: Array) -> Estimate:
    """Lines 8 to 12: rank and weight the candidates, update both paths, and take the sums.

    Lines 14 and 15 add eta_B sum_i w_i grad(x_i) and c_1 grad(m + sigma p_c) for the natural
    gradient grad of the log-likelihood. The path is one more sample, of weight c_1, and the
    gradient is linear in the samples, so it needs only the sums (moments) over all samples.
    """
    direction = vd.direction_of(xp, state.v)
    a, norm_z2 = vd.row_products(xp, direction, z)
    selection = phases.select(  # lines 8 to 10
        xp, params.phase, state.p_sigma, z, norm_z2, f, share_ties=params.safe
    )
    lam_F = selection.lam_F
    eta_B = _eta_B(xp, params, lam_F, selection.phase, direction.norm_v)  # eq. (31)
    # gz = sum_i w_i z_i gives gy = sum_i w_i (x_i - m) / sigma, which lines 12 and 13 use. The
    # moments are the sums of lines 14 and 15.
    gz, moments = vd.sample_moments(xp, direction, z, a, selection.odd, eta_B * selection.even)
    gy = state.D * vd.stretch(xp, direction, gz)  # lines 12 and 13
    p_c = next_path(state.p_c, params.c_c, params.phase.mu_eff, gy)  # line 12
    # Eq. (29). The factor lambda_F / lambda is not in the paper but in the authors' code.
    c_1 = params.c_1 * lam_F / params.popsize
    # The weights w sum to 0 up to rounding, so we set the sum to exactly 0.
    moments = moments._replace(total=xp.zeros_like(state.sigma))
    path = vd.unstretch(xp, direction, p_c / state.D)
    return Estimate(selection, direction, vd.add_sample(direction, moments, c_1, *path), gy, p_c)


def moved(
    xp: Namespace, params: Params, state: State, f: Array, estimate: Estimate, gradient: vd.Gradient
) -> State:
    """Lines 13 to 19: the next state, from the natural gradient of v and D."""
    mean, sigma, D, v, _, _ = state
    selection = estimate.selection
    norm_v = estimate.direction.norm_v
    D_new, v_new = next_axes(xp, D, v, norm_v, gradient, safe=params.safe)  # lines 14 and 15
    # Lines 16 and 17: det(D (I + v v^T) D) = 1, so sigma alone carries the volume.
    log_D = xp.mean(xp.log(D_new), axis=VARIABLES)
    D_new = D_new / xp.exp(log_D + xp.log1p(norm2(xp, v_new)) / (2 * params.dim))
    rate = _eta_sigma(xp, params, selection.lam_F, selection.phase)  # line 11
    new = State(
        mean + sigma * estimate.gy,  # line 13
        sigma * xp.exp(rate * selection.G_sigma / 2),  # lines 18 and 19
        D_new,
        v_new,
        selection.p_sigma,
        estimate.p_c,
    )
    return unless_flat(xp, f, state, new) if params.safe else new


refresh = resized = unchanged
fixed = as_they_are
next_popsize = same_popsize
shape = vd.shape


def summary(params: Params, state: State) -> Summary:
    """What the history and the stopping rules read."""
    return summarised(array_namespace(state.mean), params, state)


def summarised(xp: Namespace, params: Params, state: State) -> Summary:
    """The same for a given namespace."""
    phase = phases.phase_of(xp, params.phase, state.p_sigma)
    return vd.summarised(xp, state)._replace(phase=phase)


def tables(params: Params) -> tuple[dict[str, float], dict[str, NDArray[np.float64]]]:
    """The constants and rates that the compiled ask and tell need, by name (native/records.hpp).

    Each rate is an array with an entry for each number of feasible candidates from 0 to lambda, so
    that the formulas of the learning rates stand here alone.
    """
    lam_F = np.arange(params.popsize + 1.0)
    phase = params.phase
    movement, stagnation, convergence = (
        _eta_sigma(np, params, lam_F, np.full_like(lam_F, number))
        for number in (phases.MOVEMENT, phases.STAGNATION, phases.CONVERGENCE)
    )
    constants = {
        "chi_n": phase.chi_n,
        "c_sigma": phase.c_sigma,
        "scale_sigma": path_scale(phase.c_sigma, phase.mu_eff),
        "c_c": params.c_c,
        "scale_c": path_scale(params.c_c, phase.mu_eff),
        "long_v": _LONG_V,
        "largest_step": LARGEST_STEP,
        "D_limit": D_LIMIT,
        "v_min": V_LIMITS[0],
        "v_max": V_LIMITS[1],
    }
    rates = {
        "alpha": phases.distance_strength(np, phase, lam_F),
        "eta_B": _plain_eta_B(np, params, lam_F),
        "eta_movement": movement,
        "eta_stagnation": stagnation,
        "eta_convergence": convergence,
        "c_1": params.c_1 * lam_F / params.popsize,
    }
    return constants, rates


def _eta_sigma(xp: Namespace, params: Params, lam_F: Array, phase: Array) -> Array:
    """The learning rate of sigma (line 11): the user's, or by phase."""
    if params.eta_sigma is not None:
        return xp.full_like(lam_F, params.eta_sigma)
    return phases.eta_sigma(xp, params.phase, phase, lam_F, params.least_eta_sigma)


def _least_eta_sigma(dim: int, mu_eff: float) -> float:
    """The lower limit of sigma's learning rate in the stagnation phase.

    On the sphere with mu_eff << d both the progress of the mean and the signal in G_sigma are
    proportional to the same selection intensity. Sigma settles at (2 - eta_sigma) times its
    optimum, where the progress is 1 - (1 - eta_sigma)^2 of the best. The paper's rate goes to
    tanh(0.7) = 0.6 for large d, which loses 16 % of the progress (measured: 15 % at d = 1000). It
    was fitted where mu_eff is not small against d; there, up to d = 200 at the default popsize,
    the paper's rate stays in force.
    """
    return math.tanh(dim / (64 * mu_eff))


_LONG_V = 20.0  # 3 and 8 do the same within 1 % on cigars, but slow D down on Rosenbrock's function


def _eta_B(xp: Namespace, params: Params, lam_F: Array, phase: Array, norm_v: Array) -> Array:
    """The learning rate of v and D, lower where v is long.

    In every generation chance moves the long axis u = D v sideways by some
    eta_B sqrt(d / mu_eff) standard deviations of the short axes, and little brings it back. While v
    is short this costs nothing. A long v multiplies the error by the length of the steps along u,
    and a third of the rate of convergence is lost (cigar, d = 200). So the samples change v and D
    more slowly once v is long. The movement phase, in which v has yet to grow, keeps the full
    rate, and so does the path p_c, which averages the noise away.
    """
    rate = _plain_eta_B(xp, params, lam_F)
    if not params.safe:
        return rate
    settled = rate * at_most(xp, _LONG_V / norm_v, 1.0)
    return xp.where(phase == phases.MOVEMENT, rate, settled)


def _plain_eta_B(xp: Namespace, params: Params, lam_F: Array) -> Array:
    """The learning rate of v and D before any reduction: the user's, or the fitted one."""
    if params.eta_B is not None:
        return xp.full_like(lam_F, params.eta_B)
    return fitted_eta_B(xp, params.dim, lam_F)


def fitted_eta_B(xp: Namespace, dim: int, lam_F: Array) -> Array:
    """The learning rate of v and D that the authors fitted: eq. (31)."""
    return xp.tanh((at_most(xp, 0.02 * lam_F, 3 * math.log(dim)) + 5) / (0.23 * dim + 25))
