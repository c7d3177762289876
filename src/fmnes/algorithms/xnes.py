"""xNES: exponential natural evolution strategy.

T. Glasmachers, T. Schaul, Y. Sun, D. Wierstra, J. Schmidhuber: "Exponential natural evolution
strategies", GECCO 2010. The natural gradient alone: no paths, no phases. One generation, in the
letters of the paper; the numbers (x1) to (x9) are ours, for the comments below:

    (x1)  x_i = m + sigma B z_i,   z_i ~ N(0, I)
    (x2)  G_delta = sum_i w_i z_i
    (x3)  G_M = sum_i w_i (z_i z_i^T - I),   G_sigma = tr(G_M) / d,   G_B = G_M - G_sigma I
    (x4)  m <- m + sigma B G_delta
    (x5)  sigma <- sigma exp(eta_sigma G_sigma / 2)
    (x6)  B <- B exp(eta_B G_B / 2)
    (x7)  eta_sigma = eta_B = 0.6 (3 + ln d) / (d sqrt(d))
    (x8)  w_i = v_i / sum_j v_j - 1/lambda,   v_i = max(0, ln(lambda/2 + 1) - ln i)
    (x9)  lambda = 4 + floor(3 ln d)

Covariance sigma^2 B B^T with a full matrix B, det B = 1. The method does not depend on rotations;
O(d^2) time for each candidate and O(d^2) memory, for up to some hundred variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, constant
from fmnes.algorithms import _full_gaussian as full
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._records import Shape, as_they_are, same_popsize, unchanged, unless_flat
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import choose, norm2
from fmnes.kernels import blas

COVARIANCE = "sigma^2 B B^T"
LINEAR = False
ANTITHETIC = False
GROWING: dict[str, tuple[str, ...]] = {}
default_popsize = weights.default_popsize  # (x9)


@dataclass(frozen=True, kw_only=True)
class XNES(MethodSettings):
    """Settings of xNES.

    Parameters
    ----------
    C : array_like of shape (d, d), optional
        Initial shape of the covariance, without sigma0. The identity by default.
    eta_sigma : float, optional
        Learning rate of sigma, 0.6 (3 + ln d) / d^1.5 by default.
    eta_B : float, optional
        Learning rate of the shape, the same by default.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> method = fmnes.XNES(eta_B=0.2)
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    C: ArrayLike | None = None
    eta_sigma: float | None = None
    eta_B: float | None = None

    def __post_init__(self) -> None:
        checks.fields(self, eta_sigma=checks.rate, eta_B=checks.rate)


Settings = XNES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    refresh_every: int
    w: NDArray[np.float64]  # rank weights, best first, sum 0
    eta_sigma: float
    eta_B: float
    store_draws: bool = True  # keep the draws from ask to tell; else make them again
    patience: int = 1


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    B: Array
    axis_ratio: Array  # longest over shortest axis of B B^T, at the last refresh


def params(dim: int, popsize: int, settings: XNES = XNES()) -> Params:
    """The constants of the paper's table 1."""
    eta = 0.6 * (3 + math.log(dim)) / (dim * math.sqrt(dim))  # (x7)
    return Params(
        dim=dim,
        popsize=popsize,
        # Not in the paper. The axis ratio needs a matrix decomposition that the method itself does
        # not need, and it changes slowly. Computing it once in d/10 generations costs less than the
        # samples.
        refresh_every=max(1, dim // 10),
        w=weights.nes_weights(popsize) - 1 / popsize,  # (x8)
        eta_sigma=eta if settings.eta_sigma is None else settings.eta_sigma,
        eta_B=eta if settings.eta_B is None else settings.eta_B,
    )


@blas.one_thread
def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; it does not need the draw z."""
    xp = array_namespace(mean)
    B, volume = full.normalised_root(xp, shape)
    return State(mean, sigma * volume, B, full.axis_ratio(xp, B))


transform = full.transform
draws_of = full.draws_of


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + sigma B z from draws z of shape (lambda, d)."""
    return state.mean + transform(params, state, z)  # (x1)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    mean, sigma, B, axis_ratio = state
    norm_z2 = norm2(xp, z)
    w = weights.by_candidate(xp, constant(xp, params.w, z), f, norm_z2)

    G_delta = w @ z  # (x2)
    G_sigma = xp.sum(w * norm_z2) / params.dim  # (x3): the -I drops out, as sum w = 0
    B_new = full.stretched(xp, B, full.natural_step(xp, params.eta_B, w, z))  # (x3) and (x6)
    new = State(
        mean + sigma * (B @ G_delta),  # (x4)
        sigma * xp.exp(params.eta_sigma / 2 * G_sigma),  # (x5)
        choose(xp, full.is_bounded(xp, B_new), B_new, B),
        axis_ratio,
    )
    return unless_flat(xp, f, state, new)


def refresh(params: Params, state: State) -> State:
    """The same state with its axis ratio computed again."""
    return state._replace(axis_ratio=full.axis_ratio(array_namespace(state.B), state.B))


resized = unchanged
fixed = as_they_are
next_popsize = same_popsize
shape = full.shape
summary = full.summary
