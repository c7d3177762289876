"""The compiled test problems: the values of the NumPy ones, and exact ones where those round.

One test for each problem; sizes, types and levels are loops inside it.
"""

import functools
import itertools
import math
import os
import pickle
import subprocess
import sys
import tracemalloc

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fmnes.kernels import _native
from fmnes.problems import PROBLEMS

COMPILED = [name for name in PROBLEMS if name != "twoaxes"]
each_problem = pytest.mark.parametrize("name", COMPILED)
DTYPES = [np.float64, np.float32]
# One number, less than eight lanes, all of them, some more; one piece of a row and several.
DIMS = [1, 2, 7, 8, 9, 16, 23, 100, 2048, 2049, 10_000]


@functools.cache
def problem(name, dim):
    return PROBLEMS[name](dim)


def plain(name, x):
    """What NumPy says."""
    return problem(name, x.shape[-1]).function(np.asarray(x, dtype=np.float64))


def rows(n, dim, dtype=np.float64, seed=0):
    """Candidates of many sizes; every other one is feasible where negative numbers are not."""
    rng = np.random.default_rng([n, dim, seed])
    x = rng.normal(scale=3.0, size=(n, dim)) * 10.0 ** rng.integers(-8, 4, size=(n, 1))
    x[::2] = np.abs(x[::2])
    return x.astype(dtype)


# --- Against NumPy --------------------------------------------------------------------------------


@each_problem
def test_values_are_those_of_numpy(name):
    for dim, dtype in itertools.product(DIMS, DTYPES):
        x = rows(6, dim, dtype)
        values = problem(name, dim)(x)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, plain(name, x), rtol=1e-13, atol=0, err_msg=f"d={dim}")


@each_problem
@given(data=st.data())
def test_random_shapes(name, data):
    n, dim = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 300))
    dtype = data.draw(st.sampled_from(DTYPES))
    x = rows(n, dim, dtype, seed=data.draw(st.integers(0, 1000)))
    values = problem(name, dim)(x)
    assert values.shape == (n,)
    np.testing.assert_allclose(values, plain(name, x), rtol=1e-13, atol=0)
    for i in range(min(n, 3)):  # alone as in a population, to the bit
        assert problem(name, dim)(x[i]) == values[i]


@given(
    x=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=20),
        elements=st.floats(-1e70, 1e70),
    )
)
@pytest.mark.parametrize("name", ["sphere", "rosenbrock", "rastrigin", "halfspaces"])
def test_random_numbers(name, x):
    values = problem(name, x.shape[1])(x)
    with np.errstate(all="ignore"):  # squares below the smallest number, sines of huge ones
        expected = plain(name, x)
    if name == "rastrigin":  # NumPy's pi*x has lost its sine from about 1e8 on
        assert np.all(np.abs(values - expected) <= 20 * x.shape[1] + 1e-13 * expected)
    else:
        np.testing.assert_allclose(values, expected, rtol=1e-13, atol=1e-300)


# --- Against exact sums ---------------------------------------------------------------------------


def test_rastrigin_to_the_last_digits():
    """In 50 digits: each value within 4 units in the last place, near the minimum as elsewhere."""
    for dim, scale in itertools.product([1, 3, 20], [1e-9, 0.1, 3.0, 1e5]):
        x = np.random.default_rng(dim).normal(scale=scale, size=(20, dim))
        x[0] = np.round(x[0]) + 1e-9  # near other integers
        x[1] = np.round(x[1]) + 0.5
        values = problem("rastrigin", dim)(x)
        with mpmath.workdps(50):
            for row, value in zip(x.tolist(), values.tolist(), strict=True):
                exact = mpmath.fsum(mpmath.mpf(t) ** 2 + 20 * mpmath.sinpi(t) ** 2 for t in row)
                assert abs(value - exact) <= 4 * np.spacing(float(exact)), (dim, scale)


def test_rastrigin_of_huge_numbers():
    x = np.array([2.0**51 + 0.5, 2.0**52 - 0.5, 2.0**52 + 1, -(2.0**53) - 2, 1e300])
    sines = np.array([1, 1, 0, 0, 0])
    x = x[:, None]
    with np.errstate(over="ignore"):
        expected = x[:, 0] ** 2 + 20 * sines
    np.testing.assert_array_equal(problem("rastrigin", 1)(x), expected)


EXACT = {
    "sphere": lambda x: [t * t for t in x],
    "ellipsoid": lambda x: [(t * 1000 ** mpmath.fdiv(i, len(x) - 1)) ** 2 for i, t in enumerate(x)],
    "ktablet": lambda x: [(t if i < len(x) // 4 else 100 * t) ** 2 for i, t in enumerate(x)],
    "halfspaces": lambda x: [t * t for t in x],
    "rosenbrock": lambda x: [
        100 * (b - a * a) ** 2 + (a - 1) ** 2 for a, b in itertools.pairwise(x)
    ],
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_sums(name):
    for dim in (2, 9, 40):
        x = np.abs(np.random.default_rng(dim).normal(size=(10, dim)))
        with mpmath.workdps(50):
            exact = [
                float(mpmath.fsum(EXACT[name](list(map(mpmath.mpf, row))))) for row in x.tolist()
            ]
        # Rosenbrock's b - a^2 may cancel: then what is lost is small beside the other terms.
        np.testing.assert_allclose(problem(name, dim)(x), exact, rtol=2e-14, atol=0)


def test_long_sums_stay_exact():
    x = np.random.default_rng(5).normal(size=(2, 300_000))
    exact = [math.fsum(row * row) for row in x]
    np.testing.assert_allclose(problem("sphere", 300_000)(x), exact, rtol=1e-14)


# --- NaN, infinity, zeros and tiny numbers --------------------------------------------------------


@each_problem
def test_odd_numbers(name):
    """They count in their own row only, and there as in NumPy."""
    odd_numbers = [math.nan, math.inf, -math.inf, -0.0, 1e-300]
    for at, odd, dtype in itertools.product([0, 7, 12, 5000], odd_numbers, DTYPES):
        x = np.abs(rows(5, 5001, dtype)) + dtype(0.1)
        x[3, at] = odd
        values = problem(name, 5001)(x)
        with np.errstate(all="ignore"):
            expected = plain(name, x)
        if name in ("cigar", "discus"):  # inf - inf in both, but not for every u of BLAS's products
            assert math.isfinite(values[3]) == math.isfinite(expected[3])
            values[3] = expected[3] = 0.0
        np.testing.assert_allclose(values, expected, rtol=1e-13, err_msg=f"{odd} at {at}")


def test_one_negative_coordinate_is_infeasible():
    for at in range(20):
        x = np.ones((3, 20))
        x[1, at] = -1e-320
        np.testing.assert_array_equal(problem("halfspaces", 20)(x), [20.0, math.inf, 20.0])


# --- How the rows may lie -------------------------------------------------------------------------


def test_rows_of_any_layout():
    for name in COMPILED:
        x = rows(6, 24)
        values = problem(name, 12)
        for y in (x[:, ::2], x[::2, 12:], np.asfortranarray(x[:, :12]), x[::-1, :12]):
            np.testing.assert_allclose(values(y), values(y.copy(order="C")), rtol=1e-13)
        swapped = x[:, :12].astype(x.dtype.newbyteorder())
        np.testing.assert_array_equal(values(swapped), values(x[:, :12].copy()))
        shifted = np.zeros(8 * 72 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(6, 12)
        shifted[...] = x[:, :12]
        np.testing.assert_allclose(values(shifted), values(x[:, :12].copy()), rtol=1e-13)


def test_rows_are_only_read():
    for name in COMPILED:
        for dtype in DTYPES:
            x = rows(4, 30, dtype)
            kept = x.copy()
            x.flags.writeable = False
            problem(name, 30)(x)
            np.testing.assert_array_equal(x, kept)


def test_other_types_are_converted():
    for name in COMPILED:
        x = np.arange(1, 7).reshape(2, 3)
        expected = problem(name, 3)(x.astype(np.float64))
        for y in (x, x.tolist(), x.astype(np.float16)):
            np.testing.assert_array_equal(problem(name, 3)(y), expected)


def test_the_extension_refuses_what_it_would_have_to_copy():
    x, out = np.ones((2, 3)), np.zeros(2)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.rosenbrock(x[:, ::2], out)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.rosenbrock(x, out.astype(np.float32))
    with pytest.raises(ValueError, match=r"^out: expected 2 numbers, got 3$"):
        _native.rosenbrock(x, np.zeros(3))
    with pytest.raises(ValueError, match=r"^scale: expected 3 numbers, got 2$"):
        _native.weighted_sphere(x, np.ones(2), out)


# --- The same bits whatever the machine -----------------------------------------------------------


@each_problem
def test_every_level_gives_the_same_bits(name):
    for dim, dtype in itertools.product([1, 30, 5000], DTYPES):
        x = rows(4, dim, dtype)
        values = set()
        for level in _native.levels_here():
            _native.set_level(level)
            values.add(problem(name, dim)(x).tobytes())
        assert len(values) == 1, (dim, dtype)


@each_problem
def test_threads_change_no_bit(name):
    for shape in [(1, 1_000_003), (300, 5001), (4001, 200)]:
        x = rows(*shape)
        values = set()
        for threads in (1, 2, 5):
            _native.set_num_threads(threads)
            values.add(problem(name, shape[1])(x).tobytes())
        assert len(values) == 1, shape


# --- Which of the two is used ---------------------------------------------------------------------


def test_rows_in_c_order_are_evaluated_without_a_temporary():
    """NumPy needs one of the size of the rows: so what ran is compiled, and has copied nothing."""
    for name in COMPILED:
        for x in (rows(40, 1000), rows(40, 1000, np.float32), rows(1, 40_000)[0]):
            function = problem(name, x.shape[-1])
            tracemalloc.start()
            function(x)
            peak = tracemalloc.get_traced_memory()[1]
            function.function(x)
            peak_of_numpy = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < x.nbytes / 8
            assert peak_of_numpy > x.nbytes / 2


def test_a_pickled_problem_works_without_the_extension():
    x = np.array([[0.5, 1.0, 2.0]])
    text = pickle.dumps([problem(name, 3) for name in PROBLEMS]).hex()
    code = (
        "import pickle, sys, numpy as np, fmnes\n"
        f"problems = pickle.loads(bytes.fromhex('{text}'))\n"
        "x = np.array([[0.5, 1.0, 2.0]])\n"
        "print(fmnes.config()['kernels'], *[float(p(x)[0]).hex() for p in problems])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"FMNES_KERNELS": "agnostic"},
        capture_output=True,
        text=True,
        check=True,
    )
    kernels, *values = done.stdout.split()
    assert kernels == "agnostic"
    expected = [problem(name, 3)(x)[0] for name in PROBLEMS]
    np.testing.assert_allclose([float.fromhex(value) for value in values], expected, rtol=1e-14)
