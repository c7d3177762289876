"""The NumPy implementation of the draws; its results are identical to those of native/draws.hpp.

The generator is Philox 4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
as easy as 1, 2, 3", SC 2011). The Box-Muller transform turns its uniform numbers into normal ones.
The logarithm, sine and cosine are our own polynomials. NumPy and C++ evaluate them with the same
IEEE operations in the same order, and neither fuses a multiplication and an addition.

For speed, the functions work in place, on parts small enough to stay in the cache. Constants are
NumPy arrays, because operations with Python numbers take twice as long.
"""

import numpy as np
from numpy.typing import NDArray

Uint64s = NDArray[np.uint64]
Floats = NDArray[np.float64]

# Coordinates come in groups of 16. Blocks 8g to 8g + 7 make group g: the cosines are its first
# eight coordinates, the sines its last eight.
LANES, GROUP = 8, 16
PART = 1024  # groups in a part
ROOM = 6  # rows of `work` below


def normals(
    seed: int, stream: int, generation: int, first: int, out: Floats, start: int = 0
) -> None:
    """Fill ``out``, shape (rows, dim), with the rows ``first``, ``first + 1``, ... of the draws.

    Its first column is coordinate ``start``.
    """
    rows, dim = out.shape
    if before := start % GROUP:  # whole groups are made
        whole = np.empty((rows, before + dim))
        normals(seed, stream, generation, first, whole, start - before)
        out[...] = whole[:, before:]
        return
    groups = -(-dim // GROUP)
    wide = max(1, min(PART, groups))
    tall = max(1, min(PART // wide, rows))
    work = np.empty((ROOM, tall * wide * LANES), np.uint64)
    for i in range(0, rows, tall):
        for g in range(0, groups, wide):
            to = out[i : i + tall, g * GROUP : (g + wide) * GROUP]
            shape = len(to), min(wide, groups - g), LANES
            here = work[:, : shape[0] * shape[1] * LANES]
            counters(stream, generation, first + i, start // GROUP + g, here[:4].reshape(4, *shape))
            philox(seed, here)
            cosines, sines = (half.reshape(shape) for half in box_muller(here))
            pairs = np.stack([cosines, sines], axis=2).reshape(shape[0], -1)
            to[...] = pairs[:, : to.shape[1]]


def counters(stream: int, generation: int, row: int, group: int, out: Uint64s) -> None:
    """Fill ``out``, shape (4, rows, groups, 8), with the counters from ``row`` and ``group`` on."""
    _, rows, groups, _ = out.shape
    blocks = np.arange(group * LANES, (group + groups) * LANES, dtype=np.uint64)
    out[0] = blocks.reshape(groups, LANES)
    out[1] = np.arange(row, row + rows, dtype=np.uint64)[:, None, None]
    out[2] = generation & 0xFFFFFFFF
    out[3] = stream << 12 | generation >> 32


def _u64(value: int) -> Uint64s:
    return np.array(value, np.uint64)


B1, B10, B12, B32, B52, B62 = (_u64(bits) for bits in (1, 10, 12, 32, 52, 62))  # to shift by
LOW_HALF = _u64(0xFFFFFFFF)
ROUNDS = 10
M0, M1 = _u64(0xD2511F53), _u64(0xCD9E8D57)


def philox(seed: int, work: Uint64s) -> None:
    """Replace the counters ``work[:4]`` by the random words that belong to them."""
    c0, c1, c2, c3, p0, p1 = work
    for i in range(ROUNDS):
        np.multiply(c0, M0, out=p0)
        np.multiply(c2, M1, out=p1)
        np.right_shift(p1, B32, out=c0)
        np.right_shift(p0, B32, out=c2)
        c0 ^= c1
        c2 ^= c3
        c0 ^= _u64((seed + i * 0x9E3779B9) & 0xFFFFFFFF)
        c2 ^= _u64(((seed >> 32) + i * 0xBB67AE85) & 0xFFFFFFFF)
        np.bitwise_and(p1, LOW_HALF, out=c1)
        np.bitwise_and(p0, LOW_HALF, out=c3)


ONE_BITS = _u64(0x3FF0000000000000)  # of 1.0
TWO52_BITS = _u64(0x4330000000000000)  # of 2^52
SQRT_HALF_BITS = _u64(0x3FE6A09E667F3BCD)  # of sqrt(1/2)
MANTISSA = _u64(0x000FFFFFFFFFFFFF)
EIGHTH, SIGN = _u64(1 << 61), _u64(1 << 63)


def box_muller(work: Uint64s) -> tuple[Floats, Floats]:
    """Two normals, in ``work``, from the words ``work[:4]``.

    52 bits of the first two words make a uniform number in (0, 1], which gives the radius. 54 bits
    of the other two words make the angle.
    """
    work[0:4:2] <<= B32
    work[0:4:2] |= work[1:4:2]
    u, _, turn, _, _, _ = work
    u >>= B12
    u |= ONE_BITS
    radius, e, _, s, y, _ = work.view(np.float64)
    np.subtract(2.0, radius, out=radius)
    log(radius, e, s, y)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    _, g, _, w, cosine, sine = work.view(np.float64)
    cos_sin(turn, cosine, sine, g, w)
    cosine *= radius
    sine *= radius
    return cosine, sine


def _polynomial(text: str) -> list[Floats]:
    """Coefficients in the order of Horner's scheme, the constant last."""
    return [np.array(float.fromhex(number)) for number in reversed(text.split())]


def _horner(x: Floats, coefficients: list[Floats], out: Floats) -> None:
    np.multiply(x, coefficients[0], out=out)
    for c in coefficients[1:-1]:
        out += c
        out *= x
    out += coefficients[-1]


LN2_HIGH = np.array(float.fromhex("0x1.62e42fefa0000p-1"))  # exact when multiplied by an exponent
LN2_LOW = np.array(float.fromhex("0x1.cf79abc9e3b3ap-40"))  # ln 2 - LN2_HIGH
R = _polynomial("""0x1.5555555555558p-1 0x1.99999999952e2p-2 0x1.2492492df148dp-2
    0x1.c71c62e5800a1p-3 0x1.7462b4ab2ef6bp-3 0x1.39fe606542ddep-3 0x1.2b584aae78a57p-3""")
S = _polynomial("""0x1.921fb54442d18p-1 -0x1.4abbce625be41p-4 0x1.466bc677587f8p-9
    -0x1.32d2cce2e5b19p-15 0x1.50782fda12d96p-22 -0x1.e30071afc3e59p-30 0x1.e3f38399551bfp-38""")
C = _polynomial("""-0x1.3bd3cc9be45dep-2 0x1.03c1f081b5ac0p-6 -0x1.55d3c7e3cb241p-12
    0x1.e1f5068688d5bp-19 -0x1.a6d1eef479be1p-26 0x1.f9ce245cada0bp-34 -0x1.b2f3eb054afcdp-42""")


def log(x: Floats, e: Floats, s: Floats, y: Floats) -> None:
    """Replace x by ln x, for normal numbers x > 0; ``e``, ``s`` and ``y`` are scratch arrays.

    x = 2^e m with m in [sqrt(1/2), sqrt(2)), s = (m - 1)/(m + 1), ln m = 2 s + s^3 R(s^2).
    """
    bits, exponent = x.view(np.uint64), e.view(np.uint64)
    bits += ONE_BITS - SQRT_HALF_BITS
    np.right_shift(bits, B52, out=exponent)  # e + 1023
    exponent |= TWO52_BITS
    e -= 2.0**52 + 1023
    bits &= MANTISSA
    bits += SQRT_HALF_BITS  # now x is m
    np.subtract(x, 1.0, out=s)
    x += 1.0
    s /= x
    np.multiply(s, s, out=x)
    _horner(x, R, out=y)
    x *= s
    x *= y  # the smallest terms come first, as in functions.hpp
    x += np.multiply(e, LN2_LOW, out=y)
    s += s
    x += s
    e *= LN2_HIGH
    x += e


def cos_sin(turn: Uint64s, cosine: Floats, sine: Floats, g: Floats, w: Floats) -> None:
    """Compute cosine and sine of the angle turn/2^64 of a full circle; g and w are scratch arrays.

    We first add an eighth of a circle. The top two bits then give the quarter of the circle, and
    the next 52 bits the angle g pi/4 within it: sin = g S(g^2), cos = 1 + g^2 C(g^2).
    """
    turn += EIGHTH
    bits = g.view(np.uint64)
    np.right_shift(turn, B10, out=bits)
    bits &= MANTISSA
    bits |= ONE_BITS
    g -= 1.5
    g += g
    np.multiply(g, g, out=w)
    _horner(w, S, out=sine)
    sine *= g
    _horner(w, C, out=cosine)
    cosine *= w
    cosine += 1.0
    odd, change = g.view(np.uint64), w.view(np.uint64)
    cosine_bits, sine_bits = cosine.view(np.uint64), sine.view(np.uint64)
    np.right_shift(turn, B62, out=odd)
    odd &= B1
    np.negative(odd, out=odd)  # all bits set where cosine and sine are swapped
    np.bitwise_xor(cosine_bits, sine_bits, out=change)
    change &= odd
    cosine_bits ^= change
    sine_bits ^= change
    np.left_shift(turn, B1, out=change)
    change ^= turn
    change &= SIGN
    cosine_bits ^= change
    turn &= SIGN
    sine_bits ^= turn
