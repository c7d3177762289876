"""Few variables, any unit of length, any size of value, and starts from earlier results."""

import dataclasses

import numpy as np
import pytest

import fmnes
from contract.common import arrays, assert_same_bits, drive, ellipsoid, sphere, start
from fmnes.algorithms import METHODS

GENERATIONS = 40


# --- Few variables --------------------------------------------------------------------------------


def solve(fun, dim, method, seed, maxfevals):
    x0 = np.full(dim, 3.0)
    options = {"ftarget": 1e-10, "maxfevals": maxfevals, "vectorized": True}
    return fmnes.minimize(fun, x0, 2.0, method=method, rng=seed, **options)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5])
def test_cr_fm_nes_solves_the_ellipsoid_of_few_variables(dim):
    """Thirty seeds each; the paper's c_1 is negative for d < 5."""
    for seed in range(30):
        result = solve(ellipsoid, dim, "cr-fm-nes", seed, 5_000)
        assert result.status == "ftarget", seed
        for column in ("sigma", "condition", "norm_v", "deviation_min", "deviation_max"):
            assert np.isfinite(result.history[column]).all(), (seed, column)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_method_solves_what_it_can_hold(method, dim):
    """R1-NES has one free direction and no scales: an ellipsoid of three variables is too much."""
    fun = sphere if method == "r1-nes" and dim == 3 else ellipsoid
    for seed in range(2):
        result = solve(fun, dim, method, seed, 15_000)
        assert result.status == "ftarget", seed
        assert fun(result.x) == result.fun <= 1e-10


# --- The unit of length, and the size of values ---------------------------------------------------


@pytest.mark.parametrize("exponent", [996, -996])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_unit_of_length_does_not_matter(method, dim, exponent):
    """2^996 is 7e299. A factor that is a power of two changes no digit, so neither do the steps."""
    unit = 2.0**exponent
    one = start(method, dim)
    other = fmnes.Optimizer(np.full(dim, 3.0 * unit), 2.0 * unit, method=method, rng=1)
    for _ in range(GENERATIONS):
        x = other.ask()
        assert np.isfinite(x).all()
        np.testing.assert_array_equal(x, one.ask() * unit)
        drive(one, 1)
        other.tell(ellipsoid(x / unit))
        assert one.stop() == other.stop() == {}
    assert other.result.sigma == pytest.approx(one.result.sigma * unit, rel=1e-12)
    np.testing.assert_array_equal(other.result.mean, one.result.mean * unit)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e30, 1e-30])
def test_a_search_at_any_scale_converges(method, scale):
    """Not only powers of two; to a millionth of the distance, which 1e-300 has room for."""
    result = fmnes.minimize(
        lambda x: sphere(x / scale),
        np.full(3, 3.0 * scale),
        2.0 * scale,
        method=method,
        rng=1,
        ftarget=1e-12,
        maxfevals=10_000,
        vectorized=True,
    )
    assert result.status == "ftarget"
    assert np.max(np.abs(result.x)) <= 1e-6 * scale


@pytest.mark.parametrize("exponent", [100, -100])
def test_the_unit_of_length_does_not_matter_in_float32(method, exponent):
    unit = np.float32(2.0**exponent)
    one = start(method, 3, dtype=np.float32)
    x0 = np.full(3, 3.0, np.float32) * unit
    other = fmnes.Optimizer(x0, 2.0 * float(unit), method=method, rng=1)
    for _ in range(GENERATIONS):
        x = other.ask()
        assert x.dtype == np.float32
        np.testing.assert_array_equal(x, one.ask() * unit)
        f = ellipsoid(one.ask().astype(np.float64))
        one.tell(f)
        other.tell(f)
        assert one.stop() == other.stop()
        if one.stop():  # axes that float32 cannot hold are none of the unit's doing
            assert set(one.stop()) == {"condition"}
            break


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "change",
    [
        lambda f: f * 1e300,
        lambda f: f * 1e-300,
        lambda f: 1e307 * (f / (1e8 + f)),
        lambda f: f - 1e12,
        lambda f: np.log(f) * 1e306,
    ],
    ids=["1e300", "1e-300", "up to 1e307", "less 1e12", "log, up to 1e307"],
)
def test_the_size_of_values_does_not_matter(method, dtype, change):
    """Values are ranked: any increasing function of them makes the same steps, to the bit."""
    one, other = start(method, dtype=dtype), start(method, dtype=dtype)
    for _ in range(GENERATIONS):
        np.testing.assert_array_equal(one.ask(), other.ask())
        f = ellipsoid(one.ask().astype(np.float64))
        g = change(f)
        assert np.isfinite(g).all()
        assert len(np.unique(g)) == len(np.unique(f))  # no ties by rounding
        one.tell(f)
        other.tell(g)
        for name, value in arrays(one._state).items():
            np.testing.assert_array_equal(value, arrays(other._state)[name], err_msg=name)
        assert one.stop() == other.stop() == {}


def test_one_step_size_for_each_variable_is_the_scaled_problem(method):
    """Every population of the methods whose steps do not depend on the axes' names.

    CMA-ES samples along the eigenvectors of its matrix, and DX-NES-IC and FM-NES expand along
    them. Those change with the scales, so for these three it is the first population.
    """
    by_axes = method in ("cma-es", "dx-nes-ic", "fm-nes")
    scales = np.array([1.0, 1e-3, 30.0, 0.5, 1e4])
    one = start(method)
    other = fmnes.Optimizer(3.0 * scales, 2.0 * scales, method=method, rng=1)
    for _ in range(1 if by_axes else GENERATIONS):
        x, y = one.ask(), other.ask()
        np.testing.assert_allclose(y / scales, x, rtol=0, atol=1e-11 * np.max(np.abs(x)))
        f = ellipsoid(x)
        one.tell(f)
        other.tell(f)


def test_equal_step_sizes_are_one(method):
    one = start(method)
    other = fmnes.Optimizer(np.full(5, 3.0), np.full(5, 2.0), method=method, rng=1)
    assert_same_bits(drive(one, GENERATIONS), drive(other, GENERATIONS))
    exact = fmnes.Optimizer(np.full(5, 3.0), 0.3, method=method, rng=1)
    assert exact.result.sigma == pytest.approx(0.3, rel=1e-15)


def test_step_sizes_far_apart(method):
    """Further than any covariance can hold: ended by name, nothing overflows on the way."""
    sigma0 = np.array([1e-150, 1.0, 1e150])
    result = fmnes.minimize(
        lambda x: sphere(x / sigma0), 3 * sigma0, sigma0, method=method, rng=1, maxiter=200
    )
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.fun)
    assert result.status in ("condition", "maxiter", "tolx", "tolfun")


# --- Starts from a Result -------------------------------------------------------------------------


def report(opt):
    return METHODS[opt.setup.method].summary(opt._params, opt._state)


@pytest.fixture(scope="module")
def results():
    """What each method knows of an ellipsoid after some generations."""
    return {name: drive(start(name), 60).result for name in METHODS}


@pytest.mark.parametrize("source", METHODS)
def test_a_warm_start_takes_over_the_distribution(source, method, results):
    """The mean, and the deviation of each variable; of the rest what the method can hold.

    A method with a direction v that is given none starts with a random one, which adds to the
    deviations what it adds in every new search.
    """
    result = results[source]
    opt = fmnes.Optimizer(result, method=method, rng=2)
    np.testing.assert_array_equal(opt.result.mean, result.mean)
    expected = report_of_result(result)
    if hasattr(opt._state, "v") and result.shape.v is None:
        expected = expected * np.sqrt(1 + opt._state.v**2)
    np.testing.assert_allclose(report(opt).deviations, expected, rtol=1e-10)
    assert np.isfinite(drive(opt, 20).result.fun)


@pytest.mark.parametrize("source", METHODS)
def test_a_warm_start_keeps_the_distribution_over_the_first_generations(source, method, results):
    """A method that keeps the volume of D in sigma must not drop that of another method's D."""
    opt = fmnes.Optimizer(results[source], method=method, rng=2)
    before = report(opt).deviations
    after = report(drive(opt, 1)).deviations
    assert np.all(np.abs(np.log(after / before)) < np.log(6))


@pytest.mark.parametrize("settings", [fmnes.CRFMNES, fmnes.SepCMA, fmnes.VDCMA, fmnes.SNES])
@pytest.mark.parametrize("D", [[1e3] * 5, [1.0, 1e-2, 1e-4, 1e-6, 1e-8], [1e60] * 5])
def test_a_given_scale_lasts(settings, D):
    """Only the product sigma0 D counts."""
    opt = fmnes.Optimizer([3.0] * 5, 1 / D[0], method=settings(D=D), rng=1)
    np.testing.assert_allclose(opt.ask().std(axis=0) / D * D[0], 1, rtol=0.9)
    after = report(drive(opt, 1)).deviations
    np.testing.assert_allclose(np.log(after / D * D[0]), 0, atol=np.log(3))


def report_of_result(result):
    """The deviations of a Result, from its own fields."""
    D, v, C = result.shape
    variances = np.diag(C) if C is not None else D**2 * (1 if v is None else 1 + v**2)
    return result.sigma * np.sqrt(variances)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "r1-nes"])
def test_a_warm_start_keeps_what_was_learned(method, results):
    """Fewer evaluations than with the shape forgotten. (R1-NES learns no scales to keep.)"""
    result = results[method]
    options = {"method": method, "ftarget": 1e-4 * result.fun, "vectorized": True, "rng": 2}
    warm = fmnes.minimize(ellipsoid, result, **options)
    cold = fmnes.minimize(ellipsoid, result.mean, result.sigma, **options)
    assert warm.success
    assert cold.success
    assert warm.nfev < cold.nfev


def test_a_warm_start_with_another_step_size(method, results):
    opt = fmnes.Optimizer(results[method], 1e-3, method=method, rng=2)
    other = fmnes.Optimizer(results[method], method=method, rng=2)
    factor = 1e-3 / results[method].sigma
    np.testing.assert_allclose(report(opt).deviations, factor * report(other).deviations, rtol=1e-9)


def test_a_warm_start_within_bounds(method):
    bounds = [(-4.0, 5.0)] * 4 + [(3.0, 3.0)]
    result = drive(start(method, bounds=bounds), 30, sphere).result
    opt = fmnes.Optimizer(result, method=method, bounds=bounds, rng=2)
    np.testing.assert_allclose(opt.result.mean, result.mean, rtol=1e-12)
    assert opt.result.sigma == pytest.approx(result.sigma, rel=1e-12)
    x = opt.ask()
    assert (x >= -4).all()
    assert (x <= 5).all()
    assert (x[:, 4] == 3).all()


def test_a_warm_start_of_other_variables_is_refused():
    result = drive(start("cr-fm-nes", bounds=[(-9, 9)] * 4 + [(3.0, 3.0)]), 5).result
    with pytest.raises(ValueError, match=r"^x0: .* 5 .* got 4"):
        fmnes.Optimizer(result)


def test_a_warm_start_that_cannot_move_is_refused():
    """It would be a success after one generation, whatever the new objective is."""

    def fun(x):
        return sphere(x - 1)

    result = fmnes.minimize(fun, np.full(5, 3.0), 2.0, rng=1, ftarget=0.0, vectorized=True)
    stuck = dataclasses.replace(result, sigma=1e-17)
    with pytest.raises(ValueError, match=r"^sigma0: .* got "):
        fmnes.minimize(fun, stuck, rng=2, vectorized=True)
    assert fmnes.minimize(fun, stuck, 0.1, rng=2, vectorized=True).nit > 10


def test_a_scale_in_the_settings_counts_for_what_can_move():
    small, large = 1e-30, np.full(5, 1e30)
    opt = fmnes.Optimizer(np.full(5, 3.0), small, method=fmnes.SepCMA(D=large), rng=1)
    assert np.isfinite(drive(opt, 20).result.fun)
    with pytest.raises(ValueError, match=r"^sigma0: .* got inf"):
        fmnes.Optimizer(np.full(5, 3.0), 1e200, method=fmnes.SepCMA(D=1e200 * large))
