"""Logarithm and exponential of the compiled kernels, against mpmath."""

import mpmath
import numpy as np
import pytest

from fmnes.kernels import _native


@pytest.fixture(autouse=True, params=_native.levels_here())
def level(request, level_and_threads):
    _native.set_level(request.param)


def largest_error(function, x, values):
    """In units in the last place of the exact value."""
    with mpmath.workprec(120):
        exact = [function(mpmath.mpf(float(number))) for number in x]
        return max(
            abs(mpmath.mpf(float(value)) - true) / np.spacing(abs(float(true)))
            for value, true in zip(values, exact, strict=True)
        )


def both(x):
    logs, exps = np.empty_like(x), np.empty_like(x)
    _native.log_and_exp(x, logs, exps)
    return logs, exps


def test_the_logarithm_is_within_2_ulp():
    rng = np.random.default_rng(0)
    near_one = 1 + np.concatenate([-(2.0 ** -np.arange(1, 53)), 2.0 ** -np.arange(1, 53)])
    borders = np.sqrt([0.5, 2.0]) * (1 + 1e-15 * np.arange(-5, 5))[:, None]
    x = np.concatenate([10.0 ** rng.uniform(-300, 300, 4000), near_one, borders.ravel()])
    x = x[: len(x) // 8 * 8]
    assert largest_error(mpmath.log, x, both(x)[0]) <= 2
    assert both(np.ones(8))[0].tolist() == [0.0] * 8


def test_the_exponential_is_within_2_ulp():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-700, 700, 3000), rng.uniform(-1, 1, 1000)])
    assert largest_error(mpmath.exp, x, both(x)[1]) <= 2
    assert both(np.zeros(8))[1].tolist() == [1.0] * 8
