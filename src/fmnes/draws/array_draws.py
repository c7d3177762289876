"""The draws of native/draws.hpp for arrays of any library, made where the arrays live.

The Philox words of an address are identical to those of C++ and NumPy. The normals differ by a few
units in the last place, because the array library computes the logarithm and its compiler may fuse
multiplications and additions.

Every function is pure and has no Python ``if`` on array values, so that JAX can compile it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from array_api_compat import device, is_jax_namespace

from fmnes._arrays import Array, Namespace
from fmnes.draws.numpy_draws import GROUP, LANES, C, S

_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85  # added to the key after each round
_LOW16, _LOW30, _LOW32 = 0xFFFF, 2**30 - 1, 2**32 - 1


class Words(NamedTuple):
    """The four words of 32 bits that stand for an `Address`, as numbers or 0-d arrays."""

    key_low: Array
    key_high: Array
    generation_low: Array
    stream: Array  # with the high bits of the generation

    @classmethod
    def of(cls, seed: int, stream: int, generation: int) -> "Words":
        """The words of an address."""
        return cls(seed & _LOW32, seed >> 32, generation & _LOW32, stream << 12 | generation >> 32)


def normals(
    xp: Namespace, words: Words, first: Array, rows: int, dim: int, like: Array, start: int = 0
) -> Array:
    """Rows ``first`` to ``first + rows - 1`` of a generation's standard normal draws.

    They have the shape (rows, dim), and the dtype and device of ``like``. Their first column is
    coordinate ``start``.
    """
    before = start % GROUP
    groups, block = -(-(before + dim) // GROUP), start // GROUP * LANES
    at = counters(xp, words, first, rows, LANES * groups, like, block)
    drawn = philox(xp, words, *at)
    cosines, sines = _stored(xp, box_muller(xp, drawn, like), rows * dim)
    # Eight blocks make sixteen coordinates: their cosines first, then their sines.
    pairs = [xp.reshape(half, (rows, groups, 1, LANES)) for half in (cosines, sines)]
    return xp.reshape(_joined(xp, *pairs), (rows, groups * GROUP))[:, before : before + dim]


def _joined(xp: Namespace, first: Array, second: Array) -> Array:
    """Two arrays of shape (rows, groups, 1, n) as one of shape (rows, groups, 2, n)."""
    if not is_jax_namespace(xp):
        return xp.concat([first, second], axis=2)
    number = xp.arange(2)[:, None]  # a choice is part of one loop, and quicker on a GPU
    return xp.where(number == 0, first, second)


_LARGE = 2**20  # numbers; fewer of them stay in a GPU's cache


def _stored(xp: Namespace, halves: tuple[Array, Array], size: int) -> tuple[Array, Array]:
    """The same arrays, which JAX's compiler is told to store if they are large.

    It would store four words for two normals instead, and finish the normals where they are put in
    order: twice the traffic to memory.
    """
    if size < _LARGE or not is_jax_namespace(xp):
        return halves
    from jax import lax

    stored: tuple[Array, Array] = lax.optimization_barrier(halves)
    return stored


def counters(
    xp: Namespace, words: Words, first: Array, rows: int, blocks: int, like: Array, block: int = 0
) -> tuple[Array, Array, Array, Array]:
    """The counters of some rows and blocks, from ``block`` on; they broadcast to (rows, blocks)."""

    def count(n: int) -> Array:
        return xp.arange(n, dtype=word_dtype(xp), device=device(like))

    row = _word(xp, first, like) + count(rows)
    generation, stream = _word(xp, words.generation_low, like), _word(xp, words.stream, like)
    return (_word(xp, block, like) + count(blocks))[None, :], row[:, None], generation, stream


def philox(
    xp: Namespace, words: Words, c0: Array, c1: Array, c2: Array, c3: Array
) -> tuple[Array, Array, Array, Array]:
    """The four words of each counter, under the key of an address."""
    mask, multiply = _word(xp, _LOW32, c0), _multiplication(xp)
    k0, k1 = _word(xp, words.key_low, c0), _word(xp, words.key_high, c0)
    for _ in range(_ROUNDS):
        high0, low0 = multiply(c0, _MULTIPLIERS[0], mask)
        high1, low1 = multiply(c2, _MULTIPLIERS[1], mask)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _word(xp, _WEYL[0], k0), k1 + _word(xp, _WEYL[1], k1)
        if word_dtype(xp) != xp.uint32:  # words of 32 bits overflow by themselves
            k0, k1 = k0 & mask, k1 & mask
    return c0, c1, c2, c3


def word_dtype(xp: Namespace) -> Array:
    """The dtype of words: uint32, or int64 in PyTorch, which has no arithmetic for uint32."""
    return xp.int64 if "torch" in xp.__name__ else xp.uint32


def _word(xp: Namespace, value: Array, like: Array) -> Array:
    return xp.asarray(value, dtype=word_dtype(xp), device=device(like))


def _multiplication(xp: Namespace) -> Callable[[Array, int, Array], tuple[Array, Array]]:
    """The quickest function for the high and low words of a 32 x 32 bit product."""
    return _multiply_in_jax if is_jax_namespace(xp) else _multiply


def _multiply_in_jax(a: Array, m: int, mask: Array) -> tuple[Array, Array]:
    """From a product of 64 bits, which compilers have an instruction for.

    JAX has numbers of 64 bits when it is told so, also within a function that is compiled without.
    """
    import jax

    with jax.enable_x64(True):
        product = jax.lax.convert_element_type(a, "uint64") * np.uint64(m)
        high, low = product >> np.uint64(32), product & np.uint64(_LOW32)
        words = [jax.lax.convert_element_type(half, "uint32") for half in (high, low)]
    return words[0], words[1]


def _multiply(a: Array, m: int, mask: Array) -> tuple[Array, Array]:
    """The same from products of 16 x 16 bits, which every array library has."""
    m_low, m_high = m & _LOW16, m >> 16
    a_low, a_high = a & _LOW16, a >> 16
    t = a_low * m_low
    u = a_high * m_low + (t >> 16)
    v = a_low * m_high + (u & _LOW16)
    return a_high * m_high + (u >> 16) + (v >> 16), (v << 16) & mask | t & _LOW16


def box_muller(
    xp: Namespace, words: tuple[Array, Array, Array, Array], like: Array
) -> tuple[Array, Array]:
    """Two normals from four words: 52 bits make the radius, 54 bits the angle."""
    w0, w1, w2, w3 = words
    dtype, signed = like.dtype, xp.int64 if w0.dtype == xp.int64 else xp.int32

    def real(x: Array, exponent: int) -> Array:
        return xp.astype(x, dtype) * 2.0**exponent

    # u = 1 - k/2^52 with k = w0 2^20 + (w1 >> 12). We compute it from 2^52 - k, so that a small u
    # keeps its digits. A float32 u close to 1 loses digits; there we use log1p(-k/2^52) instead.
    low = w1 >> 12
    rest = real(w0 ^ _word(xp, _LOW32, w0), -32)
    u = rest + (2.0**-32 - real(low, -52))
    log_u = xp.log(u)
    if dtype != xp.float64:
        k = real(w0, -32) + real(low, -52)
        near = xp.where(k < 0.5, k, xp.zeros_like(k))  # 0 where log1p is not used
        log_u = xp.where(k < 0.5, xp.log1p(-near), log_u)
    radius = xp.sqrt(-2 * log_u)

    # We first add an eighth of a circle. The top two bits then give the quarter of the circle, and
    # the next 52 bits the angle g pi/4 within it: -1 <= g < 1, sin = g S(g^2) and
    # cos = 1 + g^2 C(g^2).
    turn = w2 + _word(xp, 2**29, w2)
    g = real(xp.astype(turn & _LOW30, signed) - 2**29, -29) + real(w3 >> 10, -51)
    sine, cosine = g * _horner(g * g, S), 1 + g * g * _horner(g * g, C)
    odd, negative = (turn >> 30) & 1, (turn >> 31) & 1
    quarter = odd == 1
    cosine, sine = xp.where(quarter, sine, cosine), xp.where(quarter, cosine, sine)
    return (
        radius * xp.where(odd != negative, -cosine, cosine),
        radius * xp.where(negative == 1, -sine, sine),
    )


def _horner(x: Array, coefficients: list[Array]) -> Array:
    value = x * float(coefficients[0])
    for c in coefficients[1:-1]:
        value = (value + float(c)) * x
    return value + float(coefficients[-1])
