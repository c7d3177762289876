"""`minimize` evaluates x0 too: once, with the first generation, and never returns a worse point."""

import dataclasses
import math

import numpy as np
import pytest

import fmnes
from fmnes.algorithms import METHODS

# auto would find a better sigma0, and evaluate x0 twice.
AS_GIVEN = [
    fmnes.Auto(check_sigma0=False, adapt=None) if name == "auto" else name for name in METHODS
]
X0 = np.array([0.01, -0.02, 0.015, 0.0, 0.005])


def sphere(x):
    return float((x**2).sum())


def rows(x):
    return (x**2).sum(axis=-1)


def far_too_wide(fun=sphere, x0=X0, sigma0=100.0, **options):
    """A search in which no candidate is as good as x0."""
    # "auto" would find a better sigma0, and evaluate x0 twice.
    options = {"method": "cr-fm-nes", "maxiter": 5, "rng": 1} | options
    return fmnes.minimize(fun, x0, sigma0, **options)


@pytest.mark.parametrize("method", AS_GIVEN, ids=list(METHODS))
def test_the_result_is_never_worse_than_x0(method):
    result = far_too_wide(method=method)
    assert result.fun == sphere(X0)
    np.testing.assert_array_equal(result.x, X0)
    assert result.history["generation_best"].min() > result.fun
    assert result.nfev == 1 + 5 * result.restarts[0].popsize
    assert (result.history["best"] == result.fun).all()
    assert result.history["nfev"][0] == 1 + result.restarts[0].popsize


@pytest.mark.parametrize("method", AS_GIVEN, ids=list(METHODS))
def test_the_candidates_are_those_of_ask(method):
    seen, opt = [], fmnes.Optimizer(X0, 100.0, method=method, rng=1)
    far_too_wide(lambda x: seen.append(x.copy()) or sphere(x), method=method)
    generations = np.concatenate([seen[: opt.popsize], seen[opt.popsize + 1 :]])
    np.testing.assert_array_equal(seen[opt.popsize], X0)
    for k in range(5):
        x = opt.ask()
        np.testing.assert_array_equal(generations[k * opt.popsize : (k + 1) * opt.popsize], x)
        opt.tell([sphere(row) for row in x])


def test_workers_and_vectorized_give_the_same():
    alone = far_too_wide()
    others = [far_too_wide(workers=2), far_too_wide(rows, vectorized=True)]
    for other in others:
        assert (other.fun, other.nfev) == (alone.fun, alone.nfev)
        np.testing.assert_array_equal(other.x, X0)


def test_workers_that_build_their_candidates_evaluate_x0():
    x0 = np.linspace(0.0, 0.01, 5000)  # large enough for a Population
    result = far_too_wide(rows, x0, 1.0, workers=2, maxiter=2)
    assert (result.fun, result.nfev) == (rows(x0), 1 + 2 * result.restarts[0].popsize)
    np.testing.assert_array_equal(result.x, x0)


def test_a_target_that_x0_reaches_ends_the_search_after_one_generation():
    result = far_too_wide(ftarget=1.0)
    assert (result.status, result.success, result.nit) == ("ftarget", True, 1)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_x0_without_a_value_changes_nothing(value):
    result = far_too_wide(lambda x: value if np.array_equal(x, X0) else sphere(x))
    opt = fmnes.Optimizer(X0, 100.0, method="cr-fm-nes", rng=1, maxiter=5)
    while not opt.stop():
        opt.tell(rows(opt.ask()))
    assert result.fun == opt.result.fun
    np.testing.assert_array_equal(result.x, opt.result.x)
    assert (result.nfailed, result.nfev) == (int(math.isnan(value)), opt.nfev + 1)


def test_x0_alone_may_have_a_value():
    result = far_too_wide(lambda x: 1.0 if np.array_equal(x, X0) else math.nan)
    assert (result.status, result.fun) == ("infeasible", 1.0)
    np.testing.assert_array_equal(result.x, X0)


@pytest.mark.parametrize("schedule", [fmnes.IPOP(2), fmnes.BIPOP(1)])
def test_restarts_do_not_evaluate_it_again(schedule):
    calls = []

    def fun(x):
        calls.append(np.array_equal(x, X0))
        return 1.0 + sphere(x)

    result = fmnes.minimize(fun, X0, 2.0, restarts=schedule, maxfevals=6000, rng=1)
    assert len(result.restarts) > 2
    assert (sum(calls), len(calls)) == (2, result.nfev)  # "auto" looks for noise once
    assert sum(run.nfev for run in result.restarts) == result.nfev


def test_bounds_and_fixed_variables():
    """x0 reaches the objective as it was given, although the search sees it through a map."""
    x0, bounds = [0.1, 1.0, 0.3], [(0.1, 0.9), (1.0, 1.0), (None, 0.3)]
    result = fmnes.minimize(lambda x: abs(x - x0).sum(), x0, 0.2, bounds=bounds, rng=1, maxiter=3)
    assert result.fun == 0.0
    assert result.x.tolist() == x0


def test_a_result_never_gets_worse():
    first = fmnes.minimize(sphere, [3.0] * 5, 1.0, maxiter=30, rng=1)
    again = fmnes.minimize(sphere, first, 50.0, maxiter=3, rng=2)
    assert again.fun == first.fun
    np.testing.assert_array_equal(again.x, first.x)


def test_a_result_outside_new_bounds_starts_at_its_mean():
    first = fmnes.minimize(sphere, [3.0] * 2, 1.0, maxiter=2, rng=1)
    first = dataclasses.replace(first, x=np.array([0.0, 0.5]), mean=np.array([1.5, 2.0]))
    seen = []
    fmnes.minimize(
        lambda x: seen.append(x.copy()) or sphere(x), first, bounds=[(1, 9)] * 2, maxiter=1, rng=1
    )
    np.testing.assert_allclose(seen[-1], first.mean, rtol=1e-12)


@pytest.mark.parametrize("end_at", range(1, 12))
def test_a_search_that_ends_around_x0_resumes_exactly(end_at, tmp_path):
    """Its value is in the journal as soon as it is known: it is not evaluated again."""
    calls = []

    def fun(x):
        calls.append(x.tobytes())
        if len(calls) == end_at:
            raise RuntimeError("the end")
        return sphere(x)

    path = tmp_path / "run.npz"
    with pytest.raises(RuntimeError, match="the end"):
        far_too_wide(fun, checkpoint=path)
    resumed = far_too_wide(fun, checkpoint=path)
    expected = far_too_wide()
    assert (resumed.fun, resumed.nfev) == (expected.fun, expected.nfev)
    np.testing.assert_array_equal(resumed.mean, expected.mean)
    assert len(calls) == expected.nfev + 1
    assert calls.count(X0.tobytes()) == (
        2 if end_at == 9 else 1
    )  # the call that failed is repeated


def test_the_result_of_a_search_on_disk_has_x0(tmp_path):
    from fmnes.records.status import Status
    from fmnes.runs.parallel import read_result

    path = tmp_path / "run.npz"
    far_too_wide(checkpoint=path)
    read = read_result(path, Status.RUNNING)
    assert read.fun == sphere(X0)
    np.testing.assert_array_equal(read.x, X0)


def test_the_optimizer_does_not_know_x0():
    opt = fmnes.Optimizer(X0, 100.0, rng=1)
    opt.tell(rows(opt.ask()))
    assert opt.nfev == opt.popsize
    assert opt.result.fun > sphere(X0)
