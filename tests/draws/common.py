"""The draws once more, as plainly as they can be written, and words that are hard on them."""

import mpmath
import numpy as np

from fmnes.draws import numpy_draws

# Counter, key and words of Philox 4x32-10: the known answers that its authors publish (Random123).
KNOWN_ANSWERS = [
    (
        (0x00000000, 0x00000000, 0x00000000, 0x00000000),
        (0x00000000, 0x00000000),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),  # the digits of pi
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def philox(counter, key):
    """Philox 4x32-10 from the paper (Salmon et al. 2011, section 3.3), on Python's integers."""
    (R0, L0, R1, L1), (k0, k1) = counter, key
    for _ in range(10):
        high0, low0 = divmod(R0 * 0xD2511F53, 2**32)
        high1, low1 = divmod(R1 * 0xCD9E8D57, 2**32)
        R0, L0, R1, L1 = high1 ^ L0 ^ k0, low1, high0 ^ L1 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return R0, L0, R1, L1


def words_at(seed, stream, generation, row, block):
    """The words of an address."""
    counter = block, row, generation % 2**32, stream * 2**12 + generation // 2**32
    return philox(counter, (seed % 2**32, seed // 2**32))


def exact_normals(words):
    """The two normals of four words, as mpmath has them to 50 digits."""
    with mpmath.workdps(50):
        w0, w1, w2, w3 = map(int, words)
        uniform = 1 - mpmath.mpf((w0 << 32 | w1) >> 12) / 2**52
        half_turns = mpmath.mpf((w2 << 32 | w3) >> 10) / 2**53  # 54 bits make a turn
        radius = mpmath.sqrt(-2 * mpmath.log(uniform))
        return radius * mpmath.cospi(half_turns), radius * mpmath.sinpi(half_turns)


def ulps(found, exact):
    """By how many units of the last place of the exact value the numbers found are off, at most."""
    most = 0.0
    with mpmath.workdps(50):
        for x, y in zip(found, exact, strict=True):
            if y == 0:
                assert x == 0
            else:
                unit = mpmath.ldexp(1, mpmath.frexp(y)[1] - 53)
                most = max(most, float(abs(mpmath.mpf(float(x)) - y) / unit))
    return most


def numpy_words(seed, counters):
    """The words of counters, both of shape (n, 4), as the NumPy text has them."""
    work = np.zeros((numpy_draws.ROOM, len(counters)), np.uint64)
    work[:4] = np.asarray(counters, np.uint64).T
    numpy_draws.philox(seed, work)
    return work[:4].T.astype(np.uint32)


def numpy_normals(words):
    """The two normals of each four words, as the NumPy text has them: shape (2, n)."""
    work = np.zeros((numpy_draws.ROOM, len(words)), np.uint64)
    work[:4] = np.asarray(words, np.uint64).T
    return np.array(numpy_draws.box_muller(work))


def extreme_words():
    """Words at the corners of the transform, shape (a multiple of 8, 4)."""
    radii = [bits << 12 for bits in (0, 1, 2, 3, 2**51 - 1, 2**51, 2**51 + 1, 2**52 - 2, 2**52 - 1)]
    for k in range(
        1, 53
    ):  # where the logarithm takes the next power of two, and sqrt(1/2) times it
        for middle in (2**52 - 2 ** (52 - k), 2**52 - round(2 ** (52 - k) / 2**0.5)):
            radii += [(middle + near) << 12 for near in (-1, 0, 1) if 0 <= middle + near < 2**52]
    steps = [0, 1, 1023, 1024, 1025, 2048, 2**20, 2**40, 2**60]
    turns = [
        eighth * 2**61 + sign * step for eighth in range(8) for step in steps for sign in (1, -1)
    ]
    pairs = [(u, turns[i % len(turns)]) for i, u in enumerate(radii)]
    pairs += [(radii[i % 9], turn) for i, turn in enumerate(turns)]
    pairs += [(0, 0), (2**64 - 1, 2**64 - 1)]
    pairs += [divmod(1 << bit, 2**64) for bit in range(128)]
    pairs += [divmod(2**128 - 1 - (1 << bit), 2**64) for bit in range(128)]
    pairs += [(0, 0)] * (-len(pairs) % 8)
    return np.array(
        [[u >> 32, u % 2**32, turn % 2**64 >> 32, turn % 2**32] for u, turn in pairs], np.uint32
    )
