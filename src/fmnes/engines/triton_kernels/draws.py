"""The draws of a tile, made from their addresses or loaded, and the products of each row."""

import triton
import triton.language as tl

from fmnes.draws.triton_draws import coordinates, load_address, normals_of


@triton.jit
def int64(i):
    """An index that may exceed 32 bits once it is multiplied."""
    return i + tl.zeros([], tl.int64)


@triton.jit
def normals_of_pair(z, words, i, block, j, dim, STORED: tl.constexpr, DOUBLE: tl.constexpr):
    """The two normals of each block in row i: loaded if they are stored, else made.

    Numbers for coordinates beyond the last one are undefined.
    """
    i = int64(i)
    if STORED:
        row = z + i * dim
        cosine = tl.load(row + j, mask=j < dim, other=0.0)
        sine = tl.load(row + j + 8, mask=j + 8 < dim, other=0.0)
    else:
        seed, generation, stream = load_address(words)
        cosine, sine = normals_of(seed, generation, stream, i, block, DOUBLE)
    return cosine, sine


@triton.jit
def row_sums(
    z,
    words,
    v,
    p_sigma,
    partial,
    dim,
    half,
    blocks,
    STORE: tl.constexpr,
    DOUBLE: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Partial sums of <z, v>, |z|^2 and <z, p_sigma> of some rows; keeps the draws if asked."""
    seed, generation, stream = load_address(words)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    programs = tl.num_programs(1)
    dtype = v.dtype.element_ty
    along = tl.zeros([ROWS, TILE], dtype)
    norm2 = tl.zeros([ROWS, TILE], dtype)
    path = tl.zeros([ROWS, TILE], dtype)
    for tile in range(tl.program_id(1), tl.cdiv(blocks, TILE), programs):
        block = int64(tile) * TILE + tl.arange(0, TILE)
        j = coordinates(block)
        x, y = normals_of(seed, generation, stream, i[:, None], block[None, :], DOUBLE)
        x = tl.where((j < dim)[None, :], x, 0.0)
        y = tl.where((j + 8 < dim)[None, :], y, 0.0)
        if STORE:
            to = z + int64(i)[:, None] * dim + j[None, :]
            tl.store(to, x, mask=(i < half)[:, None] & (j < dim)[None, :])
            tl.store(to + 8, y, mask=(i < half)[:, None] & (j + 8 < dim)[None, :])
        vx = tl.load(v + j, mask=j < dim, other=0.0)[None, :]
        vy = tl.load(v + j + 8, mask=j + 8 < dim, other=0.0)[None, :]
        px = tl.load(p_sigma + j, mask=j < dim, other=0.0)[None, :]
        py = tl.load(p_sigma + j + 8, mask=j + 8 < dim, other=0.0)[None, :]
        along += x * vx + y * vy
        norm2 += x * x + y * y
        path += x * px + y * py
    to = partial + int64(i) * programs + tl.program_id(1)
    stride = int64(half) * programs
    tl.store(to, tl.sum(along.to(tl.float64), 1), mask=i < half)
    tl.store(to + stride, tl.sum(norm2.to(tl.float64), 1), mask=i < half)
    tl.store(to + 2 * stride, tl.sum(path.to(tl.float64), 1), mask=i < half)


@triton.jit
def add_row_sums(partial, out, count, programs, TOGETHER: tl.constexpr, WIDTH: tl.constexpr):
    """Add the partial sums of each of `count` numbers, some of them in each program."""
    i, at = tl.program_id(0) * TOGETHER + tl.arange(0, TOGETHER), tl.arange(0, WIDTH)
    there = (i < count)[:, None] & (at < programs)[None, :]
    parts = partial + int64(i)[:, None] * programs + at[None, :]
    tl.store(out + i, tl.sum(tl.load(parts, mask=there, other=0.0), 1), mask=i < count)
