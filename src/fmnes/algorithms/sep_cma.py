"""Separable CMA-ES.

R. Ros, N. Hansen: "A simple modification in CMA-ES achieving linear time and space complexity",
PPSN X, 2008. One generation, in the letters of the paper; the numbers (p1) to (p13) are ours, for
the comments below. C is the diagonal of CMA-ES's matrix, D^2 = C, and z_i*z_i is by coordinates.

    (p1)  x_i = m + sigma D z_i,   z_i ~ N(0, I)
    (p2)  m <- m + sigma D sum_i w_i z_i
    (p3)  p_sigma <- (1 - c_sigma) p_sigma + sqrt(c_sigma (2 - c_sigma) mu_eff) sum_i w_i z_i
    (p4)  sigma <- sigma exp((c_sigma / d_sigma) (|p_sigma| / E|N(0, I)| - 1))
    (p5)  h = 1 if |p_sigma| / sqrt(1 - (1 - c_sigma)^(2 (t + 1))) < (1.4 + 2 / (d + 1)) E|N(0, I)|
    (p6)  p_c <- (1 - c_c) p_c + h sqrt(c_c (2 - c_c) mu_eff) D sum_i w_i z_i
    (p7)  C <- (1 - c_1 - c_mu) C + c_1 (p_c*p_c + (1 - h) c_c (2 - c_c) C)
               + c_mu sum_i w_i (D z_i)*(D z_i),   c_1 = c_cov / mu_eff, c_mu = c_cov (1 - 1/mu_eff)

    (p8)  w_i = max(0, ln(floor(lambda/2) + 1) - ln i), divided by their sum
    (p9)  mu_eff = 1 / sum_i w_i^2
    (p10) c_cov = (d + 2)/3 (2 / (mu_eff (d + sqrt(2))^2)
               + (1 - 1/mu_eff) min(1, (2 mu_eff - 1) / ((d + 2)^2 + mu_eff)))
    (p11) c_sigma = (mu_eff + 2) / (d + mu_eff + 3),
               d_sigma = 1 + c_sigma + 2 max(0, sqrt((mu_eff - 1) / (d + 1)) - 1)
    (p12) c_c = 4 / (d + 4)
    (p13) E|N(0, I)| = sqrt(d) (1 - 1/(4 d) + 1/(21 d^2)),   lambda = 4 + floor(3 ln d)

C is learned (d + 2)/3 times as fast as CMA-ES's matrix because it has (d + 2)/3 times fewer
parameters: O(d) time for each candidate and O(d) memory.

Implementations of separable CMA-ES differ by a third of the evaluations. The default here is the
paper: one rate c_cov, of which the share 1/mu_eff goes to the path and the rest to the samples. The
package cmaes (SepCMA) gives the whole of c_cov to the samples, and to the path the c_1 of the
full CMA-ES, not (d + 2)/3 times it. pycma (CMA_diagonal) has newer rates, negative weights for
the worse half of the population and an exponential update: `SepCMA(rates="pycma")`.
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
from fmnes import kernels
from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _paths as paths
from fmnes.algorithms import _records as records
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._records import Shape, Summary
from fmnes.algorithms._rescaling import common_factor
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import norm2

COVARIANCE = "sigma^2 D^2"
LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = False  # independent draws: z has lambda rows
GROWING: dict[str, tuple[str, ...]] = {}
default_popsize = weights.default_popsize  # (p13)


@dataclass(frozen=True, kw_only=True)
class SepCMA(MethodSettings):
    """Settings of separable CMA-ES.

    Parameters
    ----------
    D : array_like of shape (d,), optional
        Initial scale of each coordinate, multiplied by sigma0. Ones by default.
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
        checks.fields(self, rates=partial(checks.choice, options=("ros-hansen", "pycma")))


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
    patience: int = 1


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
    """The first state; it takes the diagonal of a shape, and does not need the draw z."""
    xp = array_namespace(mean)
    zeros, D = xp.zeros_like(mean), records.diagonal_of(xp, shape)
    factor = common_factor(xp, D)
    return State(mean, sigma * factor, D / factor, zeros, zeros, xp.zeros_like(sigma))


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma D z."""
    return state.sigma * state.D * z  # (p1)


def draws_of(params: Params, state: State, steps: Array) -> Array:
    """The draws of rows of steps: `transform` backwards."""
    return steps / (state.sigma * state.D)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + sigma D z from draws z of shape (lambda, d)."""
    xp = array_namespace(z)
    return kernels.select(xp, z.dtype).candidates(xp, state.mean, state.sigma * state.D, z)  # (p1)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    mean, sigma, D, p_sigma, p_c, generation = state
    kernel = kernels.select(xp, z.dtype)
    _, norm_z2 = kernel.row_products(xp, z)
    w_m = constant(xp, np.clip(params.w, 0, None), z)
    w = w_m = weights.by_candidate(xp, w_m, f, norm_z2)
    if params.active:
        w = weights.by_candidate(xp, constant(xp, params.w, z), f, norm_z2)
    gz, _, gzz = kernel.moments(xp, z, w_m, None, w)  # the sums in (p2), (p3) and (p7)

    # === Step size ===
    p_sigma = paths.next_path(p_sigma, params.c_sigma, params.mu_eff, gz)  # (p3)
    norm_p2 = norm2(xp, p_sigma)
    growth = params.c_sigma / params.d_sigma * (xp.sqrt(norm_p2) / params.chi_n - 1)  # (p4)

    # === Covariance ===
    h = _not_stalled(xp, params, norm_p2, generation)  # (p5)
    D_new, p_c = (_learn_exponentially if params.active else _learn)(  # (p6) and (p7)
        xp, params, D, p_c, gz, gzz - xp.sum(w), h
    )
    k = common_factor(xp, D_new)
    new = State(
        mean + sigma * D * gz,  # (p2)
        k * sigma * xp.exp(growth),  # (p4)
        D_new / k,
        p_sigma,
        p_c if params.active else p_c / k,
        generation + 1,
    )
    return records.unless_flat(xp, f, state, new)


refresh = resized = records.unchanged
fixed = records.as_they_are
next_popsize = records.same_popsize


def shape(params: Params, state: State) -> Shape:
    """The part of the state that a warm start takes over, apart from the mean and sigma."""
    return Shape(state.D)


def summary(params: Params, state: State) -> Summary:
    """What the history and the stopping rules read."""
    xp, sigma, D = array_namespace(state.D), state.sigma, state.D
    return records.summary_without_v(xp, sigma, sigma * D, xp.max(D) / xp.min(D))


def _ros_hansen(dim: int, popsize: int) -> Params:
    """The paper's constants."""
    half = popsize // 2
    w_prime = [max(0.0, math.log(half + 1) - math.log(i)) for i in range(1, popsize + 1)]
    w = np.asarray(w_prime) / math.fsum(w_prime)  # (p8)
    mu_eff = weights.effective_size(w)  # (p9)
    rank_mu = min(1.0, (2 * mu_eff - 1) / ((dim + 2) ** 2 + mu_eff))  # (p10)
    c_cov = 2 / (mu_eff * (dim + math.sqrt(2)) ** 2) + (1 - 1 / mu_eff) * rank_mu  # (p10)
    # The paper has no upper bound. With lambda = 12 d, as Rastrigin's function asks for, c_cov
    # would be almost 2 at d = 200, and D^2 negative.
    c_cov = min(1.0, (dim + 2) / 3 * c_cov)  # (p10)
    c_sigma = (mu_eff + 2) / (dim + mu_eff + 3)  # (p11)
    chi_n = paths.norm_of_normal(dim)  # (p13)
    return Params(
        dim=dim,
        popsize=popsize,
        active=False,
        w=w,
        mu_eff=mu_eff,
        c_sigma=c_sigma,
        d_sigma=paths.sigma_damping(dim, mu_eff, c_sigma),  # (p11)
        c_c=4 / (dim + 4),  # (p12)
        c_1=c_cov / mu_eff,  # (p7)
        c_mu=c_cov * (1 - 1 / mu_eff),  # (p7)
        chi_n=chi_n,
        h_limit=((1.4 + 2 / (dim + 1)) * chi_n) ** 2,  # (p5)
    )


def _pycma(dim: int, popsize: int) -> Params:
    """The constants of pycma 4.5 with CMA_diagonal=True; the paper does not have them."""
    w = weights.cma_weights(popsize)
    plus, minus = np.clip(w, 0, None), np.clip(w, None, 0)
    mu_eff, mu_eff_minus = weights.effective_size(plus), weights.effective_size(minus)
    c_1 = 1 / (dim + 2 * math.sqrt(dim) + mu_eff / dim)
    c_mu = (0.25 + mu_eff + 1 / mu_eff - 2) / (dim + 4 * math.sqrt(dim) + mu_eff / 2)
    c_mu = min(1 - c_1, c_mu)
    # The negative weights at most undo the decay of D (1 + c_1 / c_mu), and count for no more than
    # their own effective size allows.
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
        chi_n=paths.norm_of_normal(dim),
        h_limit=(2 + 4 / (dim + 1)) * dim,
    )


def _not_stalled(xp: Namespace, params: Params, norm_p2: Array, generation: Array) -> Array:
    """The h of (p5): 0 while p_sigma is so long that sigma has to grow before D learns from p_c.

    The variance 1 - (1 - c_sigma)^(2 (t + 1)) of a young path is computed with expm1, so that it
    does not round to zero in float32 with a c_sigma of 1e-8.
    """
    variance = -xp.expm1(2 * math.log1p(-params.c_sigma) * (generation + 1))
    return xp.astype(norm_p2 < params.h_limit * variance, norm_p2.dtype)


# Beyond this limit D does not matter beside the rest of the covariance, and within it no square
# overflows in float32.
_D_LIMIT = 1e18


def _learn(
    xp: Namespace, params: Params, D: Array, p_c: Array, gz: Array, G_mu: Array, h: Array
) -> tuple[Array, Array]:
    """D and p_c by (p6) and (p7).

    We take D^2 = C out of (p7): C <- D^2 times the bracket
    1 + c_1 ((p_c/D)^2 + (1 - h) c_c (2 - c_c) - 1) + c_mu G_mu, with G_mu = sum w (z*z - 1), as
    the weights sum to 1. No term of it is negative, as c_1 + c_mu <= 1. It can be near zero only
    where c_1 + c_mu = 1: hence the limit.
    """
    c_c = params.c_c
    p_c = paths.next_path(p_c, c_c, params.mu_eff, h * (D * gz))  # (p6)
    kept = (1 - h) * c_c * (2 - c_c)  # (p7)
    bracket = 1 + params.c_1 * ((p_c / D) ** 2 + kept - 1) + params.c_mu * G_mu  # (p7)
    return xp.clip(D * xp.sqrt(xp.clip(bracket, 0.0, None)), 1 / _D_LIMIT, _D_LIMIT), p_c


def _learn_exponentially(
    xp: Namespace, params: Params, D: Array, p_c: Array, gz: Array, G_mu: Array, h: Array
) -> tuple[Array, Array]:
    """D and p_c as in pycma: C <- C 2^Delta where (p7) has C (1 + Delta).

    Both are equal for Delta = 0 and 1. Negative weights can make 1 + Delta negative; 2^Delta is
    always positive. pycma keeps the path in the coordinates of z too.
    """
    c_c = params.c_c
    p_c = paths.next_path(p_c, c_c, params.mu_eff, h * gz)
    c_1 = params.c_1 * (1 - (1 - h) * c_c * (2 - c_c))
    Delta = c_1 * (p_c * p_c - 1) + params.c_mu * G_mu
    return xp.clip(D * xp.exp(0.5 * math.log(2) * Delta), 1 / _D_LIMIT, _D_LIMIT), p_c
