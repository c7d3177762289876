"""The step of D and v: its length, the step itself, and the limits of v and the determinant."""

import triton
import triton.language as tl

from fmnes.engines.triton_kernels.draws import int64
from fmnes.engines.triton_kernels.names import (
    A_PATH,
    AA,
    ALONG,
    ALPHA,
    C_1,
    C_H,
    D_LIMIT,
    D_SCALE,
    DENOMINATOR,
    DIM,
    FLAT,
    FRACTION,
    KAPPA,
    LARGEST,
    LARGEST_STEP,
    NORM_V2,
    S_ALONG,
    SIGMA,
    V_MAX,
    V_MIN,
    V_SCALE,
    VV_VV_H,
    B,
)
from fmnes.engines.triton_kernels.parts import H_of, added, largest_of


@triton.jit
def solve(numbers, partial, programs, WIDTH: tl.constexpr):
    """Step 4 and 5: the numbers that depend on <vv, s>."""
    along = added(partial, 0, programs, WIDTH)
    c_h = tl.load(numbers + B) / tl.load(numbers + DENOMINATOR) * along
    g, c_1, a_path = (
        1.0 + tl.load(numbers + NORM_V2),
        tl.load(numbers + C_1),
        tl.load(numbers + A_PATH),
    )
    aa = tl.load(numbers + AA) + c_1 * a_path * a_path
    vv_s = along - c_h * tl.load(numbers + VV_VV_H)
    tl.store(numbers + C_H, c_h)
    tl.store(numbers + ALONG, 0.5 * g * (aa - c_1) + tl.load(numbers + ALPHA) * vv_s)
    tl.store(numbers + FRACTION, 1.0)


@triton.jit
def _gradient(j, inside, v, az, s, numbers, SAFE: tl.constexpr):
    """The relative change of D, and the change of u / D (safe) or v: `natural_gradient`."""
    dtype = v.dtype.element_ty
    norm_v2, alpha = tl.load(numbers + NORM_V2), tl.load(numbers + ALPHA)
    g, norm_v, r = 1.0 + norm_v2, tl.sqrt(norm_v2), tl.sqrt(1.0 + norm_v2)
    vbar = tl.load(v + j, mask=inside, other=0.0) * (1.0 / norm_v).to(dtype)
    vv = vbar * vbar
    vv_H = vv / H_of(vv, tl.load(numbers + LARGEST).to(dtype), r.to(dtype))
    s = tl.load(s + j, mask=inside, other=0.0) - tl.load(numbers + C_H).to(dtype) * vv_H
    straight = r.to(dtype) * tl.load(az + j, mask=inside, other=0.0)
    straight += tl.load(numbers + ALONG).to(dtype) * vbar
    if SAFE:
        factor = tl.load(numbers + KAPPA) * (g / (norm_v2 + alpha * (g + 1.0)))
    else:
        factor = alpha * (g + 1.0)
    return s, (straight - factor.to(dtype) * vbar * s) * (1.0 / norm_v).to(dtype)


@triton.jit
def step_size(v, az, s, numbers, partial, dim, TILE: tl.constexpr):
    """Partial results of how far D and v would move: the largest |s|, and |change of u / D|^2."""
    most, total = tl.zeros([TILE], v.dtype.element_ty), tl.zeros([TILE], tl.float64)
    for tile in range(tl.program_id(0), tl.cdiv(dim, TILE), tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        log_D, u = _gradient(j, j < dim, v, az, s, numbers, True)
        most = tl.maximum(most, tl.abs(log_D))
        total += u.to(tl.float64) * u
    tl.store(partial + tl.program_id(0), tl.max(most).to(tl.float64))
    tl.store(partial + tl.num_programs(0) + tl.program_id(0), tl.sum(total))


@triton.jit
def limit_step(numbers, constants, partial, programs, WIDTH: tl.constexpr):
    """The share of the step that is taken: `_move`."""
    turn = tl.sqrt(added(partial, 1, programs, WIDTH) / tl.load(numbers + NORM_V2))
    size = tl.maximum(largest_of(partial, 0, programs, WIDTH), turn)
    tl.store(numbers + FRACTION, 1.0 / tl.maximum(size / tl.load(constants + LARGEST_STEP), 1.0))


@triton.jit
def move(D, v, az, s, numbers, constants, partial, dim, SAFE: tl.constexpr, TILE: tl.constexpr):
    """Lines 14 and 15; partial sums of log D and |v|^2 afterwards."""
    dtype = v.dtype.element_ty
    fraction = tl.load(numbers + FRACTION).to(dtype)
    limit = tl.load(constants + D_LIMIT).to(dtype)
    logs, norm2 = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + FLAT) == 1.0, 0, tl.cdiv(dim, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        j = int64(tile) * TILE + tl.arange(0, TILE)
        inside = j < dim
        log_D, change = _gradient(j, inside, v, az, s, numbers, SAFE)
        d, direction = (
            tl.load(D + j, mask=inside, other=1.0),
            tl.load(v + j, mask=inside, other=0.0),
        )
        growth = 1.0 + fraction * log_D
        d, direction = d * growth, direction + fraction * change
        if SAFE:
            d, direction = tl.minimum(tl.maximum(d, 1.0 / limit), limit), direction / growth
        tl.store(D + j, d, mask=inside)
        tl.store(v + j, direction, mask=inside)
        logs += tl.where(inside, tl.log(d), 0.0).to(tl.float64)
        norm2 += tl.where(inside, direction.to(tl.float64) * direction, 0.0)
    tl.store(partial + tl.program_id(0), tl.sum(logs))
    tl.store(partial + tl.num_programs(0) + tl.program_id(0), tl.sum(norm2))


@triton.jit
def normalise(
    numbers, constants, partial, programs, SAFE: tl.constexpr, DOUBLE: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Lines 16 and 17: the factors that bring v within its limits and the determinant to 1."""
    if tl.load(numbers + FLAT) == 0.0:
        dim = tl.load(constants + DIM)
        norm_v2, v_scale = added(partial, 1, programs, WIDTH), tl.full([], 1.0, tl.float64)
        if SAFE:
            length = tl.sqrt(norm_v2)
            within = tl.maximum(tl.load(constants + V_MIN), length)
            v_scale = tl.minimum(within, tl.load(constants + V_MAX)) / length
        norm_v2 = norm_v2 * v_scale * v_scale
        log = added(partial, 0, programs, WIDTH) / dim + tl.log(1.0 + norm_v2) / (2.0 * dim)
        tl.store(numbers + V_SCALE, v_scale)
        tl.store(numbers + D_SCALE, tl.exp(log))
        tl.store(numbers + SIGMA, tl.load(numbers + S_ALONG))
