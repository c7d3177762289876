"""The solvers: every one starts, and gets the same start, step size and populations."""

import numpy as np
import pytest

from leaderboard.opponents import NOISY, OPPONENTS, by_fcmaes, quiet, reason_against
from leaderboard.suites import SUITES
from leaderboard.trials import Counter, DoneError, Problem, Start, Trial, row_of

KNOWN = {"nevergrad NGOpt": "nevergrad 1.0.12 fails with NumPy 2.4 where it fits a model"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPPONENTS)
def test_every_opponent_starts(name):
    if reason := reason_against(OPPONENTS[name], 20, 60):
        pytest.skip(reason)
    if name in KNOWN:
        pytest.xfail(KNOWN[name])
    quiet()
    suite = SUITES["rotated"]
    row = row_of(suite, Trial("rotated", "sphere", 20, name, 1, 60), suite.run)
    assert row["evaluations"] == 60 or row["best"] <= 1e-10
    assert row["best"] < 1e5


def popsize(solver, number):
    """Return how many points are the same whatever their values: those of one generation."""
    low, high = np.zeros(10), np.full(10, 7.0)
    runs = []
    for sign in (-1, 1):
        points = []

        def fun(x, points=points, sign=sign):
            points.append(x.copy())
            return float(sign * len(points))

        problem = Problem(fun, lambda number: low, 1.0, low, high, True, targets=(-1e9,))
        counter = Counter(problem._replace(integers=8), 200)
        start = Start(counter, problem._replace(integers=8), low, 1.0, 200, 5, number)
        with pytest.raises(DoneError):
            solver.run(start)
        runs.append(np.array(points))
    return int(np.argmax((runs[0] != runs[1]).any(axis=1)))


@pytest.mark.parametrize("name", ["auto", "cmaes CMAwM", "cmaes CatCMAwM", "pycma"])
def test_restarts_with_integers_double_the_population(name):
    solver = SUITES["bbob-mixint"].solvers[name]
    pytest.importorskip(solver.module, reason="needs the extra leaderboard")
    sizes = [popsize(solver, number) for number in range(3)]
    first, second = np.diff(sizes)  # some evaluate the start before the first generation
    assert second == 2 * first
    assert first >= 8


def test_fcmaes_gets_the_step_size_in_its_own_unit():
    pytest.importorskip("fcmaes", reason="needs the extra leaderboard: fcmaes")
    side = np.full(10, 100.0)
    runs = {}
    for sigma0 in (2.0, 4.0):
        points = []

        def fun(x, points=points):
            points.append(x.copy())
            return float(x @ x)

        problem = Problem(fun, None, sigma0, -side, side, targets=(-1.0,))
        counter = Counter(problem, 10_000)
        by_fcmaes(Start(counter, problem, np.full(10, 25.0), sigma0, 2000, 7, 0))
        runs[sigma0] = np.array(points)
    begin = int(np.argmax((runs[2.0][:1000] != runs[4.0][:1000]).any(axis=1)))
    assert begin >= 200  # first DE, which has no step size
    for sigma0, points in runs.items():
        assert np.std(points[begin : begin + 31], axis=0).mean() == pytest.approx(sigma0, rel=0.15)


def test_the_noise_handling_of_pycma_evaluates_points_again():
    pytest.importorskip("cma", reason="needs the extra coco: cma")
    rng = np.random.default_rng(4)
    points = []

    def fun(x):
        points.append(tuple(np.round(x, 4)))  # it moves them a little
        return float(rng.normal())

    side = np.full(5, 5.0)
    problem = Problem(fun, lambda number: np.zeros(5), 1.0, -side, side, targets=(-1e9,))
    start = Start(Counter(problem, 2000), problem, np.zeros(5), 1.0, 2000, 3, 0)
    with pytest.raises(DoneError):
        NOISY["pycma noise handling"].run(start)
    counts = [points.count(point) for point in dict.fromkeys(points)]
    assert max(counts) > 2
