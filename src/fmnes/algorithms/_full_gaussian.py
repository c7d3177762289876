"""The Gaussian N(m, sigma^2 B B^T) with a full matrix B, det B = 1, and its symmetric factors.

xNES, DX-NES-IC and FM-NES share this model. They change B only by multiplying it from the right
by symmetric positive matrices of determinant 1. Each of those has few known axes, so we store the
axes with one logarithm each (`Stretch`): applying it costs two thin products, its inverse is a
change of sign, and the determinant stays 1 without being computed. Equation numbers are those of
section II of arXiv 2201.11422.

    exp(eta_B G_B / 2)     eq. (11): axes of G_M, which has rank lambda (lambda/2 with mirrored
                           samples)
    Q                      eq. (14): Q B = B P with P = I + (gamma - 1) sum 1[tau_i > 0] v_i v_i^T,
                           where v_i = B^-1 e_i |B^T e_i| are the eigenvectors of B^T B
    exp(c_1 R_B / 2)       eq. (19): one axis, B^-1 p_c

The only decomposition of a d x d matrix that is left, B^T B for the v_i, is symmetric. Only its
orthonormal eigenvectors enter the next B, so B does not lose the digits that forming B^T B loses
when B is ill-conditioned.
"""

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from fmnes._arrays import Array, Namespace
from fmnes.algorithms._records import Shape, Summary, summary_without_v
from fmnes.algorithms._vectors import norm2
from fmnes.kernels import blas


class Stretch(NamedTuple):
    """The matrix exp(A - tr(A)/d I) with A = axes diag(log) axes^T: symmetric, determinant 1."""

    axes: Array  # (d, k): orthonormal columns
    log: Array  # (k,): logarithm of the factor along each axis, before the volume is restored
    mean_log: Array  # tr(A)/d, which restores the volume


# === What a method with this model offers; its state has mean, sigma, B and axis_ratio ===


def transform(params: Any, state: Any, z: Array) -> Array:
    """Steps x - m for rows of draws: sigma B z."""
    steps: Array = state.sigma * (z @ state.B.T)
    return steps


def draws_of(params: Any, state: Any, steps: Array) -> Array:
    """The draws of rows of steps: `transform` backwards."""
    draws: Array = array_namespace(steps).linalg.solve(state.B, (steps / state.sigma).T).T
    return draws


def mirrored_ask(params: Any, state: Any, z: Array) -> Array:
    """Candidates from draws z of shape (lambda/2, d): rows m + sigma B z, then m - sigma B z."""
    mean, step = state.mean, transform(params, state, z)
    return array_namespace(z).concat([mean + step, mean - step], axis=0)


@blas.one_thread
def shape(params: Any, state: Any) -> Shape:
    """The part of the state that a warm start takes over, apart from mean and sigma: B B^T."""
    xp, B = array_namespace(state.B), state.B
    C = B @ B.T
    return Shape(D=xp.sqrt(norm2(xp, B)), C=(C + C.T) / 2)


def summary(params: Any, state: Any) -> Summary:
    """What the history and the stopping rules read; for a method without phases."""
    xp = array_namespace(state.B)
    deviations = state.sigma * xp.sqrt(norm2(xp, state.B))
    return summary_without_v(xp, state.sigma, deviations, state.axis_ratio)


# === The factors of B ===


def along_axes(xp: Namespace, axes: Array, log: Array) -> Stretch:
    """The stretch with these axes and logarithms."""
    return Stretch(axes, log, xp.sum(log) / axes.shape[0])


def stretched(xp: Namespace, rows: Array, stretch: Stretch) -> Array:
    """Rows (or one vector) times the matrix: O(d k) for each row.

    The matrix is V exp(log) V^T + (I - V V^T), divided by the d-th root of its determinant, for
    V = axes: so rows + rows V (exp(log) - 1) V^T.

    Outside the movement phase the expansion of DX-NES-IC and FM-NES has d axes and changes nothing.
    NumPy knows this before it computes two products of d x d matrices.
    """
    if isinstance(rows, np.ndarray) and not np.any(stretch.log):
        return rows
    changed = rows + (rows @ stretch.axes * xp.expm1(stretch.log)) @ stretch.axes.T
    return changed / xp.exp(stretch.mean_log)


def inverse(stretch: Stretch) -> Stretch:
    """The inverse matrix."""
    return Stretch(stretch.axes, -stretch.log, -stretch.mean_log)


def along_vector(xp: Namespace, vector: Array, log: Array) -> Stretch:
    """The stretch by exp(log) along one vector, which may be zero."""
    norm2_ = norm2(xp, vector)
    length = xp.where(norm2_ > 0, xp.sqrt(norm2_), xp.ones_like(norm2_))
    return along_axes(xp, (vector / length)[:, None], log[None])


def natural_step(xp: Namespace, eta: Array | float, w: Array, z: Array) -> Stretch:
    """exp(eta G_B / 2) with G_B = G_M - tr(G_M) I / d and G_M = sum w_i (z_i z_i^T - I): eq. (8).

    A Stretch has determinant 1, so all multiples of I drop out, and the axes are those of
    sum w_i z_i z_i^T. From z^T = Q R that sum is Q (R W R^T) Q^T: the symmetric matrix to decompose
    has the smaller of the two sizes of z, which with the default lambda is far smaller than d.
    """
    Q, R = xp.linalg.qr(z.T)
    values, vectors = xp.linalg.eigh((R * w) @ R.T)
    return along_axes(xp, Q @ vectors, eta / 2 * values)


def right_axes(xp: Namespace, B: Array) -> tuple[Array, Array]:
    """Eigenvectors v_i of B^T B (columns), and the ratio of the longest to the shortest axis."""
    values, vectors = xp.linalg.eigh(B.T @ B)
    return vectors, _axis_ratio(xp, values)


def axis_ratio(xp: Namespace, B: Array) -> Array:
    """The ratio of the longest to the shortest axis of B B^T."""
    return _axis_ratio(xp, xp.linalg.eigvalsh(B.T @ B))


def _axis_ratio(xp: Namespace, values: Array) -> Array:
    """From the eigenvalues of B^T B.

    An eigenvalue below eps times the largest one is rounding noise. It counts as eps times the
    largest, so that nothing negative reaches the square root.
    """
    largest = xp.max(values)
    return xp.sqrt(largest / xp.maximum(xp.min(values), xp.finfo(values.dtype).eps * largest))


def normalised_root(xp: Namespace, shape: Shape) -> tuple[Array, Array]:
    """B with det B = 1, and the factor of sigma for which sigma^2 B B^T keeps its volume."""
    if shape.C is not None:
        values, vectors = xp.linalg.eigh(shape.C)
        values = xp.clip(
            values, xp.finfo(values.dtype).eps * xp.max(values), None
        )  # see `_axis_ratio`
        log = xp.log(values) / 2
        volume = xp.mean(log)
        return (vectors * xp.exp(log - volume)) @ vectors.T, xp.exp(volume)
    dim = shape.D.shape[0]
    log_D = xp.log(shape.D)
    volume = xp.mean(log_D)
    B = xp.eye(dim, dtype=log_D.dtype, device=device(log_D))
    if shape.v is not None:  # (I + v v^T)^(1/2) is a stretch of v by sqrt(1 + |v|^2)
        log = xp.log1p(norm2(xp, shape.v)) / 2
        B = stretched(xp, B, along_vector(xp, shape.v, log))
        volume = volume + log / dim
    return xp.exp(log_D - xp.mean(log_D))[:, None] * B, xp.exp(volume)


# Larger entries of a matrix of determinant 1 belong to axes that no dtype resolves beside the
# others. A step that leads there is not taken, so B^T B stays finite for any rankings.
_B_LIMIT = 1e15


def is_bounded(xp: Namespace, B: Array) -> Array:
    """Whether a new B may be taken over."""
    return xp.max(xp.abs(B)) < _B_LIMIT
