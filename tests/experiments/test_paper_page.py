"""docs/paper.md: the numbers in its text are those of the kept rows."""

import json
import math
import re
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
def stated():
    """The numbers of each section, by its heading."""
    sections = re.split(r"^## (.*)\n", (ROOT / "docs/paper.md").read_text(), flags=re.M)[1:]
    return {
        heading: set(re.findall(r"\d+(?:\.\d+)?(?:e\d+)?", text))
        for heading, text in zip(sections[::2], sections[1::2], strict=True)
    }


VERDICTS, CLAIMS = "The verdicts", "Claims without an experiment"
FM_NES = "Against FM-NES, d = 80"


def cell(table, solver, function, dim, size=0):
    return table.cells[Case(function, dim, p.popsizes(function, dim)[size]), solver]


def ratio(table, solver, function, dim, size=0, to=p.PAPER):
    """Of the metrics of two solvers on a problem."""
    return (
        cell(table, solver, function, dim, size).metric
        / cell(table, to, function, dim, size).metric
    )


def texts(values, form=".2f"):
    return {format(value, form) for value in values}


def ends(values, form=".2f"):
    return texts([min(values), max(values)], form)


def test_the_time_of_fm_nes(rows, stated):
    def seconds(dim):
        trials = [t for t in rows if (t.experiment, t.dim, t.solver) == ("time", dim, p.FM_NES)]
        return sum(rows[trial].seconds for trial in trials) / len(trials)

    exponent = math.log2(seconds(100) / seconds(50))
    here = stated[VERDICTS]
    assert f"{exponent:.1f}" in here
    kept = json.loads((ROOT / "benchmarks/results/fm_nes_time.json").read_text())
    by_dim = {row["d"]: row for row in kept}
    share = {dim: 100 * row["decomposition"] / row["generation"] for dim, row in by_dim.items()}
    assert texts([share[50], share[100]], ".0f") <= here
    assert ends([share[dim] for dim in (200, 400, 800)], ".0f") <= here
    growth = math.log(by_dim[800]["generation"] / by_dim[200]["generation"], 4)
    assert f"{growth:.1f}" in here


def test_rosenbrock_against_fm_nes(table, stated):
    first, last = (
        [cell(table, solver, "rosenbrock", 80, size) for solver in (p.FM_NES, p.PAPER)]
        for size in (0, 4)
    )
    found = [ours.metric / theirs.metric for ours, theirs in (first, last)]
    found += [ours.mean / theirs.mean for ours, theirs in (first, last)]
    assert texts(found) <= stated[FM_NES]
    assert [one.successes for one in (*first, *last)] == [8, 10, 10, 9]


def test_the_safe_variant(table, stated):
    for dim in (80, 200):
        for function in p.FUNCTIONS:
            for size in range(5):
                both = [cell(table, s, function, dim, size) for s in (p.SAFE, p.PAPER)]
                if all(one.successes == one.trials for one in both):
                    assert abs(both[0].metric / both[1].metric - 1) < 0.03
    fewer = 1 - ratio(table, p.SAFE, "sphere", 600)
    more = ratio(table, p.SAFE, "ktablet", 600, 4) - 1
    assert fewer > 0 < more
    assert texts([100 * fewer, 100 * more], ".0f") <= stated[FM_NES]


def test_beside_other_separable_methods(table, stated):
    small, large = (ratio(table, p.SEP_CMA, "ktablet", 1000, size) for size in (0, 2))
    assert texts([small, large]) <= stated[VERDICTS]
    sep, vd = (
        [ratio(table, ours, f, dim, size, theirs)
         for f in SMOOTH for dim in (80, 200) for size in (0, 2)]
        for ours, theirs in ((p.SEP_CMA, p.SEP_CMAES), (p.VD_CMA, p.VD_PYCMA))
    )  # fmt: skip
    here = stated["Against VD-CMA and Sep-CMA, d = 200, 600 and 1000"]
    assert ends(sep) | ends(vd) <= here


def test_the_cigar_breaks_the_paper_s_variant(rows):
    cigar = {}
    for trial, row in rows.items():
        if trial.function == "cigar":
            cigar.setdefault(trial.solver, []).append(row.success)
    assert cigar[p.PAPER] == [False] * 5
    assert all(cigar[p.SAFE])
    assert all(cigar[p.VD_CMA])


def test_only_a_full_matrix_follows_many_long_axes(table, stated):
    cells = {solver: cell(table, solver, "twoaxes", 80) for solver in p.REPRESENTATIONS}
    solved = cells.pop(p.FM_NES)
    assert (solved.successes, solved.trials) == (5, 5)
    assert f"{solved.mean:.3g}".replace("e+0", "e") in stated[CLAIMS]
    assert {(one.successes, one.trials) for one in cells.values()} == {(0, 5)}


def test_what_the_parts_contribute(table, stated):
    weights, rate, _, rank_one, none = p.ABLATIONS
    others = ("ktablet", "ellipsoid", "rosenbrock")
    for dim in (80, 200):
        assert not any(cell(table, weights, function, dim).successes for function in others)
        assert abs(ratio(table, weights, "sphere", dim) - 1) < 0.01
        assert abs(ratio(table, rate, "sphere", dim) - 1) < 0.01
    slower = [100 * (ratio(table, rate, "rastrigin", dim) - 1) for dim in (80, 200)]
    here = stated[CLAIMS]
    assert ends(slower, ".0f") <= here
    same = [ratio(table, rate, f, dim) for f in SMOOTH for dim in (80, 200)]
    assert max(abs(one - 1) for one in [*same, ratio(table, rate, "rosenbrock", 80)]) < 0.04
    assert cell(table, rate, "rosenbrock", 200).successes == 10
    assert cell(table, p.PAPER, "rosenbrock", 200).successes == 6
    vd = [ratio(table, p.VD_CMA, "sphere", dim) for dim in (80, 200)]
    assert texts(vd) <= here
    fewer = [100 * (1 - ratio(table, weights, "rastrigin", dim)) for dim in (80, 200)]
    assert ends(fewer, ".1f") <= here
    valley = [ratio(table, rank_one, "rosenbrock", dim) for dim in (80, 200)]
    assert {f"{min(valley):.1f}", f"{max(valley):.0f}"} <= here
    again = [ratio(table, none, f, dim) for f in ("ellipsoid", "ktablet") for dim in (80, 200)]
    assert ends(again, ".1f") <= here
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
