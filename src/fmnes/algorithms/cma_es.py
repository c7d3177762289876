"""CMA-ES: covariance matrix adaptation evolution strategy.

N. Hansen: "The CMA evolution strategy: a tutorial", arXiv 1604.00772 (2016), with active
(negative) weights; equation numbers below are those of the tutorial.

Covariance sigma^2 C with a full matrix C = B D^2 B^T. O(d^2) time a candidate, a symmetric
eigendecomposition now and then (`refresh`), O(d^2) memory: for up to some hundred variables.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike, NDArray

from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _shared
from fmnes.algorithms._shared import (
    Report,
    Shape,
    at_least,
    effective_size,
    is_flat,
    matrix_of,
    norm2,
    norm_of_normal,
    path_scale,
    unless_flat,
    weights_by_candidate,
)

LINEAR = False
ANTITHETIC = False
default_popsize = _shared.default_popsize


@dataclass(frozen=True, kw_only=True)
class CMAES:
    """Settings of CMA-ES.

    Parameters
    ----------
    C : array_like of shape (d, d), optional
        Initial covariance beside sigma0. The identity by default.
    active : bool
        Whether the worse half of a population shrinks the covariance along its steps.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> method = fmnes.CMAES(active=False)
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    C: ArrayLike | None = None
    active: bool = True


Settings = CMAES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    refresh_every: int
    w_plus: NDArray[np.float64]  # positive rank weights, best first, sum 1
    w_minus: NDArray[np.float64]  # negative rank weights
    mu_eff: float
    chi_n: float
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    store_draws: bool = True  # keep the draws from ask to tell; else make them again


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    C: Array
    B: Array  # eigenvectors of C at the last refresh, columns
    D: Array  # square roots of its eigenvalues
    p_sigma: Array
    p_c: Array
    generation: Array


def params(dim: int, popsize: int, settings: CMAES = CMAES()) -> Params:
    """The constants of the tutorial's table 1."""
    mu = popsize // 2
    w_prime = math.log((popsize + 1) / 2) - np.log(np.arange(1, popsize + 1))
    mu_eff = effective_size(w_prime[:mu])
    c_1 = 2 / ((dim + 1.3) ** 2 + mu_eff)
    c_mu = min(1 - c_1, 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((dim + 2) ** 2 + mu_eff))
    c_sigma = (mu_eff + 2) / (dim + mu_eff + 5)

    alpha = 0.0
    if settings.active:
        alpha_mu = 1 + c_1 / c_mu
        alpha_eff = 1 + 2 * effective_size(w_prime[mu:]) / (mu_eff + 2)
        alpha_pos = max(0.0, 1 - c_1 - c_mu) / (dim * c_mu)  # keeps C positive definite
        alpha = min(alpha_mu, alpha_eff, alpha_pos)
    w_plus, w_minus = np.clip(w_prime, 0, None), np.clip(w_prime, None, 0)
    return Params(
        dim=dim,
        popsize=popsize,
        # So rarely that it costs no more than O(d^2) a generation; the tutorial rounds down.
        refresh_every=math.ceil(1 / (10 * dim * (c_1 + c_mu))),
        w_plus=w_plus / math.fsum(w_plus),
        w_minus=alpha * w_minus / -math.fsum(w_minus),
        mu_eff=mu_eff,
        chi_n=norm_of_normal(dim),
        c_sigma=c_sigma,
        d_sigma=1 + c_sigma + 2 * max(0.0, math.sqrt((mu_eff - 1) / (dim + 1)) - 1),
        c_c=(4 + mu_eff / dim) / (dim + 4 + 2 * mu_eff / dim),
        c_1=c_1,
        c_mu=c_mu,
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state."""
    xp = array_namespace(mean)
    C = matrix_of(xp, shape)
    if shape.C is None and shape.v is None:  # a diagonal is decomposed, to the last digit
        B, D = xp.eye(params.dim, dtype=mean.dtype, device=device(mean)), shape.D
    else:
        C, B, D = _decomposed(xp, C)
    zero = xp.zeros_like(mean)
    return State(mean, sigma, C, B, D, zero, zero, xp.zeros_like(sigma))


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma B D z  (eq. 39)."""
    return state.sigma * _steps(state, z)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + sigma B D z from draws z of shape (lambda, d)  (eqs. 38 to 40)."""
    return state.mean + transform(params, state, z)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    mean, sigma, C, B, D, p_sigma, p_c, generation = state
    c_c, c_sigma = params.c_c, params.c_sigma
    norm_z2 = norm2(xp, z)
    w_plus = weights_by_candidate(xp, constant(xp, params.w_plus, z), f, norm_z2)
    w_minus = weights_by_candidate(xp, constant(xp, params.w_minus, z), f, norm_z2)

    # === Mean and step size (eqs. 41 to 44) ===
    y = _steps(state, z)
    z_w, y_w = w_plus @ z, w_plus @ y
    p_sigma = (1 - c_sigma) * p_sigma + path_scale(c_sigma, params.mu_eff) * (
        B @ z_w  # C^(-1/2) y_w
    )
    norm_p_sigma = xp.sqrt(norm2(xp, p_sigma))
    sigma_new = sigma * xp.exp(c_sigma / params.d_sigma * (norm_p_sigma / params.chi_n - 1))

    # === Covariance (eqs. 45 to 47) ===
    generation = generation + 1
    expected = params.chi_n * xp.sqrt(1 - (1 - c_sigma) ** (2 * generation))
    h_sigma = xp.astype(norm_p_sigma < (1.4 + 2 / (params.dim + 1)) * expected, z.dtype)
    p_c = (1 - c_c) * p_c + h_sigma * path_scale(c_c, params.mu_eff) * y_w
    # |C^(-1/2) y| = |z|; a draw at the mean itself has no direction to shrink C along.
    w_minus = w_minus * params.dim / at_least(xp, norm_z2, xp.finfo(z.dtype).smallest_normal)
    # Where all values are equal the rates are 0: C stays to the bit, without another pass over it.
    told = xp.astype(~is_flat(xp, f), z.dtype)
    c_1, c_mu = told * params.c_1, told * params.c_mu
    kept = 1 - c_1 * (1 - (1 - h_sigma) * c_c * (2 - c_c)) - c_mu * _total(params)
    added = xp.concat([(xp.sqrt(c_1) * p_c)[None, :], xp.sqrt(c_mu * w_plus)[:, None] * y])
    removed = xp.sqrt(-c_mu * w_minus)[:, None] * y
    # A product A^T A is symmetric to the bit (BLAS computes one half of it), and so C stays.
    C_new = kept * C + added.T @ added - removed.T @ removed
    new = State(mean + sigma * y_w, sigma_new, C, B, D, p_sigma, p_c, generation)
    return unless_flat(xp, f, state, new)._replace(C=C_new)


def refresh(params: Params, state: State) -> State:
    """Decompose C again; between two refreshes C changes by about a tenth of 1/d."""
    C, B, D = _decomposed(array_namespace(state.C), state.C)
    return state._replace(C=C, B=B, D=D)


def shape(params: Params, state: State) -> Shape:
    """What a warm start takes over beside the mean and sigma."""
    xp = array_namespace(state.C)
    return Shape(D=xp.sqrt(xp.linalg.diagonal(state.C)), C=state.C)


def report(params: Params, state: State) -> Report:
    """What the history and the stopping rules look at."""
    xp = array_namespace(state.mean)
    return Report(
        sigma=state.sigma,
        deviations=state.sigma * xp.sqrt(xp.linalg.diagonal(state.C)),
        axis_ratio=xp.max(state.D) / xp.min(state.D),
        norm_v=xp.full_like(state.sigma, xp.nan),
        phase=xp.zeros_like(state.sigma),
    )


def _steps(state: State, z: Array) -> Array:
    """Steps y = B D z of rows of draws, or of one."""
    return (z * state.D) @ state.B.T


def _total(params: Params) -> float:
    """The sum of all rank weights."""
    return math.fsum(params.w_plus) + math.fsum(params.w_minus)


def _decomposed(xp: Namespace, C: Array) -> tuple[Array, Array, Array]:
    """C, B and D with C = B D^2 B^T.

    C and its decomposition are exact to some eps of the largest eigenvalue; what they say of a
    smaller one is noise, negative as likely as not. Where there is such an axis, a multiple of I
    is added that makes it ten eps long, past the axis ratio at which a search ends. It is added to
    C too: negative weights take away up to all of what D says there is.
    """
    values, B = xp.linalg.eigh(C)
    lift = at_least(xp, 10 * xp.finfo(C.dtype).eps * xp.max(values) - xp.min(values), 0.0)
    eye = xp.eye(C.shape[0], dtype=C.dtype, device=device(C))
    return C + lift * eye, B, xp.sqrt(values + lift)
