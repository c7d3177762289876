"""CMA-ES: covariance matrix adaptation evolution strategy.

N. Hansen: "The CMA evolution strategy: a tutorial", arXiv 1604.00772 (2016), with active
(negative) weights. Equation numbers are those of the tutorial: (38) to (47) are its summary of the
algorithm, (48) to (58) its table of default parameters. Where the tutorial gives a formula
without a number, the comment says so.

Covariance sigma^2 C with a full matrix C = B D^2 B^T. O(d^2) time for each candidate, a symmetric
eigendecomposition every few generations (`refresh`), O(d^2) memory: for up to some hundred
variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _paths as paths
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._records import (
    Shape,
    Summary,
    as_they_are,
    matrix_of,
    same_popsize,
    summary_without_v,
    unchanged,
    unless_flat,
)
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import at_least, norm2
from fmnes.kernels import blas

COVARIANCE = "sigma^2 C"
LINEAR = False
ANTITHETIC = False
GROWING: dict[str, tuple[str, ...]] = {}
default_popsize = weights.default_popsize  # eq. (48)


@dataclass(frozen=True, kw_only=True)
class CMAES(MethodSettings):
    """Settings of CMA-ES.

    Parameters
    ----------
    C : array_like of shape (d, d), optional
        Initial covariance, without the factor sigma0^2. The identity by default.
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

    def __post_init__(self) -> None:
        checks.fields(self, active=checks.boolean)


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
    patience: int = 1


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
    w_prime = weights.cma_weights(popsize)  # eq. (49)
    mu_eff = weights.effective_size(w_prime[:mu])  # not numbered in the table
    c_1 = 2 / ((dim + 1.3) ** 2 + mu_eff)  # eq. (57)
    rank_mu = 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((dim + 2) ** 2 + mu_eff)  # eq. (58)
    c_mu = min(1 - c_1, rank_mu)  # eq. (58)
    c_sigma = paths.p_sigma_rate(dim, mu_eff)  # eq. (55)

    alpha = 0.0
    if settings.active:
        alpha_mu = 1 + c_1 / c_mu  # eq. (50)
        alpha_eff = 1 + 2 * weights.effective_size(w_prime[mu:]) / (mu_eff + 2)  # eq. (51)
        alpha_pos = max(0.0, 1 - c_1 - c_mu) / (dim * c_mu)  # eq. (52): C stays positive definite
        alpha = min(alpha_mu, alpha_eff, alpha_pos)  # eq. (53)
    w_plus, w_minus = np.clip(w_prime, 0, None), np.clip(w_prime, None, 0)
    return Params(
        dim=dim,
        popsize=popsize,
        # Not numbered in the tutorial, which rounds down. The eigendecomposition is so rare that it
        # costs no more than O(d^2) a generation.
        refresh_every=math.ceil(1 / (10 * dim * (c_1 + c_mu))),
        w_plus=w_plus / math.fsum(w_plus),  # eq. (53)
        w_minus=alpha * w_minus / -math.fsum(w_minus),  # eq. (53)
        mu_eff=mu_eff,
        chi_n=paths.norm_of_normal(dim),  # not numbered in the tutorial; used in eq. (44)
        c_sigma=c_sigma,
        d_sigma=paths.sigma_damping(dim, mu_eff, c_sigma),  # eq. (55)
        c_c=paths.p_c_rate(dim, mu_eff),  # eq. (56)
        c_1=c_1,
        c_mu=c_mu,
    )


@blas.one_thread
def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; it does not need the draw z."""
    xp = array_namespace(mean)
    C = matrix_of(xp, shape)
    if shape.C is None and shape.v is None:  # the decomposition of a diagonal is known exactly
        B, D = xp.eye(params.dim, dtype=mean.dtype, device=device(mean)), shape.D
    else:
        C, B, D = _decomposed(xp, C)
    zero = xp.zeros_like(mean)
    return State(mean, sigma, C, B, D, zero, zero, xp.zeros_like(sigma))


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma B D z, eqs. (39) and (40)."""
    return state.sigma * _steps(state, z)


def draws_of(params: Params, state: State, steps: Array) -> Array:
    """The draws of rows of steps: `transform` backwards."""
    y: Array = (steps / state.sigma) @ state.B  # B is orthogonal
    return y / state.D


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + sigma B D z from draws z of shape (lambda, d), eq. (38)."""
    return state.mean + transform(params, state, z)  # eq. (40)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates.

    The tutorial's update of the covariance, with weights w of both signs, is eq. (47):

        C <- (1 + c_1 delta(h_sigma) - c_1 - c_mu sum_j w_j) C
             + c_1 p_c p_c^T + c_mu sum_i w_i y_i y_i^T,   delta(h) = (1 - h) c_c (2 - c_c)

    We stack the square roots. The rows sqrt(c_1) p_c and sqrt(c_mu w_i) y_i for the positive
    weights make the matrix `added`, the rows sqrt(-c_mu w_i) y_i for the negative ones the matrix
    `removed`, and the second line is added^T added - removed^T removed. Such a product is symmetric
    to the bit (BLAS computes one half of it), so C stays symmetric.
    """
    xp = array_namespace(z)
    mean, sigma, C, B, D, p_sigma, p_c, generation = state
    c_c, c_sigma, mu_eff = params.c_c, params.c_sigma, params.mu_eff
    norm_z2 = norm2(xp, z)
    w_plus = weights.by_candidate(xp, constant(xp, params.w_plus, z), f, norm_z2)
    w_minus = weights.by_candidate(xp, constant(xp, params.w_minus, z), f, norm_z2)

    # === Mean and step size ===
    y = _steps(state, z)  # eq. (39)
    y_w = w_plus @ y  # eq. (41)
    p_sigma = paths.next_path(p_sigma, c_sigma, mu_eff, B @ (w_plus @ z))  # eq. (43): C^(-1/2) y_w
    norm_p_sigma = xp.sqrt(norm2(xp, p_sigma))
    growth = c_sigma / params.d_sigma * (norm_p_sigma / params.chi_n - 1)  # eq. (44)

    # === Covariance ===
    generation = generation + 1
    # The h_sigma of eqs. (45) and (47); its definition is not numbered in the tutorial.
    expected = params.chi_n * xp.sqrt(1 - (1 - c_sigma) ** (2 * generation))
    h_sigma = xp.astype(norm_p_sigma < (1.4 + 2 / (params.dim + 1)) * expected, z.dtype)
    p_c = paths.next_path(p_c, c_c, mu_eff, h_sigma * y_w)  # eq. (45)
    # eq. (46), as |C^(-1/2) y| = |z|; a draw at the mean itself has no direction to shrink C along.
    w_minus = w_minus * params.dim / at_least(xp, norm_z2, xp.finfo(z.dtype).smallest_normal)
    # If all values are equal the rates are 0: C stays the same without another pass over it.
    told = xp.astype(~weights.is_flat(xp, f), z.dtype)
    c_1, c_mu = told * params.c_1, told * params.c_mu
    total = math.fsum(params.w_plus) + math.fsum(params.w_minus)
    kept = 1 - c_1 * (1 - (1 - h_sigma) * c_c * (2 - c_c)) - c_mu * total  # eq. (47)
    # eq. (47), in square roots
    added = xp.concat([(xp.sqrt(c_1) * p_c)[None, :], xp.sqrt(c_mu * w_plus)[:, None] * y])
    removed = xp.sqrt(-c_mu * w_minus)[:, None] * y
    C_new = kept * C + added.T @ added - removed.T @ removed  # eq. (47)

    m_new, sigma_new = mean + sigma * y_w, sigma * xp.exp(growth)  # eqs. (42) and (44)
    new = State(m_new, sigma_new, C, B, D, p_sigma, p_c, generation)
    return unless_flat(xp, f, state, new)._replace(C=C_new)


def refresh(params: Params, state: State) -> State:
    """Decompose C again; between two refreshes C changes by about a tenth of 1/d."""
    C, B, D = _decomposed(array_namespace(state.C), state.C)
    return state._replace(C=C, B=B, D=D)


resized = unchanged
fixed = as_they_are
next_popsize = same_popsize


def shape(params: Params, state: State) -> Shape:
    """The part of the state that a warm start takes over, apart from the mean and sigma."""
    xp = array_namespace(state.C)
    return Shape(D=xp.sqrt(xp.linalg.diagonal(state.C)), C=state.C)


def summary(params: Params, state: State) -> Summary:
    """What the history and the stopping rules read."""
    xp = array_namespace(state.C)
    deviations = state.sigma * xp.sqrt(xp.linalg.diagonal(state.C))
    return summary_without_v(xp, state.sigma, deviations, xp.max(state.D) / xp.min(state.D))


def _steps(state: State, z: Array) -> Array:
    """Steps y = B D z of rows of draws, or of one: eq. (39)."""
    return (z * state.D) @ state.B.T


def _decomposed(xp: Namespace, C: Array) -> tuple[Array, Array, Array]:
    """C, B and D with C = B D^2 B^T.

    C and its decomposition are exact to some eps of the largest eigenvalue. A smaller eigenvalue
    is noise and may be negative. If there is one, we add the multiple of I that makes it ten eps
    long, past the axis ratio at which a search ends. C gets the same addition, because negative
    weights may take away as much as D says there is.
    """
    values, B = xp.linalg.eigh(C)
    lift = at_least(xp, 10 * xp.finfo(C.dtype).eps * xp.max(values) - xp.min(values), 0.0)
    eye = xp.eye(C.shape[0], dtype=C.dtype, device=device(C))
    return C + lift * eye, B, xp.sqrt(values + lift)
