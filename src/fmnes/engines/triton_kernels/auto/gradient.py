"""From the sums over the draws to the steps: gradients, paths, the mean, a of (d) and U of (e)."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.auto.names import (
    D_RATE,
    ETA_B,
    ETA_MEAN,
    GM_ALONG,
    GZ_ALONG,
    LIVE,
    MEAN_G,
    OF_AXES,
    PATH_ALONG,
    Q_ALONG,
    Q_NORM2,
    R_D,
    TURN_RATE,
    W_GM,
    W_GZ,
    W_HAT,
    WINDOW,
    K,
    S,
)
from fmnes.engines.triton_kernels.draws import int64
from fmnes.engines.triton_kernels.names import (
    C_1,
    C_C,
    C_SIGMA,
    DIM,
    SCALE_C,
    SCALE_SIGMA,
    SIGMA,
)


@triton.jit
def gradient(
    work,
    log_D,
    path,
    frame,
    D,
    p_sigma,
    p_c,
    D_gradient,
    m_gradient,
    M,
    table,
    numbers,
    constants,
    partial,
    dim,
    room,
    width,
    AXES: tl.constexpr,
    TILE: tl.constexpr,
):
    """p_sigma, the path as a sample q, the gradient g = diag(Q G Q) of log D (c), and E_m (k).

    Partial sums of |q|^2, and of <h, E> and |h|^2 for D (h) and for the mean (k).
    """
    dtype = work.dtype.element_ty
    c, k = tl.arange(0, AXES), tl.load(numbers + K).to(tl.int32)
    used = (c < k)[:, None]
    tilt = 1.0 / tl.sqrt(tl.load(table + S * width + c, mask=c < k, other=1.0)) - 1.0
    tilt *= tl.load(table + PATH_ALONG * width + 2 + c, mask=c < k, other=0.0)
    tilt = tilt.to(dtype)[:, None]
    keep, scale = tl.load(constants + C_SIGMA).to(dtype), tl.load(constants + SCALE_SIGMA).to(dtype)
    keep_c, scale_c = tl.load(constants + C_C).to(dtype), tl.load(constants + SCALE_C).to(dtype)
    mean_g, window = tl.load(numbers + MEAN_G).to(dtype), tl.load(numbers + WINDOW).to(dtype)
    path2, signal = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    noise, of_mean = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    of_mean2 = tl.zeros([TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + LIVE) == 0.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        there = used & inside[None, :]
        at = int64(c)[:, None] * dim + j[None, :]
        V = tl.load(frame + 2 * int64(dim) + at, mask=there, other=0.0)
        rest = 2.0 * tl.load(work + int64(dim) * OF_AXES + at, mask=there, other=0.0)
        for b in range(k):
            factors = tl.load(M + (2 + b) * room + c, mask=c < k, other=0.0).to(dtype)
            axis = tl.load(frame + (2 + int64(b)) * dim + j, mask=inside, other=0.0)
            rest -= factors[:, None] * axis[None, :]
        g = tl.load(log_D + j, mask=inside, other=0.0) - tl.sum(V * rest, 0)
        hat = tl.load(work + int64(dim) * W_HAT + j, mask=inside, other=0.0)
        gm = tl.load(work + int64(dim) * W_GM + j, mask=inside, other=0.0)
        gz = tl.load(work + int64(dim) * W_GZ + j, mask=inside, other=0.0)
        q = tl.load(p_c + j, mask=inside, other=0.0) / tl.load(D + j, mask=inside, other=1.0)
        q = (1.0 - keep_c) * (q + tl.sum(tilt * V, 0)) + scale_c * gz
        tl.store(path + j, q, mask=inside)
        tl.store(log_D + j, g, mask=inside)
        p = (1.0 - keep) * tl.load(p_sigma + j, mask=inside, other=0.0) + scale * hat
        tl.store(p_sigma + j, p, mask=inside)
        h = tl.where(inside, g - mean_g, 0.0).to(tl.float64)
        gm = gm - (gz - hat)  # less what distance weights add
        E = tl.load(m_gradient + j, mask=inside, other=0.0)
        tl.store(m_gradient + j, E + window * (gm - E), mask=inside)
        path2 += q.to(tl.float64) * q
        signal += h * tl.load(D_gradient + j, mask=inside, other=0.0)
        noise += h * h
        of_mean += gm.to(tl.float64) * E
        of_mean2 += gm.to(tl.float64) * gm
    to, stride = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to, tl.sum(path2))
    tl.store(to + stride, tl.sum(signal))
    tl.store(to + 2 * stride, tl.sum(noise))
    tl.store(to + 3 * stride, tl.sum(of_mean))
    tl.store(to + 4 * stride, tl.sum(of_mean2))


@triton.jit
def steps(
    work,
    log_D,
    path,
    frame,
    mean,
    D,
    p_c,
    D_gradient,
    table,
    numbers,
    constants,
    partial,
    dim,
    room,
    width,
    AXES: tl.constexpr,
    TILE: tl.constexpr,
):
    """The mean, p_c and the average gradient of D; the step a of log D (d), and U.

    U = turn_rate eta_B A + c_1 q (V^T q)^T - 2 diag(a) V diag(c) takes the place of A. Y of (e) is
    U - V V^T U. Partial results: the largest |a|, and |U_c|^2.
    """
    dtype = work.dtype.element_ty
    c, k = tl.arange(0, AXES), tl.load(numbers + K).to(tl.int32)
    S_c = tl.load(table + S * width + c, mask=c < k, other=1.0)
    root = tl.sqrt(S_c) - 1.0
    at_c = table + 2 + c
    by_gz = (root * tl.load(at_c + GZ_ALONG * width, mask=c < k, other=0.0)).to(dtype)[:, None]
    by_gm = (root * tl.load(at_c + GM_ALONG * width, mask=c < k, other=0.0)).to(dtype)[:, None]
    q_along = tl.load(at_c + Q_ALONG * width, mask=c < k, other=0.0)
    c_1, eta_B = tl.load(numbers + C_1), tl.load(numbers + ETA_B)
    of_path = (c_1 * q_along).to(dtype)[:, None]
    shorter = (2.0 * tl.sqrt(tl.where(S_c > 1.0, 1.0 / S_c, S_c))).to(dtype)[:, None]
    q_along = q_along.to(dtype)[:, None]
    trace = (c_1 * tl.load(numbers + Q_NORM2) / tl.load(constants + DIM)).to(dtype)
    by_g, turn = tl.load(constants + D_RATE) * eta_B, tl.load(constants + TURN_RATE) * eta_B
    by_g, turn, c_1 = by_g.to(dtype), turn.to(dtype), c_1.to(dtype)
    rate, mean_g = (tl.load(numbers + R_D) / 2.0).to(dtype), tl.load(numbers + MEAN_G).to(dtype)
    sigma = (tl.load(numbers + ETA_MEAN) * tl.load(numbers + SIGMA)).to(dtype)
    keep_c, scale_c = tl.load(constants + C_C).to(dtype), tl.load(constants + SCALE_C).to(dtype)
    window = (1.0 / tl.load(constants + DIM)).to(dtype)
    most, lengths2 = tl.zeros([TILE], dtype), tl.zeros([AXES, TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + LIVE) == 0.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        there = (c < k)[:, None] & inside[None, :]
        at = int64(c)[:, None] * dim + j[None, :]
        V = tl.load(frame + 2 * int64(dim) + at, mask=there, other=0.0)
        d = tl.load(D + j, mask=inside, other=1.0)
        gz = tl.load(work + int64(dim) * W_GZ + j, mask=inside, other=0.0)
        gm = tl.load(work + int64(dim) * W_GM + j, mask=inside, other=0.0)
        gz, gm = d * (gz + tl.sum(by_gz * V, 0)), d * (gm + tl.sum(by_gm * V, 0))
        m = tl.load(mean + j, mask=inside, other=0.0)
        tl.store(mean + j, m + sigma * gm, mask=inside)
        old = tl.load(p_c + j, mask=inside, other=0.0)
        tl.store(p_c + j, (1.0 - keep_c) * old + scale_c * gz, mask=inside)
        q = tl.load(path + j, mask=inside, other=0.0)
        beside = q - tl.sum(q_along * V, 0)
        g = tl.load(log_D + j, mask=inside, other=0.0)
        E = tl.load(D_gradient + j, mask=inside, other=0.0)
        tl.store(D_gradient + j, E + (g - mean_g - E) * window, mask=inside)
        p = tl.sum(V * V, 0)
        a = by_g * g + c_1 * (beside * beside) - trace * (1.0 - p)
        a = tl.where(inside, rate * a / (1.0 - p + p * p), 0.0)
        tl.store(log_D + j, a, mask=inside)
        most = tl.maximum(most, tl.abs(a))
        U = work + int64(dim) * OF_AXES + at
        step = turn * tl.load(U, mask=there, other=0.0) + of_path * q[None, :]
        step = tl.where(there, step - shorter * (a[None, :] * V), 0.0)
        tl.store(U, step, mask=there)
        lengths2 += step.to(tl.float64) * step
    to, stride = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to, tl.max(most).to(tl.float64))
    tl.store(to + (1 + c) * stride, tl.sum(lengths2, 1), mask=c < room)
