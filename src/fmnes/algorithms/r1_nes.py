"""R1-NES: natural evolution strategy with a rank-one covariance.

Y. Sun, F. Gomez, T. Schaul, J. Schmidhuber: "A linear time natural evolution strategy for
non-separable functions", GECCO 2013 Companion, arXiv 1106.1998. The paper's letters: its p is v
here, its v is vbar = v/|v|, its lambda is ln sigma, its c is ln |v|. One generation; the numbers
(r1) to (r7) are ours, for the comments below. g = 1 + |v|^2.

    (r1)  x_i = m + sigma y_i,   y_i ~ N(0, I + v v^T)
    (r2)  m <- m + sigma sum_i u_i y_i
    (r3)  Delta_v = sum_i u_i (k_i vbar + (<vbar, y_i> / |v|) y_i),
              k_i = ((|v|^2 - d + 2) <vbar, y_i>^2 - g |y_i|^2) / (2 |v| (d - 1))
    (r4)  ln sigma <- ln sigma + eta / (2 (d - 1)) sum_i u_i ((|y_i|^2 - d) - (<vbar, y_i>^2 - 1))
    (r5)  e = min(eta, 2 |v| / |Delta_v|)
    (r6)  with Delta_c = <Delta_v, vbar> / |v|:
              if Delta_c > 0, v <- v + e Delta_v,
              else ln |v| <- ln |v| + e Delta_c and vbar <- vbar + e (Delta_v / |v| - Delta_c vbar),
              normalised
    (r7)  u_i = w_i / sum_j w_j,   w_i = max(0, ln(lambda/2 + 1) - ln i);   eta = 0.1

Covariance sigma^2 (I + v v^T): one step size and one free direction, O(d) time for each candidate.
It learns one long axis and no scaling of the coordinates; CR-FM-NES does both with fewer
evaluations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes import kernels
from fmnes._arrays import Array, Namespace, constant
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.algorithms import _weights as weights
from fmnes.algorithms._records import Shape, as_they_are, same_popsize, unchanged, unless_flat
from fmnes.algorithms._settings import MethodSettings
from fmnes.algorithms._vectors import norm2, with_length_within

COVARIANCE = "sigma^2 (I + v v^T)"
LINEAR = True  # O(d) time a candidate and O(d) memory
ANTITHETIC = False  # independent draws: z has lambda rows
GROWING: dict[str, tuple[str, ...]] = {}
# The published size is max(5, 4 log2 d, d/5), which at a million variables is two hundred
# thousand candidates for each generation. The usual size has its price: the rate 0.1 was chosen
# for the published size, and is too fast for a long axis in many variables. On the rotated cigar
# of condition 1e4 lambda = 15 takes a third more evaluations than the published 21 at d = 40; at
# d = 80 lambda = 17 fails where the published 25, or eta = 0.07, needs 2.5e5.
default_popsize = weights.default_popsize


@dataclass(frozen=True, kw_only=True)
class R1NES(MethodSettings):
    """Settings of R1-NES.

    Parameters
    ----------
    D : array_like of shape (d,), optional
        Scale of each coordinate, multiplied by sigma0. Ones by default. The method cannot learn D:
        it stays as given.
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
    eta: float = 0.1  # (r7)

    def __post_init__(self) -> None:
        checks.fields(self, eta=partial(checks.finite, least=0.0))
        if self.eta > 1:
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
    patience: int = 1


class State(NamedTuple):
    """What changes from generation to generation; arrays of one dtype and device."""

    mean: Array
    sigma: Array
    D: Array  # never changes: the coordinates the method works in are x / D
    v: Array


def params(dim: int, popsize: int, settings: R1NES = R1NES()) -> Params:
    """The published constants."""
    # u is (r7).
    return Params(dim=dim, popsize=popsize, u=weights.nes_weights(popsize), eta=settings.eta)


def init(params: Params, mean: Array, sigma: Array, shape: Shape, z: Array) -> State:
    """The first state; ``z`` of shape (d,) is the draw that v starts from if none is given."""
    return State(mean, sigma, *vd.initial(array_namespace(mean), params.dim, shape, z))


# (r1). The paper draws y = z + h v with one more normal number h; the distribution is the same.
transform = vd.transform
draws_of = vd.draws_of
ask = vd.ask


def tell(params: Params, state: State, z: Array, f: Array) -> State:
    """The next state, from the draws of `ask` and the values of its candidates.

    With a = <z, vbar> we have <vbar, y> = sqrt(g) a and |y|^2 = |z|^2 + |v|^2 a^2. Written in z,
    the terms of size |v|^2 that cancel in (r3) and (r4) never appear:

        Delta_v = (g / 2|v|) sum u (a^2 - q) vbar + (sqrt(g) / |v|) sum u a (z - a vbar)
        Delta ln sigma = (eta / 2) sum u (q - 1)              with q = (|z|^2 - a^2) / (d - 1)
    """
    xp = array_namespace(z)
    mean, sigma, D, v = state
    direction = vd.direction_of(xp, v)
    vbar, norm_v, g, r = direction
    a, norm_z2 = vd.row_products(xp, direction, z)
    u = weights.by_candidate(xp, constant(xp, params.u, z), f, norm_z2)
    # The sums over the samples in (r2), (r3) and (r4).
    gz, az, _ = kernels.select(xp, z.dtype).moments(xp, z, u, u * a)

    aa = xp.sum(u * a * a)
    az = az - aa * vbar  # sum u a (z - a vbar), orthogonal to v
    # With one variable there is nothing to compare v with: v stays, and sigma does everything.
    q = (xp.sum(u * norm_z2) - aa) / (params.dim - 1) if params.dim > 1 else aa
    along, across = g / (2 * norm_v) * (aa - q), r / norm_v * az  # (r3)
    new = State(
        mean + sigma * (D * vd.stretch(xp, direction, gz)),  # (r2)
        sigma * xp.exp(0.5 * params.eta * (q - 1)),  # (r4)
        D,
        _move(xp, params.eta, direction, along, across),  # (r5) and (r6)
    )
    return unless_flat(xp, f, state, new)


refresh = resized = unchanged
fixed = as_they_are
next_popsize = same_popsize
shape = vd.shape
summary = vd.summary


# A shorter v does not show in the covariance, and a longer one hides everything else. On a slope
# without end v grows until the rule about growing deviations ends the search: the limit has to lie
# beyond that rule's factor of 1e8, and the squares of |v|^2 within float32.
_V_LIMITS = (1e-4, 1e9)


def _move(xp: Namespace, eta: float, direction: vd.Direction, along: Array, across: Array) -> Array:
    """The next v, after the step Delta_v = along * vbar + across.

    (r6) adds the step where it makes v longer. Where it makes v shorter, (r6) takes the step in
    (ln |v|, vbar) instead, which cannot pass through zero. Because of (r5) one generation leaves
    |v| between e^-2 and 3 times what it was. But a short v sees only noise of size 1/|v|, and for
    d <= 3 ln |v| falls more than it rises under that noise. Hence the lower limit: without it |v|
    soon is 1e-150 on a sphere of two or three variables, and never comes back.
    """
    vbar, norm_v, _, _ = direction
    step = xp.sqrt(along * along + norm2(xp, across)) / norm_v  # |Delta_v| / |v|
    rate = eta / xp.clip(0.5 * eta * step, 1.0, None)  # (r5): min(eta, 2 / step), without a 0 / 0
    longer = norm_v * vbar + rate * (along * vbar + across)
    turned = vbar + rate / norm_v * across  # at least as long as vbar: across is orthogonal
    shorter = turned * (norm_v * xp.exp(rate * along / norm_v) / xp.sqrt(norm2(xp, turned)))
    return with_length_within(xp, xp.where(along > 0, longer, shorter), _V_LIMITS)  # (r6)
