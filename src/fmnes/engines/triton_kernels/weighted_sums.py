"""The sums over the draws, and the mean and the paths, which follow from them."""

import triton
import triton.language as tl

from fmnes.draws.triton_draws import coordinates
from fmnes.engines.triton_kernels.draws import int64, normals_of_pair
from fmnes.engines.triton_kernels.names import (
    A_PATH,
    AA,
    ALPHA,
    C_1,
    C_C,
    C_SIGMA,
    EVEN,
    EVEN_A,
    FACTOR,
    FLAT,
    LARGEST,
    NORM_V2,
    ODD,
    ODD_A,
    ODD_HAT,
    SCALE_C,
    SCALE_SIGMA,
    SIGMA,
)
from fmnes.engines.triton_kernels.parts import H_of


@triton.jit
def _update(
    j, inside, hat, gz, az, zz, mean, D, v, p_sigma, p_c, az_out, s_out, numbers, constants
):
    """Lines 9, 12 and 13 for some coordinates; returns vv s of steps 1 to 4."""
    dtype = mean.dtype.element_ty
    norm_v2 = tl.load(numbers + NORM_V2)
    norm_v, r = tl.sqrt(norm_v2), tl.sqrt(1.0 + norm_v2)
    odd_a, aa, c_1 = tl.load(numbers + ODD_A), tl.load(numbers + AA), tl.load(numbers + C_1)
    a_path, alpha = tl.load(numbers + A_PATH), tl.load(numbers + ALPHA)
    sigma = tl.load(numbers + SIGMA).to(dtype)
    vbar = tl.load(v + j, mask=inside, other=0.0) * (1.0 / norm_v).to(dtype)
    vv = vbar * vbar
    d = tl.load(D + j, mask=inside, other=1.0)
    path = (1.0 - tl.load(constants + C_SIGMA)).to(dtype) * tl.load(
        p_sigma + j, mask=inside, other=0.0
    )
    path += tl.load(constants + SCALE_SIGMA).to(dtype) * hat  # eq. (1)
    tl.store(p_sigma + j, path, mask=inside)
    gy = d * (gz + ((r - 1.0) * odd_a).to(dtype) * vbar)
    m = tl.load(mean + j, mask=inside, other=0.0)
    tl.store(mean + j, m + sigma * gy, mask=inside)  # line 13
    path = (1.0 - tl.load(constants + C_C)).to(dtype) * tl.load(p_c + j, mask=inside, other=0.0)
    path += tl.load(constants + SCALE_C).to(dtype) * gy  # line 12
    tl.store(p_c + j, path, mask=inside)
    # The path is one more sample, of weight c_1: `add_sample`.
    path = path / d - ((r - 1.0) * a_path).to(dtype) * vbar
    az += (c_1 * a_path).to(dtype) * path - (aa + c_1 * a_path * a_path).to(dtype) * vbar
    zz += c_1.to(dtype) * (path * path - 1.0)
    rest = alpha * (aa + c_1 * a_path * a_path - c_1)
    s = zz + tl.load(numbers + FACTOR).to(dtype) * vbar * az - rest.to(dtype) * vv
    s = s / H_of(vv, tl.load(numbers + LARGEST).to(dtype), r.to(dtype))
    s = tl.where(inside, s, 0.0)
    tl.store(az_out + j, az, mask=inside)
    tl.store(s_out + j, s, mask=inside)
    return (vv * s).to(tl.float64)


@triton.jit
def sums(
    z,
    words,
    mean,
    D,
    v,
    p_sigma,
    p_c,
    az_out,
    s_out,
    pairs,
    numbers,
    constants,
    partial,
    dim,
    half,
    blocks,
    STORED: tl.constexpr,
    DOUBLE: tl.constexpr,
    TILE: tl.constexpr,
):
    """The weighted sums over all pairs, and everything that follows from them coordinate-wise.

    Nothing changes if all values are equal: `unless_flat`.
    """
    dtype = mean.dtype.element_ty
    along = tl.zeros([TILE], tl.float64)
    tiles = tl.where(tl.load(numbers + FLAT) == 1.0, 0, tl.cdiv(blocks, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        block = int64(tile) * TILE + tl.arange(0, TILE)
        j = coordinates(block)
        hat_x, hat_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        gz_x, gz_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        az_x, az_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        zz_x, zz_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        for i in range(half):
            x, y = normals_of_pair(z, words, i, block, j, dim, STORED, DOUBLE)
            w_hat = tl.load(pairs + ODD_HAT * half + i).to(dtype)
            odd = tl.load(pairs + ODD * half + i).to(dtype)
            even = tl.load(pairs + EVEN * half + i).to(dtype)
            even_a = tl.load(pairs + EVEN_A * half + i).to(dtype)
            hat_x += w_hat * x
            hat_y += w_hat * y
            gz_x += odd * x
            gz_y += odd * y
            az_x += even_a * x
            az_y += even_a * y
            zz_x += even * (x * x)
            zz_y += even * (y * y)
        along += _update(
            j, j < dim, hat_x, gz_x, az_x, zz_x,
            mean, D, v, p_sigma, p_c, az_out, s_out, numbers, constants,
        )  # fmt: skip
        along += _update(
            j + 8, j + 8 < dim, hat_y, gz_y, az_y, zz_y,
            mean, D, v, p_sigma, p_c, az_out, s_out, numbers, constants,
        )  # fmt: skip
    tl.store(partial + tl.program_id(0), tl.sum(along))
