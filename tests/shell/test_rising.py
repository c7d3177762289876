"""A search whose values rise for long says so once, and what to do."""

import numpy as np
import pytest

import fmnes
from fmnes.records.record import _RISING, rises


def search(fun, d, sigma0, **options):
    x0 = np.full(d, 3.0)
    options = {"method": "cr-fm-nes"} | options  # which keeps the sigma0 that it is given
    return fmnes.minimize(fun, x0, sigma0, vectorized=True, rng=1, **options)


def sphere(x):
    return (x**2).sum(axis=1)


def test_values_that_rise_are_reported_once(caplog):
    result = search(sphere, 20_000, 3.0, maxiter=200)
    (record,) = [r for r in caplog.records if r.levelname == "WARNING"]
    assert "rose for 90 generations" in record.getMessage()
    assert "sigma0 = 3 may be too large for 20000 variables and popsize 34" in result.message
    assert "Try sigma0 = 0.3" in result.message
    assert result.message.startswith("The number of generations reached maxiter. ")
    assert sphere(result.mean[None])[0] > sphere(np.full((1, 20_000), 3.0))[0]


def test_ask_and_tell_says_so_too(caplog):
    opt = fmnes.Optimizer(np.full(20_000, 3.0), 3.0, rng=1, maxiter=120)
    while not opt.stop():
        opt.tell(sphere(opt.ask()))
    assert "Try sigma0 = 0.3" in opt.result.message
    assert len(caplog.records) == 1


@pytest.mark.parametrize("name", ["sphere", "ellipsoid", "rosenbrock", "rastrigin"])
def test_a_search_that_works_says_nothing(name, caplog):
    problem = fmnes.problems.PROBLEMS[name](40)
    result = search(problem, 40, 2.0, maxfevals=40_000)
    assert "rose" not in result.message
    assert caplog.records == []


def test_noise_alone_does_not_rise(caplog):
    """A hundred windows of values that say nothing."""
    values = np.random.default_rng(0).standard_normal((100, _RISING))
    assert not any(map(rises, values))
    assert not any(rises(-np.arange(_RISING) + 3 * row) for row in values)
    assert all(rises(np.arange(_RISING) / 5 + row) for row in values)


def test_a_noisy_search_near_its_optimum_says_nothing(caplog):
    noise = np.random.default_rng(3)

    def fun(x):
        return sphere(x) + 10 * noise.standard_normal(len(x))

    for seed in range(5):
        options = {"vectorized": True, "maxiter": 600, "rng": seed}
        fmnes.minimize(fun, np.full(10, 3.0), 1.0, stopping=fmnes.Stopping(stagnation=0), **options)
    assert caplog.records == []


def test_a_window_with_infeasible_or_huge_values():
    rising = np.arange(float(_RISING))
    assert rises(rising * 1e306)
    assert not rises(np.append(rising[1:], np.inf))
    assert not rises(rising[1:])


def test_a_resumed_search_remembers_it(tmp_path, caplog):
    """It is not said again, and the message has it."""
    path = tmp_path / "run.npz"
    part = search(sphere, 20_000, 3.0, maxiter=91, checkpoint=path)
    assert len(caplog.records) == 1
    whole = search(sphere, 20_000, 3.0, maxiter=125, checkpoint=path)
    assert len(caplog.records) == 1
    assert "until generation 90:" in part.message
    assert "until generation 90:" in whole.message
