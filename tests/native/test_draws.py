"""The compiled draws: the generator's known answers, and the same bits as the NumPy draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fmnes
from draws.common import KNOWN_ANSWERS, extreme_words, numpy_normals, words_at
from fmnes.draws import numpy_draws
from fmnes.kernels import _native

SEEDS = st.integers(0, 2**64 - 1)
STREAMS = st.integers(0, 2**20 - 1)
GENERATIONS = st.integers(0, 2**44 - 1)
ROWS = st.integers(0, 2**32 - 100)


@pytest.fixture(scope="module", autouse=True, params=_native.levels_here())
def level(request):
    """Run every test at every level of this machine."""
    chosen = _native.level()
    _native.set_level(request.param)
    yield request.param
    _native.set_level(chosen)


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def words(seed, stream, generation, row, blocks):
    out = np.empty((blocks, 4), np.uint32)
    _native.words(seed, stream, generation, row, out)
    return out


def drawn(fill, seed, stream, generation, first, rows, dim, dtype=np.float64):
    out = np.full((rows, dim), np.nan, dtype)
    fill(seed, stream, generation, first, out)
    return out


def test_known_answers():
    """Only the first one can be asked for: the others lie 2^29 blocks and more from a row's start.

    The next test compares other blocks of the same key, row, generation and stream.
    """
    counter, _, answer = KNOWN_ANSWERS[0]
    assert counter == (0, 0, 0, 0)
    assert words(0, 0, 0, 0, 8)[0].tolist() == list(answer)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_words_of_the_addresses_of_known_answers(counter, key, answer):
    _, row, low, high = counter
    address = key[0] + (key[1] << 32), high >> 12, low + (high % 2**12 << 32), row
    expected = [list(words_at(*address, block)) for block in range(64)]
    assert words(*address, 64).tolist() == expected


@given(SEEDS, STREAMS, GENERATIONS, ROWS)
def test_words_of_any_address(seed, stream, generation, row):
    """Every lane."""
    expected = [list(words_at(seed, stream, generation, row, block)) for block in range(16)]
    assert words(seed, stream, generation, row, 16).tolist() == expected


@given(SEEDS, STREAMS, GENERATIONS, ROWS, st.integers(0, 20), st.integers(1, 300))
def test_normals_of_any_address(seed, stream, generation, first, rows, dim):
    address = seed, stream, generation, first, rows, dim
    found = drawn(_native.normals, *address)
    assert same_bits(found, drawn(numpy_draws.normals, *address))
    assert same_bits(drawn(_native.normals, *address, np.float32), found.astype(np.float32))


@pytest.mark.parametrize(("rows", "dim"), [(1100, 17), (40, 1000), (3, 50_003)])
def test_normals_of_large_shapes_with_any_number_of_threads(rows, dim):
    address = 2**63 + 5, 7, 2**33 + 1, 11, rows, dim
    expected = drawn(numpy_draws.normals, *address)
    chosen = fmnes.get_num_threads()
    try:
        for threads in (1, 2, 3, 7):
            fmnes.set_num_threads(threads)
            assert same_bits(drawn(_native.normals, *address), expected)
            narrow = drawn(_native.normals, *address, np.float32)
            assert same_bits(narrow, expected.astype(np.float32))
    finally:
        fmnes.set_num_threads(chosen)


def test_normals_of_a_thousand_random_and_all_extreme_words():
    given_words = np.concatenate(
        [extreme_words(), np.random.default_rng(1).integers(2**32, size=(1000, 4), dtype=np.uint32)]
    )
    found = np.full((2, len(given_words)), np.nan)
    _native.normals_of_words(given_words, found[0], found[1])
    assert same_bits(found, numpy_normals(given_words))


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"^out: expected 8 rows, a multiple of 8, got 9$"):
        words(0, 0, 0, 0, 9)
    with pytest.raises(ValueError, match=r"^words: expected 8 rows, a multiple of 8, got 9$"):
        _native.normals_of_words(np.zeros((9, 4), np.uint32), np.empty(9), np.empty(9))
