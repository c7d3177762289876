"""VD-CMA: CMA-ES restricted to a diagonal and one direction.

Y. Akimoto, A. Auger, N. Hansen: "Comparison-based natural gradient optimization in high
dimension", GECCO 2014. One generation, in the letters of the paper; the numbers (v1) to (v14) are
ours, for the comments below. grad(x) is the natural gradient of the log-likelihood (see
_vd_gaussian.py).

    (v1)  x_i = m + sigma D y_i,   y_i = (I + v v^T)^(1/2) z_i,   z_i ~ N(0, I)
    (v2)  m <- m + sum_i w_i (x_i - m)
    (v3)  p_sigma <- (1 - c_sigma) p_sigma + sqrt(c_sigma (2 - c_sigma) mu_eff)
              (I + v v^T)^(-1/2) D^-1 sum_i w_i (x_i - m) / sigma
    (v4)  sigma <- sigma exp((c_sigma / d_sigma) (|p_sigma| / E|N(0, I)| - 1))
    (v5)  h = 1 if |p_sigma|^2 < (2 + 4 / (d + 1)) d, else 0
    (v6)  p_c <- (1 - c_c) p_c + h sqrt(c_c (2 - c_c) mu_eff) sum_i w_i (x_i - m) / sigma
    (v7)  (v, D) <- (v, D) + c_mu sum_i w_i grad(x_i) + h c_1 grad(m + sigma p_c)

    (v8)  w_i = max(0, ln((lambda + 1)/2) - ln i), divided by their sum
    (v9)  mu_eff = 1 / sum_i w_i^2
    (v10) c_sigma = 0.5 / (sqrt(d / mu_eff) + 1),
              d_sigma = 1 + c_sigma + 2 max(0, sqrt((mu_eff - 1) / (d + 1)) - 1)
    (v11) c_c = (4 + mu_eff/d) / (d + 4 + 2 mu_eff/d)
    (v12) c_1 = max((d - 5)/6, 1/2) 2 / ((d + 1.3)^2 + mu_eff)
    (v13) c_mu = min(1 - c_1,
              max((d - 5)/6, 1/2) 2 (mu_eff - 2 + 1/mu_eff) / ((d + 2)^2 + mu_eff))
    (v14) E|N(0, I)| = sqrt(d) (1 - 1/(4 d) + 1/(21 d^2)),   lambda = 4 + floor(3 ln d)

Covariance sigma^2 D (I + v v^T) D, the model of CR-FM-NES, learned at CMA-ES's rates and with
step-size control by the length of a path: O(d) time for each candidate and O(d) memory. pycma's
GaussVDSampler updates D and v in the same way, to the last digits, under pycma's own step-size
rule with a longer path: c_sigma is of the order 1/d there, 1/sqrt(d) here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _paths as paths
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._records import Shape, as_they_are, same_popsize, unchanged, unless_flat
from fmnes.algorithms._rescaling import common_factor
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import norm2, with_length_within

COVARIANCE = "sigma^2 D (I + v v^T) D"
LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = False  # independent draws: z has lambda rows
GROWING: dict[str, tuple[str, ...]] = {}
default_popsize = weights.default_popsize  # (v14)


@dataclass(frozen=True, kw_only=True)
class VDCMA(MethodSettings):
    """Settings of VD-CMA.

    Parameters
    ----------
    D : array_like of shape (d,), optional
        Initial scale of each coordinate, multiplied by sigma0. Ones by default.
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
    patience: int = 1


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
    w = np.clip(weights.cma_weights(popsize), 0, None)  # (v8)
    w = w / math.fsum(w)  # (v8)
    mu_eff = weights.effective_size(w)  # (v9)
    c_sigma = 0.5 / (math.sqrt(dim / mu_eff) + 1)  # (v10)
    # The model has fewer parameters than a full matrix, so it can learn faster: (v12) and (v13).
    factor = max((dim - 5) / 6, 0.5)
    c_1 = factor * 2 / ((dim + 1.3) ** 2 + mu_eff)  # (v12)
    c_mu = factor * 2 * (mu_eff - 2 + 1 / mu_eff) / ((dim + 2) ** 2 + mu_eff)  # (v13)
    return Params(
        dim=dim,
        popsize=popsize,
        w=w,
        mu_eff=mu_eff,
        c_sigma=c_sigma,
        d_sigma=paths.sigma_damping(dim, mu_eff, c_sigma),  # (v10)
        c_c=paths.p_c_rate(dim, mu_eff),  # (v11)
        c_1=c_1,
        c_mu=min(1 - c_1, c_mu),  # (v13)
        chi_n=paths.norm_of_normal(dim),  # (v14)
    )


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; ``z`` of shape (d,) is the draw that v starts from if none is given."""
    xp = array_namespace(mean)
    D, v = vd.initial(xp, params.dim, shape, z)
    factor = common_factor(xp, D)
    return State(mean, sigma * factor, D / factor, v, xp.zeros_like(mean), xp.zeros_like(mean))


transform = vd.transform  # (v1)
draws_of = vd.draws_of
ask = vd.ask  # (v1)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates.

    The natural gradient is linear in the samples, so (v7) needs only the sums (moments) over
    all samples. The path p_c counts as one more sample, of weight c_1.
    """
    xp = array_namespace(z)
    mean, sigma, D, v, p_sigma, p_c = state
    direction = vd.direction_of(xp, v)
    a, norm_z2 = vd.row_products(xp, direction, z)
    w = weights.by_candidate(xp, constant(xp, params.w, z), f, norm_z2)
    # The sums over the samples in (v3) and (v7).
    gz, moments = vd.sample_moments(xp, direction, z, a, w, params.c_mu * w)
    gy = D * vd.stretch(xp, direction, gz)  # sum w (x - m) / sigma, of (v2) and (v6)

    # (v3): z is (I + v v^T)^(-1/2) D^-1 (x - m) / sigma
    p_sigma = paths.next_path(p_sigma, params.c_sigma, params.mu_eff, gz)
    norm_p2 = norm2(xp, p_sigma)
    growth = params.c_sigma / params.d_sigma * (xp.sqrt(norm_p2) / params.chi_n - 1)  # (v4)
    # (v5): a long path means that sigma is far too small. v and D do not learn from the path p_c
    # until sigma has grown.
    h = xp.astype(norm_p2 < (2 + 4 / (params.dim + 1)) * params.dim, z.dtype)
    p_c = paths.next_path(p_c, params.c_c, params.mu_eff, h * gy)  # (v6)

    path = vd.unstretch(xp, direction, p_c / D)  # m + sigma p_c of (v7), as a draw
    moments = vd.add_sample(direction, moments, h * params.c_1, *path)  # (v7)
    gradient = vd.natural_gradient(xp, direction, moments)  # (v7)
    D, v = _move(xp, D, v, direction.norm_v, gradient)  # (v7)
    k = common_factor(xp, D)
    mean, sigma = mean + sigma * gy, k * sigma * xp.exp(growth)  # (v2) and (v4)
    return unless_flat(xp, f, state, State(mean, sigma, D / k, v, p_sigma, p_c / k))


refresh = resized = unchanged
fixed = as_they_are
next_popsize = same_popsize
shape = vd.shape
summary = vd.summary


_LARGEST_STEP = 0.7  # of any D_j, or of |v|, in one generation
# Beyond these limits D and v do not matter beside the rest of the covariance, and within them no
# square overflows in float32. |v| = 1e7 is a condition number of 1e14.
_D_LIMIT = 1e18
_V_LIMITS = (0.1, 1e7)


def _move(
    xp: Namespace, D: Array, v: Array, norm_v: Array, gradient: vd.Gradient
) -> tuple[Array, Array]:
    """D and v after the natural-gradient step (v7), cut to 70 % of what they were.

    The cut keeps D positive and v away from zero in one generation, but not in many. The step in
    v grows like 1/|v|, so once v is short the cut always acts, on D as well, by a factor like
    |v|^2; and for d < 5 v gets shorter under such steps more often than longer. Then D stops
    changing: with two variables the ellipsoid is lost in 12 of 20 runs (pycma's VD-CMA loses it the
    same way). |v| = 0.1 changes no variance by more than 1 %, so we stop v there: 20 of 20 runs
    succeed, and nothing changes for d >= 10.
    """
    s = gradient.log_D
    size = xp.maximum(xp.max(xp.abs(s)), xp.sqrt(norm2(xp, gradient.v)) / norm_v)
    fraction = 1 / xp.clip(size / _LARGEST_STEP, 1.0, None)
    D = xp.clip(D * (1 + fraction * s), 1 / _D_LIMIT, _D_LIMIT)
    v = v + fraction * gradient.v
    return D, with_length_within(xp, v, _V_LIMITS)
