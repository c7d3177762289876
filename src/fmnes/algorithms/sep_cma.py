"""Separable CMA-ES.

R. Ros, N. Hansen: "A simple modification in CMA-ES achieving linear time and space complexity",
PPSN X, 2008.

Covariance sigma^2 D^2, the diagonal of CMA-ES's matrix, learned (n + 2)/3 times as fast because
it has that many times fewer parameters: O(d) time a candidate and O(d) memory.

Which separable CMA-ES is meant matters, by a third of the evaluations. The default is the paper:
one rate c_cov, of which the share 1/mu_eff goes to the path and the rest to the samples. The
package cmaes (SepCMA) gives the whole of c_cov to the samples, and to the path the c_1 of the
full CMA-ES, not (n + 2)/3 times it. pycma (CMA_diagonal) has newer rates, negative weights for
the worse half of the population and an exponential update: `SepCMA(rates="pycma")`.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import kernels
from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _shared
from fmnes.algorithms._balance import common_factor
from fmnes.algorithms._shared import (
    Report,
    Shape,
    diagonal_of,
    effective_size,
    norm2,
    norm_of_normal,
    path_scale,
    unchanged,
    unless_flat,
    weights_by_candidate,
)

LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = False  # independent draws: z has lambda rows
default_popsize = _shared.default_popsize


@dataclass(frozen=True, kw_only=True)
class SepCMA:
    """Settings of separable CMA-ES.

    Parameters
    ----------
    D : array_like of shape (d,), optional
        Initial scale of each coordinate beside sigma0. Ones by default.
    rates : {"ros-hansen", "pycma"}
        "ros-hansen" is the published method; "pycma" is the diagonal mode of pycma 4.5, with
        its rates, its negative weights and its exponential update.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> method = fmnes.SepCMA(rates="pycma")
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    D: ArrayLike | None = None
    rates: Literal["ros-hansen", "pycma"] = "ros-hansen"

    def __post_init__(self) -> None:
        if self.rates not in ("ros-hansen", "pycma"):
            raise ValueError(f"rates: expected 'ros-hansen' or 'pycma', got {self.rates!r}")


Settings = SepCMA


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    active: bool  # negative weights in the covariance, and with them the exponential update
    w: NDArray[np.float64]  # rank weights of the covariance, best first; the positive ones sum to 1
    mu_eff: float
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    chi_n: float  # E|N(0, I)|
    h_limit: float  # of |p_sigma|^2: a longer path stalls the rank-one update
    refresh_every: int = 0
    store_draws: bool = True  # keep the draws from ask to tell; else make them again


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    D: Array
    p_sigma: Array
    p_c: Array  # in the units of D z; of z with the rates of pycma
    generation: Array  # 0-d: how many have been told


def params(dim: int, popsize: int, settings: SepCMA = SepCMA()) -> Params:
    """The constants of the chosen set of rates."""
    return (_ros_hansen if settings.rates == "ros-hansen" else _pycma)(dim, popsize)


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; of a shape it keeps the diagonal."""
    xp = array_namespace(mean)
    zeros = xp.zeros_like(mean)
    return State(mean, sigma, diagonal_of(xp, shape), zeros, zeros, xp.zeros_like(sigma))


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma D z."""
    return state.sigma * state.D * z


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + sigma D z from draws z of shape (lambda, d)."""
    xp = array_namespace(z)
    return kernels.select(xp, z.dtype).candidates(xp, state.mean, state.sigma * state.D, z)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    mean, sigma, D, p_sigma, p_c, generation = state
    kernel = kernels.select(xp, z.dtype)
    _, norm_z2 = kernel.row_products(xp, z)
    w_m = weights_by_candidate(xp, constant(xp, np.clip(params.w, 0, None), z), f, norm_z2)
    w = w_m
    if params.active:
        w = weights_by_candidate(xp, constant(xp, params.w, z), f, norm_z2)
    gz, _, gzz = kernel.moments(xp, z, w_m, None, w)

    # === Step size: gz is D^-1 sum w (x - m) / sigma ===
    p_sigma = (1 - params.c_sigma) * p_sigma + path_scale(params.c_sigma, params.mu_eff) * gz
    norm_p2 = norm2(xp, p_sigma)
    growth = params.c_sigma / params.d_sigma * (xp.sqrt(norm_p2) / params.chi_n - 1)

    # === Covariance ===
    h = _not_stalled(xp, params, norm_p2, generation)
    D_new, p_c = (_learn_exponentially if params.active else _learn)(
        xp, params, D, p_c, gz, gzz - xp.sum(w), h
    )
    k = common_factor(xp, D_new)
    new = State(
        mean + sigma * D * gz,
        k * sigma * xp.exp(growth),
        D_new / k,
        p_sigma,
        p_c if params.active else p_c / k,
        generation + 1,
    )
    return unless_flat(xp, f, state, new)


refresh = unchanged


def shape(params: Params, state: State) -> Shape:
    """What a warm start takes over beside the mean and sigma."""
    return Shape(state.D)


def report(params: Params, state: State) -> Report:
    """What the history and the stopping rules look at."""
    xp = array_namespace(state.mean)
    sigma, D = state.sigma, state.D
    return Report(
        sigma=sigma,
        deviations=sigma * D,
        axis_ratio=xp.max(D) / xp.min(D),
        norm_v=xp.full_like(sigma, xp.nan),
        phase=xp.zeros_like(sigma),
    )


def _ros_hansen(dim: int, popsize: int) -> Params:
    """The paper's constants."""
    half = popsize // 2
    w_prime = [max(0.0, math.log(half + 1) - math.log(i)) for i in range(1, popsize + 1)]
    w = np.asarray(w_prime) / math.fsum(w_prime)
    mu_eff = effective_size(w)
    rank_mu = min(1.0, (2 * mu_eff - 1) / ((dim + 2) ** 2 + mu_eff))
    c_cov = 2 / (mu_eff * (dim + math.sqrt(2)) ** 2) + (1 - 1 / mu_eff) * rank_mu
    # The paper has no upper bound; with lambda = 12 d, as Rastrigin asks for, c_cov would be
    # almost 2 at d = 200, and D^2 negative.
    c_cov = min(1.0, (dim + 2) / 3 * c_cov)
    c_sigma = (mu_eff + 2) / (dim + mu_eff + 3)
    chi_n = norm_of_normal(dim)
    return Params(
        dim=dim,
        popsize=popsize,
        active=False,
        w=w,
        mu_eff=mu_eff,
        c_sigma=c_sigma,
        d_sigma=1 + c_sigma + 2 * max(0.0, math.sqrt((mu_eff - 1) / (dim + 1)) - 1),
        c_c=4 / (dim + 4),
        c_1=c_cov / mu_eff,
        c_mu=c_cov * (1 - 1 / mu_eff),
        chi_n=chi_n,
        h_limit=((1.4 + 2 / (dim + 1)) * chi_n) ** 2,
    )


def _pycma(dim: int, popsize: int) -> Params:
    """The constants of pycma 4.5 with CMA_diagonal=True."""
    w = np.asarray([math.log((popsize + 1) / 2) - math.log(i) for i in range(1, popsize + 1)])
    plus, minus = np.clip(w, 0, None), np.clip(w, None, 0)
    mu_eff, mu_eff_minus = effective_size(plus), effective_size(minus)
    c_1 = 1 / (dim + 2 * math.sqrt(dim) + mu_eff / dim)
    c_mu = (0.25 + mu_eff + 1 / mu_eff - 2) / (dim + 4 * math.sqrt(dim) + mu_eff / 2)
    c_mu = min(1 - c_1, c_mu)
    # The negative weights undo the decay of D at most (1 + c_1 / c_mu), and count for no more
    # than their own effective size allows.
    total_minus = min(1 + c_1 / c_mu, 1 + 2 * mu_eff_minus / (mu_eff + 2))
    c_sigma = min(0.5, (mu_eff + 2) / (dim + mu_eff + 3))
    damping = max(1.0, 3 * (1 - 0.5 ** (dim / 9)))
    return Params(
        dim=dim,
        popsize=popsize,
        active=True,
        w=plus / math.fsum(plus) + minus / abs(math.fsum(minus)) * total_minus,
        mu_eff=mu_eff,
        c_sigma=c_sigma,
        d_sigma=1 + c_sigma + 2 * max(0.0, damping * math.sqrt((mu_eff - 1) / (dim + 1)) - 1),
        c_c=(1 + 1 / dim + mu_eff / dim) / (math.sqrt(dim) + 1 / dim + 2 * mu_eff / dim),
        c_1=c_1,
        c_mu=c_mu,
        chi_n=norm_of_normal(dim),
        h_limit=(2 + 4 / (dim + 1)) * dim,
    )


def _not_stalled(xp: Namespace, params: Params, norm_p2: Array, generation: Array) -> Array:
    """h: 1, or 0 while p_sigma is so long that sigma has to grow before D learns from p_c.

    The variance 1 - (1 - c_sigma)^(2 (g + 1)) of a young path is taken by way of expm1, which
    float32 and a c_sigma of 1e-8 do not round to zero.
    """
    variance = -xp.expm1(2 * math.log1p(-params.c_sigma) * (generation + 1))
    return xp.astype(norm_p2 < params.h_limit * variance, norm_p2.dtype)


# Beyond this D means nothing beside the rest of the covariance, and within it no square overflows
# in float32.
_D_LIMIT = 1e18


def _learn(
    xp: Namespace, params: Params, D: Array, p_c: Array, gz: Array, G_mu: Array, h: Array
) -> tuple[Array, Array]:
    """C <- (1 - c_1 - c_mu) C + c_1 (p_c^2 + (1 - h) c_c (2 - c_c) C) + c_mu sum w (D z)^2.

    Here with D^2 = C taken out of the bracket, and G_mu = sum w (z^2 - 1). No term of the bracket
    is negative, as c_1 + c_mu <= 1. It can only be near zero where c_1 + c_mu = 1: hence the
    limit.
    """
    c_c = params.c_c
    p_c = (1 - c_c) * p_c + h * path_scale(c_c, params.mu_eff) * (D * gz)
    kept = (1 - h) * c_c * (2 - c_c)
    bracket = 1 + params.c_1 * ((p_c / D) ** 2 + kept - 1) + params.c_mu * G_mu
    return xp.clip(D * xp.sqrt(xp.clip(bracket, 0.0, None)), 1 / _D_LIMIT, _D_LIMIT), p_c


def _learn_exponentially(
    xp: Namespace, params: Params, D: Array, p_c: Array, gz: Array, G_mu: Array, h: Array
) -> tuple[Array, Array]:
    """C <- C 2^Delta where the paper has C (1 + Delta): equal for Delta = 0 and 1, and never 0.

    Negative weights can make 1 + Delta negative. pycma keeps the path in the coordinates z too.
    """
    c_c = params.c_c
    p_c = (1 - c_c) * p_c + h * path_scale(c_c, params.mu_eff) * gz
    c_1 = params.c_1 * (1 - (1 - h) * c_c * (2 - c_c))
    Delta = c_1 * (p_c * p_c - 1) + params.c_mu * G_mu
    return xp.clip(D * xp.exp(0.5 * math.log(2) * Delta), 1 / _D_LIMIT, _D_LIMIT), p_c
