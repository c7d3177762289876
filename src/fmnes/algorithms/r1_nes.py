"""R1-NES: natural evolution strategy with a rank-one covariance.

Y. Sun, F. Gomez, T. Schaul, J. Schmidhuber: "A linear time natural evolution strategy for
non-separable functions", GECCO 2013 Companion, arXiv 1106.1998.

Covariance sigma^2 (I + v v^T): one step size and one free direction, O(d) time a candidate. It
learns one long axis and no scaling of the coordinates; CR-FM-NES does both with fewer
evaluations. The paper's letters: its p is v here, its v is vbar = v/|v|, its lambda is ln sigma,
its c is ln |v|.
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
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms._shared import (
    Report,
    Shape,
    diagonal_of,
    nes_weights,
    norm2,
    unchanged,
    unless_flat,
    weights_by_candidate,
)

LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = False  # independent draws: z has lambda rows
# The published size is max(5, 4 log2 d, d/5), which at a million variables is two hundred
# thousand candidates a generation. The usual size has its price: the rate 0.1 was chosen for the
# published one, and is too fast for a long axis in many variables. On the rotated cigar of
# condition 1e4 lambda = 15 takes a third more evaluations than the published 21 at d = 40; at
# d = 80 lambda = 17 fails where the published 25, or eta = 0.07, needs 2.5e5.
default_popsize = _shared.default_popsize


@dataclass(frozen=True, kw_only=True)
class R1NES:
    """Settings of R1-NES.

    Parameters
    ----------
    D : array_like of shape (d,), optional
        Scale of each coordinate beside sigma0, ones by default. The method cannot learn it: D
        stays as it is given.
    v : array_like of shape (d,), optional
        Initial direction. Normal with standard deviation 1/sqrt(d) by default.
    eta : float
        Learning rate of sigma and of v. The published 0.1 goes with the published population
        size, max(5, 4 log2 d, d/5); with a smaller one and a long axis to learn, make it smaller
        in proportion.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.ellipsoid(10)
    >>> import numpy as np
    >>> method = fmnes.R1NES(eta=0.05, D=1000.0 ** -np.linspace(0, 1, 10))
    >>> fmnes.minimize(problem, problem.x0, 2.0, method=method, ftarget=1e-8, rng=1).success
    True
    """

    D: ArrayLike | None = None
    v: ArrayLike | None = None
    eta: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.eta <= 1:
            raise ValueError(f"eta: expected a number from 0 to 1, got {self.eta!r}")


Settings = R1NES


class Params(NamedTuple):
    """Constants for a dimension and a population size."""

    dim: int
    popsize: int
    u: NDArray[np.float64]  # utilities, best first, sum 1
    eta: float
    refresh_every: int = 0
    store_draws: bool = True  # keep the draws from ask to tell; else make them again


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    D: Array  # never changes: the coordinates the method works in are x / D
    v: Array


def params(dim: int, popsize: int, settings: R1NES = R1NES()) -> Params:
    """The published constants."""
    return Params(dim=dim, popsize=popsize, u=nes_weights(popsize), eta=settings.eta)


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; ``z`` of shape (d,) is the draw that v starts from when none is given."""
    xp = array_namespace(mean)
    v = shape.v if shape.v is not None else z / math.sqrt(params.dim)
    D = shape.D if shape.C is None else diagonal_of(xp, shape)
    return State(mean, sigma, D, v)


def transform(params: Params, state: State, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma D (I + v v^T)^(1/2) z.

    The paper draws y = z + g v with one more normal number g; the distribution is the same.
    """
    xp = array_namespace(z)
    return vd.candidates(xp, vd.direction(xp, state.v), None, state.sigma * state.D, z)


def ask(params: Params, state: State, z: Array) -> Array:
    """Candidates m + sigma D (I + v v^T)^(1/2) z from draws z of shape (lambda, d)."""
    xp = array_namespace(z)
    return vd.candidates(xp, vd.direction(xp, state.v), state.mean, state.sigma * state.D, z)


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates.

    The paper's sums, written in z instead of y: with a = <z, vbar>, <vbar, y> = sqrt(g) a and
    |y|^2 = |z|^2 + |v|^2 a^2, so that terms of size |v|^2 cancel by hand and not by rounding:

        Delta_v = (g / 2|v|) sum u (a^2 - q) vbar + (sqrt(g) / |v|) sum u a (z - a vbar)
        Delta ln sigma = (1/2) sum u (q - 1)               with q = (|z|^2 - a^2) / (d - 1)
    """
    xp = array_namespace(z)
    mean, sigma, D, v = state
    of = vd.direction(xp, v)
    a, norm_z2 = vd.row_products(xp, of, z)
    u = weights_by_candidate(xp, constant(xp, params.u, z), f, norm_z2)

    gz, az, _ = kernels.select(xp, z.dtype).moments(xp, z, u, u * a)
    gy = D * vd.stretch(xp, of, gz)  # sum u (x - m) / sigma

    aa = xp.sum(u * a * a)
    az = az - aa * of.vbar  # sum u a (z - a vbar), orthogonal to v
    # With one variable there is nothing beside v to compare it with: v rests, sigma does all.
    q = (xp.sum(u * norm_z2) - aa) / (params.dim - 1) if params.dim > 1 else aa
    along = of.g / (2 * of.norm_v) * (aa - q)
    across = of.r / of.norm_v * az
    return unless_flat(
        xp,
        f,
        state,
        State(
            mean + sigma * gy,
            sigma * xp.exp(0.5 * params.eta * (q - 1)),
            D,
            _move(xp, params.eta, of, along, across),
        ),
    )


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


# Where |v| is shorter it does not show in the covariance; where it is longer, nothing else does.
# On a slope without end v grows until the rule about growing deviations ends the search: the
# limit has to lie beyond that rule's factor of 1e8, and the squares of |v|^2 within float32.
_V_LIMITS = (1e-4, 1e9)


def _move(xp: Namespace, eta: float, of: vd.Direction, along: Array, across: Array) -> Array:
    """The next v, after a step along * vbar + across.

    The paper adds the step where it makes v longer; where it makes v shorter, it takes the step
    in (ln |v|, vbar) instead, which cannot pass through zero. The rate is cut to 2|v| / |step|,
    so one generation leaves |v| between e^-2 and 3 times what it was. But a short v sees only
    noise of size 1/|v|, and for d <= 3 ln |v| falls under it more than it rises. Hence the lower
    limit: without it |v| is 1e-150 on a sphere of two or three variables before long, and never
    comes back.
    """
    step = xp.sqrt(along * along + norm2(xp, across)) / of.norm_v  # relative to |v|
    rate = eta / xp.clip(0.5 * eta * step, 1.0, None)  # min(eta, 2 / step), without a 0 / 0
    longer = of.norm_v * of.vbar + rate * (along * of.vbar + across)
    turned = of.vbar + rate / of.norm_v * across  # at least as long as vbar: across is orthogonal
    shorter = turned * (of.norm_v * xp.exp(rate * along / of.norm_v) / xp.sqrt(norm2(xp, turned)))
    v = xp.where(along > 0, longer, shorter)
    length = xp.sqrt(norm2(xp, v))
    return v * (xp.clip(length, *_V_LIMITS) / length)
