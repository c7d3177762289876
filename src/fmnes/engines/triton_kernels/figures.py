"""What the next generation and the stopping rules need to know of a state."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.draws import int64
from fmnes.engines.triton_kernels.names import (
    CHI_N,
    D_SCALE,
    DENOMINATOR,
    EPS,
    F_AXIS_RATIO,
    F_DEVIATION_MAX,
    F_DEVIATION_MIN,
    F_FEASIBLE,
    F_MEAN_MAX,
    F_MEDIAN,
    F_NORM_V,
    F_PHASE,
    F_SHRUNK,
    F_SIGMA,
    MIDDLE_ABOVE,
    MIDDLE_BELOW,
    NORM_V2,
    P_SIGMA2,
    PC_V,
    SIGMA,
    STRETCH,
    TOLX,
    V_MAX2,
    V_SCALE,
    VV_VV_H,
)
from fmnes.engines.triton_kernels.parts import H_of, added, largest_of, phase_of

# Kinds of partial results of `settle`; the smallest ones with the opposite sign.
V_NORM2, PATH2, V_LARGEST, D_LEAST, D_MOST, LEAST, MOST, MEAN_SIZE, TOO_LARGE = (
    tl.constexpr(i) for i in range(9)
)
KINDS = 9


@triton.jit
def settle(
    mean, D, v, p_sigma, initial, numbers, constants, partial, dim,
    ONE_INITIAL: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Apply the factors of `normalise`, and take partial figures of the state."""
    dtype = v.dtype.element_ty
    d_scale, v_scale = tl.load(numbers + D_SCALE).to(dtype), tl.load(numbers + V_SCALE).to(dtype)
    sigma, tolx = tl.load(numbers + SIGMA).to(dtype), tl.load(constants + TOLX).to(dtype)
    eps = tl.load(constants + EPS).to(dtype)
    norm2, path2 = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    zero = tl.zeros([TILE], dtype)
    v_max, d_min, d_max = zero, zero + float("inf"), zero
    least, most, mean_max, too_large = zero + float("inf"), zero, zero, zero
    for tile in range(tl.program_id(0), tl.cdiv(dim, TILE), tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        d = tl.load(D + j, mask=inside, other=1.0) / d_scale
        direction = tl.load(v + j, mask=inside, other=0.0) * v_scale
        tl.store(D + j, d, mask=inside)
        tl.store(v + j, direction, mask=inside)
        path = tl.load(p_sigma + j, mask=inside, other=0.0).to(tl.float64)
        norm2 += direction.to(tl.float64) * direction
        path2 += path * path
        v_max = tl.maximum(v_max, tl.abs(direction))
        d_max = tl.maximum(d_max, tl.where(inside, d, 0.0))
        d_min = tl.minimum(d_min, tl.where(inside, d, float("inf")))
        deviation = sigma * d * tl.sqrt(1.0 + direction * direction)
        most = tl.maximum(most, tl.where(inside, deviation, 0.0))
        least = tl.minimum(least, tl.where(inside, deviation, float("inf")))
        size = tl.abs(tl.load(mean + j, mask=inside, other=0.0))
        mean_max = tl.maximum(mean_max, size)
        at = j * 0 if ONE_INITIAL else j
        first = tl.load(initial + at, mask=inside, other=0.0)
        resolved = tl.maximum(tolx * first, eps * size)
        too_large = tl.maximum(too_large, tl.where(inside & ~(deviation <= resolved), 1.0, 0.0))
    to, stride = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to + V_NORM2 * stride, tl.sum(norm2))
    tl.store(to + PATH2 * stride, tl.sum(path2))
    tl.store(to + V_LARGEST * stride, tl.max(v_max).to(tl.float64))
    tl.store(to + D_LEAST * stride, -tl.min(d_min).to(tl.float64))
    tl.store(to + D_MOST * stride, tl.max(d_max).to(tl.float64))
    tl.store(to + LEAST * stride, -tl.min(least).to(tl.float64))
    tl.store(to + MOST * stride, tl.max(most).to(tl.float64))
    tl.store(to + MEAN_SIZE * stride, tl.max(mean_max).to(tl.float64))
    tl.store(to + TOO_LARGE * stride, tl.max(too_large).to(tl.float64))


@triton.jit
def report_median(numbers, figures):
    """The median of the values, from the two in the middle."""
    middle = tl.load(numbers + MIDDLE_BELOW) / 2.0 + tl.load(numbers + MIDDLE_ABOVE) / 2.0
    median = tl.where(tl.load(figures + F_FEASIBLE) > 0.0, middle, float("inf"))
    tl.store(figures + F_MEDIAN, median)


@triton.jit
def report_sizes(figures, partial, first, programs, WIDTH: tl.constexpr):
    """The figures of the deviations and the mean, from partial results of four kinds."""
    tl.store(figures + F_DEVIATION_MIN, -largest_of(partial, first, programs, WIDTH))
    tl.store(figures + F_DEVIATION_MAX, largest_of(partial, first + 1, programs, WIDTH))
    tl.store(figures + F_MEAN_MAX, largest_of(partial, first + 2, programs, WIDTH))
    tl.store(figures + F_SHRUNK, 1.0 - largest_of(partial, first + 3, programs, WIDTH))


@triton.jit
def report(numbers, constants, figures, partial, programs, WIDTH: tl.constexpr):
    """The figures of a generation."""
    norm_v2 = added(partial, V_NORM2, programs, WIDTH)
    path2 = added(partial, PATH2, programs, WIDTH)
    v_max = largest_of(partial, V_LARGEST, programs, WIDTH)
    d_min = -largest_of(partial, D_LEAST, programs, WIDTH)
    d_max = largest_of(partial, D_MOST, programs, WIDTH)
    chi_n = tl.load(constants + CHI_N)
    tl.store(numbers + NORM_V2, norm_v2)
    tl.store(numbers + V_MAX2, v_max * v_max)
    # c vbar = (r - 1) <z, v> v / |v|^2 in `write_rows`, and (r - 1) / |v|^2 = 1 / (r + 1)
    tl.store(numbers + STRETCH, 1.0 / (tl.sqrt(1.0 + norm_v2) + 1.0))
    tl.store(numbers + P_SIGMA2, path2)
    tl.store(numbers + D_SCALE, 1.0)
    tl.store(numbers + V_SCALE, 1.0)
    report_median(numbers, figures)
    tl.store(figures + F_SIGMA, tl.load(numbers + SIGMA))
    tl.store(figures + F_AXIS_RATIO, d_max / d_min * tl.sqrt(1.0 + norm_v2))
    tl.store(figures + F_NORM_V, tl.sqrt(norm_v2))
    tl.store(figures + F_PHASE, phase_of(path2, chi_n * chi_n))
    report_sizes(figures, partial, LEAST, programs, WIDTH)


@triton.jit
def prepare(D, v, p_c, numbers, partial, dim, TILE: tl.constexpr):
    """Partial sums over v and p_c that the next natural gradient needs before its own sums."""
    dtype = v.dtype.element_ty
    norm_v2 = tl.load(numbers + NORM_V2)
    g, r = 1.0 + norm_v2, tl.sqrt(1.0 + norm_v2)
    largest = tl.load(numbers + V_MAX2) / norm_v2
    kappa = tl.minimum((2.0 - 1.0 / r) / largest, 4.0)
    rest = ((4.0 - kappa) / (g + 1.0) * (g / (g + 1.0))).to(dtype)
    below, squares, along = (
        tl.zeros([TILE], tl.float64),
        tl.zeros([TILE], tl.float64),
        tl.zeros([TILE], tl.float64),
    )
    for tile in range(tl.program_id(0), tl.cdiv(dim, TILE), tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        direction = tl.load(v + j, mask=j < dim, other=0.0)
        vbar = direction * (1.0 / tl.sqrt(norm_v2)).to(dtype)
        vv = vbar * vbar
        vv_H = vv / H_of(vv, largest.to(dtype), r.to(dtype))
        below += (vv_H * (tl.maximum(1.0 - vv, 0.0) + rest * vv)).to(tl.float64)
        squares += (vv * vv_H).to(tl.float64)
        path = tl.load(p_c + j, mask=j < dim, other=0.0)
        path = path / tl.load(D + j, mask=j < dim, other=1.0)
        along += path.to(tl.float64) * direction
    to, stride = partial + tl.program_id(0), tl.num_programs(0)
    tl.store(to, tl.sum(below))
    tl.store(to + stride, tl.sum(squares))
    tl.store(to + 2 * stride, tl.sum(along))


@triton.jit
def prepared(numbers, partial, programs, WIDTH: tl.constexpr):
    """Add the partial sums of `prepare`."""
    tl.store(numbers + DENOMINATOR, 2.0 * added(partial, 0, programs, WIDTH))
    tl.store(numbers + VV_VV_H, added(partial, 1, programs, WIDTH))
    tl.store(numbers + PC_V, added(partial, 2, programs, WIDTH))
