"""The axes, scouts and scales of the next generation, and the figures of the state."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.auto.names import (
    BASE_LONG,
    BASE_SHORT,
    CURRENT,
    D_DIVISOR,
    EPS,
    F_AXES,
    FACTOR_LONG,
    FACTOR_SHORT,
    K_OUT,
    LIVE,
    OF_LONG,
    OF_NEW,
    OF_SHORT,
    ORDER,
    PATH_ALONG,
    PLACE,
    SCALE_LONG,
    SCALE_SHORT,
    SHARE_LONG,
    SHARE_SHORT,
    TOLX,
    WHO,
    K,
    S,
)
from fmnes.engines.triton_kernels.draws import int64
from fmnes.engines.triton_kernels.figures import report_median, report_sizes
from fmnes.engines.triton_kernels.names import (
    CHI_N,
    F_AXIS_RATIO,
    F_NORM_V,
    F_PHASE,
    F_SIGMA,
    P_SIGMA2,
    SIGMA,
)
from fmnes.engines.triton_kernels.parts import added, largest_of, phase_of

# Kinds of partial results of `finish`; the smallest ones with the opposite sign.
PATH2, D_LEAST, D_MOST, LEAST, MOST, MEAN_SIZE, TOO_LARGE = (tl.constexpr(i) for i in range(7))
KINDS = 7


@triton.jit
def finish(
    work,
    frame,
    mean,
    D,
    p_sigma,
    p_c,
    initial,
    table,
    numbers,
    constants,
    partial,
    dim,
    room,
    width,
    ONE_INITIAL: tl.constexpr,
    AXES: tl.constexpr,
    TILE: tl.constexpr,
):
    """Put the axes in their order, straighten the scouts, and divide D; partial figures of that.

    Then partial products of the path p_c / D with all directions.
    """
    dtype = frame.dtype.element_ty
    c, k = tl.arange(0, AXES), tl.load(numbers + K).to(tl.int32)
    out, current = tl.load(numbers + K_OUT).to(tl.int32), tl.load(numbers + CURRENT).to(tl.int64)
    place, who = tl.load(numbers + PLACE).to(tl.int32), tl.load(numbers + WHO).to(tl.int64)
    is_old = (c < k) & (c != place)
    order = tl.load(table + ORDER * width + c, mask=is_old, other=0.0).to(tl.int64)
    S_c = (tl.load(table + S * width + c, mask=c < k, other=1.0) - 1.0).to(dtype)[:, None]
    of_long = tl.load(table + OF_LONG * width + c, mask=c < out, other=0.0).to(dtype)[:, None]
    of_short = tl.load(table + OF_SHORT * width + c, mask=c < out, other=0.0).to(dtype)[:, None]
    of_new = tl.load(table + OF_NEW * width + c, mask=c < out, other=0.0).to(dtype)[:, None]
    scale = tl.load(numbers + tl.where(who == 0, SCALE_LONG, SCALE_SHORT)).to(dtype)
    base_long = tl.load(numbers + BASE_LONG).to(tl.int64)
    base_short = tl.load(numbers + BASE_SHORT).to(tl.int64)
    factor_long = tl.load(numbers + FACTOR_LONG).to(dtype)
    factor_short = tl.load(numbers + FACTOR_SHORT).to(dtype)
    share_long = tl.load(numbers + SHARE_LONG).to(dtype)
    share_short = tl.load(numbers + SHARE_SHORT).to(dtype)
    divisor, sigma = tl.load(numbers + D_DIVISOR).to(dtype), tl.load(numbers + SIGMA).to(dtype)
    tolx, eps = tl.load(constants + TOLX).to(dtype), tl.load(constants + EPS).to(dtype)
    zero = tl.zeros([TILE], dtype)
    d_min, d_max, least, most = zero + float("inf"), zero, zero + float("inf"), zero
    mean_max, too_large, path2 = zero, zero, tl.zeros([TILE], tl.float64)
    on_long, on_short = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    on_axes = tl.zeros([AXES, TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + LIVE) == 0.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        now = work + (current + c)[:, None] * dim + j[None, :]
        now = tl.load(now, mask=(c < out)[:, None] & inside[None, :], other=0.0)
        new = tl.load(work + who * dim + j, mask=inside, other=0.0)
        new = scale * (new - tl.sum(of_new * now, 0))
        V = work + (current + order)[:, None] * dim + j[None, :]
        V = tl.load(V, mask=is_old[:, None] & inside[None, :], other=0.0)
        V = tl.where((c == place)[:, None], new[None, :], V)
        tl.store(
            frame + (2 + int64(c))[:, None] * dim + j[None, :],
            V,
            mask=(c < k)[:, None] & inside[None, :],
        )
        long = tl.load(work + base_long * dim + j, mask=inside, other=0.0)
        long = factor_long * (long - tl.sum(of_long * now, 0)) - share_long * new
        short = tl.load(work + base_short * dim + j, mask=inside, other=0.0)
        short = factor_short * (short - tl.sum(of_short * now, 0)) - share_short * new
        tl.store(frame + j, long, mask=inside)
        tl.store(frame + int64(dim) + j, short, mask=inside)
        d = tl.load(D + j, mask=inside, other=1.0) / divisor
        tl.store(D + j, d, mask=inside)
        d_max = tl.maximum(d_max, tl.where(inside, d, 0.0))
        d_min = tl.minimum(d_min, tl.where(inside, d, float("inf")))
        deviation = sigma * d * tl.sqrt(1.0 + tl.sum(S_c * (V * V), 0))
        most = tl.maximum(most, tl.where(inside, deviation, 0.0))
        least = tl.minimum(least, tl.where(inside, deviation, float("inf")))
        size = tl.abs(tl.load(mean + j, mask=inside, other=0.0))
        mean_max = tl.maximum(mean_max, size)
        at = j * 0 if ONE_INITIAL else j
        resolved = tl.maximum(tolx * tl.load(initial + at, mask=inside, other=0.0), eps * size)
        too_large = tl.maximum(too_large, tl.where(inside & ~(deviation <= resolved), 1.0, 0.0))
        path = tl.load(p_sigma + j, mask=inside, other=0.0).to(tl.float64)
        path2 += path * path
        path = (tl.load(p_c + j, mask=inside, other=0.0) / d).to(tl.float64)
        on_long += path * long
        on_short += path * short
        on_axes += path[None, :] * V
    to, stride = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to + PATH2 * stride, tl.sum(path2))
    tl.store(to + D_LEAST * stride, -tl.min(d_min).to(tl.float64))
    tl.store(to + D_MOST * stride, tl.max(d_max).to(tl.float64))
    tl.store(to + LEAST * stride, -tl.min(least).to(tl.float64))
    tl.store(to + MOST * stride, tl.max(most).to(tl.float64))
    tl.store(to + MEAN_SIZE * stride, tl.max(mean_max).to(tl.float64))
    tl.store(to + TOO_LARGE * stride, tl.max(too_large).to(tl.float64))
    tl.store(to + 7 * stride, tl.sum(on_long))
    tl.store(to + 8 * stride, tl.sum(on_short))
    tl.store(to + (9 + c) * stride, tl.sum(on_axes, 1), mask=c < room)


@triton.jit
def report(
    table,
    numbers,
    constants,
    figures,
    partial,
    path_along,
    programs,
    room,
    width,
    DIRECTIONS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """The figures of a generation; those of the state stay if nothing has changed."""
    report_median(numbers, figures)
    if tl.load(numbers + LIVE) == 1.0:
        path2, chi_n = added(partial, PATH2, programs, WIDTH), tl.load(constants + CHI_N)
        d_min = -largest_of(partial, D_LEAST, programs, WIDTH)
        d_max = largest_of(partial, D_MOST, programs, WIDTH)
        k = tl.load(numbers + K).to(tl.int32)
        longest = tl.load(table + S * width, mask=k > 0, other=1.0)
        shortest = tl.load(table + S * width + k - 1, mask=k > 0, other=1.0)
        longest = tl.where(k < room, tl.maximum(longest, 1.0), longest)
        shortest = tl.where(k < room, tl.minimum(shortest, 1.0), shortest)
        c = tl.arange(0, DIRECTIONS)
        along = tl.load(path_along + c, mask=c < width, other=0.0)
        tl.store(table + PATH_ALONG * width + c, along, mask=c < width)
        tl.store(numbers + P_SIGMA2, path2)
        tl.store(figures + F_SIGMA, tl.load(numbers + SIGMA))
        tl.store(figures + F_AXIS_RATIO, d_max / d_min * tl.sqrt(longest / shortest))
        tl.store(figures + F_NORM_V, path2 * float("nan"))
        tl.store(figures + F_PHASE, phase_of(path2, chi_n * chi_n))
        report_sizes(figures, partial, LEAST, programs, WIDTH)
        tl.store(figures + F_AXES, k.to(tl.float64))
