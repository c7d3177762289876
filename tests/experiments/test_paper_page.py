"""docs/paper.md: what it says in words is what the kept rows say."""

import json
import math
from pathlib import Path

import pytest

from fmnes.experiments import protocol as p
from fmnes.experiments.cases import Case, Table
from fmnes.experiments.results import read

ROOT = Path(__file__).parents[2]
SMOOTH = ("sphere", "ktablet", "ellipsoid")


@pytest.fixture(scope="module")
def rows():
    return read(ROOT / "benchmarks/results/paper.csv")


@pytest.fixture(scope="module")
def table(rows):
    return Table(rows.values())


@pytest.fixture(scope="module")
def words():
    return " ".join((ROOT / "docs/paper.md").read_text().split())


def cell(table, solver, function, dim, size=0):
    return table.cells[Case(function, dim, p.popsizes(function, dim)[size]), solver]


def ratio(table, solver, function, dim, size=0, to=p.PAPER):
    """Of the metrics of two solvers on a problem."""
    return (
        cell(table, solver, function, dim, size).metric
        / cell(table, to, function, dim, size).metric
    )


def between(values, form=".2f"):
    return f"{min(values):{form}} to {max(values):{form}}"


def test_the_time_of_fm_nes(rows, words):
    def seconds(dim):
        trials = [t for t in rows if (t.experiment, t.dim, t.solver) == ("time", dim, p.FM_NES)]
        return sum(rows[trial].seconds for trial in trials) / len(trials)

    exponent = math.log2(seconds(100) / seconds(50))
    assert f"Its time grows as d^{exponent:.1f} from d = 50 to 100" in words
    kept = json.loads((ROOT / "benchmarks/results/fm_nes_time.json").read_text())
    by_dim = {row["dim"]: row for row in kept}
    share = {dim: row["decomposition"] / row["generation"] for dim, row in by_dim.items()}
    assert f"takes {share[50]:.0%} of a generation".replace("%", " %") in words
    assert f"and {share[100]:.0%} at d = 100".replace("%", " %") in words
    assert all(0.73 < share[dim] < 0.85 for dim in (200, 400, 800))
    growth = math.log(by_dim[800]["generation"] / by_dim[200]["generation"], 4)
    assert f"the exponent is {growth:.1f}" in words


def test_rosenbrock_against_fm_nes(table, words):
    first, last = (
        [cell(table, solver, "rosenbrock", 80, size) for solver in (p.FM_NES, p.PAPER)]
        for size in (0, 4)
    )
    assert (
        f"from {first[0].metric / first[1].metric:.2f} times at λ = 18 to "
        f"{last[0].metric / last[1].metric:.2f} times at λ = 90"
    ) in words
    assert (
        f"among the successes it is {first[0].mean / first[1].mean:.2f} and "
        f"{last[0].mean / last[1].mean:.2f} times."
    ) in words
    assert [one.successes for one in (*first, *last)] == [8, 10, 10, 9]


def test_the_safe_variant(table, words):
    for dim in (80, 200):
        for function in p.FUNCTIONS:
            for size in range(5):
                both = [cell(table, s, function, dim, size) for s in (p.SAFE, p.PAPER)]
                if all(one.successes == one.trials for one in both):
                    assert abs(both[0].metric / both[1].metric - 1) < 0.03
    fewer = 1 - ratio(table, p.SAFE, "sphere", 600)
    more = ratio(table, p.SAFE, "ktablet", 600, 4) - 1
    assert f"it needs {100 * fewer:.0f} % fewer evaluations on the sphere" in words
    assert f"at λ = 120 {100 * more:.0f} % more on k-tablet" in words


def test_beside_other_separable_methods(table, words):
    small, large = (ratio(table, p.SEP_CMA, "ktablet", 1000, size) for size in (0, 2))
    assert f"needs {small:.2f} times (λ = 24) and {large:.2f} times (λ = 72)" in words
    sep, vd = (
        [ratio(table, ours, f, dim, size, theirs)
         for f in SMOOTH for dim in (80, 200) for size in (0, 2)]
        for ours, theirs in ((p.SEP_CMA, p.SEP_CMAES), (p.VD_CMA, p.VD_PYCMA))
    )  # fmt: skip
    assert f"our Sep-CMA needs {between(sep)} times the evaluations of cmaes'" in words
    assert f"our VD-CMA {between(vd)} times those of pycma's" in words


def test_the_cigar_breaks_the_paper_s_variant(rows, words):
    cigar = {}
    for trial, row in rows.items():
        if trial.function == "cigar":
            cigar.setdefault(trial.solver, []).append(row.success)
    assert not any(cigar[p.PAPER])
    assert all(cigar[p.SAFE])
    assert all(cigar[p.VD_CMA])
    assert "all five trials of the paper's variant break down" in words


def test_only_a_full_matrix_follows_many_long_axes(table, words):
    cells = {solver: cell(table, solver, "twoaxes", 80) for solver in p.REPRESENTATIONS}
    solved = cells.pop(p.FM_NES)
    assert (solved.successes, solved.trials) == (5, 5)
    assert f"in all five trials, with {solved.mean:.3g} evaluations".replace("e+0", "e") in words
    assert {(one.successes, one.trials) for one in cells.values()} == {(0, 5)}


def test_what_the_parts_contribute(table, words):
    weights, rate, _, rank_one, none = p.ABLATIONS
    others = ("ktablet", "ellipsoid", "rosenbrock")
    for dim in (80, 200):
        assert not any(cell(table, weights, function, dim).successes for function in others)
        assert abs(ratio(table, weights, "sphere", dim) - 1) < 0.01
        assert abs(ratio(table, rate, "sphere", dim) - 1) < 0.01
    slower = [100 * (ratio(table, rate, "rastrigin", dim) - 1) for dim in (80, 200)]
    assert f"it takes {between(slower, '.0f')} % more evaluations" in words
    same = [ratio(table, rate, f, dim) for f in SMOOTH for dim in (80, 200)]
    assert max(abs(one - 1) for one in [*same, ratio(table, rate, "rosenbrock", 80)]) < 0.04
    assert cell(table, rate, "rosenbrock", 200).successes == 10
    assert cell(table, p.PAPER, "rosenbrock", 200).successes == 6
    vd = [ratio(table, p.VD_CMA, "sphere", dim) for dim in (80, 200)]
    assert "{:.2f} times at d = 80 and {:.2f} times at d = 200".format(*vd) in words
    fewer = [100 * (1 - ratio(table, weights, "rastrigin", dim)) for dim in (80, 200)]
    assert f"it takes {between(fewer, '.1f')} % fewer evaluations without" in words
    valley = [ratio(table, rank_one, "rosenbrock", dim) for dim in (80, 200)]
    assert f"(without it {min(valley):.1f} to {max(valley):.0f} times the evaluations)" in words
    again = [ratio(table, none, f, dim) for f in ("ellipsoid", "ktablet") for dim in (80, 200)]
    assert f"in {between(again, '.1f')} times the evaluations" in words
    assert [cell(table, none, "rosenbrock", dim).successes for dim in (80, 200)] == [8, 0]


def test_the_fitted_learning_rate(table):
    twice, four_times = p.ETA_B[2:]
    for dim in (80, 200):
        for function in ("ellipsoid", "ktablet"):
            assert 0.75 < ratio(table, twice, function, dim) < 0.82
    assert ratio(table, twice, "rosenbrock", 80) > 1.5
    assert sum(ratio(table, twice, function, 200) < 1 for function in p.FUNCTIONS) == 3
    assert ratio(table, twice, "rosenbrock", 200) < 1
    assert cell(table, four_times, "ktablet", 80).successes == 9
