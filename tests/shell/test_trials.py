"""A sigma0 that is far too large or too small costs a few trials of the first generation."""

import math

import numpy as np
import pytest

import fmnes
from fmnes import Auto
from fmnes.runs.first_generation import TriedStep, judge, parts

D = 200
X0 = np.full(D, 3.0)
AUTO = Auto(adapt=None)  # which does not evaluate x0 twice


def sphere(x):
    return (x**2).sum(axis=-1)


def search(fun=sphere, sigma0=1.0, x0=X0, **options):
    options = {"method": AUTO, "maxiter": 5, "rng": 1, **options}
    return fmnes.minimize(fun, x0, sigma0, **options)


def assert_same(one, other):
    assert (one.fun, one.sigma) == (other.fun, other.sigma)
    np.testing.assert_array_equal(one.mean, other.mean)


# === What the search does ===


@pytest.mark.parametrize("factor", [1e-5, 1e-3, 0.01, 100, 1e3, 1e5])
def test_the_step_size_of_the_sphere_is_found(factor):
    """Theory: a generation gains most with sigma = c mu_eff |x| / d."""
    popsize = fmnes.METHODS["auto"].default_popsize(D)
    best = 0.37 * popsize * 3.0 / math.sqrt(D)
    result = search(sigma0=factor * best)
    assert 0.03 < result.restarts[0].sigma0 / best < 2.5
    trials, rest = divmod(result.nfev - 1, popsize)
    assert (rest, result.nit) == (0, 5)
    assert 1 <= trials - 5 <= 7
    plain = search(sigma0=factor * best, method=Auto(check_sigma0=False), maxiter=trials)
    assert sphere(result.mean) < sphere(plain.mean)


@pytest.mark.parametrize("seed", range(8))
def test_a_function_that_is_steep_only_near_x0_is_not_left(seed):
    """The share of wrong answers of a linear classifier: larger weights change nothing.

    No curvature shows that steps are too large, so that sigma0 used to grow to 16 000 times itself.
    """
    rng = np.random.default_rng(seed)
    inputs, right = rng.normal(size=(400, 100)), rng.normal(size=100)
    answers = np.sign(inputs @ right)
    result = search(
        lambda x: np.mean(np.sign(inputs @ x) != answers), 0.3, rng.normal(size=100), rng=seed
    )
    assert 0.3 / 4.01 < result.restarts[0].sigma0 < 0.3 * 4.01


def test_it_goes_on_like_a_search_with_the_step_size_that_was_found():
    found = search(sigma0=300.0)
    given = search(sigma0=found.restarts[0].sigma0, method=Auto(check_sigma0=False))
    assert_same(found, given)
    assert found.nfev > given.nfev


@pytest.mark.parametrize("sigma0", [0.3, 1.0, 3.0])
def test_a_sigma0_that_fits_changes_nothing(sigma0):
    checked, plain = (search(sigma0=sigma0, method=Auto(check_sigma0=c)) for c in (True, False))
    assert_same(checked, plain)
    assert checked.nfev == plain.nfev


@pytest.mark.parametrize("start", ["at a local minimum", "anywhere"])
def test_local_minima_keep_their_sigma0(start):
    """Around x0 the function is steep and curved: a local step size would be far smaller."""
    x0 = X0 if start == "at a local minimum" else np.random.default_rng(1).uniform(1, 5, D)

    def rastrigin(x):
        return (x**2 - 10 * np.cos(2 * np.pi * x)).sum(axis=-1)

    for sigma0 in (1.0, 2.0):
        assert search(rastrigin, sigma0, x0).restarts[0].sigma0 == sigma0


def test_a_step_size_below_the_local_minima_does_not_jump_over_them():
    x0 = np.random.default_rng(1).uniform(1, 5, D)

    def rastrigin(x):
        return (x**2 - 10 * np.cos(2 * np.pi * x)).sum(axis=-1)

    assert search(rastrigin, 1e-3, x0).restarts[0].sigma0 < 0.3


@pytest.mark.parametrize("sigma0", [1e-3, 1.0, 1e3])
def test_noise_alone_keeps_sigma0(sigma0):
    noise = np.random.default_rng(2)
    changed = 0
    for seed in range(10):
        result = search(lambda x: noise.standard_normal(), sigma0, rng=seed, maxiter=1)
        changed += result.restarts[0].sigma0 != sigma0
    assert changed <= 2


@pytest.mark.parametrize("method", ["cr-fm-nes", "fm-nes", "dx-nes-ic", "auto"])
def test_a_sigma0_that_is_left_out_is_adapted_by_methods_that_sample_in_pairs(method):
    x0 = np.full(30, 1e4)
    result = fmnes.minimize(lambda x: sphere(x - 1e4 + 1), x0, method=method, maxiter=3, rng=1)
    assert result.restarts[0].sigma0 < 3.0
    assert fmnes.Optimizer(x0, method=method, rng=1).result.restarts[0].sigma0 > 1000


@pytest.mark.parametrize("method", [m for m in fmnes.METHODS if m != "auto"])
def test_the_sigma0_of_other_methods_is_what_was_given(method):
    result = search(sigma0=1e3, method=method, maxiter=1)
    assert result.restarts[0].sigma0 == 1e3


def test_the_settings_take_a_boolean():
    with pytest.raises(TypeError, match="check_sigma0: expected True or False, got 1"):
        Auto(check_sigma0=1)


# === Everything else that a search has to do ===


def test_every_evaluation_counts_and_the_best_is_kept():
    calls = []
    result = search(lambda x: calls.append((sphere(x), x.copy())) or sphere(x), 1e-4, maxiter=1)
    assert len(calls) == result.nfev == 1 + result.history["nfev"][0] - 1
    assert result.fun == min(value for value, _ in calls)
    assert sphere(result.x) == result.fun
    result = search(sigma0=1e4, maxiter=1)
    np.testing.assert_array_equal(result.x, X0)


@pytest.mark.parametrize("generations", [1, 2, 3, 4])
def test_the_budget_holds(generations):
    popsize = fmnes.METHODS["auto"].default_popsize(D)
    result = search(sigma0=1e3, maxiter=None, maxfevals=1 + generations * popsize)
    assert result.nfev == 1 + generations * popsize
    assert result.nit >= 1
    assert result.status == "maxfevals"


def test_a_target_ends_the_trials():
    result = search(sigma0=1e-4, ftarget=sphere(X0))
    assert (result.status, result.nit) == ("ftarget", 1)


def test_values_that_are_not_finite():
    def hole(x):
        return math.inf if sphere(x - X0) > D else sphere(x)

    assert search(hole, 100.0).restarts[0].sigma0 == 100.0
    assert search(lambda x: math.nan if x[0] == 3.0 else sphere(x), 1e3).nit == 5
    assert search(lambda x: 1e297 * sphere(x), 1e3).nit == 5


def test_workers_and_vectorized_give_the_same():
    alone = search(sigma0=1e3)
    for other in (search(sigma0=1e3, vectorized=True), search(sigma0=1e3, workers=2)):
        np.testing.assert_allclose(other.mean, alone.mean, rtol=1e-9)
        assert other.nfev == alone.nfev


def test_workers_that_build_their_candidates():
    x0 = np.full(5000, 3.0)
    alone, other = (search(x0=x0, sigma0=1e3, maxiter=2, workers=w) for w in (None, 2))
    assert_same(alone, other)
    assert alone.nfev == other.nfev


@pytest.mark.arrays
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_other_arrays(library):
    module = pytest.importorskip(library, reason=f"needs the extra fmnes[{library}]")
    xp = module if library == "torch" else pytest.importorskip("jax.numpy")
    x0 = xp.asarray(np.full(D, 1e3, np.float32))  # a third of it is too large
    result = search(lambda x: float(((x - 997) ** 2).sum()), None, x0, method="cr-fm-nes")
    assert 0.1 < result.restarts[0].sigma0 < 5.0
    assert type(result.x) is type(result.mean)


def test_bounds_limit_the_growth():
    bounds = [(2.0, 4.0)] * D
    result = search(lambda x: -x.sum(), 1e-5, bounds=bounds)
    assert 0.01 < result.restarts[0].sigma0 <= 1.0


def test_a_step_beyond_the_bounds_is_shortened_before_the_first_evaluation():
    result = search(lambda x: sphere(x - 3.5), 1e3, bounds=[(2.0, 4.0)] * D, maxiter=60)
    assert 0.01 < result.restarts[0].sigma0 <= 1.0
    assert result.fun < sphere(X0 - 3.5)


def test_restarts_begin_with_the_step_size_that_was_found():
    result = search(lambda x: 1 + sphere(x), 1e4, X0[:10], restarts=2, maxiter=20)
    assert [run.sigma0 for run in result.restarts] == [result.restarts[0].sigma0] * 3
    assert result.restarts[0].sigma0 < 10


@pytest.mark.parametrize("ends_after", [1, 9, 23, 24, 25, 40, 47, 48, 60, 70])
def test_a_search_that_ends_among_the_trials_resumes_exactly(ends_after, tmp_path):
    calls = []

    def fun(x):
        calls.append(x.tobytes())
        if len(calls) == ends_after:
            raise KeyboardInterrupt
        return sphere(x)

    path = tmp_path / "run.npz"
    part = search(fun, 1e4, checkpoint=path)
    assert (part.status, part.nfev) == ("interrupted", ends_after - 1)
    resumed, expected = search(fun, 1e4, checkpoint=path), search(sphere, 1e4)
    assert_same(resumed, expected)
    assert resumed.nfev == expected.nfev
    assert len(calls) == expected.nfev + 1
    np.testing.assert_array_equal(resumed.history["nfev"], expected.history["nfev"])


# === The rule alone ===


def pairs(odd, even, f0=0.0):
    """The values of a generation with these parts."""
    return np.concatenate([f0 + even + odd, f0 + even - odd])


def test_parts_of_a_quadratic_function():
    """f = g y + h y^2 / 2 along each of ten pairs: s t is 3.7 g / h with popsize 20 halved."""
    y = np.random.default_rng(0).standard_normal(10)
    y /= math.sqrt((y**2).mean())
    for s in (0.01, 1.0, 100.0):
        found = parts(pairs(3.0 * s * y, np.full(10, 0.5 * 4.0 * s**2), f0=7.0), 7.0)
        assert s * found.t == pytest.approx(0.37 * 20 * 3.0 / 4.0)
        np.testing.assert_allclose(found.odd, 1.5 * s * y)


def test_the_factor_of_a_quadratic_function_takes_one_trial():
    y = np.random.default_rng(0).standard_normal(10)

    def trial(s):
        return TriedStep(s, pairs(3.0 * s * y, np.full(10, 2.0 * s**2)))

    first = judge([trial(100.0)], 0.0, math.inf)
    assert first.factor is not None
    assert judge([trial(100.0), trial(first.factor)], 0.0, math.inf) == (1, None)


def test_flat_values_say_nothing():
    assert judge([TriedStep(1.0, np.full(20, 5.0))], 5.0, math.inf) == (0, None)
    assert judge([TriedStep(1.0, np.full(20, np.nan))], 5.0, math.inf) == (0, None)
    assert judge([TriedStep(1.0, np.full(20, np.inf))], 5.0, math.inf) == (0, None)


# --- What floating-point numbers resolve ----------------------------------------------------------


@pytest.mark.parametrize("sigma0", [10.0, 1e-6])
@pytest.mark.parametrize("seed", range(3))
def test_no_step_is_chosen_that_numbers_cannot_hold(sigma0, seed):
    """A sixth of the narrowest range is less than the spacing of numbers at x0.

    The search would end as converged after its first generation.
    """
    low = np.array([0.36434876, -1.3919225, 0.22394346])
    bounds = np.transpose([low, low + np.array([1.04e-6, 5.6e-7, 1.57e-7])])
    x0 = np.array(bounds.mean(axis=1), np.float32)
    result = search(lambda x: float(x.astype(float).sum()), sigma0, x0, bounds=bounds, rng=seed)
    assert result.status == "maxiter"  # as without bounds: not converged in 5 generations


def test_no_trial_is_smaller_than_numbers_can_hold():
    """x0 is an optimum between valleys so narrow that every step seems too large."""

    def tried(factor):
        y = 1e3 * factor * np.linspace(0.5, 1, 10)
        return TriedStep(factor, np.concatenate([y**2 + y, y**2 - y]))

    assert judge([tried(1.0)], 0.0, math.inf).factor < 1e-2
    assert judge([tried(1.0)], 0.0, math.inf, least=0.1) == (0, 0.1)
    assert judge([tried(1.0), tried(0.1)], 0.0, math.inf, least=0.1) == (1, None)
