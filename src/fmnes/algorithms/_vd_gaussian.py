"""The Gaussian N(m, sigma^2 D (I + v v^T) D): its samples and its natural gradient.

Y. Akimoto, A. Auger, N. Hansen: "Comparison-based natural gradient optimization in high
dimension", GECCO 2014. VD-CMA and CR-FM-NES share this model; everything here is O(d) a sample.

Notation: vbar = v/|v|, vv = vbar*vbar, g = 1 + |v|^2, r = sqrt(g), a = <z, vbar>. A sample is
y = (I + v v^T)^(1/2) z = z + (r - 1) a vbar, and x = m + sigma D y.

The papers compute s and t sample by sample from y. Both are linear in the samples, so the sums
are taken first; and written in z instead of y, the terms of size |v|^2 that cancel in the papers'
formulas never appear:

    s_0 = z*z - 1 + ((r - 1)^2 / r) vbar * a z_perp            with z_perp = z - a vbar
    t_0 = r a z_perp + (g/2) (a^2 - 1) vbar

so that float32 is enough and any length of v is safe (docs/safe-variant.md derives it).
"""

from typing import NamedTuple

from fmnes import kernels
from fmnes._arrays import Array, Namespace
from fmnes.algorithms._shared import at_least, at_most, norm2


class Direction(NamedTuple):
    """v taken apart, with the scalars that every formula needs."""

    vbar: Array  # v / |v|
    norm_v: Array
    g: Array  # 1 + |v|^2
    r: Array  # sqrt(g)


class Moments(NamedTuple):
    """Weighted sums over the samples, all that the natural gradient needs of them."""

    az: Array  # sum w a z_perp, orthogonal to v
    zz: Array  # sum w z*z
    aa: Array  # sum w a^2
    total: Array | float  # sum w


class Gradient(NamedTuple):
    """Natural gradient of the log-likelihood, summed over the samples."""

    log_D: Array  # relative change of D: the papers' s
    v: Array  # change of v: t / |v|
    u: Array  # change of u = D v, divided by D: equal to v * log_D + (change of v)


def direction(xp: Namespace, v: Array) -> Direction:
    """Length and unit vector of v."""
    norm_v2 = norm2(xp, v)
    norm_v = xp.sqrt(norm_v2)
    return Direction(v / norm_v, norm_v, 1 + norm_v2, xp.sqrt(1 + norm_v2))


def row_products(xp: Namespace, of: Direction, z: Array) -> tuple[Array, Array]:
    """The a = <z, vbar> and the |z|^2 of each row."""
    a, norm_z2 = kernels.select(xp, z.dtype).row_products(xp, z, of.vbar)
    return a, norm_z2


def candidates(
    xp: Namespace,
    of: Direction,
    mean: Array | None,
    scale: Array,
    z: Array,
    *,
    mirrored: bool = False,
) -> Array:
    """Rows mean + scale (I + v v^T)^(1/2) z, and mirrored ones; the steps alone without a mean."""
    a, _ = row_products(xp, of, z)
    return kernels.select(xp, z.dtype).candidates(
        xp, mean, scale, z, (of.r - 1) * a, of.vbar, mirrored=mirrored
    )


def stretch(xp: Namespace, of: Direction, z: Array) -> Array:
    """(I + v v^T)^(1/2) z of one vector."""
    return z + (of.r - 1) * xp.sum(z * of.vbar) * of.vbar


def unstretch(xp: Namespace, of: Direction, y: Array) -> tuple[Array, Array]:
    """The z = (I + v v^T)^(-1/2) y of one vector, and its a = <z, vbar>."""
    a = xp.sum(y * of.vbar) / of.r
    return y - (of.r - 1) * a * of.vbar, a


def sample_moments(
    xp: Namespace, of: Direction, z: Array, a: Array, w_mean: Array, w: Array
) -> tuple[Array, Moments]:
    """The sum of w_mean z, and those with weights w: the only pass over the ranked samples."""
    gz, az, zz = kernels.select(xp, z.dtype).moments(xp, z, w_mean, w * a, w)
    aa = xp.sum(w * a * a)
    return gz, Moments(az - aa * of.vbar, zz, aa, xp.sum(w))


def add_sample(of: Direction, sums: Moments, w: Array | float, z: Array, a: Array) -> Moments:
    """The sums with one more sample: an evolution path enters as a sample of weight c_1."""
    return Moments(
        sums.az + w * a * (z - a * of.vbar),
        sums.zz + w * z * z,
        sums.aa + w * a * a,
        sums.total + w,
    )


def natural_gradient(xp: Namespace, of: Direction, sums: Moments) -> Gradient:
    """Solve F (dv, d log D) = gradient for the Fisher matrix F, in O(d).

    F's off-diagonal blocks are multiplied by alpha <= 1, which keeps it regular where one
    coordinate holds most of v (Akimoto et al., section 3.2). In the well-conditioned form of the
    papers' constants: kappa = min(4, (2 - 1/r) / max vv), 1 - alpha^2 = (4 - kappa) g / (1 + g)^2,
    b = kappa - 2 alpha^2, H = 2 - kappa vv.
    """
    vbar, norm_v, g, r = of
    vv = vbar * vbar
    n2 = g - 1
    largest = xp.max(vv)
    kappa = at_most(xp, (2 - 1 / r) / largest, 4.0)
    rest = (4 - kappa) / (g + 1) * (g / (g + 1))  # 1 - alpha^2
    alpha = xp.sqrt(1 - rest)
    b = kappa - 2 + 2 * rest
    # H falls to 1/r where one coordinate holds v; in this form rounding cannot make that 0.
    share = vv / largest
    H = 2 * (1 - share) + share * xp.maximum(2 - 4 * largest, 1 / r)

    # s = s_0 - (alpha/g) ((2 + |v|^2) vbar*t_0 - |v|^2 <vbar, t_0> vv), summed over the samples.
    # The factor of vbar*az is ((r - 1)^2 - alpha (1 + g)) / r, without its cancellation.
    factor = (4 - kappa) * r / ((g + 1) * (1 + alpha)) - 2
    s = sums.zz - sums.total + factor * vbar * sums.az - alpha * (sums.aa - sums.total) * vv
    # s <- (diag(H) + b vv vv^T)^(-1) s, by Sherman and Morrison. Their denominator
    # 1 + b sum(vv vv / H) is, since sum(vv) = 1, a sum of positive terms: nothing cancels.
    vv_H = vv / H
    denominator = 2 * xp.sum(vv_H * (at_least(xp, 1 - vv, 0.0) + rest * vv))
    s = s / H - b / denominator * xp.sum(vv_H * s) * vv_H

    # t = t_0 - alpha ((2 + |v|^2) vbar*s - <vv, s> vbar)
    along = 0.5 * g * (sums.aa - sums.total) + alpha * xp.sum(vv * s)
    straight = r * sums.az + along * vbar
    t = straight - alpha * (g + 1) * vbar * s
    # t + |v|^2 vbar*s: |v|^2 - alpha (2 + |v|^2) = -kappa g / (|v|^2 + alpha (2 + |v|^2)).
    t_u = straight - kappa * (g / (n2 + alpha * (g + 1))) * vbar * s
    return Gradient(s, t / norm_v, t_u / norm_v)


def axis_ratio_bound(xp: Namespace, D: Array, v: Array) -> Array:
    """An upper bound of the ratio of the longest to the shortest axis of D (I + v v^T) D."""
    return xp.max(D) / xp.min(D) * xp.sqrt(1 + norm2(xp, v))


def deviations(xp: Namespace, sigma: Array, D: Array, v: Array) -> Array:
    """Standard deviation of each coordinate: sigma D sqrt(1 + v^2)."""
    return sigma * D * xp.sqrt(1 + v * v)
