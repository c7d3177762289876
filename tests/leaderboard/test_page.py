"""docs/leaderboard.md is made from the stored rows."""

import pytest

from leaderboard import report, rows, tables
from leaderboard.suites import SUITES
from pages import with_tables


@pytest.fixture(scope="module")
def stored():
    return {suite.name: rows.all_rows(suite) for suite in SUITES.values()}


@pytest.fixture(scope="module")
def found(stored):
    return report.all_comparisons(stored)


def test_the_tables_are_those_of_the_rows(found, stored):
    page = report.PAGE.read_text(encoding="utf-8")
    parts = report.parts(found, stored)
    assert page.count("<!-- table:") == len(parts)
    assert with_tables(page, parts) == page, "run benchmarks/leaderboard report"


def test_every_table_names_the_default_method(found):
    for one in found:
        text = tables.standing(one) + tables.left_out(one)
        assert "**fmnes auto**" in text, one.title


def test_the_sentences_count_who_is_first(found, stored):
    counted = [one for one in found if one.rivals and len(one.problems) >= report.FEW]
    ours = [one for one in counted if one.reference == "auto"]
    others = {one.title: [one.ranks[name].mean for name in one.rivals] for one in ours}
    first = [one for one in ours if one.ranks["auto"].mean < min(others[one.title])]
    assert f"in {len(first)} of {len(ours)} comparisons" in report.sentences(found, stored)


def test_the_lines_of_the_picture_end_at_the_shares(found):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    from leaderboard import pictures, statistics

    comparison = report.front(found)[0]
    axes = pictures.front([comparison]).axes[0]
    for line, name in zip(axes.lines, pictures.shown(comparison), strict=True):
        share = statistics.share(comparison.of(name))
        assert line.get_ydata()[-1] == pytest.approx(share)


def test_the_page_for_a_browser_needs_nothing_else(found, stored):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    text = report.as_html(found[:1], stored)
    assert text.count('src="data:image/png') == text.count("<img ") == 1
    assert "http" not in text


def test_what_the_page_says_about_real_problems(found):
    from leaderboard.statistics import grouped, medians

    real = next(one for one in found if one.title.startswith("real, d <="))
    best = {
        problem: {name: medians([run.best for run in runs])[0] for name, runs in of.items()}
        for (problem, _), of in grouped(real.runs).items()
    }
    assert min(best["slide-100"], key=best["slide-100"].get) == "SciPy dual annealing"


def test_what_the_page_says_about_smooth_functions(found):
    from leaderboard.statistics import area

    annealed = [one for one in found if "SciPy dual annealing" in one.ranks]
    large = next(one for one in annealed if one.title.startswith("bbob-largescale"))
    first = {
        problem["auto"][0].problem: max(problem, key=lambda name: area(problem[name]))
        for problem in large.problems
    }
    smooth = ("f1", "f5", "f8", "f9", "f11", "f12", "f14")  # sphere, slope, Rosenbrock, ...
    assert all(first[name] == "SciPy dual annealing" for name in smooth)
