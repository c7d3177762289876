"""What sigma0 is if it is left out."""

import math

import numpy as np
import pytest

import fmnes


def deviations(x0, **options):
    """The initial standard deviations, which the search starts with."""
    return fmnes.Optimizer(x0, rng=1, **options).result.stds


def test_it_is_a_third_of_the_typical_size_of_x0():
    """Zeros say nothing about the size, and one large number does not decide it."""
    method = fmnes.SNES()  # whose standard deviations are sigma0 itself
    np.testing.assert_allclose(deviations([0.0, -3.0, 6.0, 9000.0], method=method), 2.0)


def test_it_is_1_if_x0_is_0():
    np.testing.assert_array_equal(deviations(np.zeros(4), method="snes"), 1.0)


def test_bounds_come_first():
    bounds = [(0, 12), (None, None), (-1, None), (5, 5)]
    found = deviations([6.0, 30.0, 60.0, 5.0], bounds=bounds, method="snes")
    np.testing.assert_allclose(found[:2], [2.0, 15.0])  # 45 is the median of 30 and 60
    assert found[3] == 0.0


@pytest.mark.parametrize("dim", [100, 3_000, 30_000])
@pytest.mark.parametrize("popsize", [None, 60])
def test_many_variables_start_with_less(dim, popsize):
    opt = fmnes.Optimizer(np.full(dim, -3.0), popsize=popsize, rng=1)
    step = 1.1 * opt.popsize / math.sqrt(dim)
    assert opt.result.restarts[0].sigma0 == pytest.approx(min(1.0, step))
    opt = fmnes.Optimizer(np.zeros(dim), popsize=popsize, bounds=[(-3, 3)] * dim, rng=1)
    assert opt.result.restarts[0].sigma0 == pytest.approx(min(1.0, step))


def test_a_result_has_its_own():
    first = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 5, 1.0, maxiter=9, rng=1)
    assert fmnes.Optimizer(first).result.restarts[0].sigma0 == first.sigma


def test_values_fall_from_the_start_at_30000_variables():
    """With a third of the distance they would rise."""
    x0 = np.full(30_000, 3.0)

    def fun(x):
        return (x**2).sum(axis=1)

    options = {"method": "cr-fm-nes", "vectorized": True, "maxiter": 60, "rng": 1}
    assert fun(fmnes.minimize(fun, x0, **options).mean[None])[0] < 0.99 * fun(x0[None])[0]
    assert fun(fmnes.minimize(fun, x0, 1.0, **options).mean[None])[0] > fun(x0[None])[0]
