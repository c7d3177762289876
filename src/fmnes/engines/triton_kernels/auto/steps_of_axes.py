"""The steps of the axes within their span and out of it: one program does all of it in float64."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.auto.matrices import (
    invert_root,
    orthogonalise,
    product,
    read_axes,
)
from fmnes.engines.triton_kernels.auto.names import (
    ETA_B,
    K_OUT,
    K_WITHIN,
    LARGEST_STEP,
    LEAST_S,
    LIVE,
    LONGEST,
    Q_ALONG,
    Q_NORM2,
    S_OUT,
    S_WITHIN,
    SHORT_RATE,
    STEP_FRACTION,
    TURN_RATE,
    K,
    S,
)
from fmnes.engines.triton_kernels.auto.weights import rounded
from fmnes.engines.triton_kernels.names import C_1, DIM, PHASE
from fmnes.engines.triton_kernels.parts import largest_of


@triton.jit
def step_within(
    H,
    U2,
    M,
    scratch,
    of_V,
    of_Y,
    table,
    numbers,
    constants,
    partial,
    programs,
    room,
    width,
    AXES: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """The step within the axes (f): of_V and of_Y make V + turn Y of V and U, for the new axes."""
    if tl.load(numbers + LIVE) == 1.0:
        k = tl.load(numbers + K).to(tl.int32)
        i = tl.arange(0, AXES)
        used = (i < k)[:, None] & (i < k)[None, :]
        diagonal = i[:, None] == i[None, :]
        at = i[:, None] * room + i[None, :]
        H_bc = tl.load(H + at, mask=used, other=0.0)
        M_bc = tl.load(M + 2 * room + at, mask=used, other=0.0)
        S_c = tl.load(table + S * width + i, mask=i < k, other=1.0)
        q = tl.load(table + Q_ALONG * width + 2 + i, mask=i < k, other=0.0)
        eta_B, c_1 = tl.load(numbers + ETA_B), tl.load(numbers + C_1)
        trace = c_1 * tl.load(numbers + Q_NORM2) / tl.load(constants + DIM)
        is_long, root = S_c > 1.0, tl.sqrt(S_c)
        rate = tl.where(is_long, 1.0, tl.sqrt(tl.load(constants + SHORT_RATE)))
        inverse = tl.sqrt(tl.where(is_long, 1.0 / S_c, S_c))
        of_path = c_1 * q[:, None] * q[None, :]
        of_D = 2.0 * inverse[:, None] * H_bc * inverse[None, :]
        N = eta_B * M_bc * rate[:, None] * rate[None, :] + of_path - of_D
        N = tl.where(used, tl.where(diagonal, N - trace, N), 0.0)
        # Y = U + V Z
        turn_rate = tl.load(constants + TURN_RATE) * eta_B
        Z = 2.0 * H_bc * inverse[None, :] - turn_rate * M_bc - of_path
        Z = tl.where(used, Z, 0.0)
        longest = tl.load(constants + LONGEST)
        limit = tl.where(tl.load(numbers + PHASE) == 1.0, float("inf"), longest)
        slow = tl.where(root > limit, longest / root, 1.0)
        turn = slow * root / tl.abs(tl.where(i < k, S_c - 1.0, 1.0))
        Y2 = tl.load(U2 + i, mask=i < k, other=0.0) - tl.sum(Z * Z, 0)
        size = tl.max(tl.where(i < k, turn * tl.sqrt(tl.maximum(Y2, 0.0)), 0.0))
        size = tl.maximum(size, tl.max(tl.abs(N)))
        size = tl.maximum(size, largest_of(partial, 0, programs, WIDTH))
        fraction = 1.0 / tl.maximum(size / tl.load(constants + LARGEST_STEP), 1.0)
        # An axis may not pass to the other side of 1.
        least = tl.load(constants + LEAST_S)
        limit = 2.0 * (tl.sqrt(tl.where(is_long, least / S_c, 1.0 / (least * S_c))) - 1.0)
        N = fraction * N
        kept = tl.where(
            is_long[:, None], tl.maximum(N, limit[:, None]), tl.minimum(N, limit[:, None])
        )
        N = tl.where(diagonal, 1.0 + kept / 2.0, N / 2.0)
        rows, basis, P = scratch, scratch + 2 * AXES * AXES, scratch + 3 * AXES * AXES
        Z_at, Y_at = scratch + 4 * AXES * AXES, of_Y
        to = i[:, None] * AXES + i[None, :]
        tl.store(rows + to, tl.where(used, root[:, None] * N, 0.0))
        tl.store(basis + to, diagonal.to(tl.float64))
        tl.store(Z_at + to, Z)
        tl.debug_barrier()
        orthogonalise(rows, basis, k, k * 0 + 1, AXES, AXES)
        within = read_axes(rows, basis, P, table + S_WITHIN * width, k, constants, AXES, AXES)
        there = (i < k)[:, None] & (i < within)[None, :]
        S_new = tl.load(table + S_WITHIN * width + i, mask=i < within, other=4.0)
        P_bc = tl.load(P + to, mask=there, other=0.0)
        Y = fraction * slow[:, None] * P_bc * (tl.sqrt(S_new) / (S_new - 1.0))[None, :]
        tl.store(Y_at + to, Y)
        tl.debug_barrier()
        tl.store(of_V + to, P_bc + product(Z_at, Y_at, k, AXES))
        tl.store(numbers + STEP_FRACTION, fraction)
        tl.store(numbers + K_WITHIN, within.to(tl.float64))


@triton.jit
def step_out(
    gram_of_axes,
    before2,
    S_before,
    scratch,
    of_V,
    table,
    numbers,
    constants,
    room,
    width,
    WHEN: tl.constexpr,
    COUNT: tl.constexpr,
    DOUBLE: tl.constexpr,
    AXES: tl.constexpr,
):
    """The step out of the span of the axes (g): of_V makes the new axes of the turned ones.

    `before2` has their squared lengths before D grew.
    """
    if tl.load(numbers + WHEN) == 1.0:
        k = tl.load(numbers + COUNT).to(tl.int32)
        i = tl.arange(0, AXES)
        used, diagonal = (i < k)[:, None] & (i < k)[None, :], i[:, None] == i[None, :]
        A = tl.load(gram_of_axes + i[:, None] * room + i[None, :], mask=used, other=0.0)
        S_c = tl.load(S_before + i, mask=i < k, other=1.0)
        norm = tl.sqrt(tl.where(i < k, tl.sum(tl.where(diagonal, A, 0.0), 0), 1.0))
        length = norm / tl.sqrt(tl.load(before2 + i, mask=i < k, other=1.0))
        length *= tl.sqrt(tl.abs(tl.where(S_c > 1.0, S_c, 1.0 / S_c) - 1.0))
        to, size = i[:, None] * AXES + i[None, :], AXES * AXES
        rows, basis, P = scratch, scratch + 2 * size, scratch + 3 * size
        root, inverse, T = scratch + 4 * size, scratch + 5 * size, scratch + 6 * size
        long = scratch + 7 * size
        # An orthonormal basis of the span: U R^-1 for the Cholesky factor R of U^T U. In it the
        # axes are the columns of R times their lengths.
        invert_root(A / (norm[:, None] * norm[None, :]), k, root, inverse, AXES)
        # In this basis R = T (I + b b^T) T for the long axes b, with T = (I + c c^T)^(-1/2) for
        # the short ones c.
        axes = tl.load(root + to) * length[None, :]
        is_short = (i < k) & (S_c < 1.0)
        tl.store(long + to, tl.where((S_c > 1.0)[None, :] & used, axes, 0.0))
        tl.store(rows + i[None, :] * AXES + i[:, None], tl.where(is_short[None, :], axes, 0.0))
        tl.store(basis + to, diagonal.to(tl.float64))
        tl.debug_barrier()
        orthogonalise(rows, basis, k, tl.sum(is_short.to(tl.int32)), AXES, AXES)
        stretch = diagonal.to(tl.float64)
        for e in range(k):
            vector = tl.load(rows + e * AXES + i)
            square = tl.sum(vector * vector)
            factor = (1.0 / tl.sqrt(1.0 + square) - 1.0) / tl.where(square > 0.0, square, 1.0)
            stretch += factor * vector[:, None] * vector[None, :]
        stretch = tl.where(used, stretch, 0.0)
        tl.debug_barrier()
        tl.store(T + to, stretch)
        tl.debug_barrier()
        stretched = tl.where(used, product(T, long, k, AXES), 0.0)
        to_rows = rows + i[:, None] * (2 * AXES) + i[None, :]
        tl.store(to_rows, stretch)
        tl.store(to_rows + AXES, stretched)
        tl.store(basis + to, diagonal.to(tl.float64))
        tl.debug_barrier()
        orthogonalise(rows, basis, k, k * 0 + 1, 2 * AXES, AXES)
        S_new = table + S_OUT * width
        out = read_axes(rows, basis, P, S_new, k, constants, 2 * AXES, AXES)
        V = product(inverse, P, k, AXES) / norm[:, None]
        tl.store(of_V + to, tl.where((i < k)[:, None] & (i < out)[None, :], V, 0.0))
        S_c = tl.load(S_new + i, mask=i < out, other=1.0)
        tl.debug_barrier()
        tl.store(S_new + i, rounded(S_c, DOUBLE), mask=i < out)
        tl.store(numbers + K_OUT, out.to(tl.float64))
