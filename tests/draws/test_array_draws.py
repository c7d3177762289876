"""The draws that JAX and PyTorch make on their devices: the words of C++ and NumPy, and normals."""

import numpy as np
import pytest
from array_api_compat import array_namespace

from backends.conftest import LIBRARIES
from draws.common import KNOWN_ANSWERS, exact_normals, extreme_words, numpy_words
from fmnes import draws
from fmnes.draws import array_draws

ADDRESS = {"seed": 0xFEDCBA9876543210, "stream": 2**20 - 1, "generation": 2**44 - 3}


@pytest.fixture(
    params=[
        "array-api-strict",
        pytest.param("torch", marks=pytest.mark.arrays),
        pytest.param("jax", marks=pytest.mark.arrays),
    ]
)
def library(request):
    return LIBRARIES[request.param]()


def namespace(library):
    return array_namespace(library.array(0.0, np.float64))


def words_in(library, values):
    """Columns of words, shape (n, 4), as four arrays of the library."""
    xp = namespace(library)
    columns = np.asarray(values, np.int64).T
    return tuple(
        xp.astype(library.array(column, np.int64), array_draws.word_dtype(xp)) for column in columns
    )


def words_out(columns):
    broadcast = np.broadcast_arrays(*(np.asarray(word).astype(np.uint32) for word in columns))
    return np.stack(broadcast, axis=-1)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_known_answers(library, counter, key, answer):
    words = array_draws.Words(*key, 0, 0)
    found = array_draws.philox(namespace(library), words, *words_in(library, [counter] * 5))
    assert words_out(found).tolist() == [list(answer)] * 5


def test_words_of_an_address(library):
    """Every row and block, against the NumPy implementation."""
    seed, stream, generation = ADDRESS.values()
    first, rows, blocks = 2**32 - 9, 3, 24
    xp, words = namespace(library), array_draws.Words.of(**ADDRESS)
    like = library.array(0.0, np.float64)
    counters = array_draws.counters(xp, words, first, rows, blocks, like)
    expected = numpy_words(
        seed,
        [
            (block, first + row, generation % 2**32, stream << 12 | generation >> 32)
            for row in range(rows)
            for block in range(blocks)
        ],
    )
    found = words_out(array_draws.philox(xp, words, *counters))
    assert np.array_equal(found, expected.reshape(rows, blocks, 4))


# A normal is a product of two factors. The radius is the root of a logarithm that is right to an
# ulp or two, the other a polynomial; each of the few operations after that adds half an ulp.
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_normals_of_extreme_words(library, dtype):
    """Against the exact normals: also where a radius is tiny or huge, and at every eighth turn."""
    words = extreme_words()
    found = array_draws.box_muller(
        namespace(library), words_in(library, words), library.array(0.0, dtype)
    )
    exact = np.array([[float(normal) for normal in exact_normals(row)] for row in words])
    unit = np.spacing(np.abs(exact).astype(dtype)).astype(np.float64)
    errors = np.abs(np.stack([np.asarray(half) for half in found], axis=1) - exact) / unit
    assert np.max(errors[exact != 0]) <= 4
    assert np.all(np.stack([np.asarray(half) for half in found], axis=1)[exact == 0] == 0)


@pytest.mark.parametrize("dim", [1, 15, 16, 17, 100])
def test_rows_of_a_generation(library, dim):
    like = library.array(np.zeros(dim), np.float64)
    expected = draws.normals(**ADDRESS, first=5, last=9, dim=dim)
    words = array_draws.Words.of(**ADDRESS)
    found = array_draws.normals(namespace(library), words, 5, 4, dim, like)
    assert library.holds(found)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=4 * np.finfo(float).eps)


@pytest.mark.parametrize("start", [0, 1, 8, 16, 37])
def test_coordinates_of_a_row_from_some_on(library, start):
    like, words = library.array(np.zeros(20), np.float64), array_draws.Words.of(**ADDRESS)
    whole = array_draws.normals(namespace(library), words, 5, 4, 70, like)
    found = array_draws.normals(namespace(library), words, 5, 4, 20, like, start)
    assert np.array_equal(np.asarray(found), np.asarray(whole)[:, start : start + 20])
