"""Decompositions of k x k matrices in float64, for one program.

The matrices lie in memory, row after row of AXES numbers, of which the first k are in use. Threads
share what they have stored after a barrier.
"""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.auto.names import S_LIMIT, S_NEAR_1
from fmnes.engines.triton_kernels.auto.weights import clipped

ROUNDS = tl.constexpr(30)  # of rotations at most


@triton.jit
def _rotate(rows, x_row, y_row, there, LENGTH: tl.constexpr):
    """Pairs of rows, to be rotated among themselves."""
    at = tl.arange(0, LENGTH)
    x = tl.load(rows + x_row[:, None] * LENGTH + at[None, :], mask=there[:, None], other=0.0)
    y = tl.load(rows + y_row[:, None] * LENGTH + at[None, :], mask=there[:, None], other=0.0)
    return x, y


@triton.jit
def _set_rotated(rows, x_row, y_row, x, y, cosine, sine, there, LENGTH: tl.constexpr):
    at = tl.arange(0, LENGTH)
    to_x = rows + x_row[:, None] * LENGTH + at[None, :]
    to_y = rows + y_row[:, None] * LENGTH + at[None, :]
    c, s = cosine[:, None], sine[:, None]
    tl.store(to_x, c * x - s * y, mask=there[:, None])
    tl.store(to_y, s * x + c * y, mask=there[:, None])


@triton.jit
def orthogonalise(rows, basis, k, some, LENGTH: tl.constexpr, AXES: tl.constexpr):
    """Rotate k rows until they are at right angles (one-sided Jacobi), and those of `basis` alike.

    If the rows are a matrix F = P Sigma Q^T and the basis is the identity, the rows become
    Sigma Q^T and the basis P^T. In a round each row meets each other one once, half of the
    rows the other half at a time. Nothing is done without `some`.
    """
    n = k + k % 2  # a row of zeros makes their number even
    last = tl.maximum(n - 1, 1)
    i = tl.arange(0, AXES // 2)
    there = i < n // 2
    goes_on = some
    for _ in range(ROUNDS):
        steps = tl.where(goes_on > 0, n - 1, 0)
        goes_on = goes_on * 0
        for step in range(steps):
            x_row = tl.where(i == 0, last, (step + i) % last)
            y_row = tl.where(i == 0, step, (step + last - i) % last)
            x, y = _rotate(rows, x_row, y_row, there, LENGTH)
            xx, yy, xy = tl.sum(x * x, 1), tl.sum(y * y, 1), tl.sum(x * y, 1)
            turns = xy * xy > 1e-30 * xx * yy
            zeta = (yy - xx) / (2.0 * tl.where(turns, xy, 1.0))
            tangent = 1.0 / (tl.abs(zeta) + tl.sqrt(1.0 + zeta * zeta))
            tangent = tl.where(turns, tl.where(zeta < 0.0, -tangent, tangent), 0.0)
            cosine = 1.0 / tl.sqrt(1.0 + tangent * tangent)
            sine = cosine * tangent
            u, v = _rotate(basis, x_row, y_row, there, AXES)
            tl.debug_barrier()
            _set_rotated(rows, x_row, y_row, x, y, cosine, sine, there, LENGTH)
            _set_rotated(basis, x_row, y_row, u, v, cosine, sine, there, AXES)
            goes_on += tl.sum(turns.to(tl.int32))
            tl.debug_barrier()


@triton.jit
def read_axes(rows, basis, out, S_new, k, constants, LENGTH: tl.constexpr, AXES: tl.constexpr):
    """The squared lengths of the rows, longest first, and their vectors in the columns of `out`.

    A vector points the way that the axis at its place did. Axes that are nearly 1 are left out.
    Returns how many there are.
    """
    i, at = tl.arange(0, AXES), tl.arange(0, LENGTH)
    row = tl.load(rows + i[:, None] * LENGTH + at[None, :])
    S_i = tl.sum(row * row, 1)
    used = i < k
    before = (S_i[None, :] > S_i[:, None]) | (
        (S_i[None, :] == S_i[:, None]) & (i[None, :] < i[:, None])
    )
    place = tl.sum((before & used[None, :]).to(tl.int32), 1)
    kept = used & (tl.abs(S_i - 1.0) > tl.load(constants + S_NEAR_1))
    before = before & kept[None, :]
    to = tl.sum(before.to(tl.int32), 1)
    vector = tl.load(basis + i[:, None] * AXES + i[None, :])
    own = tl.sum(tl.where(i[None, :] == place[:, None], vector, 0.0), 1)
    vector = tl.where((own < 0.0)[:, None], -vector, vector)
    tl.store(out + i[None, :] * AXES + to[:, None], vector, mask=kept[:, None])
    limit = tl.load(constants + S_LIMIT)
    tl.store(S_new + to, clipped(S_i, 1.0 / limit, limit), mask=kept)
    tl.debug_barrier()
    return tl.sum(kept.to(tl.int32))


@triton.jit
def product(left, right, k, AXES: tl.constexpr):
    """The product of two matrices, whose first k rows and columns count."""
    i = tl.arange(0, AXES)
    total = tl.zeros([AXES, AXES], tl.float64)
    for e in range(k):
        column = tl.load(left + i * AXES + e, mask=i < k, other=0.0)
        total += column[:, None] * tl.load(right + e * AXES + i, mask=i < k, other=0.0)[None, :]
    return total


@triton.jit
def invert_root(A, k, root, inverse, AXES: tl.constexpr):
    """Root: R with A = R^T R, upper triangular, of a positive definite A; inverse: R^-1."""
    i = tl.arange(0, AXES)
    to = i[:, None] * AXES + i[None, :]
    R = tl.zeros([AXES, AXES], tl.float64)
    for b in range(k):
        row = tl.sum(tl.where(i[:, None] == b, A, 0.0), 0)
        pivot = tl.sqrt(tl.sum(tl.where(i == b, row, 0.0)))
        row = tl.where((i >= b) & (i < k), row / pivot, 0.0)
        R = tl.where(i[:, None] == b, row[None, :], R)
        A -= row[:, None] * row[None, :]
    tl.store(root + to, R)
    tl.debug_barrier()
    X = tl.zeros([AXES, AXES], tl.float64)
    for e in range(k):
        b = k - 1 - e
        row = tl.load(root + b * AXES + i)
        pivot = tl.load(root + b * AXES + b)
        solved = ((i == b).to(tl.float64) - tl.sum(row[:, None] * X, 0)) / pivot
        X = tl.where(i[:, None] == b, solved[None, :], X)
    tl.store(inverse + to, X)
