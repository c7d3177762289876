"""The Gaussian N(m, sigma^2 D R D) with R = I + V (S - I) V^T: scales, and k axes across them.

D is diagonal, V has orthonormal columns, S is diagonal and positive: an axis with S > 1 is long,
one with S < 1 is short. Columns are ordered by S, longest first. A column that is not in use is
zero and has S = 1, so arrays keep their shapes while axes come and go. Letters in parentheses are
the equations of docs/methods/auto.md.
"""

from typing import NamedTuple

from array_api_compat import device

from fmnes._arrays import Array, Namespace
from fmnes.algorithms._vectors import at_least, norm2


class Axes(NamedTuple):
    """The matrix R = I + V (S - I) V^T."""

    V: Array  # (d, K)
    S: Array  # (K,)


class AxesMoments(NamedTuple):
    """What the model can represent of a symmetric matrix G = sum_i w_i z_i z_i^T - t I."""

    M: Array  # (K, K): V^T G V, within the axes
    X: Array  # (d, K): Q G V with Q = I - V V^T, from the axes outwards
    q: Array  # (d,): the diagonal of Q G Q, orthogonal to the axes


def stretched(xp: Namespace, axes: Axes, rows: Array, power: float = 0.5) -> Array:
    """R^power times each row, or a vector (a).

    Each row is computed by itself: rounding in a matrix product depends on the number of rows.
    """
    along = xp.vecdot(rows[..., None, :], axes.V.T) * (axes.S**power - 1)
    for column in range(axes.S.shape[0]):
        rows = rows + along[..., column : column + 1] * axes.V[:, column]
    return rows


def in_use(xp: Namespace, axes: Axes) -> Array:
    """1 for each column in use, 0 for the others."""
    return xp.astype(axes.S != 1, axes.S.dtype)


def moments(xp: Namespace, axes: Axes, w: Array, z: Array, t: Array) -> AxesMoments:
    """The parts of G = sum_i w_i z_i z_i^T - t I that lie in the tangent space of the model (c)."""
    V = axes.V
    along = z @ V
    orthogonal = z - along @ V.T
    weighted = w[:, None] * along
    eye = xp.eye(V.shape[1], dtype=V.dtype, device=device(V))
    return AxesMoments(
        along.T @ weighted - t * in_use(xp, axes) * eye,
        orthogonal.T @ weighted,
        w @ (orthogonal * orthogonal) - t * (1 - norm2(xp, V)),
    )


def log_scales(xp: Namespace, axes: Axes, q: Array) -> Array:
    """The natural gradient of log D, from the diagonal of Q G Q (d).

    It solves (Q*Q + diag(p)) a = q / 2 for p = diag(V V^T), of which we keep the diagonal: the rest
    is of order k/d.
    """
    p = norm2(xp, axes.V)
    return q / 2 / (1 - p + p * p)


def rates_of(xp: Namespace, axes: Axes, long: float, short: float) -> Array:
    """One number for the long axes and one for the short ones; 0 for columns not in use."""
    used = in_use(xp, axes)
    return xp.where(axes.S > 1, long * used, short * used)


class AxesStep(NamedTuple):
    """The natural gradient of all parts of the model, already multiplied by the learning rates."""

    a: Array  # (d,): of log D
    N: Array  # (K, K): of R, within the axes
    Y: Array  # (d, K): of R, from the axes outwards


def joint_step(xp: Namespace, axes: Axes, a: Array, M: Array, X: Array) -> AxesStep:
    """The step of R once D takes a: what D does to the axes is taken back (e)."""
    V, S = axes
    c = xp.sqrt(xp.where(S > 1, 1 / S, S))
    aV = a[:, None] * V
    B = V.T @ aV
    return AxesStep(a, M - 2 * c[:, None] * B * c, X - 2 * (aV - V @ B) * c)


def moved(
    xp: Namespace, D: Array, axes: Axes, step: AxesStep, largest: float
) -> tuple[Array, Axes]:
    """D and the axes after a step, of which no part changes a length by more than ``largest``."""
    used = in_use(xp, axes)
    # sqrt(S)/(S - 1) makes a change of V of a natural gradient, for long and short axes alike (f).
    tilt = xp.sqrt(axes.S) / xp.where(used > 0, axes.S - 1, 1.0) * used
    turn = step.Y * tilt
    size = xp.maximum(xp.max(xp.abs(step.a)), xp.max(xp.abs(step.N)))
    size = xp.maximum(size, xp.sqrt(xp.max(xp.sum(turn * turn, axis=0))))
    fraction = 1 / at_least(xp, size / largest, 1.0)
    within, P = _within(xp, axes, fraction * step.N)
    growth = xp.exp(fraction * step.a)
    return D * growth, _turned(xp, within, fraction * (step.Y @ P), growth)


def _within(xp: Namespace, axes: Axes, N: Array) -> tuple[Axes, Array]:
    """The axes after a step N within their span, and the rotation that leads to them (f).

    R becomes V F F^T V^T on that span with F = sqrt(S) (I + N/2). The singular values of F keep
    twice the digits that the eigenvalues of F F^T would.
    """
    V, S = axes
    eye = xp.eye(S.shape[0], dtype=S.dtype, device=device(S))
    # An axis may become as long as the others, but not pass to the other side of 1.
    least = 2 * (xp.sqrt(xp.where(S > 1, LEAST / S, 1 / (LEAST * S))) - 1)
    diagonal = xp.linalg.diagonal(N)
    kept = xp.where(S > 1, xp.maximum(diagonal, least), xp.minimum(diagonal, least))
    kept = xp.where(S == 1, xp.zeros_like(kept), kept)
    F = xp.sqrt(S)[:, None] * (eye + (N + eye * (kept - diagonal)) / 2)
    P, lengths = _left_axes(xp, F)
    return _cleaned(xp, V @ P, lengths * lengths), P


def _left_axes(xp: Namespace, F: Array) -> tuple[Array, Array]:
    """Left singular vectors and singular values of F, longest first.

    Libraries choose the signs as they like. Here each axis points the way that it did before.
    """
    P, sizes, _ = xp.linalg.svd(F, full_matrices=False)
    diagonal = xp.linalg.diagonal(P)
    return P * xp.where(diagonal < 0, -xp.ones_like(diagonal), xp.ones_like(diagonal)), sizes


LEAST = 1.02  # an axis this close to 1 is in use no longer


def _turned(xp: Namespace, axes: Axes, Y: Array, growth: Array) -> Axes:
    """The axes after a turn Y out of their span, and after D has grown (g).

    Long axes are u = D V sqrt(S - 1) with covariance D^2 + u u^T, short ones are
    u = D^-1 V sqrt(1/S - 1) with precision D^-2 + u u^T. A change of D leaves both where they are,
    and a turn keeps their lengths: in these coordinates noise has no bias to second order.
    """
    V, S = axes
    used = in_use(xp, axes)
    tilt = xp.sqrt(S) / xp.where(used > 0, S - 1, 1.0) * used
    U, _ = _unit(xp, V + Y * tilt)
    U = xp.where(S > 1, U / growth[:, None], U * growth[:, None])
    U, lengths = _unit(xp, U)
    lengths = lengths * xp.sqrt(xp.abs(xp.where(S > 1, S, 1 / S) - 1))
    # An orthonormal basis of the span: U L^-1 for the symmetric root L of U^T U.
    gram = U.T @ U + xp.eye(S.shape[0], dtype=S.dtype, device=device(S)) * (1 - used)
    values, vectors = xp.linalg.eigh(gram)
    root = (vectors * xp.sqrt(values)) @ vectors.T
    basis = U @ ((vectors / xp.sqrt(values)) @ vectors.T)
    coordinates = root * lengths
    # In this basis R = T (I + b b^T) T for the long axes b, with T = (I + c c^T)^(-1/2) for the
    # short ones c. Both roots come from singular values, as above.
    P, sizes = _left_axes(xp, coordinates * xp.astype(S < 1, S.dtype))
    T = (P / xp.sqrt(1 + sizes * sizes)) @ P.T
    long = T @ (coordinates * xp.astype(S > 1, S.dtype))
    P, sizes = _left_axes(xp, xp.concat([T, long], axis=1))
    return _cleaned(xp, basis @ P, sizes * sizes)


def _unit(xp: Namespace, U: Array) -> tuple[Array, Array]:
    """The columns at length 1 (a column of zeros stays one), and their lengths."""
    lengths = xp.sqrt(xp.sum(U * U, axis=0))
    return U / xp.where(lengths > 0, lengths, 1.0), lengths


S_LIMIT = 1e14  # beyond it an axis is too long for the others to be resolved
S_NEAR_1 = 1e-3  # an axis this close to 1 is dropped


def _cleaned(xp: Namespace, V: Array, S: Array) -> Axes:
    """The axes with columns not in use at exactly zero, and S between its limits."""
    norms2 = xp.sum(V * V, axis=0)
    used = (norms2 > 0.5) & (xp.abs(S - 1) > S_NEAR_1)
    V = xp.where(used, V / xp.sqrt(xp.where(used, norms2, 1.0)), 0.0)
    return Axes(V, xp.where(used, xp.clip(S, 1 / S_LIMIT, S_LIMIT), 1.0))


def volume(xp: Namespace, D: Array, axes: Axes) -> Array:
    """The d-th root of the square root of det(D R D)."""
    return xp.exp(xp.mean(xp.log(D)) + xp.sum(xp.log(axes.S)) / (2 * D.shape[0]))


def handed_over(xp: Namespace, D: Array, axes: Axes, share: float) -> tuple[Array, Axes]:
    """An axis of which a coordinate has more than ``share`` > 1/2 becomes a scale of D.

    The other axes stay where they are, as in (g): a steep short axis that turned with D would soon
    be far too long.
    """
    V, S = axes
    aligned = xp.astype(share < V * V, V.dtype)  # at most one entry of a column
    growth = xp.exp(aligned @ xp.log(S) / 2)
    rest = without(xp, axes, xp.sum(aligned, axis=0) > 0)
    turned, some = _turned(xp, rest, xp.zeros_like(V), growth), xp.any(aligned > 0)
    V, S = xp.where(some, turned.V, rest.V), xp.where(some, turned.S, rest.S)
    return D * growth, Axes(V, S)


def without(xp: Namespace, axes: Axes, dropped: Array) -> Axes:
    """The axes without some columns, in order."""
    V, S = axes
    S = xp.where(dropped, 1.0, S)
    return ordered(xp, Axes(xp.where(dropped, 0.0, V), S))


def ordered(xp: Namespace, axes: Axes) -> Axes:
    """The columns in the order of S, longest first."""
    order = xp.argsort(axes.S, descending=True)
    return Axes(xp.take(axes.V, order, axis=1), xp.take(axes.S, order))


def with_new(xp: Namespace, axes: Axes, W: Array, S_new: Array) -> Axes:
    """The axes with those of W whose S_new is not 1, as long as columns are free."""
    K = axes.S.shape[0]
    free = K - xp.sum(in_use(xp, axes))
    number = xp.cumulative_sum(xp.astype(S_new != 1, S_new.dtype))
    S_new = xp.where(number <= free, S_new, 1.0)
    W = xp.where(S_new != 1, W, 0.0)
    S = xp.concat([axes.S, S_new])
    # In the order of S, unused columns stand behind the long axes: as many as came leave there.
    long = xp.sum(xp.astype(S > 1, xp.int64))
    index = xp.arange(K, device=device(S))
    order = xp.take(
        xp.argsort(S, descending=True), xp.where(index < long, index, index + W.shape[1])
    )
    V = xp.concat([axes.V, W], axis=1)
    return Axes(xp.take(V, order, axis=1), xp.take(S, order))
