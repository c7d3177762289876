"""Candidates: a population, one of them in a dtype of its own, and the best one so far."""

import triton
import triton.language as tl

from fmnes.draws.triton_draws import coordinates, load_address, normals_of
from fmnes.engines.triton_kernels.draws import int64, normals_of_pair
from fmnes.engines.triton_kernels.names import BEST, BETTER, SIGMA, STRETCH, ZV


@triton.jit
def write_tile(to, x, y, mean_x, mean_y, scale_x, scale_y, in_x, in_y):
    """Write a tile of a candidate, from the two numbers R^(1/2) z of each block."""
    tl.store(to, tl.fma(scale_x, x, mean_x), mask=in_x)
    tl.store(to + 8, tl.fma(scale_y, y, mean_y), mask=in_y)


@triton.jit
def write_rows(
    out,
    z,
    words,
    mean,
    D,
    v,
    numbers,
    pairs,
    dim,
    half,
    first,
    last,
    low,
    high,
    start,
    size,
    STORED: tl.constexpr,
    DOUBLE: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write the coordinates start to start + size - 1 of candidates first to last - 1.

    x = m + sigma D (z + (r - 1) a vbar), and its mirror image with - sigma.
    """
    dtype = mean.dtype.element_ty
    block = (start // 16 * 8) + int64(tl.program_id(0)) * TILE + tl.arange(0, TILE)
    j = coordinates(block)
    in_x, in_y = (j >= start) & (j < start + size), (j + 8 >= start) & (j + 8 < start + size)
    sigma = tl.load(numbers + SIGMA).to(dtype)
    mean_x = tl.load(mean + j, mask=in_x, other=0.0)
    mean_y = tl.load(mean + j + 8, mask=in_y, other=0.0)
    scale_x = sigma * tl.load(D + j, mask=in_x, other=0.0)
    scale_y = sigma * tl.load(D + j + 8, mask=in_y, other=0.0)
    v_x = tl.load(v + j, mask=in_x, other=0.0)
    v_y = tl.load(v + j + 8, mask=in_y, other=0.0)
    stretch = tl.load(numbers + STRETCH).to(dtype)
    begin = low + tl.program_id(1) * ROWS  # of the pairs low to high - 1, which include these rows
    for number in range(begin, min(high, begin + ROWS)):
        i = int64(number)
        plus, minus = (i >= first) & (i < last), (i + half >= first) & (i + half < last)
        if plus | minus:
            x, y = normals_of_pair(z, words, i, block, j, dim, STORED, DOUBLE)
            c = stretch * tl.load(pairs + ZV * half + i).to(dtype)
            x, y = tl.fma(v_x, c, x), tl.fma(v_y, c, y)
            to = out + (i - first) * size + (j - start)
            if plus:
                write_tile(to, x, y, mean_x, mean_y, scale_x, scale_y, in_x, in_y)
            if minus:
                to += int64(half) * size
                write_tile(to, x, y, mean_x, mean_y, -scale_x, -scale_y, in_x, in_y)


@triton.jit(do_not_specialize=["candidate"])
def write_row(
    out,
    words,
    mean,
    D,
    v,
    numbers,
    pairs,
    half,
    candidate,
    start,
    size,
    ALIGNED: tl.constexpr,
    DOUBLE: tl.constexpr,
    TILE: tl.constexpr,
):
    """`write_rows` for one candidate whose draws are not stored; the same bits in less time.

    A program takes several tiles, and within a tile numbers of 32 bits count the coordinates.
    ALIGNED: start and size are multiples of 16, so that four numbers are loaded at a time.
    """
    dtype = mean.dtype.element_ty
    seed, generation, stream = load_address(words)
    row = candidate % half
    sigma = tl.load(numbers + SIGMA).to(dtype)
    sigma = tl.where(candidate < half, sigma, -sigma)
    c = tl.load(numbers + STRETCH).to(dtype) * tl.load(pairs + ZV * half + row).to(dtype)
    number = tl.arange(0, TILE)
    j = coordinates(number)
    origin = int64(start) // 16 * 16
    tiles = tl.cdiv(start + size - origin, 2 * TILE)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        base = origin + int64(tile) * (2 * TILE)
        end = tl.minimum(start + size - base, 2 * TILE).to(tl.int32)
        if ALIGNED:
            end = tl.multiple_of(end, 16)
            in_x, in_y = j < end, j + 8 < end
        else:
            begin = tl.maximum(start - base, 0).to(tl.int32)
            in_x, in_y = (j >= begin) & (j < end), (j + 8 >= begin) & (j + 8 < end)
        mean_x = tl.load(mean + base + j, mask=in_x, other=0.0)
        mean_y = tl.load(mean + base + 8 + j, mask=in_y, other=0.0)
        D_x = tl.load(D + base + j, mask=in_x, other=0.0)
        D_y = tl.load(D + base + 8 + j, mask=in_y, other=0.0)
        v_x = tl.load(v + base + j, mask=in_x, other=0.0)
        v_y = tl.load(v + base + 8 + j, mask=in_y, other=0.0)
        block = (base // 2).to(tl.uint32) + number.to(tl.uint32)
        x, y = normals_of(seed, generation, stream, row, block, DOUBLE)
        x, y = tl.fma(v_x, c, x), tl.fma(v_y, c, y)
        to = out + (base - start)
        tl.store(to + j, tl.fma(sigma * D_x, x, mean_x), mask=in_x)
        tl.store(to + 8 + j, tl.fma(sigma * D_y, y, mean_y), mask=in_y)


@triton.jit
def keep(best, z, mean, D, v, numbers, pairs, dim, half, TILE: tl.constexpr):
    """Write the best candidate if it is the best so far, with the operations of `write_rows`."""
    if tl.load(numbers + BETTER) == 1.0:
        dtype = mean.dtype.element_ty
        candidate = tl.load(numbers + BEST).to(tl.int32)
        row = candidate % half
        sigma = tl.load(numbers + SIGMA).to(dtype)
        sigma = tl.where(candidate < half, sigma, -sigma)
        c = tl.load(numbers + STRETCH).to(dtype) * tl.load(pairs + ZV * half + row).to(dtype)
        for tile in range(tl.program_id(0), tl.cdiv(dim, TILE), tl.num_programs(0)):
            j = int64(tile) * TILE + tl.arange(0, TILE)
            x = tl.load(z + int64(row) * dim + j, mask=j < dim, other=0.0)
            x = tl.fma(tl.load(v + j, mask=j < dim, other=0.0), c, x)
            scale = sigma * tl.load(D + j, mask=j < dim, other=0.0)
            m = tl.load(mean + j, mask=j < dim, other=0.0)
            tl.store(best + j, tl.fma(scale, x, m), mask=j < dim)
