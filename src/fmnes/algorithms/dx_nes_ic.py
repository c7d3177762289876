"""DX-NES-IC: distance-weighted exponential natural evolution strategy, implicit constraints.

M. Nomura, I. Ono: "Distance-weighted exponential natural evolution strategy for implicitly
constrained black-box function optimization", CEC 2021. xNES with mirrored samples, search phases
(see _phases.py), and an extra expansion of the axes that grow while the mean is moving.

Step and equation numbers are those of section II of arXiv 2201.11422, which restates the method
as the part of FM-NES without the rank-one update (eq. 12 and step 11). That text leaves the rates
eta_B, c_gamma and d_gamma to the CEC 2021 paper; here they are as in the public implementations of
the authors (see docs/methods/dx-nes-ic.md).

Covariance sigma^2 B B^T with a full matrix B, det B = 1. O(d^2) time for each candidate, one
symmetric eigendecomposition in each generation, O(d^2) memory: for up to some hundred variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms import _phases as phases
from fmnes.algorithms._records import (
    Shape,
    Summary,
    as_they_are,
    same_popsize,
    unchanged,
    unless_flat,
)
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import at_least, choose, norm2
from fmnes.algorithms._weights import even_default_popsize
from fmnes.kernels import blas

COVARIANCE = "sigma^2 B B^T"
LINEAR = False
ANTITHETIC = True  # z has lambda/2 rows; the other half of the population is mirrored
GROWING: dict[str, tuple[str, ...]] = {}
default_popsize = even_default_popsize  # eq. (32) of arXiv 2201.11422


@dataclass(frozen=True, kw_only=True)
class DXNESIC(MethodSettings):
    """Settings of DX-NES-IC.

    Parameters
    ----------
    C : array_like of shape (d, d), optional
        Initial shape of the covariance, without sigma0. The identity by default.
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
        checks.fields(self, eta_B=checks.rate)


Settings = DXNESIC


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    c_gamma: float
    d_gamma: float
    eta_B: float | None  # None: by phase and lambda_F
    phase: phases.PhaseParams
    refresh_every: int = 0
    store_draws: bool = True  # keep the draws from ask to tell; else make them again
    patience: int = 1


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
    return Params(
        dim=dim,
        popsize=popsize,
        # c_gamma and d_gamma of eq. (17), which gives no values: see the top of this file. With one
        # variable there is no shape to learn, and gamma stays 1.
        c_gamma=1 / (3 * max(dim - 1, 1)),
        d_gamma=min(1.0, dim / popsize),
        eta_B=settings.eta_B,
        phase=phases.phase_params(dim, popsize),  # eqs. (2), (4) and (5)
    )


@blas.one_thread
def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state (step 1); it does not need the draw z."""
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


transform = full.transform
draws_of = full.draws_of
ask = full.mirrored_ask  # step 2


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    mean, sigma, B, p_sigma, gamma, _ = state
    step = search_step(xp, params, B, p_sigma, gamma, z, f)
    B_new = full.stretched(xp, full.stretched(xp, B, step.expansion), step.gradient)
    new = State(
        mean + sigma * (B @ step.G_delta),  # eq. (10)
        sigma * step.growth,  # eqs. (9) and (15)
        choose(xp, full.is_bounded(xp, B_new), B_new, B),  # eqs. (11) and (14)
        step.p_sigma,
        step.gamma,
        step.axis_ratio,
    )
    return unless_flat(xp, f, state, new)


class SearchStep(NamedTuple):
    """The changes that a generation makes, before they are applied; FM-NES uses them too."""

    p_sigma: Array
    phase: Array
    lam_F: Array
    G_delta: Array
    growth: Array  # factor of sigma
    gradient: full.Stretch  # exp(eta_B G_B / 2)
    expansion: full.Stretch  # the P of Q B = B P, without the volume, which growth carries
    gamma: Array
    axis_ratio: Array


def search_step(
    xp: Namespace, params: Params, B: Array, p_sigma: Array, gamma: Array, z: Array, f: Array
) -> SearchStep:
    """Steps 3 to 10: weights by phase, natural gradient and expansion.

    The paper updates B by eq. (11), then compares B' = B exp(eta_B G_B / 2) with B along the
    eigenvectors e_i of B B^T, and expands:

        tau_i = e_i^T (B' B'^T - B B^T) e_i / (e_i^T B B^T e_i)                          eq. (16)
        gamma <- max((1 - c_gamma) gamma + c_gamma sqrt(1 + d_gamma max_i tau_i), 1)     eq. (17)
        Q = I + (gamma - 1) sum_i 1[tau_i > 0] e_i e_i^T,   in the movement phase        eq. (13)
        B' <- Q B' / det(Q)^(1/d),   sigma <- sigma det(Q)^(1/d)                  eqs. (14), (15)

    We multiply B from the right only. With the eigenvectors v_i of B^T B, for which
    B v_i = |B^T e_i| e_i, we have Q B = B P for P = I + (gamma - 1) sum_i 1[tau_i > 0] v_i v_i^T.
    So Q B' = B P exp(eta_B G_B / 2), and neither B' nor any inverse has to be formed here.
    """
    selection = phases.select(xp, params.phase, p_sigma, z, norm2(xp, z), f)  # steps 3 to 6
    phase, lam_F = selection.phase, selection.lam_F
    eta_B = _eta_B(xp, params, phase, lam_F)  # step 7
    gradient = full.natural_step(xp, eta_B, selection.even, z)  # eqs. (8) and (11)
    eta_sigma = phases.eta_sigma(xp, params.phase, phase, lam_F)  # step 7
    growth = xp.exp(eta_sigma / 2 * selection.G_sigma)  # eq. (9)
    G_delta = selection.odd @ z  # eq. (8)

    V, axis_ratio = full.right_axes(xp, B)
    tau = _second_moment_change(xp, V, gradient)  # eq. (16)
    root = xp.sqrt(1 + params.d_gamma * xp.max(tau))  # eq. (18)
    gamma = (1 - params.c_gamma) * gamma + params.c_gamma * root  # eq. (17)
    gamma = at_least(xp, gamma, 1.0)  # eq. (17)
    log_Q = xp.where((phase == phases.MOVEMENT) & (tau > 0), xp.log(gamma), 0.0)  # eq. (13)
    expansion = full.along_axes(xp, V, log_Q)  # eq. (14)
    growth = growth * xp.exp(expansion.mean_log)  # eq. (15): det(Q)^(1/d)
    return SearchStep(
        selection.p_sigma, phase, lam_F, G_delta, growth, gradient, expansion, gamma, axis_ratio
    )


refresh = resized = unchanged
fixed = as_they_are
next_popsize = same_popsize
shape = full.shape


def summary(params: Params, state: State) -> Summary:
    """What the history and the stopping rules read."""
    phase = phases.phase_of(array_namespace(state.B), params.phase, state.p_sigma)
    return full.summary(params, state)._replace(phase=phase)


def _eta_B(xp: Namespace, params: Params, phase: Array, lam_F: Array) -> Array:
    """The learning rate of the shape: the user's, or by phase (step 7)."""
    if params.eta_B is not None:
        return xp.full_like(lam_F, params.eta_B)
    return published_eta_B(xp, params.dim, phase, lam_F)


def published_eta_B(xp: Namespace, dim: int, phase: Array, lam_F: Array) -> Array:
    """The learning rate of the shape that the authors recommend, also for FM-NES (step 7)."""
    rate = dim * xp.tanh(0.02 * lam_F) / (47 * dim**2 + 6400)
    settled = xp.where(phase == phases.STAGNATION, 168 * rate, 12 * rate)
    return xp.where(phase == phases.MOVEMENT, 180 * rate, settled)


def _second_moment_change(xp: Namespace, V: Array, gradient: full.Stretch) -> Array:
    """tau_i of eq. (16): relative change of the second moment along each axis e_i of B B^T.

    With B' = B E for E = exp(eta_B G_B / 2), and B^T e_i = |B^T e_i| v_i, the lengths of the axes
    cancel: tau_i = e_i^T B' B'^T e_i / (e_i^T B B^T e_i) - 1 = v_i^T E^2 v_i - 1.
    """
    grown = (V.T @ gradient.axes) ** 2 @ xp.expm1(2 * gradient.log)
    restored = -2 * gradient.mean_log  # the volume
    return xp.exp(restored) * grown + xp.expm1(restored)
