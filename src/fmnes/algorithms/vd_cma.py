"""VD-CMA: CMA-ES restricted to a diagonal and one direction.

Y. Akimoto, A. Auger, N. Hansen: "Comparison-based natural gradient optimization in high
dimension", GECCO 2014.

Covariance sigma^2 D (I + v v^T) D, the model of CR-FM-NES, learned at CMA-ES's rates and with
step-size control by the length of a path: O(d) time a candidate and O(d) memory. pycma's
GaussVDSampler learns D and v in the same way, to the last digits, under pycma's own step-size
rule, whose path is longer: c_sigma is of the order 1/d there, 1/sqrt(d) here.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _shared
from fmnes.algorithms import _vd_gaussian as vd
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
class VDCMA:
    """Settings of VD-CMA.

    Parameters
    ----------
    D : array_like of shape (d,), optional
        Initial scale of each coordinate beside sigma0. Ones by default.
    v : array_like of shape (d,), optional
        Initial direction. Normal with standard deviation 1/sqrt(d) by default, as in the paper.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> import numpy as np
    >>> method = fmnes.VDCMA(D=1000.0 ** -np.linspace(0, 1, 10))
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    D: ArrayLike | None = None
    v: ArrayLike | None = None


Settings = VDCMA


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    w: NDArray[np.float64]  # rank weights, best first, sum 1; zero for the worse half
    mu_eff: float
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    chi_n: float  # E|N(0, I)|
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


def params(dim: int, popsize: int, settings: VDCMA = VDCMA()) -> Params:
    """The published constants."""
    w = _weights(popsize)
    mu_eff = effective_size(w)
    c_sigma = 0.5 / (math.sqrt(dim / mu_eff) + 1)
    factor = max((dim - 5) / 6, 0.5)  # fewer parameters than a full matrix: faster rates
    c_1 = factor * 2 / ((dim + 1.3) ** 2 + mu_eff)
    c_mu = factor * 2 * (mu_eff - 2 + 1 / mu_eff) / ((dim + 2) ** 2 + mu_eff)
    return Params(
        dim=dim,
        popsize=popsize,
        w=w,
        mu_eff=mu_eff,
        c_sigma=c_sigma,
        d_sigma=1 + c_sigma + 2 * max(0.0, math.sqrt((mu_eff - 1) / (dim + 1)) - 1),
        c_c=(4 + mu_eff / dim) / (dim + 4 + 2 * mu_eff / dim),
        c_1=c_1,
        c_mu=min(1 - c_1, c_mu),
        chi_n=norm_of_normal(dim),
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; ``z`` of shape (d,) is the draw that v starts from when none is given."""
    xp = array_namespace(mean)
    v = shape.v if shape.v is not None else z / math.sqrt(params.dim)
    D = shape.D if shape.C is None else diagonal_of(xp, shape)
    return State(mean, sigma, D, v, xp.zeros_like(mean), xp.zeros_like(mean))


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma D (I + v v^T)^(1/2) z."""
    xp = array_namespace(z)
    return vd.candidates(xp, vd.direction(xp, state.v), None, state.sigma * state.D, z)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + sigma D (I + v v^T)^(1/2) z from draws z of shape (lambda, d)."""
    xp = array_namespace(z)
    return vd.candidates(xp, vd.direction(xp, state.v), state.mean, state.sigma * state.D, z)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates."""
    xp = array_namespace(z)
    mean, sigma, D, v, p_sigma, p_c = state
    of = vd.direction(xp, v)
    a, norm_z2 = vd.row_products(xp, of, z)
    w = weights_by_candidate(xp, constant(xp, params.w, z), f, norm_z2)
    gz, sums = vd.sample_moments(xp, of, z, a, w, params.c_mu * w)

    # === Step size: the path is summed in z, which is (I + v v^T)^(-1/2) D^-1 (x - m) / sigma ===
    p_sigma = (1 - params.c_sigma) * p_sigma + path_scale(params.c_sigma, params.mu_eff) * gz
    norm_p2 = norm2(xp, p_sigma)
    growth = params.c_sigma / params.d_sigma * (xp.sqrt(norm_p2) / params.chi_n - 1)
    # A long path means that sigma is far too small: v and D wait, they would learn the path.
    h = xp.astype(norm_p2 < (2 + 4 / (params.dim + 1)) * params.dim, z.dtype)

    # === Mean and path ===
    gy = D * vd.stretch(xp, of, gz)  # sum w (x - m) / sigma
    p_c = (1 - params.c_c) * p_c + h * path_scale(params.c_c, params.mu_eff) * gy

    # === Shape: the path p_c is one more sample, of weight c_1 ===
    sums = vd.add_sample(of, sums, h * params.c_1, *vd.unstretch(xp, of, p_c / D))
    D, v = _move(xp, D, v, of.norm_v, vd.natural_gradient(xp, of, sums))
    k = common_factor(xp, D)
    new = State(mean + sigma * gy, k * sigma * xp.exp(growth), D / k, v, p_sigma, p_c / k)
    return unless_flat(xp, f, state, new)


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
        phase=xp.zeros_like(sigma),
    )


def _weights(popsize: int) -> NDArray[np.float64]:
    """CMA-ES's positive weights: proportional to ln((lambda + 1)/2) - ln i for i <= lambda/2."""
    half = popsize // 2
    w = [math.log((popsize + 1) / 2) - math.log(i) for i in range(1, half + 1)]
    return np.asarray(w + [0.0] * (popsize - half)) / math.fsum(w)


_LARGEST_STEP = 0.7  # of any D_j, or of |v|, in one generation
# Beyond these neither D nor v means anything beside the rest of the covariance, and within them
# no square overflows in float32. |v| = 1e7 is a condition number of 1e14.
_D_LIMIT = 1e18
_V_LIMITS = (0.1, 1e7)


def _move(
    xp: Namespace, D: Array, v: Array, norm_v: Array, gradient: vd.Gradient
) -> tuple[Array, Array]:
    """D and v after the natural-gradient step, cut to 70 % of what they were.

    The cut keeps D positive and v away from zero in one generation, but not in many. The step in
    v grows like 1/|v|, so once v is short the cut always acts, on D as well, by a factor like
    |v|^2; and for d < 5 v gets shorter under such steps more often than longer. Then D stands
    still: with two variables the ellipsoid is lost in 12 of 20 runs (pycma's VD-CMA loses it the
    same way). |v| = 0.1 changes no variance by more than 1 %, so that is where we stop it: 20 of
    20 runs, and nothing changes for d >= 10.
    """
    s = gradient.log_D
    size = xp.maximum(xp.max(xp.abs(s)), xp.sqrt(norm2(xp, gradient.v)) / norm_v)
    fraction = 1 / xp.clip(size / _LARGEST_STEP, 1.0, None)
    D = xp.clip(D * (1 + fraction * s), 1 / _D_LIMIT, _D_LIMIT)
    v = v + fraction * gradient.v
    length = xp.sqrt(norm2(xp, v))
    return D, v * (xp.clip(length, *_V_LIMITS) / length)
