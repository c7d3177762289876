"""Normal draws addressed by (seed, stream, generation, pair, coordinate).

A draw is a pure function of its address: it does not depend on who asked first, on the number of
workers or on what was drawn before. So any machine rebuilds any candidate from a few numbers, and
a checkpoint holds no generator state beyond the seed and a counter.
"""

import numpy as np
from numpy.typing import NDArray

# Streams keep apart what must not share draws: the populations of run k of a restart schedule use
# stream 2k, the one draw that its initial v comes from uses stream 2k + 1.
_WORDS_A_BLOCK = 4  # words that NumPy's Philox 4x64 makes for one value of its counter


def draw_seed(rng: "int | np.random.Generator | None") -> int:
    """One seed of 64 bits, from what NumPy's ``default_rng`` takes."""
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"rng: expected None, an int >= 0 or a numpy.random.Generator, got {rng!r}"
        ) from None
    return int(generator.integers(2**64, dtype=np.uint64))


def population_stream(run: int) -> int:
    """The stream of the populations of run number ``run`` of a restart schedule."""
    return 2 * run


def initial_stream(run: int) -> int:
    """The stream of the draw that starts run number ``run`` of a restart schedule."""
    return 2 * run + 1


def normals(
    seed: int, stream: int, generation: int, first: int, last: int, dim: int
) -> NDArray[np.float64]:
    """Rows ``first`` to ``last - 1`` of a generation's standard normal draws, shape (rows, dim)."""
    blocks = -(-dim // _WORDS_A_BLOCK)  # of one row
    counter = np.array([first * blocks, 0, generation, 0], dtype=np.uint64)
    key = np.array([seed, stream], dtype=np.uint64)
    words = np.random.Philox(counter=counter, key=key).random_raw(
        (last - first) * blocks * _WORDS_A_BLOCK
    )
    return _box_muller(words).reshape(last - first, -1)[:, :dim]


def _box_muller(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Two normals from each two words; words 2k and 2k + 1 give normals 2k and 2k + 1."""
    top = words >> np.uint64(11)  # 53 bits, all that a float64 holds
    uniform = top.astype(np.float64) * 2.0**-53
    radius = np.sqrt(-2 * np.log(uniform[0::2] + 2.0**-53))  # of a uniform in (0, 1]
    angle = (2 * np.pi) * uniform[1::2]
    out = np.empty_like(uniform)
    np.multiply(radius, np.cos(angle), out=out[0::2])
    np.multiply(radius, np.sin(angle), out=out[1::2])
    return out
