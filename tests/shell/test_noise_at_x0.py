"""The method auto evaluates x0 twice, to see whether the objective is noisy."""

import numpy as np
import pytest

import fmnes


class Noisy:
    """A sphere with noise that depends on the point and on how often it was evaluated."""

    def __init__(self, deviation):
        self.deviation, self.times = deviation, {}

    def __call__(self, x):
        key = x.tobytes()
        self.times[key] = self.times.get(key, -1) + 1
        seed = [*np.frombuffer(key, np.uint32), self.times[key]]
        return float(x @ x) + self.deviation * np.random.default_rng(seed).normal()


def search(deviation, method, **options):
    options = {"maxfevals": 2000, "rng": 1} | options
    return fmnes.minimize(Noisy(deviation), np.full(8, 3.0), 1.0, method=method, **options)


@pytest.mark.parametrize(("deviation", "adapt"), [(1.0, "rates"), (0.0, None)])
def test_auto_adapts_its_rates_to_an_objective_that_is_noisy_at_x0(deviation, adapt):
    """One more evaluation than the search with these settings, and the same distribution."""
    found = search(deviation, "auto", maxiter=100)
    given = search(deviation, fmnes.Auto(adapt=adapt), maxiter=100)
    assert found.nfev == given.nfev + 1
    np.testing.assert_array_equal(found.mean, given.mean)
    np.testing.assert_array_equal(found.stds, given.stds)


def test_rates_matter():
    fixed, rates = (search(1.0, fmnes.Auto(adapt=adapt), maxiter=100) for adapt in (None, "rates"))
    assert not np.array_equal(fixed.mean, rates.mean)


def test_a_search_that_found_noise_resumes(tmp_path):
    whole = search(1.0, "auto")
    search(1.0, "auto", maxfevals=300, checkpoint=tmp_path / "run.npz")
    resumed = search(1.0, "auto", checkpoint=tmp_path / "run.npz")
    assert resumed.nfev == whole.nfev
    np.testing.assert_array_equal(resumed.mean, whole.mean)


def test_x0_is_evaluated_once_if_the_budget_ends_there():
    fun = Noisy(1.0)
    popsize = fmnes.METHODS["auto"].default_popsize(8)
    result = fmnes.minimize(fun, np.full(8, 3.0), 1.0, method="auto", maxfevals=popsize + 1, rng=1)
    assert result.nfev == popsize + 1
    assert max(fun.times.values()) == 0
