"""SNES: separable natural evolution strategy.

T. Schaul, T. Glasmachers, J. Schmidhuber: "High dimensions and heavy tails for natural evolution
strategies", GECCO 2011.

Covariance diag(s*s): one step size for each coordinate and nothing else, so it is the shortest
method here and the cheapest, O(d) time a candidate. It knows no evolution path: on badly scaled
problems CR-FM-NES and separable CMA-ES need fewer evaluations.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import kernels
from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _shared
from fmnes.algorithms._shared import (
    Report,
    Shape,
    check_rates,
    diagonal_of,
    nes_weights,
    unchanged,
    unless_flat,
    weights_by_candidate,
)

LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = False  # independent draws: z has lambda rows
default_popsize = _shared.default_popsize


@dataclass(frozen=True, kw_only=True)
class SNES:
    """Settings of SNES.

    Parameters
    ----------
    D : array_like of shape (d,), optional
        Initial scale of each coordinate beside sigma0. Ones by default.
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
        check_rates(eta_sigma=self.eta_sigma)


Settings = SNES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    u: NDArray[np.float64]  # utilities, best first, sum 0
    eta_sigma: float
    refresh_every: int = 0
    store_draws: bool = True  # keep the draws from ask to tell; else make them again


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    s: Array  # standard deviation of each coordinate


def params(dim: int, popsize: int, settings: SNES = SNES()) -> Params:
    """The published constants."""
    default = (3 + math.log(dim)) / (5 * math.sqrt(dim))
    return Params(
        dim=dim,
        popsize=popsize,
        u=nes_weights(popsize) - 1 / popsize,
        eta_sigma=default if settings.eta_sigma is None else settings.eta_sigma,
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; of a shape it keeps the diagonal."""
    return State(mean, sigma * diagonal_of(array_namespace(mean), shape))


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: s z."""
    return state.s * z


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + s z from draws z of shape (lambda, d)."""
    xp = array_namespace(z)
    return kernels.select(xp, z.dtype).candidates(xp, state.mean, state.s, z)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates.

    The exponential keeps s positive, and one generation changes ln s_j by no more than
    eta_sigma / 2 times the largest z_j^2: whatever the ranking, s stays a finite number.
    """
    xp = array_namespace(z)
    kernel = kernels.select(xp, z.dtype)
    _, norm_z2 = kernel.row_products(xp, z)
    u = weights_by_candidate(xp, constant(xp, params.u, z), f, norm_z2)
    gz, _, gzz = kernel.moments(xp, z, u, None, u)  # sum u z, sum u z*z
    mean = state.mean + state.s * gz
    s = state.s * xp.exp(0.5 * params.eta_sigma * gzz)  # the -1 drops out: sum u = 0
    return unless_flat(xp, f, state, State(mean, s))


refresh = unchanged


def shape(params: Params, state: State) -> Shape:
    """What a warm start takes over beside the mean and sigma."""
    return Shape(state.s / _sigma(array_namespace(state.s), state))


def report(params: Params, state: State) -> Report:
    """What the history and the stopping rules look at."""
    xp = array_namespace(state.s)
    sigma = _sigma(xp, state)
    return Report(
        sigma=sigma,
        deviations=state.s,
        axis_ratio=xp.max(state.s) / xp.min(state.s),
        norm_v=xp.full_like(sigma, xp.nan),
        phase=xp.zeros_like(sigma),
    )


def _sigma(xp: Namespace, state: State) -> Array:
    """One step size for the whole distribution: the geometric mean of s."""
    return xp.exp(xp.mean(xp.log(state.s)))
