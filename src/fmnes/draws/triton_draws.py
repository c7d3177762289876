"""The draws of native/draws.hpp in Triton, for kernels on a GPU.

The Philox words of an address are identical to those of C++ and NumPy. In float64 the normals are
identical too, if a kernel is launched with ``enable_fp_fusion=False``: the operations are those of
`numpy_draws`, in the same order. In float32 they are within 2 units in the last place of the
exact normals; the float64 arithmetic would take three times as long.

This module needs Triton. With ``TRITON_INTERPRET=1`` the kernels run on the CPU, slowly.
"""

import contextlib
from typing import Any

import torch
import triton
import triton.language as tl

from fmnes._arrays import Array
from fmnes.draws.numpy_draws import GROUP, LN2_HIGH, LN2_LOW, C, R, S

TILE = 256  # blocks of a tile: each makes two coordinates


def _constants(coefficients: list[Any]) -> Any:
    return tl.constexpr(tuple(float(c) for c in coefficients))


R64, S64, C64 = _constants(R), _constants(S), _constants(C)
# In float32 the first terms of the series suffice: the next ones are below 1e-9 of the result.
R32, S32, C32 = _constants(R[-4:]), _constants(S[-5:]), _constants(C[-5:])
# -2 ln 2 and pi / 4 as two numbers each: the first has few digits, so its products are exact.
LN2_HIGH32, LN2_LOW32 = tl.constexpr(-2 * 0.693359375), tl.constexpr(2 * 2.1219444005469057e-4)
QUARTER_PI_HIGH, QUARTER_PI_LOW = tl.constexpr(0.785400390625), tl.constexpr(-2.2272275517210005e-6)
LN2_HIGH64, LN2_LOW64 = tl.constexpr(float(LN2_HIGH)), tl.constexpr(float(LN2_LOW))
ONE_BITS = tl.constexpr(0x3FF0000000000000)  # of the float64 number 1.0
TWO52_BITS = tl.constexpr(0x4330000000000000)  # of 2^52
SQRT_HALF_BITS = tl.constexpr(0x3FE6A09E667F3BCD)  # of sqrt(1/2)
MANTISSA = tl.constexpr(0x000FFFFFFFFFFFFF)
NEAR_ONE = tl.constexpr(1257966797)  # (1 - sqrt(1/2)) 2^32
SQRT_HALF_BITS32 = tl.constexpr(0x3F3504F3)
ONE_BITS32 = tl.constexpr(0x3F800000)
MANTISSA32 = tl.constexpr(0x007FFFFF)


@triton.jit
def load_address(words):
    """The seed, and the last two words of the counter, from an int64 array of three numbers."""
    seed = tl.load(words).to(tl.uint64, bitcast=True)
    return seed, tl.load(words + 1).to(tl.uint32), tl.load(words + 2).to(tl.uint32)


@triton.jit
def coordinates(block):
    """The coordinates of a block's cosine; that of its sine is larger by 8."""
    return (block // 8) * 16 + block % 8


@triton.jit
def normals_of(seed, generation, stream, row, block, DOUBLE: tl.constexpr):
    """The two normals of each row and block; the shapes are broadcast."""
    zero = row.to(tl.uint32) * 0 + block.to(tl.uint32) * 0
    counter = zero + block.to(tl.uint32), zero + row.to(tl.uint32)
    w0, w1, w2, w3 = philox(seed, counter[0], counter[1], zero + generation, zero + stream)
    if DOUBLE:
        cosine, sine = box_muller64(w0, w1, w2, w3)
    else:
        cosine, sine = box_muller32(w0, w1, w2, w3)
    return cosine, sine


@triton.jit
def philox(seed, c0, c1, c2, c3):
    """The four words of each counter: Philox 4x32 with 10 rounds.

    A product of 64 bits is one instruction; `tl.philox` takes two for its high and low words.
    """
    k0, k1 = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    for _ in tl.static_range(10):
        product0, product1 = c0.to(tl.uint64) * 0xD2511F53, c2.to(tl.uint64) * 0xCD9E8D57
        c0, c2 = (product1 >> 32).to(tl.uint32) ^ c1 ^ k0, (product0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c1, c3 = product1.to(tl.uint32), product0.to(tl.uint32)
        k0 = tl.add(k0, 0x9E3779B9, sanitize_overflow=False)
        k1 = tl.add(k1, 0xBB67AE85, sanitize_overflow=False)
    return c0, c1, c2, c3


@triton.jit
def _f64(value: tl.constexpr):
    """A constant that is not rounded to float32 first."""
    return tl.full([], value, tl.float64)


@triton.jit
def _u64(value: tl.constexpr):
    return tl.full([], value, tl.uint64)


@triton.jit
def box_muller64(w0, w1, w2, w3):
    """Two normals from four words: 52 bits make the radius, 54 bits the angle."""
    bits = (w0.to(tl.uint64) << 32) | w1.to(tl.uint64)
    u = _f64(2.0) - ((bits >> 12) | _u64(ONE_BITS)).to(tl.float64, bitcast=True)
    # ln u: u = 2^e m with m in [sqrt(1/2), sqrt(2)), s = (m - 1)/(m + 1), ln m = 2 s + s^3 R(s^2)
    bits = u.to(tl.uint64, bitcast=True) + (_u64(ONE_BITS) - _u64(SQRT_HALF_BITS))
    e = ((bits >> 52) | _u64(TWO52_BITS)).to(tl.float64, bitcast=True) - _f64(2.0**52 + 1023)
    m = ((bits & _u64(MANTISSA)) + _u64(SQRT_HALF_BITS)).to(tl.float64, bitcast=True)
    s = (m - _f64(1.0)) / (m + _f64(1.0))
    w = s * s
    y = w * _f64(R64[0])
    for c in tl.static_range(1, 6):
        y = (y + _f64(R64[c])) * w
    y = y + _f64(R64[6])
    log_u = (w * s) * y + e * _f64(LN2_LOW64)
    log_u = log_u + (s + s)
    log_u = log_u + e * _f64(LN2_HIGH64)
    radius = tl.sqrt(log_u * _f64(-2.0))

    # An eighth of a circle is added. The top two bits then give the quarter of the circle, and the
    # next 52 bits the angle g pi/4 within it: sin = g S(g^2), cos = 1 + g^2 C(g^2).
    turn = ((w2.to(tl.uint64) << 32) | w3.to(tl.uint64)) + (_u64(1) << 61)
    angle = ((turn >> 10) & _u64(MANTISSA)) | _u64(ONE_BITS)
    g = angle.to(tl.float64, bitcast=True) - _f64(1.5)
    g = g + g
    w = g * g
    sine, cosine = w * _f64(S64[0]), w * _f64(C64[0])
    for c in tl.static_range(1, 6):
        sine, cosine = (sine + _f64(S64[c])) * w, (cosine + _f64(C64[c])) * w
    sine = (sine + _f64(S64[6])) * g
    cosine = (cosine + _f64(C64[6])) * w + _f64(1.0)
    quarter = (turn >> 62).to(tl.uint32)
    return _turned(radius * cosine, radius * sine, quarter)


@triton.jit
def box_muller32(w0, w1, w2, w3):
    """The same in float32 arithmetic, arranged so that no digits cancel."""
    # u = 1 - k with k = (w0 2^20 + (w1 >> 12)) / 2^52. Where u is close to 1, ln u = log1p(-k).
    # The first 24 bits are exact, so only their sum with the other 28 is rounded.
    near = w0 < NEAR_ONE
    top = tl.where(near, w0, w0 ^ 0xFFFFFFFF)
    rest = (w1 >> 12).to(tl.int32)
    rest = ((top & 0xFF) << 20).to(tl.int32) + tl.where(near, rest, 0x100000 - rest)
    high, low = (top >> 8).to(tl.int32).to(tl.float32) * 2.0**-24, rest.to(tl.float32) * 2.0**-52
    x = high + low
    x_error = low - (x - high)
    bits = x.to(tl.uint32, bitcast=True) + (ONE_BITS32 - SQRT_HALF_BITS32)
    m = ((bits & MANTISSA32) + SQRT_HALF_BITS32).to(tl.float32, bitcast=True)
    e = tl.where(near, 0, (bits >> 23).to(tl.int32) - 127).to(tl.float32)
    f = tl.where(near, -x, m - 1.0)
    # ln(1 + f) = 2 s + s^3 R(s^2) with s = f / (2 + f), and 2 s = f - s f
    s = tl.rsqrt(2.0 + f)
    s = s * s
    s = f * (s * tl.fma(-s, 2.0 + f, 2.0))  # a step of Newton's method for 1 / (2 + f)
    w = s * s
    y = R32[0]
    for c in tl.static_range(1, 4):
        y = y * w + R32[c]
    # -2 ln u. From here on, numbers are sums of a float32 and its rounding error, until the end.
    exponent, f2 = e * LN2_HIGH32, -2.0 * f
    high = exponent + f2
    low = (f2 - (high - exponent)) + (e * LN2_LOW32 - s * (f2 + 2.0 * (w * y)))
    # The rounding error of x matters where ln u is small: near 1, and between sqrt(1/2) and 1/2,
    # where m = 2 u. Its factor 1 / (1 + f) is about 1 - 2 s.
    low = tl.fma(tl.fma(s, -2.0, 1.0), tl.where(near, 2.0, -4.0) * x_error, low)
    y = high + low
    low = low - (y - high)
    inverse = tl.rsqrt(tl.maximum(y, 1e-30))
    radius = y * inverse
    radius_error = (tl.fma(-radius, radius, y) + low) * (0.5 * inverse)

    # The lower 30 bits of w2 are the angle within a quarter, as a number with a sign.
    near = ((w2 << 2).to(tl.int32, bitcast=True) >> 2) + 32
    rest = ((near & 63) << 22) + ((w3 >> 10).to(tl.int32, bitcast=True) - 2**27)
    high, low = (near >> 6).to(tl.float32) * 2.0**-23, rest.to(tl.float32) * 2.0**-51
    g = high + low
    low = low - (g - high)
    w = g * g
    sine, cosine = S32[0], C32[0]
    for c in tl.static_range(1, 4):
        sine, cosine = sine * w + S32[c], cosine * w + C32[c]
    factor = cosine * w + C32[4]
    cosine = factor * w  # cos - 1; sin = g (pi / 4 + w sine)
    w_error = tl.fma(g, g, -w) + (g + g) * low
    error = tl.fma(factor, w, -cosine) + factor * w_error
    x = radius + tl.fma(radius, cosine, radius * error + radius_error * (1.0 + cosine))
    y = radius * g
    error = tl.fma(radius, g, -y) + radius_error * g + radius * low
    y = tl.fma(y, QUARTER_PI_HIGH, tl.fma(y, sine * w + QUARTER_PI_LOW, error * QUARTER_PI_HIGH))
    return _turned(x, y, (w2 + 0x20000000) >> 30)


@triton.jit
def _turned(x, y, quarter):
    """Turn a point by a number of quarters of the circle."""
    odd, back = (quarter & 1) == 1, (quarter & 2) == 2
    cosine, sine = tl.where(odd, y, x), tl.where(odd, x, y)
    return tl.where(odd != back, -cosine, cosine), tl.where(back, -sine, sine)


@triton.jit
def _fill(out, words, dim, first, start, DOUBLE: tl.constexpr, TILE: tl.constexpr):
    """Write one tile of one row of the draws, whose first column is coordinate ``start``."""
    seed, generation, stream = load_address(words)
    row = tl.program_id(1).to(tl.int64)
    block = start // 16 * 8 + tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    cosine, sine = normals_of(seed, generation, stream, row + first, block, DOUBLE)
    j = coordinates(block) - start
    tl.store(out + row * dim + j, cosine, mask=(j >= 0) & (j < dim))
    tl.store(out + row * dim + j + 8, sine, mask=(j + 8 >= 0) & (j + 8 < dim))


def words_of(seed: int, stream: int, generation: int) -> list[int]:
    """The address of a generation's draws as three numbers of int64, for `load_address`."""
    signed = seed - 2**64 if seed >= 2**63 else seed
    return [signed, generation & 0xFFFFFFFF, stream << 12 | generation >> 32]


def words_on(like: Array, address: tuple[int, int, int]) -> Array:
    """The `words_of` an address as a tensor on the device of ``like``."""
    return torch.tensor(words_of(*address), device=like.device)


def blocks_of(dim: int) -> int:
    """The number of Philox blocks that make the coordinates of a row."""
    return -(-dim // GROUP) * (GROUP // 2)


def normals(words: Array, first: int, rows: int, like: Array, start: int = 0) -> Array:
    """Rows ``first`` to ``first + rows - 1`` of the draws, in the dtype and on the device of like.

    ``words`` is a tensor of `words_of` an address. The first column is coordinate ``start``.
    """
    dim = like.shape[0]
    out = torch.empty((rows, dim), dtype=like.dtype, device=like.device)
    double = like.dtype == torch.float64
    blocks = blocks_of(start % GROUP + dim)
    tile = min(TILE, triton.next_power_of_2(blocks))
    grid = triton.cdiv(blocks, tile), rows
    with on_device(like):
        _fill[grid](out, words, dim, first, start, double, tile, enable_fp_fusion=not double)
    return out


def on_device(tensor: Array) -> Any:
    """The context in which kernels are launched for a tensor."""
    if not tensor.is_cuda or tensor.get_device() == torch.cuda.current_device():
        return contextlib.nullcontext()
    return torch.cuda.device(tensor.device)
