"""The Gaussian N(m, sigma^2 D (I + v v^T) D): its samples and its natural gradient.

Y. Akimoto, A. Auger, N. Hansen: "Comparison-based natural gradient optimization in high
dimension", GECCO 2014. R1-NES, VD-CMA and CR-FM-NES share this model; everything here is O(d) for
each sample. Step and equation numbers are those of section III-B of the CR-FM-NES paper, arXiv
2201.11422, which restates the natural gradient with a corrected H.

Notation: vbar = v/|v|, vv = vbar*vbar, g = 1 + |v|^2 (the papers' gamma_v), r = sqrt(g),
a = <z, vbar>. A sample is y = (I + v v^T)^(1/2) z = z + (r - 1) a vbar, and x = m + sigma D y.
"""

import math
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from fmnes import kernels
from fmnes._arrays import Array, Namespace
from fmnes.algorithms._records import Shape, Summary, diagonal_of
from fmnes.algorithms._vectors import VARIABLES, at_least, at_most, norm2


class Direction(NamedTuple):
    """The length and direction of v, with the scalars that every formula needs."""

    vbar: Array  # v / |v|
    norm_v: Array
    g: Array  # 1 + |v|^2
    r: Array  # sqrt(g)


class Moments(NamedTuple):
    """Weighted sums over the samples: all that the natural gradient needs to know of them."""

    az: Array  # sum w a z_perp, orthogonal to v
    zz: Array  # sum w z*z
    aa: Array  # sum w a^2
    total: Array | float  # sum w


class Gradient(NamedTuple):
    """Natural gradient of the log-likelihood, summed over the samples."""

    log_D: Array  # relative change of D: the papers' s
    v: Array  # change of v: t / |v|
    u: Array  # change of u = D v, divided by D: equal to v * log_D + (change of v)


def direction_of(xp: Namespace, v: Array) -> Direction:
    """Length and unit vector of v."""
    norm_v2 = norm2(xp, v)
    norm_v = xp.sqrt(norm_v2)
    return Direction(v / norm_v, norm_v, 1 + norm_v2, xp.sqrt(1 + norm_v2))


# === What a method with this model offers; its state has the fields mean, sigma, D and v ===


def initial(xp: Namespace, dim: int, shape: Shape, z: Array) -> tuple[Array, Array]:
    """D and v of the first state; v is z / sqrt(d) for the draw z of shape (d,) if none is given.

    Of a full matrix D takes the diagonal.
    """
    v = shape.v if shape.v is not None else z / math.sqrt(dim)
    return shape.D if shape.C is None else diagonal_of(xp, shape), v


def transform(params: Any, state: Any, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma D (I + v v^T)^(1/2) z."""
    return _candidates(state, None, z)


def draws_of(params: Any, state: Any, steps: Array) -> Array:
    """The draws of rows of steps: `transform` backwards."""
    xp = array_namespace(steps)
    direction, y = direction_of(xp, state.v), steps / (state.sigma * state.D)
    a = xp.sum(y * direction.vbar, axis=-1, keepdims=True) / direction.r
    return y - (direction.r - 1) * a * direction.vbar


def ask(params: Any, state: Any, z: Array) -> Array:
    """Candidates m + sigma D (I + v v^T)^(1/2) z from draws z of shape (lambda, d)."""
    return _candidates(state, state.mean, z)


def mirrored_ask(params: Any, state: Any, z: Array) -> Array:
    """Candidates from draws z of shape (lambda/2, d): rows m + sigma D y, then m - sigma D y."""
    return _candidates(state, state.mean, z, mirrored=True)


def shape(params: Any, state: Any) -> Shape:
    """The part of the state that a warm start takes over, apart from the mean and sigma."""
    return Shape(state.D, state.v)


def summary(params: Any, state: Any) -> Summary:
    """What the history and the stopping rules read; for a method without phases."""
    return summarised(array_namespace(state.v), state)


def summarised(xp: Namespace, state: Any) -> Summary:
    """The same for a given namespace."""
    sigma, D, v = state.sigma, state.D, state.v
    return Summary(
        sigma=sigma,
        deviations=sigma * D * xp.sqrt(1 + v * v),
        axis_ratio=xp.max(D, axis=VARIABLES)
        / xp.min(D, axis=VARIABLES)
        * xp.sqrt(1 + norm2(xp, v)),
        norm_v=xp.sqrt(norm2(xp, v)),
        phase=xp.zeros_like(sigma),
    )


def _candidates(state: Any, mean: Array | None, z: Array, *, mirrored: bool = False) -> Array:
    """Rows mean + sigma D (z + (r - 1) a vbar), and mirrored ones; without a mean the steps."""
    xp = array_namespace(z)
    direction = direction_of(xp, state.v)
    a, _ = row_products(xp, direction, z)
    c = (direction.r - 1) * a
    kernel = kernels.select(xp, z.dtype)
    scale = state.sigma * state.D
    candidates: Array = kernel.candidates(xp, mean, scale, z, c, direction.vbar, mirrored=mirrored)
    return candidates


# === Samples and sums over them ===


def row_products(xp: Namespace, direction: Direction, z: Array) -> tuple[Array, Array]:
    """The a = <z, vbar> and the |z|^2 of each row."""
    a, norm_z2 = kernels.select(xp, z.dtype).row_products(xp, z, direction.vbar)
    return a, norm_z2


def stretch(xp: Namespace, direction: Direction, z: Array) -> Array:
    """(I + v v^T)^(1/2) z of one vector."""
    along = xp.sum(z * direction.vbar, axis=VARIABLES)
    return z + (direction.r - 1) * along * direction.vbar


def unstretch(xp: Namespace, direction: Direction, y: Array) -> tuple[Array, Array]:
    """The z = (I + v v^T)^(-1/2) y of one vector, and its a = <z, vbar>."""
    a = xp.sum(y * direction.vbar, axis=VARIABLES) / direction.r
    return y - (direction.r - 1) * a * direction.vbar, a


def sample_moments(
    xp: Namespace, direction: Direction, z: Array, a: Array, w_mean: Array, w: Array
) -> tuple[Array, Moments]:
    """The sum of w_mean z, and the moments with weights w: one pass over the ranked samples."""
    gz, az, zz = kernels.select(xp, z.dtype).moments(xp, z, w_mean, w * a, w)
    aa = xp.sum(w * a * a)
    return gz, Moments(az - aa * direction.vbar, zz, aa, xp.sum(w))


def add_sample(
    direction: Direction, moments: Moments, w: Array | float, z: Array, a: Array
) -> Moments:
    """The moments with one more sample: an evolution path enters as a sample of weight c_1."""
    return Moments(
        moments.az + w * a * (z - a * direction.vbar),
        moments.zz + w * z * z,
        moments.aa + w * a * a,
        moments.total + w,
    )


def natural_gradient(xp: Namespace, direction: Direction, moments: Moments) -> Gradient:
    """Solve F (dv, d log D) = gradient for the Fisher matrix F, in O(d).

    F's off-diagonal blocks are multiplied by alpha <= 1, which keeps it regular where one
    coordinate holds most of v (Akimoto et al.). The paper does the following for each
    sample y (steps 1 to 5), then sums s and t over the samples with their weights:

        1.  s = y*y - |v|^2 <y, vbar> / g (y*vbar) - 1
        2.  t = <y, vbar> y - (<y, vbar>^2 + g) / 2 vbar
        3.  alpha = min(1, sqrt(|v|^4 + (2 - 1/r) g / max vv) / (2 + |v|^2))
            s <- s - alpha / g ((2 + |v|^2) vbar*t - |v|^2 <vbar, t> vv)
        4.  b = 2 alpha^2 - (1 - alpha^2) |v|^4 / g,   H = 2 - (b + 2 alpha^2) vv
            s <- s / H - b <s, vv/H> / (1 + b <vv, vv/H>) vv/H
        5.  t <- t - alpha ((2 + |v|^2) vbar*s - <s, vv> vbar)

    All five steps are linear in (s, t) with coefficients that depend on v alone, so we compute the
    sums first and take the steps once. Written in z instead of y, with z_perp = z - a vbar, the
    terms of size |v|^2 that cancel in steps 1 and 2 never appear:

        1.  s = z*z - 1 + ((r - 1)^2 / r) vbar * a z_perp
        2.  t = r a z_perp + (g/2) (a^2 - 1) vbar

    The constants of steps 3 and 4 have a form without cancellation too: with
    kappa = min(4, (2 - 1/r) / max vv) they are 1 - alpha^2 = (4 - kappa) g / (1 + g)^2,
    b = kappa - 2 alpha^2 and H = 2 - kappa vv. So float32 is precise enough for any length of v
    (docs/safe-variant.md derives all of this).
    """
    vbar, norm_v, g, r = direction
    az, zz, aa, total = moments
    vv = vbar * vbar
    n2 = g - 1
    largest = xp.max(vv, axis=VARIABLES)
    kappa = at_most(xp, (2 - 1 / r) / largest, 4.0)
    rest = (4 - kappa) / (g + 1) * (g / (g + 1))  # step 3: 1 - alpha^2
    alpha = xp.sqrt(1 - rest)
    b = kappa - 2 + 2 * rest  # step 4
    # Step 4: H = 2 - kappa vv falls to 1/r where one coordinate holds all of v. In this form
    # rounding cannot make it 0.
    share = vv / largest
    H = 2 * (1 - share) + share * xp.maximum(2 - 4 * largest, 1 / r)

    # Steps 1 to 3 for s. The factor of vbar*az is ((r - 1)^2 - alpha (1 + g)) / r, in a form
    # without cancellation.
    factor = (4 - kappa) * r / ((g + 1) * (1 + alpha)) - 2
    s = zz - total + factor * vbar * az - alpha * (aa - total) * vv
    # Step 4: (diag(H) + b vv vv^T)^(-1) s by the Sherman-Morrison formula. Its denominator
    # 1 + b <vv, vv/H> is, since sum(vv) = 1, a sum of positive terms: nothing cancels.
    vv_H = vv / H
    terms = vv_H * (at_least(xp, 1 - vv, 0.0) + rest * vv)
    denominator = 2 * xp.sum(terms, axis=VARIABLES)
    s = s / H - b / denominator * xp.sum(vv_H * s, axis=VARIABLES) * vv_H

    # Steps 2 and 5 for t
    along = 0.5 * g * (aa - total) + alpha * xp.sum(vv * s, axis=VARIABLES)
    straight = r * az + along * vbar
    t = straight - alpha * (g + 1) * vbar * s
    # u = D v changes by D (t / |v| + v*s), so t_u = t + |v|^2 vbar*s. The factors of vbar*s add up
    # to |v|^2 - alpha (2 + |v|^2) = -kappa g / (|v|^2 + alpha (2 + |v|^2)).
    t_u = straight - kappa * (g / (n2 + alpha * (g + 1))) * vbar * s
    return Gradient(s, t / norm_v, t_u / norm_v)  # eqs. (25) and (26)
