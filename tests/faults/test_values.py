"""What an objective may return, and what it may not."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from faults import objectives
from faults.common import (
    X,
    assert_only_trouble_failed,
)
from fmnes.evaluate import (
    Evaluator,
    evaluate_vectorized,
    to_value,
    to_values,
)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (1.5, 1.5),
        (3, 3.0),
        (True, 1.0),
        (np.bool_(False), 0.0),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.longdouble(2), 2.0),
        (np.int8(-7), -7.0),
        (np.array(2.5), 2.5),
        (np.array([2.5]), 2.5),
        (np.array([[2.5]]), 2.5),
        (Fraction(1, 4), 0.25),
        (Decimal("0.25"), 0.25),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
    ],
)
def test_real_numbers_are_values(raw, value):
    got = to_value(raw, 0)
    assert type(got) is float
    assert got == value


def test_nan_is_a_value():
    assert math.isnan(to_value(math.nan, 0))
    assert math.isnan(to_value(np.float32("nan"), 0))


def test_a_masked_value_is_nan():
    """NumPy keeps a number below the mask, often 0, which is no value of the objective."""
    one, two = np.ma.array([1.0, 2.0], mask=[True, False])
    assert math.isnan(to_value(one, 0))
    assert math.isnan(to_value(np.ma.array([7], mask=True), 0))
    assert to_value(two, 0) == 2.0
    assert to_value(np.ma.array([7], mask=False), 0) == 7.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_masked_values_of_a_generation_are_failures(dtype):
    masked = np.ma.array([1, 0, 1], mask=[False, True, False], dtype=dtype)
    outcome = evaluate_vectorized(lambda x: masked, (), X[:3])
    assert np.array_equal(outcome.values, [1.0, np.nan, 1.0], equal_nan=True)


@pytest.mark.arrays
@pytest.mark.parametrize("name", ["torch", "jax.numpy"])
def test_arrays_of_other_libraries_are_values(name):
    xp = pytest.importorskip(name)
    assert to_value(xp.asarray(0.5), 0) == 0.5
    assert to_value(xp.asarray([0.5]), 0) == 0.5
    assert to_values(xp.asarray([0.5, 1.5]), 2).tolist() == [0.5, 1.5]
    with pytest.raises(TypeError, match=r"candidate 4.*shape \(2,\)"):
        to_value(xp.asarray([0.5, 1.5]), 4)


BAD_VALUES = [
    (None, "NoneType: None .*`return`"),
    (1 + 2j, "complex"),
    (np.complex128(1), "complex128"),
    (np.array([1j]), "ndarray"),
    ("1.0", "str: '1.0'"),
    (b"1.0", "bytes"),
    (np.str_("1.0"), "str_"),
    (np.array([1.0, 2.0, 3.0]), r"shape \(3,\)"),
    (np.array([]), r"shape \(0,\)"),
    ([1.0], "list"),
    ({}, "dict"),
    pytest.param(10**5000, "int beyond the range of float", id="too many digits to print"),
]


@pytest.mark.parametrize(("raw", "named"), BAD_VALUES)
def test_all_else_is_a_type_error_that_names_the_candidate(raw, named):
    with pytest.raises(
        TypeError, match=f"fun: expected a real number for candidate 5, got.*{named}"
    ):
        to_value(raw, 5)


@pytest.mark.parametrize("pool", [None, 2])
def test_a_bad_value_is_a_type_error_with_and_without_a_pool(pool):
    told = "fun: expected a real number for candidate 3, got NoneType: None"
    with Evaluator(pool) as evaluator, pytest.raises(TypeError, match=told):
        evaluator.evaluate(objectives.returns_none, (), X)
    with Evaluator(pool, retries=1, on_error="penalize") as evaluator:
        outcome = evaluator.evaluate(objectives.returns_none, (), X)
    assert_only_trouble_failed(outcome)
    assert told in outcome.first_error


@pytest.mark.parametrize(
    "raw",
    [[1, 2.5], (1.0, 2.5), np.array([1, 2.5], dtype=np.float32), [Fraction(1), Decimal("2.5")]],
)
def test_a_vectorized_objective_returns_one_number_for_each_row(raw):
    values = to_values(raw, 2)
    assert values.dtype == np.float64
    assert values.tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (None, r"shape \(\)"),
        (1.0, r"shape \(\)"),
        ([1.0], r"shape \(1,\)"),
        ([[1.0], [2.0]], r"shape \(2, 1\)"),
        ([[1.0], [2.0, 3.0]], "inhomogeneous"),
        ([1.0, 2j], "dtype complex128"),
        (["1", "2"], "dtype <U1"),
        ([1.0, None], "candidate 1, got NoneType"),
        ([1.0, "2"], "dtype <U32"),
    ],
)
def test_a_vectorized_objective_that_does_not_is_a_type_error(raw, named):
    with pytest.raises(TypeError, match=named):
        to_values(raw, 2)


def test_vectorized_calls_once_with_a_read_only_array_and_keeps_no_hold_of_the_answer():
    seen, buffer = [], np.zeros(len(X))

    def fun(x, shift):
        seen.append(x)
        assert not x.flags.writeable
        return np.add(x[:, 0], shift, out=buffer)

    outcome = evaluate_vectorized(fun, (1.0,), X)
    buffer[:] = np.nan
    assert len(seen) == 1
    assert outcome.values.tolist() == (X[:, 0] + 1.0).tolist()
    assert X.flags.writeable
