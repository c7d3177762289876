"""CR-FM-NES: cost-reduced fast moving natural evolution strategy.

M. Nomura, I. Ono: "Fast moving natural evolution strategy for high-dimensional problems",
CEC 2022, arXiv 2201.11422. Equation and step numbers below are those of its section III.

Covariance sigma^2 D (I + v v^T) D: separable scaling plus one free direction, O(d) time a
candidate and O(d) memory. The first choice from some ten variables to millions of them.

The default variant departs from the paper where it breaks, or falls behind VD-CMA on functions that
its covariance is made for; ``variant="paper"`` is the published method. The arguments stand at
`_move`, `_eta_B`, `_least_eta_sigma` and in `params` (c_1), the evidence in docs/safe-variant.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _phases as phases
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms._shared import (
    Report,
    Shape,
    at_least,
    at_most,
    check_rates,
    diagonal_of,
    effective_size,
    even_default_popsize,
    feasible_count,
    nes_weights,
    norm2,
    norm_of_normal,
    pair_sums,
    path_scale,
    unchanged,
    unless_flat,
    weights_by_candidate,
)

LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = True  # z has lambda/2 rows; the other half of the population is mirrored
default_popsize = even_default_popsize


@dataclass(frozen=True, kw_only=True)
class CRFMNES:
    """Settings of CR-FM-NES.

    Parameters
    ----------
    variant : {"safe", "paper"}
        "safe" is the paper's method with a step in v and D that cannot break, and with ties that
        share their weights; "paper" is the authors' published method, with a stable sort.
    D : array_like of shape (d,), optional
        Initial scale of each coordinate beside sigma0. Ones by default.
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
        if self.variant not in ("safe", "paper"):
            raise ValueError(f"variant: expected 'safe' or 'paper', got {self.variant!r}")
        check_rates(eta_B=self.eta_B, c_1=self.c_1, eta_sigma=self.eta_sigma)
        for name in ("distance_weights", "store_draws"):
            if not isinstance(value := getattr(self, name), bool):
                raise TypeError(f"{name}: expected True or False, got {value!r}")


Settings = CRFMNES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    safe: bool
    w_hat: NDArray[np.float64]  # positive rank weights, best first, sum 1
    mu_eff: float
    c_sigma: float
    c_c: float
    eta_B: float | None  # None: fitted, by lambda_F
    c_1: float  # when every candidate is feasible
    eta_sigma: float | None  # None: by phase and lambda_F
    least_eta_sigma: float  # in the stagnation phase
    phase: phases.PhaseParams
    refresh_every: int = 0
    store_draws: bool = True  # keep the draws from ask to tell; else make them again


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    D: Array
    v: Array
    p_sigma: Array
    p_c: Array


def params(dim: int, popsize: int, settings: CRFMNES = CRFMNES()) -> Params:
    """The constants of section III-C."""
    w_hat = nes_weights(popsize)
    mu_eff = effective_size(w_hat)
    safe = settings.variant == "safe"
    # VD-CMA floors this factor at 1/2; the paper drops the floor, and with it c_1 < 0 and a
    # covariance driven away from its own path for d < 5.
    factor = max((dim - 5) / 6, 0.5) if safe else (dim - 5) / 6
    c_1 = factor * 2 / ((dim + 1.3) ** 2 + mu_eff)
    phase = phases.phase_params(dim, popsize, norm_of_normal(dim))
    return Params(
        dim=dim,
        popsize=popsize,
        safe=safe,
        w_hat=w_hat,
        mu_eff=mu_eff,
        c_sigma=(mu_eff + 2) / (dim + mu_eff + 5),
        c_c=(4 + mu_eff / dim) / (dim + 4 + 2 * mu_eff / dim),
        eta_B=settings.eta_B,
        c_1=c_1 if settings.c_1 is None else settings.c_1,
        eta_sigma=settings.eta_sigma,
        least_eta_sigma=_least_eta_sigma(dim, mu_eff) if safe else 0.0,
        store_draws=settings.store_draws,
        phase=phase if settings.distance_weights else phase._replace(alpha=0.0),
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; ``z`` of shape (d,) is the draw that v starts from when none is given."""
    xp = array_namespace(mean)
    v = shape.v if shape.v is not None else z / math.sqrt(params.dim)
    D = shape.D if shape.C is None else diagonal_of(xp, shape)
    return State(mean, sigma, D, v, xp.zeros_like(mean), xp.zeros_like(mean))


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma D (I + v v^T)^(1/2) z  (steps 1 and 2)."""
    xp = array_namespace(z)
    return vd.candidates(xp, vd.direction(xp, state.v), None, state.sigma * state.D, z)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates from draws z of shape (lambda/2, d): rows m + sigma D y, then m - sigma D y."""
    xp = array_namespace(z)
    of, scale = vd.direction(xp, state.v), state.sigma * state.D
    return vd.candidates(xp, of, state.mean, scale, z, mirrored=True)


def tell(
    params: Params,
    state: State,
    z: Array,
    f: Array,
    *,
    natural_gradient: Callable[..., vd.Gradient] = vd.natural_gradient,
) -> State:
    """The next state, from the draws of `ask` and the values of its candidates.

    Another ``natural_gradient`` than that of the model is for experiments with the method.
    """
    xp = array_namespace(z)
    mean, sigma, D, v, p_sigma, p_c = state
    phase_params, lam = params.phase, params.popsize

    # === Weights (steps 3 to 6) ===
    of = vd.direction(xp, v)
    a, norm_z2 = vd.row_products(xp, of, z)
    w_hat = weights_by_candidate(
        xp,
        constant(xp, params.w_hat, z),
        f,
        xp.concat([norm_z2, norm_z2]),
        share_ties=params.safe,
    )
    lam_F = feasible_count(xp, f, z)
    odd, _ = pair_sums(w_hat)  # the -1/lambda of w_rank cancels in sums of odd functions
    p_sigma = (1 - params.c_sigma) * p_sigma + path_scale(params.c_sigma, params.mu_eff) * (odd @ z)
    phase = phases.phase_of(xp, phase_params, xp.sqrt(norm2(xp, p_sigma)))
    norm_z = xp.sqrt(norm_z2)
    w_dist = phases.distance_weights(xp, phase_params, w_hat, xp.concat([norm_z, norm_z]), lam_F)
    w = xp.where(phase == phases.MOVEMENT, w_dist, w_hat) - 1 / lam
    odd, even = pair_sums(w)

    # === Mean and path (steps 7 and 8) ===
    eta_B = _eta_B(xp, params, lam_F, phase, of.norm_v)
    gz, sums = vd.sample_moments(xp, of, z, a, odd, eta_B * even)
    gy = D * vd.stretch(xp, of, gz)  # sum w (x - m) / sigma
    p_c = (1 - params.c_c) * p_c + path_scale(params.c_c, params.mu_eff) * gy

    # === Shape (steps 9 and 10): the path p_c is one more sample, of weight c_1 ===
    c_1 = params.c_1 * lam_F / lam
    sums = sums._replace(total=xp.zeros_like(sigma))  # the weights sum to 0, but for rounding
    sums = vd.add_sample(of, sums, c_1, *vd.unstretch(xp, of, p_c / D))
    gradient = natural_gradient(xp, of, sums)
    D_new, v_new = _move(xp, params, D, v, of.norm_v, gradient)
    D_new = D_new / xp.exp(  # det(D (I + v v^T) D) = 1: sigma alone carries the volume
        xp.mean(xp.log(D_new)) + xp.log1p(norm2(xp, v_new)) / (2 * params.dim)
    )

    # === Step size (step 11) ===
    G_sigma = xp.sum(even * norm_z2) / params.dim
    rate = _eta_sigma(xp, params, lam_F, phase)
    new = State(mean + sigma * gy, sigma * xp.exp(rate * G_sigma / 2), D_new, v_new, p_sigma, p_c)
    return unless_flat(xp, f, state, new) if params.safe else new


refresh = unchanged


def shape(params: Params, state: State) -> Shape:
    """What a warm start takes over beside the mean and sigma."""
    return Shape(state.D, state.v)


def report(params: Params, state: State) -> Report:
    """What the history and the stopping rules look at."""
    xp = array_namespace(state.mean)
    sigma, D, v = state.sigma, state.D, state.v
    return Report(
        sigma=sigma,
        deviations=vd.deviations(xp, sigma, D, v),
        axis_ratio=vd.axis_ratio_bound(xp, D, v),
        norm_v=xp.sqrt(norm2(xp, v)),
        phase=phases.phase_of(xp, params.phase, xp.sqrt(norm2(xp, state.p_sigma))),
    )


def tables(params: Params) -> tuple[tuple[float, ...], NDArray[np.float64]]:
    """What the compiled ask and tell need of the constants.

    Numbers, and a table with a row for each number of feasible candidates from 0 to lambda: so the
    formulas of the learning rates stand here alone.
    """
    lam_F = np.arange(params.popsize + 1.0)
    phase = params.phase
    rates = (
        phases.distance_strength(np, phase, lam_F),
        _plain_eta_B(np, params, lam_F),
        *(
            _eta_sigma(np, params, lam_F, np.full_like(lam_F, of))
            for of in (phases.MOVEMENT, phases.STAGNATION, phases.CONVERGENCE)
        ),
        params.c_1 * lam_F / params.popsize,
    )
    numbers = (
        phase.chi_n,
        params.c_sigma,
        path_scale(params.c_sigma, params.mu_eff),
        params.c_c,
        path_scale(params.c_c, params.mu_eff),
        _LONG_V,
        _LARGEST_STEP,
        _D_LIMIT,
        *_V_LIMITS,
    )
    return numbers, np.stack(rates, axis=1)


def _eta_sigma(xp: Namespace, params: Params, lam_F: Array, phase: Array) -> Array:
    if params.eta_sigma is not None:
        return xp.full_like(lam_F, params.eta_sigma)
    return phases.eta_sigma(xp, params.phase, phase, lam_F, params.least_eta_sigma)


def _least_eta_sigma(dim: int, mu_eff: float) -> float:
    """What sigma's learning rate must not fall below in the stagnation phase.

    On the sphere with mu_eff << d both the progress of the mean and the signal in G_sigma are
    proportional to the same selection intensity, and sigma settles at (2 - eta_sigma) times its
    optimum, where the progress is 1 - (1 - eta_sigma)^2 of the best. The paper's rate goes to
    tanh(0.7) = 0.6 for large d, 16 % lost (measured: 15 % at d = 1000). It was fitted where mu_eff
    is no small part of d; there, up to d = 200 at the default popsize, it stays in force.
    """
    return math.tanh(dim / (64 * mu_eff))


_LONG_V = 20.0  # 3 and 8 do the same within 1 % on cigars, but slow D down on Rosenbrock's function


def _eta_B(xp: Namespace, params: Params, lam_F: Array, phase: Array, norm_v: Array) -> Array:
    """The learning rate of v and D, lower where v is long.

    In every generation chance moves the long axis u = D v sideways by some
    eta_B sqrt(d / mu_eff) standard deviations of the short axes, and little brings it back. While v
    is short this costs nothing. A long v multiplies it by the length of the steps along u, and a
    third of the rate of convergence is lost (cigar, d = 200). So the samples teach more slowly once
    v is long; not in the movement phase, in which v has yet to grow, and not through the path p_c,
    which averages the noise away before it teaches.
    """
    rate = _plain_eta_B(xp, params, lam_F)
    if not params.safe:
        return rate
    settled = rate * at_most(xp, _LONG_V / norm_v, 1.0)
    return xp.where(phase == phases.MOVEMENT, rate, settled)


def _plain_eta_B(xp: Namespace, params: Params, lam_F: Array) -> Array:
    """The same whatever the phase and the length of v."""
    if params.eta_B is not None:
        return xp.full_like(lam_F, params.eta_B)
    return fitted_eta_B(xp, params.dim, lam_F)


def fitted_eta_B(xp: Namespace, dim: int, lam_F: Array) -> Array:
    """The learning rate of v and D that the authors fitted (section III-C)."""
    return xp.tanh((at_most(xp, 0.02 * lam_F, 3 * math.log(dim)) + 5) / (0.23 * dim + 25))


# A step may take away at most this share of any D_j, or of |v|: VD-CMA's guard. On the paper's
# functions it acts in less than one generation of a hundred.
_LARGEST_STEP = 0.7
# Beyond these neither D nor v means anything beside the rest of the covariance, in either dtype.
_D_LIMIT = 1e15
_V_LIMITS = (1e-4, 1e7)


def _move(
    xp: Namespace, params: Params, D: Array, v: Array, norm_v: Array, gradient: vd.Gradient
) -> tuple[Array, Array]:
    """D and v after the natural-gradient step.

    The paper adds the step to v and to D. To first order that is right; to second order it is
    not, once v is long. The gradient of v holds the term -v*s, which undoes what D (1 + s) does
    to the long axis u = D v; the product D (1 + s) v (1 - s) leaves -D v s^2, a turn of u by
    |v| s^2 in units of the short axes. With |v| = 1000, as a cigar of condition 1e6 asks for,
    and s = 0.05 that is a step of 2.5 standard deviations out of the valley in every generation:
    D and v break up, and the method ends in NaN.

    So the step is taken where the model is nearly flat: covariance D^2 + u u^T, coordinates D
    and u. The same natural gradient, the same first order, and no second-order term left that
    grows with v.
    """
    s = gradient.log_D
    if not params.safe:
        return D * (1 + s), v + gradient.v
    size = xp.maximum(xp.max(xp.abs(s)), xp.sqrt(norm2(xp, gradient.u)) / norm_v)
    fraction = 1 / at_least(xp, size / _LARGEST_STEP, 1.0)
    growth = 1 + fraction * s
    D = xp.clip(D * growth, 1 / _D_LIMIT, _D_LIMIT)
    v = (v + fraction * gradient.u) / growth
    length = xp.sqrt(norm2(xp, v))
    return D, v * (xp.clip(length, *_V_LIMITS) / length)
