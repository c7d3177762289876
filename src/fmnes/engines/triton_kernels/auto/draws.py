"""The products of the draws with the directions, and the sums over the draws."""

import triton
import triton.language as tl

from fmnes.draws.triton_draws import coordinates, load_address, normals_of
from fmnes.engines.triton_kernels.auto.names import LIVE
from fmnes.engines.triton_kernels.draws import int64, normals_of_pair
from fmnes.engines.triton_kernels.names import EVEN


@triton.jit
def row_products(
    z,
    words,
    frame,
    p_sigma,
    partial,
    dim,
    half,
    blocks,
    directions,
    STORE: tl.constexpr,
    DOUBLE: tl.constexpr,
    ROWS: tl.constexpr,
    DIRECTIONS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Partial sums of |z|^2, <z, p_sigma> and <z, direction> of some rows and directions.

    Keeps the draws if asked.
    """
    seed, generation, stream = load_address(words)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(2) * DIRECTIONS + tl.arange(0, DIRECTIONS)
    programs = tl.num_programs(1)
    rows = tl.where(tl.program_id(2) == 0, half, 0)  # those that the first directions keep
    dtype = frame.dtype.element_ty
    along = tl.zeros([ROWS, DIRECTIONS, TILE], dtype)
    norm2, path = tl.zeros([ROWS, TILE], dtype), tl.zeros([ROWS, TILE], dtype)
    for tile in range(tl.program_id(1), tl.cdiv(blocks, TILE), programs):
        block = int64(tile) * TILE + tl.arange(0, TILE)
        j = coordinates(block)
        x, y = normals_of(seed, generation, stream, i[:, None], block[None, :], DOUBLE)
        x = tl.where((j < dim)[None, :], x, 0.0)
        y = tl.where((j + 8 < dim)[None, :], y, 0.0)
        if STORE:
            to = z + int64(i)[:, None] * dim + j[None, :]
            tl.store(to, x, mask=(i < rows)[:, None] & (j < dim)[None, :])
            tl.store(to + 8, y, mask=(i < rows)[:, None] & (j + 8 < dim)[None, :])
        at, there = frame + int64(c)[:, None] * dim + j[None, :], (c < directions)[:, None]
        vx = tl.load(at, mask=there & (j < dim)[None, :], other=0.0)
        vy = tl.load(at + 8, mask=there & (j + 8 < dim)[None, :], other=0.0)
        along += x[:, None, :] * vx[None, :, :] + y[:, None, :] * vy[None, :, :]
        px = tl.load(p_sigma + j, mask=j < dim, other=0.0)[None, :]
        py = tl.load(p_sigma + j + 8, mask=j + 8 < dim, other=0.0)[None, :]
        norm2 += x * x + y * y
        path += x * px + y * py
    to = partial + int64(i) * programs + tl.program_id(1)
    stride = int64(half) * programs
    tl.store(to, tl.sum(norm2.to(tl.float64), 1), mask=(i < rows))
    tl.store(to + stride, tl.sum(path.to(tl.float64), 1), mask=(i < rows))
    to = to[:, None] + (2 + int64(c))[None, :] * stride
    tl.store(
        to, tl.sum(along.to(tl.float64), 2), mask=(i < half)[:, None] & (c < directions)[None, :]
    )


@triton.jit
def sums(
    z,
    words,
    work,
    squares,
    by_row,
    pairs,
    numbers,
    dim,
    half,
    blocks,
    weights,
    STORED: tl.constexpr,
    DOUBLE: tl.constexpr,
    WEIGHTS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Some of the weighted sums over all pairs, row after row of the work space; and that of z*z.

    Nothing changes if all values are equal: `unless_flat`.
    """
    dtype = work.dtype.element_ty
    n = int64(tl.program_id(1)) * WEIGHTS + tl.arange(0, WEIGHTS)
    end = tl.where(tl.program_id(1) == 0, dim, 0)  # of the squares
    tiles = tl.where(tl.load(numbers + LIVE) == 0.0, 0, tl.cdiv(blocks, TILE))
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        block = int64(tile) * TILE + tl.arange(0, TILE)
        j = coordinates(block)
        sums_x, sums_y = tl.zeros([WEIGHTS, TILE], dtype), tl.zeros([WEIGHTS, TILE], dtype)
        zz_x, zz_y = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        for i in range(half):
            x, y = normals_of_pair(z, words, i, block, j, dim, STORED, DOUBLE)
            w = tl.load(by_row + n * half + i, mask=n < weights, other=0.0).to(dtype)
            even = tl.load(pairs + EVEN * half + i).to(dtype)
            sums_x += w[:, None] * x[None, :]
            sums_y += w[:, None] * y[None, :]
            zz_x += even * (x * x)
            zz_y += even * (y * y)
        to, there = work + n[:, None] * dim + j[None, :], (n < weights)[:, None]
        tl.store(to, sums_x, mask=there & (j < dim)[None, :])
        tl.store(to + 8, sums_y, mask=there & (j + 8 < dim)[None, :])
        tl.store(squares + j, zz_x, mask=j < end)
        tl.store(squares + j + 8, zz_y, mask=j + 8 < end)
