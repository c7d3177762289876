"""The statistics against values computed by hand."""

import math

import numpy as np
import pytest
from leaderboard import statistics
from leaderboard.comparison import comparisons
from leaderboard.statistics import Run
from leaderboard.suites import SUITES

INF = math.inf


def run(solver, hits, budget=100, problem="p", dim=2, seed=1, evaluations=None):
    spent = budget if evaluations is None else evaluations
    return Run(problem, dim, solver, seed, budget, spent, np.array(hits, float), math.nan)


def test_expected_running_time_counts_the_failures():
    runs = [run("a", [10, 40]), run("a", [20, INF]), run("a", [30, 60], evaluations=60)]
    assert statistics.running_time(runs) == (40 + 100 + 60) / 2
    assert statistics.running_time(runs, target=0) == 20
    assert statistics.running_time([run("a", [INF])]) == INF


def test_shares_over_evaluations_per_variable():
    runs = [run("a", [2, 20]), run("a", [4, INF])]
    assert statistics.share(runs) == 3 / 4
    found = statistics.distribution(runs, np.array([0.5, 1.0, 2.0, 10.0, 50.0]))
    assert found.tolist() == [0, 1 / 4, 2 / 4, 3 / 4, 3 / 4]


def test_the_area_is_between_nothing_and_everything_at_once():
    assert statistics.area([run("a", [1, 2])]) == 1  # with d = 2 evaluations
    assert statistics.area([run("a", [INF, INF])]) == 0
    half = run("a", [20, INF], budget=200)  # 20 is halfway between 2 and 200 on a log scale
    assert statistics.area([half]) == pytest.approx(0.25)


def test_profiles_by_hand():
    times = {"a": [10, 30, INF], "b": [20, 10, INF], "c": [INF, 40, 5]}
    found = statistics.profile(times, np.array([1.0, 2.0, 3.0, 4.0]))
    assert found["a"] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3])
    assert found["b"] == pytest.approx([1 / 3, 2 / 3, 2 / 3, 2 / 3])
    assert found["c"] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_ranks_by_hand_and_their_intervals():
    def problem(*hits):
        return {name: [run(name, [h])] for name, h in zip("abc", hits, strict=True)}

    found = statistics.ranks([problem(1, 10, 100), problem(1, 1, 50)])
    assert [found[name].mean for name in "abc"] == [1.25, 1.75, 3]
    assert (found["c"].low, found["c"].high) == (3, 3)  # in every sample
    assert (found["a"].low, found["a"].high) == (1, 1.5)  # of one of the two problems


def test_ranks_of_runs_that_vary_have_wide_intervals():
    runs = {"a": [run("a", [1]), run("a", [90])], "b": [run("b", [20]), run("b", [21])]}
    rank = statistics.ranks([runs])["a"]
    assert (rank.low, rank.mean, rank.high) == (1, 1, 2)


def row(solver, problem="f1", seed=1, budget=1000, hits=(5,), dim=20):
    return {"solver": solver, "problem": problem, "dim": dim, "seed": seed, "budget": budget} | {
        "hits": list(hits),
        "evaluations": budget,
        "best": None,
    }


def test_only_trials_that_all_ran_are_compared_at_the_smallest_budget():
    suite = SUITES["bbob-largescale"]
    rows = [row("auto"), row("auto", "f2"), row("a", budget=500, hits=(5, 700)), row("a", "f2")]
    rows += [row("b"), row("a", "f3"), row("a", seed=2)]
    (found,) = comparisons(suite, [*rows, row("auto", hits=(5, 600))])
    assert (found.reference, set(found.solvers), found.left_out) == ("auto", {"auto", "a"}, ["b"])
    assert {(r.problem, r.solver, r.seed) for r in found.runs} == {
        (problem, solver, 1) for problem in ("f1", "f2") for solver in ("auto", "a")
    }
    f1 = {r.solver: r for r in found.runs if r.problem == "f1"}
    assert {r.budget for r in f1.values()} == {500}
    assert all(np.isfinite(r.hits).sum() == 1 for r in f1.values())  # not those after 500


def test_targets_between_the_first_and_the_best_value():
    def of(solver, curve):
        return row(solver, "lasso-60") | {"curve": curve, "best": curve[-1][1]}

    rows = [of("auto", [(1, 11.0), (10, 2.0), (100, 1.0)]), of("a", [(1, 11.0), (50, 1.05)])]
    (found,) = comparisons(SUITES["real"], rows)
    first, second = found.of("auto")[0].hits, found.of("a")[0].hits
    assert first[0] == second[0] == 1  # 11, the first value
    assert np.count_nonzero(first == 10) == 16  # up to 1/10 of the way: log10 in steps of 3/50
    assert first[-1] == 100
    assert second[-1] == INF  # 1.01 is the last one
    assert found.of("a")[0].best == 1.05
