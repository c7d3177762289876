"""Restart schedules: which run comes next, and that restarts help."""

import numpy as np

import fmnes
from fmnes import BIPOP, IPOP, Run, Status


def runs(*figures):
    return [Run(lam, 1.0, nfev, nfev // lam, 1.0, Status.TOLX) for lam, nfev in figures]


def test_ipop_doubles_and_ends():
    schedule = IPOP(3)
    assert schedule.next(runs((10, 100)), 0).popsize == 20
    assert schedule.next(runs((10, 100), (20, 200)), 0).popsize == 40
    assert schedule.next(runs((10, 100), (20, 200), (40, 300)), 0).popsize == 80
    assert schedule.next(runs((10, 1), (20, 1), (40, 1), (80, 1)), 0) is None


def test_ipop_rounds_up_to_even():
    assert IPOP(3, factor=1.5).next(runs((10, 100)), 0).popsize == 16
    assert IPOP(3, factor=1.0).next(runs((10, 100)), 0).popsize == 10


def test_bipop_gives_the_next_run_to_the_regime_that_has_spent_less():
    schedule = BIPOP(2)
    small = schedule.next(runs((10, 100)), 7)  # large has spent 100, small 0
    assert small.popsize <= 10
    assert 0.01 <= small.sigma_factor <= 1.0
    assert small.maxfevals == 50  # half of what the last large run used
    assert schedule.next(runs((10, 100)), 7) == small  # a pure function of the runs and the seed
    assert schedule.next(runs((10, 100)), 8) != small
    assert schedule.next(runs((10, 100), (8, 120)), 7).popsize == 20  # small has spent more: large
    again = schedule.next(runs((10, 100), (8, 120), (20, 400)), 7)
    assert again.maxfevals == 200
    assert 4 <= again.popsize <= 10
    done = runs((10, 100), (8, 120), (20, 400), (8, 400), (40, 900), (8, 1000))
    assert schedule.next(done, 7) is None  # two doublings, and the regimes are even


def rastrigin(x):
    return 10 * x.shape[-1] + (x**2 - 10 * np.cos(2 * np.pi * x)).sum(axis=-1)


def solve(seed, restarts, maxfevals=2_000_000):
    return fmnes.minimize(
        rastrigin,
        np.full(20, 3.0),
        2.0,
        restarts=restarts,
        ftarget=1e-8,
        maxfevals=maxfevals,
        vectorized=True,
        rng=seed,
    )


def test_rastrigin_needs_restarts():
    alone = [solve(seed, 0) for seed in range(10)]
    assert sum(r.success for r in alone) <= 1
    assert {str(r.status) for r in alone} <= {"tolx", "tolfun", "ftarget"}
    restarted = [solve(seed, 9) for seed in range(10)]
    assert sum(r.success for r in restarted) >= 9
    for r in restarted:
        assert r.nfev <= 2_000_000
        assert r.nfev == sum(run.nfev for run in r.restarts) == r.history["nfev"][-1]
        assert r.nit == len(r.history)
        assert r.fun == min(run.fun for run in r.restarts) == rastrigin(r.x)
        sizes = [run.popsize for run in r.restarts]
        assert sizes == [12 * 2**k for k in range(len(sizes))]


def test_the_history_goes_on_from_run_to_run():
    seen = []
    result = fmnes.minimize(
        lambda x: 1.0 + (x**2).sum(), [3.0] * 5, 1.0, method="cr-fm-nes", restarts=2, rng=1,
        callback=seen.append,
    )  # fmt: skip
    assert len(result.restarts) == 3
    history = result.history.to_array()
    assert len(seen) == len(history)
    for k, earlier in enumerate(seen):
        np.testing.assert_array_equal(earlier.history.to_array(), history[: k + 1])
    assert history["generation"].tolist() == list(range(1, len(history) + 1))
    sizes = [size for run in result.restarts for size in [run.popsize] * run.nit]
    np.testing.assert_array_equal(history["nfev"], 1 + np.cumsum(sizes))
    least = np.minimum.accumulate(history["generation_best"])
    np.testing.assert_array_equal(history["best"], least)


def agree(ours, theirs):
    """Two histories are the same, apart from the time."""
    for column in ("nfev", "generation_best", "median", "sigma"):
        np.testing.assert_array_equal(ours[column], theirs[column])


def test_all_runs_but_the_first_are_thorough():
    """The first has the default population, of which equation (r) changes nothing at d = 40."""

    def runs_of(method):
        return fmnes.minimize(
            rastrigin, np.full(40, 3.0), 2.0, method=method, restarts=IPOP(2, factor=4),
            stopping=fmnes.Stopping(tolx=0.5), vectorized=True, rng=7,
        )  # fmt: skip

    result, thorough = runs_of("auto"), runs_of(fmnes.Auto(thorough=True))
    assert [run.popsize for run in result.restarts] == [16, 64, 256]
    agree(result.history, thorough.history)


def test_a_search_resumes_in_a_thorough_run(tmp_path):
    checkpoint = fmnes.Checkpoint(tmp_path / "search.fmnes")
    arguments = {"restarts": 2, "vectorized": True, "rng": 3, "stopping": fmnes.Stopping(tolx=0.5)}
    whole = fmnes.minimize(rastrigin, np.full(10, 3.0), 2.0, **arguments)
    part = whole.restarts[0].nfev + 100
    for maxfevals in (part, None):
        result = fmnes.minimize(
            rastrigin, np.full(10, 3.0), 2.0, **arguments, checkpoint=checkpoint,
            maxfevals=maxfevals,
        )  # fmt: skip
    assert len(whole.restarts) == 3
    agree(result.history, whole.history)


def test_restarts_are_logged(caplog):
    caplog.set_level("INFO", logger="fmnes")
    result = fmnes.minimize(lambda x: 1.0 + (x**2).sum(), [3.0] * 5, 1.0, restarts=1, rng=1)
    first = result.restarts[0]
    (message,) = caplog.messages
    for figure in ("tolfun", str(first.nfev), "popsize 16"):
        assert figure in message


def test_the_status_is_that_of_the_run_that_found_the_result():
    alone = fmnes.minimize(lambda x: 1.0 + (x**2).sum(), [3.0] * 5, 1.0, rng=1)
    calls = []

    def fun(x):
        calls.append(1)
        return 1.0 + (x**2).sum() if len(calls) <= alone.nfev else 9.0

    result = fmnes.minimize(fun, [3.0] * 5, 1.0, restarts=1, rng=1)
    assert [run.status for run in result.restarts] == [alone.status, "flat"]
    assert (result.success, result.status, result.message) == (True, alone.status, alone.message)


def test_bipop_solves_rastrigin_too():
    result = solve(1, BIPOP(9))
    assert result.success
    assert len({run.popsize for run in result.restarts}) > 3


def test_the_budget_is_a_hard_cap_over_all_runs():
    calls = []

    def fun(x):
        calls.append(1)
        return float(rastrigin(x))

    result = fmnes.minimize(fun, np.full(5, 3.0), 2.0, restarts=20, maxfevals=3000, rng=1)
    assert len(calls) == result.nfev <= 3000
    assert result.nfev > 3000 - 2 * max(run.popsize for run in result.restarts) - 2
    assert result.status == "maxfevals" or len(result.restarts) > 1
