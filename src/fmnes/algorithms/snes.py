"""SNES: separable natural evolution strategy.

T. Schaul, T. Glasmachers, J. Schmidhuber: "High dimensions and heavy tails for natural evolution
strategies", GECCO 2011. One generation, in the letters of the paper; the numbers (s1) to (s6) are
ours, for the comments below:

    (s1)  x_i = m + s * z_i,   z_i ~ N(0, I)
    (s2)  m <- m + s * sum_i u_i z_i
    (s3)  s <- s * exp((eta_sigma / 2) sum_i u_i (z_i*z_i - 1))
    (s4)  eta_sigma = (3 + ln d) / (5 sqrt(d))
    (s5)  u_i = w_i / sum_j w_j - 1/lambda,   w_i = max(0, ln(lambda/2 + 1) - ln i)
    (s6)  lambda = 4 + floor(3 ln d)

Covariance diag(s*s): one step size for each coordinate and nothing else, so it is the shortest
method here and the cheapest, O(d) time for each candidate. It has no evolution path: on badly
scaled problems CR-FM-NES and separable CMA-ES need fewer evaluations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes import kernels
from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _records as records
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._records import Shape, Summary
from fmnes.algorithms._settings import MethodSettings

COVARIANCE = "diag(s*s)"
LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = False  # independent draws: z has lambda rows
GROWING: dict[str, tuple[str, ...]] = {}
default_popsize = weights.default_popsize  # (s6)


@dataclass(frozen=True, kw_only=True)
class SNES(MethodSettings):
    """Settings of SNES.

    Parameters
    ----------
    D : array_like of shape (d,), optional
        Initial scale of each coordinate, multiplied by sigma0. Ones by default.
    eta_sigma : float, optional
        Learning rate of the step sizes. (3 + ln d) / (5 sqrt(d)) by default, as in the paper.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> method = fmnes.SNES(eta_sigma=0.2)
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    D: ArrayLike | None = None
    eta_sigma: float | None = None

    def __post_init__(self) -> None:
        checks.fields(self, eta_sigma=checks.rate)


Settings = SNES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    u: NDArray[np.float64]  # utilities, best first, sum 0
    eta_sigma: float
    refresh_every: int = 0
    store_draws: bool = True  # keep the draws from ask to tell; else make them again
    patience: int = 1


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    s: Array  # standard deviation of each coordinate


def params(dim: int, popsize: int, settings: SNES = SNES()) -> Params:
    """The published constants."""
    default = (3 + math.log(dim)) / (5 * math.sqrt(dim))  # (s4)
    return Params(
        dim=dim,
        popsize=popsize,
        u=weights.nes_weights(popsize) - 1 / popsize,  # (s5)
        eta_sigma=default if settings.eta_sigma is None else settings.eta_sigma,
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; it takes the diagonal of a shape, and does not need the draw z."""
    return State(mean, sigma * records.diagonal_of(array_namespace(mean), shape))


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: s z."""
    return state.s * z  # (s1)


def draws_of(params: Params, state: State, steps: Array) -> Array:
    """The draws of rows of steps: `transform` backwards."""
    return steps / state.s


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + s z from draws z of shape (lambda, d)."""
    xp = array_namespace(z)
    return kernels.select(xp, z.dtype).candidates(xp, state.mean, state.s, z)  # (s1)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates.

    The exponential keeps s positive. One generation changes ln s_j by no more than eta_sigma / 2
    times the largest z_j^2, so s stays finite for any ranking.
    """
    xp = array_namespace(z)
    kernel = kernels.select(xp, z.dtype)
    _, norm_z2 = kernel.row_products(xp, z)
    u = weights.by_candidate(xp, constant(xp, params.u, z), f, norm_z2)
    gz, _, gzz = kernel.moments(xp, z, u, None, u)  # sum u z, sum u z*z
    mean = state.mean + state.s * gz  # (s2)
    s = state.s * xp.exp(0.5 * params.eta_sigma * gzz)  # (s3): the -1 drops out, as sum u = 0
    return records.unless_flat(xp, f, state, State(mean, s))


refresh = resized = records.unchanged
fixed = records.as_they_are
next_popsize = records.same_popsize


def shape(params: Params, state: State) -> Shape:
    """The part of the state that a warm start takes over, apart from the mean and sigma."""
    return Shape(state.s / _sigma(array_namespace(state.s), state))


def summary(params: Params, state: State) -> Summary:
    """What the history and the stopping rules read."""
    xp, s = array_namespace(state.s), state.s
    return records.summary_without_v(xp, _sigma(xp, state), s, xp.max(s) / xp.min(s))


def _sigma(xp: Namespace, state: State) -> Array:
    """One step size for the whole distribution: the geometric mean of s."""
    return xp.exp(xp.mean(xp.log(state.s)))
