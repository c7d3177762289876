"""Passes that turn the axes and scouts, and what they have in common."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.auto.names import (
    COORDINATE,
    ETA_B,
    K_OUT,
    K_WITHIN,
    LARGEST_V2,
    LIVE,
    NEW_S,
    OF_AXES,
    OF_DIRECTIONS,
    Q_ALONG,
    S_WITHIN,
    SCOUT_RATE,
    STEP_FRACTION,
    WW,
    K,
)
from fmnes.engines.triton_kernels.draws import int64
from fmnes.engines.triton_kernels.names import C_1
from fmnes.engines.triton_kernels.parts import largest_of


@triton.jit
def gram(
    axes,
    scale,
    source,
    numbers,
    partial,
    dim,
    room,
    SCALED: tl.constexpr,
    WHEN: tl.constexpr,
    COUNT: tl.constexpr,
    AXES: tl.constexpr,
    TILE: tl.constexpr,
):
    """Partial sums of one row of X^T X, or of X^T diag(scale) X; X are the axes at `source`."""
    b, c, k = tl.program_id(1), tl.arange(0, AXES), tl.load(numbers + COUNT).to(tl.int32)
    rows = tl.load(source + c, mask=c < k, other=0.0).to(tl.int64)
    row = tl.load(source + b, mask=b < k, other=0.0).to(tl.int64)
    total = tl.zeros([AXES, TILE], tl.float64)
    skips = (tl.load(numbers + WHEN) == 0.0) | (b >= k)
    tiles = tl.where(skips, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        x = tl.load(axes + row * dim + j, mask=inside, other=0.0)
        if SCALED:
            x = x * tl.load(scale + j, mask=inside, other=0.0)
        there = (c < k)[:, None] & inside[None, :]
        others = tl.load(axes + rows[:, None] * dim + j[None, :], mask=there, other=0.0)
        total += others.to(tl.float64) * x[None, :]
    to = partial + (b * room + c) * tl.num_programs(0) + tl.program_id(0)
    tl.store(to, tl.sum(total, 1), mask=c < room)


@triton.jit
def _scout(W, X, axes_share, beside, q, rate, path, stay, turn):
    """A scout after its turn, but for the growth of D."""
    dtype = W.dtype
    step = rate.to(dtype) * (X - axes_share) + (path * q).to(dtype) * beside
    return W + turn.to(dtype) * (step - stay.to(dtype) * W)


@triton.jit
def turn(
    work,
    log_D,
    path,
    turned,
    frame,
    D,
    of_V,
    of_Y,
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
    """D grows by exp(fraction a), and the axes and scouts follow.

    Axis c becomes u_c exp(-+fraction a) with u = V of_V + U of_Y. Partial sums of ln D and |u_c|^2.
    """
    dtype = work.dtype.element_ty
    c, k = tl.arange(0, AXES), tl.load(numbers + K).to(tl.int32)
    within = tl.load(numbers + K_WITHIN).to(tl.int32)
    is_long = (tl.load(table + S_WITHIN * width + c, mask=c < within, other=1.0) > 1.0)[:, None]
    fraction = tl.load(numbers + STEP_FRACTION).to(dtype)
    rate, c_1 = tl.load(constants + SCOUT_RATE) * tl.load(numbers + ETA_B), tl.load(numbers + C_1)
    q_long, q_short = tl.load(table + Q_ALONG * width), tl.load(table + Q_ALONG * width + 1)
    stay_long = rate * tl.load(table + WW * width) + c_1 * q_long * q_long
    stay_short = rate * tl.load(table + WW * width + 1) + c_1 * q_short * q_short
    S_new = tl.load(constants + NEW_S)
    by_turn = tl.sqrt(S_new) / (S_new - 1.0)
    logs, lengths2 = tl.zeros([TILE], tl.float64), tl.zeros([AXES, TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + LIVE) == 0.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        growth = tl.exp(fraction * tl.load(log_D + j, mask=inside, other=0.0))
        d = tl.load(D + j, mask=inside, other=1.0) * growth
        tl.store(D + j, d, mask=inside)
        logs += tl.where(inside, tl.log(d), 0.0).to(tl.float64)
        beside = tl.load(path + j, mask=inside, other=0.0)
        shares_long, shares_short = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        u = tl.zeros([AXES, TILE], dtype)
        for b in range(k):
            axis = tl.load(frame + (2 + int64(b)) * dim + j, mask=inside, other=0.0)
            U = tl.load(work + (int64(b) + OF_AXES) * dim + j, mask=inside, other=0.0)
            by_V = tl.load(of_V + b * AXES + c, mask=c < within, other=0.0).to(dtype)
            by_U = tl.load(of_Y + b * AXES + c, mask=c < within, other=0.0).to(dtype)
            u += by_V[:, None] * axis[None, :] + by_U[:, None] * U[None, :]
            beside -= tl.load(table + Q_ALONG * width + 2 + b).to(dtype) * axis
            shares_long += tl.load(M + b).to(dtype) * axis
            shares_short += tl.load(M + room + b).to(dtype) * axis
        at = int64(c)[:, None] * dim + j[None, :]
        tl.store(
            turned + at,
            u * tl.where(is_long, (1.0 / growth)[None, :], growth[None, :]),
            mask=(c < within)[:, None] & inside[None, :],
        )
        lengths2 += u.to(tl.float64) * u
        X = tl.load(work + int64(dim) * OF_DIRECTIONS + j, mask=inside, other=0.0)
        W = tl.load(frame + j, mask=inside, other=0.0)
        W = _scout(W, X, shares_long, beside, q_long, rate, c_1, stay_long, by_turn)
        tl.store(work + j, W / growth, mask=inside)
        X = tl.load(work + int64(dim) * (OF_DIRECTIONS + 1) + j, mask=inside, other=0.0)
        W = tl.load(frame + int64(dim) + j, mask=inside, other=0.0)
        W = _scout(W, X, shares_short, beside, q_short, rate, c_1, stay_short, -by_turn)
        tl.store(work + int64(dim) + j, W * growth, mask=inside)
    to, stride = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to, tl.sum(logs))
    tl.store(to + (1 + c) * stride, tl.sum(lengths2, 1), mask=c < room)


@triton.jit
def set_axes(
    axes,
    source,
    out,
    of_V,
    numbers,
    partial,
    dim,
    room,
    WHEN: tl.constexpr,
    COUNT: tl.constexpr,
    AXES: tl.constexpr,
    TILE: tl.constexpr,
):
    """V of_V for the axes V at `source`. Partial results: the largest V^2 of each, and where."""
    dtype = axes.dtype.element_ty
    c, before = tl.arange(0, AXES), tl.load(numbers + COUNT).to(tl.int32)
    k = tl.load(numbers + K_OUT).to(tl.int32)
    most, where = tl.zeros([AXES, TILE], dtype), tl.zeros([AXES, TILE], tl.int64)
    tiles = tl.where(tl.load(numbers + WHEN) == 0.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        V = tl.zeros([AXES, TILE], dtype)
        for b in range(before):
            row = tl.load(source + b).to(tl.int64)
            axis = tl.load(axes + row * dim + j, mask=inside, other=0.0)
            by_V = tl.load(of_V + b * AXES + c, mask=c < k, other=0.0).to(dtype)
            V += by_V[:, None] * axis[None, :]
        there = (c < k)[:, None] & inside[None, :]
        tl.store(out + int64(c)[:, None] * dim + j[None, :], V, mask=there)
        where = tl.where(most < V * V, j[None, :], where)
        most = tl.maximum(most, V * V)
    largest = tl.max(most, 1)
    at = tl.max(tl.where(most == largest[:, None], where, 0), 1)
    to = partial + c * tl.num_programs(0) + tl.program_id(0)
    tl.store(to, largest.to(tl.float64), mask=c < room)
    tl.store(to + room * tl.num_programs(0), at.to(tl.float64), mask=c < room)


@triton.jit
def largest_entries(table, partial, room, programs, width, WIDTH: tl.constexpr):
    """The largest V^2 of an axis and its coordinate."""
    c, at = tl.program_id(0), tl.arange(0, WIDTH)
    largest = largest_of(partial, c, programs, WIDTH)
    of_program = tl.load(partial + c * programs + at, mask=at < programs, other=-1.0)
    where = tl.load(partial + (room + c) * programs + at, mask=at < programs, other=0.0)
    tl.store(table + LARGEST_V2 * width + c, largest)
    tl.store(table + COORDINATE * width + c, tl.max(tl.where(of_program == largest, where, 0.0)))
