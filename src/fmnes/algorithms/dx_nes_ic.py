"""DX-NES-IC: distance-weighted exponential natural evolution strategy, implicit constraints.

M. Nomura, I. Ono: "Distance-weighted exponential natural evolution strategy for implicitly
constrained black-box function optimization", CEC 2021. xNES with mirrored samples, search phases
(see _phases.py), and an extra expansion of the axes that grow while the mean is moving.

Covariance sigma^2 B B^T with a full matrix B, det B = 1. O(d^2) time a candidate, one symmetric
eigendecomposition a generation, O(d^2) memory: for up to some hundred variables.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms import _phases as phases
from fmnes.algorithms._shared import (
    Report,
    Shape,
    at_least,
    check_rates,
    effective_size,
    even_default_popsize,
    feasible_count,
    mirrored,
    nes_weights,
    norm2,
    norm_of_normal,
    pair_sums,
    path_scale,
    unless_flat,
    weights_by_candidate,
)

LINEAR = False
ANTITHETIC = True  # z has lambda/2 rows; the other half of the population is mirrored
default_popsize = even_default_popsize


@dataclass(frozen=True, kw_only=True)
class DXNESIC:
    """Settings of DX-NES-IC.

    Parameters
    ----------
    C : array_like of shape (d, d), optional
        Initial shape of the covariance beside sigma0. The identity by default.
    eta_B : float, optional
        Learning rate of the shape in all phases. By default the paper's, which depends on the
        phase and on the number of feasible candidates.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> method = fmnes.DXNESIC(eta_B=0.05)
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    C: ArrayLike | None = None
    eta_B: float | None = None

    def __post_init__(self) -> None:
        check_rates(eta_B=self.eta_B)


Settings = DXNESIC


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    refresh_every: int
    w_hat: NDArray[np.float64]  # positive rank weights, best first, sum 1
    mu_eff: float
    c_sigma: float
    c_gamma: float
    d_gamma: float
    eta_B: float | None  # None: by phase and lambda_F
    phase: phases.PhaseParams
    store_draws: bool = True  # keep the draws from ask to tell; else make them again


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    B: Array
    p_sigma: Array
    gamma: Array  # expansion rate, >= 1
    axis_ratio: Array  # longest over shortest axis of the last population's distribution


def params(dim: int, popsize: int, settings: DXNESIC = DXNESIC()) -> Params:
    """The constants of the paper."""
    w_hat = nes_weights(popsize)
    mu_eff = effective_size(w_hat)
    return Params(
        dim=dim,
        popsize=popsize,
        refresh_every=0,
        w_hat=w_hat,
        mu_eff=mu_eff,
        c_sigma=(mu_eff + 2) / (dim + mu_eff + 5),
        c_gamma=1 / (3 * max(dim - 1, 1)),  # one variable has no shape, and gamma stays 1
        d_gamma=min(1.0, dim / popsize),
        eta_B=settings.eta_B,
        phase=phases.phase_params(dim, popsize, norm_of_normal(dim)),
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state."""
    xp = array_namespace(mean)
    B, volume = full.normalised_root(xp, shape)
    return State(
        mean,
        sigma * volume,
        B,
        p_sigma=xp.zeros_like(mean),
        gamma=xp.ones_like(sigma),
        axis_ratio=full.axis_ratio(xp, B),
    )


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma B z."""
    return state.sigma * (z @ state.B.T)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates from draws z of shape (lambda/2, d): rows m + sigma B z, then m - sigma B z."""
    return mirrored(array_namespace(z), state.mean, transform(params, state, z))


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    mean, sigma, B, p_sigma, gamma, _ = state
    step = search_step(xp, params, B, p_sigma, gamma, z, f)
    B_new = full.stretched(xp, full.stretched(xp, B, step.expansion), step.gradient)
    new = State(
        mean + sigma * (B @ step.G_delta),
        sigma * step.growth,
        xp.where(full.bounded(xp, B_new), B_new, B),
        step.p_sigma,
        step.gamma,
        step.axis_ratio,
    )
    return unless_flat(xp, f, state, new)


class Step(NamedTuple):
    """What a generation says, before B takes it over; FM-NES starts from it too."""

    p_sigma: Array
    phase: Array
    lam_F: Array
    G_delta: Array
    growth: Array  # factor of sigma
    gradient: full.Stretch  # exp(eta_B G_B / 2)
    expansion: full.Stretch  # B P is the paper's Q B, up to the volume that growth carries
    gamma: Array
    axis_ratio: Array


def search_step(
    xp: Namespace, params: Params, B: Array, p_sigma: Array, gamma: Array, z: Array, f: Array
) -> Step:
    """Weights by phase, natural gradient and expansion."""
    # === Weights ===
    norm_z2 = norm2(xp, z)
    by_rank = constant(xp, params.w_hat, z)
    w_hat = weights_by_candidate(xp, by_rank, f, xp.concat([norm_z2, norm_z2]))
    lam_F = feasible_count(xp, f, z)
    odd, _ = pair_sums(w_hat)  # the -1/lambda of w_rank cancels in sums of odd functions
    p_sigma = (1 - params.c_sigma) * p_sigma + path_scale(params.c_sigma, params.mu_eff) * (odd @ z)
    phase = phases.phase_of(xp, params.phase, xp.sqrt(norm2(xp, p_sigma)))
    norm_z = xp.sqrt(norm_z2)
    w_dist = phases.distance_weights(xp, params.phase, w_hat, xp.concat([norm_z, norm_z]), lam_F)
    moving = phase == phases.MOVEMENT
    odd, even = pair_sums(xp.where(moving, w_dist, w_hat) - 1 / params.popsize)

    # === Natural gradient ===
    G_sigma = xp.sum(even * norm_z2) / params.dim  # tr(G_M) / d
    G_M = full.second_moment(xp, even, z)
    gradient = full.Stretch(G_M.axes, _eta_B(xp, params, phase, lam_F) / 2 * G_M.values)
    growth = xp.exp(phases.eta_sigma(xp, params.phase, phase, lam_F) / 2 * G_sigma)

    # === Expansion ===
    V, axis_ratio = full.right_axes(xp, B)
    tau = _second_moment_change(xp, V, gradient)
    gamma = (1 - params.c_gamma) * gamma + params.c_gamma * xp.sqrt(
        1 + params.d_gamma * xp.max(tau)
    )
    gamma = at_least(xp, gamma, 1.0)
    log_Q = xp.where(moving & (tau > 0), xp.log(gamma), 0.0)
    growth = growth * xp.exp(xp.sum(log_Q) / params.dim)  # det(Q)^(1/d)
    return Step(
        p_sigma, phase, lam_F, odd @ z, growth, gradient, full.Stretch(V, log_Q), gamma, axis_ratio
    )


def refresh(params: Params, state: State) -> State:
    """Nothing: each generation looks at the axes itself."""
    return state


def shape(params: Params, state: State) -> Shape:
    """What a warm start takes over beside the mean and sigma."""
    return full.shape_of(array_namespace(state.B), state.B)


def report(params: Params, state: State) -> Report:
    """What the history and the stopping rules look at."""
    xp = array_namespace(state.mean)
    phase = phases.phase_of(xp, params.phase, xp.sqrt(norm2(xp, state.p_sigma)))
    return Report(
        sigma=state.sigma,
        deviations=full.deviations(xp, state.sigma, state.B),
        axis_ratio=state.axis_ratio,
        norm_v=xp.full_like(state.sigma, xp.nan),
        phase=phase,
    )


def _eta_B(xp: Namespace, params: Params, phase: Array, lam_F: Array) -> Array:
    """The learning rate of the shape in each phase; lam_F feasible candidates."""
    if params.eta_B is not None:
        return xp.full_like(lam_F, params.eta_B)
    return published_eta_B(xp, params.dim, phase, lam_F)


def published_eta_B(xp: Namespace, dim: int, phase: Array, lam_F: Array) -> Array:
    """The learning rate of the shape that the authors recommend, and FM-NES took over."""
    rate = dim * xp.tanh(0.02 * lam_F) / (47 * dim**2 + 6400)
    settled = xp.where(phase == phases.STAGNATION, 168 * rate, 12 * rate)
    return xp.where(phase == phases.MOVEMENT, 180 * rate, settled)


def _second_moment_change(xp: Namespace, V: Array, gradient: full.Stretch) -> Array:
    """tau_i: relative change of the second moment along each axis e_i of the old B B^T.

    tau_i = e_i^T B' B'^T e_i / (e_i^T B B^T e_i) - 1 with B' = B E and B^T e_i = |B^T e_i| v_i is
    v_i^T E^2 v_i - 1: the lengths of the axes cancel.
    """
    log_E2 = 2 * gradient.log
    grown = (V.T @ gradient.axes) ** 2 @ xp.expm1(log_E2)
    volume = xp.sum(log_E2) / V.shape[0]
    return xp.exp(-volume) * grown + xp.expm1(-volume)
