"""The draws: the generator's known answers, their addresses, the accuracy of the transform."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws.common import (
    KNOWN_ANSWERS,
    exact_normals,
    extreme_words,
    numpy_normals,
    numpy_words,
    philox,
    ulps,
    words_at,
)
from fmnes import draws
from fmnes.draws import numpy_draws

SEEDS = st.integers(0, 2**64 - 1)
STREAMS = st.integers(0, 2**20 - 1)
GENERATIONS = st.integers(0, 2**44 - 1)
WORDS = st.integers(0, 2**32 - 1)


# --- The generator --------------------------------------------------------------------------------


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_known_answers(counter, key, answer):
    assert philox(counter, key) == answer
    assert numpy_words(key[0] + (key[1] << 32), [counter] * 17).tolist() == [list(answer)] * 17


@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=20), SEEDS)
def test_any_counters(counters, seed):
    key = seed % 2**32, seed >> 32
    assert numpy_words(seed, counters).tolist() == [list(philox(c, key)) for c in counters]


# --- Addresses ------------------------------------------------------------------------------------


@given(
    SEEDS, STREAMS, GENERATIONS, st.integers(0, 2**32 - 5), st.integers(0, 3), st.integers(1, 70)
)
def test_what_is_found_at_an_address(seed, stream, generation, first, rows, dim):
    """Coordinate j is in group j // 16: the cosine, or in its second half the sine, of a block."""
    z = draws.normals(seed, stream, generation, first, first + rows, dim)
    assert z.shape == (rows, dim)
    assert z.dtype == np.float64
    assert z.flags.c_contiguous
    for row in range(rows):
        for j in {0, 7, 8, 15, 16, dim // 2, dim - 1}.intersection(range(dim)):
            block = 8 * (j // 16) + j % 8
            words = words_at(seed, stream, generation, first + row, block)
            assert z[row, j] == numpy_normals([words])[j % 16 // 8, 0]


@given(st.integers(0, 50), st.integers(1, 50), st.sampled_from([np.float64, np.float32]))
def test_coordinates_from_some_on(start, dim, dtype):
    """A part of a row, as one process of several makes it."""
    whole, part = np.empty((3, start + dim), dtype), np.empty((3, dim), dtype)
    draws.normals(1, 2, 3, 4, 7, start + dim, whole)
    draws.normals(1, 2, 3, 4, 7, dim, part, start)
    assert np.array_equal(part, whole[:, start:])


# Larger than a part that the NumPy text does at once, in either direction.
@pytest.mark.parametrize(("rows", "dim"), [(40, 1000), (1100, 16), (3, 3 * 16 * 1024 - 5)])
def test_every_part_of_a_whole(rows, dim):
    whole = draws.normals(3, 1, 2, 0, rows, dim)
    for first, last in [(0, 1), (rows // 3, rows), (rows - 1, rows)]:
        assert np.array_equal(draws.normals(3, 1, 2, first, last, dim), whole[first:last])
    for fewer in (1, 9, dim // 2, dim - 1):
        assert np.array_equal(draws.normals(3, 1, 2, 0, rows, fewer), whole[:, :fewer])
    assert len(np.unique(whole)) == whole.size


def test_nothing_to_draw():
    assert draws.normals(1, 0, 0, 4, 4, 5).shape == (0, 5)


@pytest.mark.parametrize(
    ("name", "value", "bits"),
    [
        ("stream", 2**20, 20),
        ("stream", -1, 20),
        ("generation", 2**44, 44),
        ("generation", -1, 44),
        ("first", -1, 32),
        ("last", 2**32, 32),
        ("dim", 2**33, 33),
    ],
)
def test_no_draw_comes_a_second_time_where_an_address_is_too_long(name, value, bits):
    address = {"seed": 1, "stream": 0, "generation": 0, "first": 0, "last": 1, "dim": 4}
    message = rf"^{name}: expected a number from 0 to 2\^{bits} - 1, got {value}$"
    with pytest.raises(OverflowError, match=message):
        draws.normals(**address | {name: value})


@pytest.mark.parametrize("stream_of", [draws.population_stream, draws.initial_stream])
def test_a_search_has_no_more_runs_than_streams(stream_of):
    assert stream_of(2**19 - 1) in (2**20 - 2, 2**20 - 1)
    with pytest.raises(OverflowError, match=r"^run: expected a number from 0 to 2\^19 - 1, got "):
        stream_of(2**19)


# --- The transform --------------------------------------------------------------------------------


def random_bits(rng, bits, n):
    """Integers of any number of bits up to this one, so that small ones come as well."""
    return [
        int(x) >> int(s)
        for x, s in zip(rng.integers(1 << bits, size=n), rng.integers(bits, size=n), strict=True)
    ]


def test_the_logarithm_is_within_2_ulp():
    rng = np.random.default_rng(1)
    near = 2.0**-52 * np.arange(-20, 21)
    x = np.concatenate(
        [
            1 - np.array(random_bits(rng, 52, 5000)) * 2.0**-52,  # near 1
            2.0**-52 + np.array(random_bits(rng, 52, 5000)) * 2.0**-52,  # near 0
            np.ravel(np.sqrt(0.5) * 2.0 ** -np.arange(51)[:, None] * (1 + near)),  # e changes there
            2.0 ** -np.arange(53),
        ]
    )
    found = x.copy()
    numpy_draws.log(found, *np.empty((3, len(x))))
    with mpmath.workdps(50):
        assert ulps(found, [mpmath.log(float(value)) for value in x]) < 2
    assert found[x == 1].tolist() == [0.0] * np.sum(x == 1)


def cos_sin(turn):
    cosine, sine, g, w = np.empty((4, len(turn)))
    numpy_draws.cos_sin(turn.copy(), cosine, sine, g, w)
    return cosine, sine


def turns(n):
    """54 bits of a turn, many of them close to an eighth."""
    rng = np.random.default_rng(2)
    steps = np.array(random_bits(rng, 51, n), np.uint64) << np.uint64(10)
    return (rng.integers(8, size=n, dtype=np.uint64) << np.uint64(61)) + steps * rng.choice(
        np.array([1, 2**64 - 1], np.uint64), n
    )


def test_cosine_and_sine_are_within_2_ulp():
    turn = turns(10_000)
    cosine, sine = cos_sin(turn)
    with mpmath.workdps(50):
        half_turns = [mpmath.mpf(int(value)) / 2**63 for value in turn]
        assert ulps(cosine, [mpmath.cospi(x) for x in half_turns]) < 2
        assert ulps(sine, [mpmath.sinpi(x) for x in half_turns]) < 2


def test_cosine_and_sine_are_symmetric():
    turn = turns(10_000)
    turn = turn[turn % np.uint64(1 << 61) != 0]  # at an eighth the two are only nearly equal
    cosine, sine = cos_sin(turn)
    quarter = np.uint64(1 << 62)
    for moved, expected in [
        (turn + quarter, (-sine, cosine)),
        (turn + quarter + quarter, (-cosine, -sine)),
        (np.uint64(0) - turn, (cosine, -sine)),
        (quarter - turn, (sine, cosine)),
    ]:
        assert np.array_equal(cos_sin(moved), expected)
    assert np.array_equal(
        cos_sin(quarter * np.arange(4, dtype=np.uint64)), [[1, 0, -1, 0], [0, 1, 0, -1]]
    )


def test_the_normals_of_extreme_words():
    words = np.concatenate(
        [extreme_words(), np.random.default_rng(3).integers(2**32, size=(2000, 4))]
    )
    first, second = numpy_normals(words)
    assert np.isfinite(first).all()
    assert np.isfinite(second).all()
    exact = [exact_normals(four) for four in words]
    assert (
        ulps(first, [pair[0] for pair in exact]) < 4
    )  # half of the 2 of ln, 2 of cos, two roundings
    assert ulps(second, [pair[1] for pair in exact]) < 4


def test_the_least_and_the_largest_radius():
    """Of the uniforms 1 and 2^-52."""
    ones = 2**32 - 1
    assert numpy_normals([(0, 0, 5, 5), (0, 0xFFF, 5, 5)]).tolist() == [[0, 0], [0, 0]]
    first, second = numpy_normals([(ones, ones, 0, 0), (ones, ones, 1 << 31, 0)])
    assert first == pytest.approx(
        [math.sqrt(104 * math.log(2)), -math.sqrt(104 * math.log(2))], rel=1e-15
    )
    assert second.tolist() == [0, 0]
