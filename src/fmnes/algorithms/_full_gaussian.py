"""The Gaussian N(m, sigma^2 B B^T) with a full matrix B, det B = 1, and its symmetric factors.

xNES, DX-NES-IC and FM-NES share this model. All that they do to B is to multiply it from the
right by symmetric positive matrices of determinant 1. Each of those has few known axes, so it is
kept as those axes with one logarithm each (`Stretch`): applying it costs two thin products, its
inverse is a change of sign, and the determinant stays 1 without being computed.

    exp(eta_B G_B / 2)     axes of G_M, which has rank lambda (lambda/2 with mirrored samples)
    Q                      Q B = B P with P = I + (gamma - 1) sum 1[tau_i > 0] v_i v_i^T, where
                           v_i = B^-1 e_i |B^T e_i| are the eigenvectors of B^T B
    exp(c_1 R_B / 2)       one axis, B^-1 p_c

The one decomposition of a d x d matrix that is left, B^T B for the v_i, is symmetric; only its
orthonormal eigenvectors enter the next B, so that the digits which forming B^T B loses when B is
ill-conditioned are not lost from B.
"""

from typing import NamedTuple

from array_api_compat import device

from fmnes._arrays import Array, Namespace
from fmnes.algorithms._shared import Shape, norm2


class Stretch(NamedTuple):
    """The matrix exp(A - tr(A)/d I) with A = axes diag(log) axes^T: symmetric, determinant 1."""

    axes: Array  # (d, k): orthonormal columns
    log: Array  # (k,): logarithm of the factor along each axis, before the volume is restored


class Spectrum(NamedTuple):
    """Eigenvectors (columns) and eigenvalues of a symmetric matrix; all others are 0."""

    axes: Array
    values: Array


def stretched(xp: Namespace, rows: Array, by: Stretch) -> Array:
    """Rows (or one vector) times the matrix: O(d k) a row."""
    volume = xp.exp(xp.sum(by.log) / rows.shape[-1])
    return (rows + (rows @ by.axes * xp.expm1(by.log)) @ by.axes.T) / volume


def inverse(by: Stretch) -> Stretch:
    """The inverse matrix."""
    return Stretch(by.axes, -by.log)


def second_moment(xp: Namespace, w: Array, z: Array) -> Spectrum:
    """G_M = sum w_i z_i z_i^T (the weights sum to 0, so that its -I drops out).

    From z^T = Q R it is Q (R W R^T) Q^T: the symmetric matrix to decompose has the smaller of the
    two sizes of z, with the default lambda far fewer rows than d.
    """
    Q, R = xp.linalg.qr(z.T)
    values, vectors = xp.linalg.eigh((R * w) @ R.T)
    return Spectrum(Q @ vectors, values)


def right_axes(xp: Namespace, B: Array) -> tuple[Array, Array]:
    """Eigenvectors v_i of B^T B (columns), and the ratio of the longest to the shortest axis."""
    values, vectors = xp.linalg.eigh(B.T @ B)
    return vectors, _axis_ratio(xp, values)


def axis_ratio(xp: Namespace, B: Array) -> Array:
    """The ratio of the longest to the shortest axis of B B^T."""
    return _axis_ratio(xp, xp.linalg.eigvalsh(B.T @ B))


def _axis_ratio(xp: Namespace, values: Array) -> Array:
    """From the eigenvalues of B^T B.

    What rounding left of one below eps of the largest is noise: it counts as eps, so that nothing
    negative reaches the square root.
    """
    largest = xp.max(values)
    return xp.sqrt(largest / xp.maximum(xp.min(values), xp.finfo(values.dtype).eps * largest))


def normalised_root(xp: Namespace, shape: Shape) -> tuple[Array, Array]:
    """B with det B = 1, and the factor of sigma for which sigma^2 B B^T keeps its volume."""
    if shape.C is not None:
        values, vectors = xp.linalg.eigh(shape.C)
        values = xp.clip(values, xp.finfo(values.dtype).eps * xp.max(values), None)  # see above
        log = xp.log(values) / 2
        volume = xp.mean(log)
        return (vectors * xp.exp(log - volume)) @ vectors.T, xp.exp(volume)
    dim = shape.D.shape[0]
    log_D = xp.log(shape.D)
    volume = xp.mean(log_D)
    B = xp.eye(dim, dtype=log_D.dtype, device=device(log_D))
    if shape.v is not None:  # (I + v v^T)^(1/2) is a stretch of v by sqrt(1 + |v|^2)
        norm_v2 = norm2(xp, shape.v)
        length = xp.where(norm_v2 > 0, xp.sqrt(norm_v2), xp.ones_like(norm_v2))
        log = xp.log1p(norm_v2) / 2
        B = stretched(xp, B, Stretch((shape.v / length)[:, None], log[None]))
        volume = volume + log / dim
    return xp.exp(log_D - xp.mean(log_D))[:, None] * B, xp.exp(volume)


# Entries of a matrix of determinant 1 beyond this belong to axes that no dtype resolves beside
# the others. A step that leads there is not taken, and whatever the rankings B^T B is finite.
_B_LIMIT = 1e15


def bounded(xp: Namespace, B: Array) -> Array:
    """Whether a new B may be taken over."""
    return xp.max(xp.abs(B)) < _B_LIMIT


def deviations(xp: Namespace, sigma: Array, B: Array) -> Array:
    """Standard deviation of each coordinate."""
    return sigma * xp.sqrt(norm2(xp, B))


def shape_of(xp: Namespace, B: Array) -> Shape:
    """B B^T as what a warm start takes over."""
    C = B @ B.T
    return Shape(D=xp.sqrt(norm2(xp, B)), C=(C + C.T) / 2)
