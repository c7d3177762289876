"""The statistics against values computed by hand."""

import math

import numpy as np
import pytest

from leaderboard import aims, rotated, statistics, tables
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
    short = run("a", [10 * math.sqrt(10), INF], budget=100, dim=1000)  # from a tenth of the budget
    assert statistics.area([short]) == pytest.approx(0.25)


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


def test_only_trials_that_all_ran_are_compared():
    suite = SUITES["bbob-largescale"]
    rows = [row("auto"), row("auto", "f2"), row("auto", "f4"), row("a"), row("a", "f2")]
    rows += [row("b"), row("a", "f3"), row("a", seed=2)]
    (found,) = comparisons(suite, rows)
    assert (found.reference, set(found.solvers), found.left_out) == ("auto", {"auto", "a"}, ["b"])
    assert {(r.problem, r.solver, r.seed) for r in found.runs} == {
        (problem, solver, 1) for problem in ("f1", "f2") for solver in ("auto", "a")
    }  # nobody else ran f4


def test_a_few_missing_trials_are_compared_for_nobody():
    suite = SUITES["bbob-largescale"]
    seeds = range(1, 11)
    rows = [row(name, seed=seed) for name in ("auto", "a") for seed in seeds]
    rows += [row("b", seed=seed) for seed in seeds if seed != 4]
    rows += [row("c", seed=seed) for seed in seeds if seed > 3]
    (found,) = comparisons(suite, rows)
    assert (set(found.solvers), found.left_out) == ({"auto", "a", "b"}, ["c"])
    assert {run.seed for run in found.runs} == {*seeds} - {4}


def test_budgets_have_comparisons_of_their_own():
    suite = SUITES["bbob-largescale"]
    rows = [row("auto", budget=1000, hits=(5, 600)), row("a", budget=1000)]
    rows += [row("a", budget=200, hits=(7,)), row("b", budget=200), row("c", budget=4000)]
    rows += [row("nevergrad NGOpt", budget=1000)]
    small, middle = comparisons(suite, rows)  # of 4000 evaluations only c has a trial
    assert (small.title, middle.title) == (
        "bbob-largescale, d = 20, 10 d",
        "bbob-largescale, d = 20, 50 d",
    )
    assert set(small.solvers) == {"auto", "a", "b", "c"}  # NGOpt is told its budget
    assert {run.budget for run in small.runs} == {200}
    assert np.isfinite(small.of("auto")[0].hits).sum() == 1  # not the one after 600
    assert small.of("a")[0].hits[0] == 7  # its own trial of 200 evaluations
    assert set(middle.solvers) == {"auto", "a", "c", "nevergrad NGOpt"}
    assert {run.budget for run in middle.runs} == {1000}


def of(solver, curve, problem="lasso-60", budget=2000):
    best = min((value for _, value in curve if not math.isnan(value)), default=INF)
    return row(solver, problem, budget=budget, dim=60) | {"curve": curve, "best": best}


def test_nan_never_wins_and_never_vanishes():
    rows = [of("auto", [(1, 11.0), (10, 2.0)]), of("a", [(1, 9.0), (90, math.nan)]), of("b", [])]
    (found,) = comparisons(SUITES["real"], rows)
    assert [found.of(name)[0].best for name in ("auto", "a", "b")] == [2, 9, INF]
    assert not np.isfinite(found.of("b")[0].hits).any()
    assert [found.ranks[name].mean for name in ("auto", "a", "b")] == [1, 2, 3]
    assert tables.values(found).splitlines()[-1] == (
        "| lasso-60 | 2000 | **2 [2, 2]** | 9 [9, 9] | inf [inf, inf] |"
    )
    assert statistics.medians([1.0, INF, INF]) == (INF, INF, INF)
    with pytest.raises(ValueError, match="NaN"):
        statistics.medians([1.0, math.nan])
    with pytest.raises(ValueError, match="NaN"):
        statistics.ranks([{"a": [run("a", [math.nan])], "b": [run("b", [1])]}])


def test_a_best_value_of_another_budget_is_not_known():
    rows = [row("auto", "ackley"), row("a", "ackley") | {"best": math.nan}]
    rows = [one | {"budget": 2000} for one in rows] + [row("b", "ackley", budget=4000)]
    found = comparisons(SUITES["rotated"], rows)[0]
    assert [found.of(name)[0].best for name in ("auto", "a", "b")] == [None, INF, None]
    assert found.ended["ackley"]["auto"] == (10**6, INF)  # its only target, instead of the value


def test_the_longest_trials_stand_beside_the_published_ones():
    rows = [row("auto", "ellipsoid", budget=1000, dim=2000) | {"best": 1e9, "hits": []}]
    rows += [row("auto", "ellipsoid", budget=5_000_000, dim=2000) | {"best": 500.0, "hits": []}]
    rows += [row("pycma VD", "discus", budget=9_000_000, dim=2000, hits=range(1, 82))]
    rows += [row("pycma VD", "discus", dim=200)]
    lines = tables.beside_published(rows).splitlines()[2:]
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines] == [
        ["discus", "MMES: 3.1e+06", "", "8.10e+01 (place 1)"],
        ["ellipsoid", "LMCMA: 567 at 5e+06", "500 at 5e+06 (place 1)", ""],
    ]


def test_aims_that_are_reached_and_that_are_not():
    large = SUITES["bbob-largescale"]
    found = [
        *comparisons(large, [row("auto", hits=[9], dim=20), row("a", hits=[400], dim=20)]),
        *comparisons(large, [row("auto", hits=[9], dim=40), row("a", hits=[400], dim=40)]),
        *comparisons(SUITES["real"], [of("auto", [(1, 9.0)]), of("a", [(1, 8.5)])]),
    ]
    ended = {"sphere": (2.0, 1.0), "cigar": (1.0, 2.0), "step": (0.0, 0.0)}  # of auto and a
    trials = [
        row(name, problem, budget=20_000, dim=2000, hits=()) | {"best": best}
        for problem, bests in ended.items()
        for name, best in zip(("auto", "a"), bests, strict=True)
    ]
    found += comparisons(SUITES["rotated"], trials)
    trials.append(row("auto", "discus", budget=10**7, dim=2000, hits=[2_000_000] * 81))
    trials[-1]["best"] = 0.0
    lines = aims.aims(found, {"rotated": trials}).splitlines()[2:]
    assert [line.split("|")[2].strip() for line in lines] == [
        "first in 1 of 1 comparisons",  # with 40 variables and more
        "2 of 3 with 10 d evaluations",
        "place 1 on 2, the trials of 2 functions are too short to say",
        "2.00e+06",
        "no trials",
        "0 of 1 (not lasso-60)",
    ]


def test_who_ends_behind():
    def ended(*counts, time=INF):
        runs = [run("a", [1] * n + [INF] * (2 - n)) for n in counts]
        runs = [r._replace(hits=r.hits * time) for r in runs]
        return statistics.final(runs, (100.0, 1.0), exact=False)

    assert ended(0, 1, 1, time=1) == (100, INF)
    assert ended(2, 2, 2, time=7) == (1, 7)
    exact = [run("a", [INF])._replace(best=best) for best in (30.0, 0.5, 40.0)]
    assert statistics.final(exact, (100.0, 1.0), exact=True) == (30, INF)
    assert statistics.final(exact[1:2], (100.0, 1.0), exact=True) == (1, INF)
    assert statistics.final([exact[0]._replace(best=None)], (9.0,), exact=True) == (INF, INF)
    with pytest.raises(ValueError, match="best"):
        statistics.final([exact[0]._replace(best=None)], (), exact=True)
    assert statistics.behind(ended(0, 1, 1, time=1), ended(2, 2, 1, time=1))
    assert not statistics.behind(ended(1, 1, 2, time=1), ended(1, 1, 0, time=1))
    assert statistics.behind((1, 104), (1, 100))
    assert not statistics.behind((1, 101), (1, 100))
    assert statistics.behind((-9.7, INF), (-10, INF))
    assert not statistics.behind((-9.9, INF), (-10, INF))
    assert statistics.behind((INF, INF), (3, INF))


def test_places_among_the_published_optimizers():
    def places(name, best, hit=INF, budget=5_000_000):
        one = run("auto", [hit], problem=name, budget=budget)._replace(best=best)
        return rotated.place([one])

    assert places("ackley", 1e-11, 5e5) == "place 1"  # the first took 5.5e5
    assert places("ackley", 1e-11, 9e5) == "place 4"  # after 8.7e5, before 9.1e5
    assert places("ackley", 1e-11, 2e6) == "below place 5"
    assert places("ellipsoid", 566.0) == "place 1"
    assert places("ellipsoid", 2e3) == "place 3"
    assert places("ellipsoid", 2e5) == "below place 5"
    assert places("ellipsoid", 2e5, budget=47_000) == "open"
    assert places("ellipsoid", 500.0, budget=47_000) == "place 1"
    assert places("ellipsoid", None) == "below place 5"
    assert places("michalewicz", 0.0) == "no place"


def test_targets_between_the_first_and_the_best_value():
    rows = [of("auto", [(1, 11.0), (10, 2.0), (100, 1.0)]), of("a", [(1, 11.0), (50, 1.05)])]
    (found,) = comparisons(SUITES["real"], rows)
    first, second = found.of("auto")[0].hits, found.of("a")[0].hits
    assert first[0] == second[0] == 1  # 11, the first value
    assert np.count_nonzero(first == 10) == 16  # up to 1/10 of the way: log10 in steps of 3/50
    assert first[-1] == 100
    assert second[-1] == INF  # 1.01 is the last one
    assert found.of("a")[0].best == 1.05
