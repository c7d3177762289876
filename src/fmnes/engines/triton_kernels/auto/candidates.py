"""Candidates: a population or some of it, and the best one so far."""

import triton
import triton.language as tl

from fmnes.draws.triton_draws import coordinates
from fmnes.engines.triton_kernels.auto.names import K, S
from fmnes.engines.triton_kernels.candidates import write_tile
from fmnes.engines.triton_kernels.draws import int64, normals_of_pair
from fmnes.engines.triton_kernels.names import BEST, BETTER, SIGMA


@triton.jit
def _stretched(
    x, y, i, j, in_x, in_y, frame, along, S_row, numbers, dim, half
):  # R^(1/2) z for the two normals of each block (a)
    dtype = x.dtype
    for c in range(tl.load(numbers + K).to(tl.int32)):
        share = tl.load(along + int64(c + 2) * half + i)
        factor = ((tl.sqrt(tl.load(S_row + c)) - 1.0) * share).to(dtype)
        V = frame + int64(c + 2) * dim + j
        x = tl.fma(tl.load(V, mask=in_x, other=0.0), factor, x)
        y = tl.fma(tl.load(V + 8, mask=in_y, other=0.0), factor, y)
    return x, y


@triton.jit
def write_rows(
    out,
    z,
    words,
    mean,
    D,
    frame,
    along,
    table,
    numbers,
    dim,
    half,
    width,
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

    x = m + sigma D R^(1/2) z, and its mirror image with - sigma.
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
    begin = low + tl.program_id(1) * ROWS  # of the pairs low to high - 1, which include these rows
    for number in range(begin, min(high, begin + ROWS)):
        i = int64(number)
        plus, minus = (i >= first) & (i < last), (i + half >= first) & (i + half < last)
        if plus | minus:
            x, y = normals_of_pair(z, words, i, block, j, dim, STORED, DOUBLE)
            x, y = _stretched(
                x, y, i, j, in_x, in_y, frame, along, table + S * width, numbers, dim, half
            )
            to = out + (i - first) * size + (j - start)
            if plus:
                write_tile(to, x, y, mean_x, mean_y, scale_x, scale_y, in_x, in_y)
            if minus:
                to += int64(half) * size
                write_tile(to, x, y, mean_x, mean_y, -scale_x, -scale_y, in_x, in_y)


@triton.jit
def keep(
    best,
    z,
    words,
    mean,
    D,
    frame,
    along,
    table,
    numbers,
    dim,
    half,
    blocks,
    width,
    STORED: tl.constexpr,
    DOUBLE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write the best candidate if it is the best so far, with the operations of `write_rows`."""
    if tl.load(numbers + BETTER) == 1.0:
        dtype = mean.dtype.element_ty
        candidate = tl.load(numbers + BEST).to(tl.int32)
        i = candidate % half
        sigma = tl.load(numbers + SIGMA).to(dtype)
        sigma = tl.where(candidate < half, sigma, -sigma)
        for tile in range(tl.program_id(0), tl.cdiv(blocks, TILE), tl.num_programs(0)):
            block = int64(tile) * TILE + tl.arange(0, TILE)
            j = coordinates(block)
            in_x, in_y = j < dim, j + 8 < dim
            x, y = normals_of_pair(z, words, i, block, j, dim, STORED, DOUBLE)
            x, y = _stretched(
                x, y, i, j, in_x, in_y, frame, along, table + S * width, numbers, dim, half
            )
            scale_x = sigma * tl.load(D + j, mask=in_x, other=0.0)
            scale_y = sigma * tl.load(D + j + 8, mask=in_y, other=0.0)
            mean_x = tl.load(mean + j, mask=in_x, other=0.0)
            mean_y = tl.load(mean + j + 8, mask=in_y, other=0.0)
            write_tile(best + j, x, y, mean_x, mean_y, scale_x, scale_y, in_x, in_y)
