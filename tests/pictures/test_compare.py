"""plot_runs and plot_ecdf: quartiles and shares beside a literal computation."""

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import fmnes
from fmnes._plot._compare import quartiles, runtimes

A = ([10, 20, 40], [8.0, 4.0, 1.0])
B = ([5, 25], [6.0, 2.0])
C = ([10, 30], [np.inf, 3.0])


@st.composite
def traces(draw):
    """A run: rising evaluations, falling values, perhaps inf at first."""
    nfev = sorted(draw(st.sets(st.integers(1, 60), min_size=1, max_size=8)))
    value = st.floats(-100, 100) | st.just(np.inf)
    best = sorted(draw(st.lists(value, min_size=len(nfev), max_size=len(nfev))), reverse=True)
    return np.array(nfev), np.array(best)


def best_by(run, nfev):
    """The best value that a run knows after so many evaluations, the slow way."""
    known = [b for n, b in zip(*run, strict=True) if n <= nfev]
    return known[-1] if known else np.inf


def linear_quantile(values, level):
    """By hand: between the two neighbours in order, and inf if it takes part in an infinite one."""
    ordered = sorted(values)
    position = level * (len(ordered) - 1)
    low, high = ordered[int(position)], ordered[min(int(position) + 1, len(ordered) - 1)]
    weight = position - int(position)
    if weight == 0:
        return low
    return np.inf if high == np.inf else low + weight * (high - low)


@given(st.lists(traces(), min_size=1, max_size=6))
def test_quartiles_beside_a_literal_computation(runs):
    nfev, bands = quartiles(runs, (0.25, 0.5, 0.75))
    assert nfev.tolist() == sorted({int(n) for run in runs for n in run[0]})
    for level, band in zip((0.25, 0.5, 0.75), bands, strict=True):
        expected = [linear_quantile([best_by(run, n) for run in runs], level) for n in nfev]
        np.testing.assert_allclose(band, expected, rtol=1e-12, atol=1e-12)


@given(traces(), st.lists(st.floats(-120, 120), min_size=1, max_size=5))
def test_runtimes_beside_a_literal_computation(run, targets):
    found = runtimes(*run, np.array(targets))
    for target, time in zip(targets, found, strict=True):
        reached = [n for n, b in zip(*run, strict=True) if b <= target]
        assert time == (reached[0] if reached else np.inf)


def test_runs_drawn_hold_median_and_quartiles():
    figure = fmnes.plot_runs({"three": [A, B, C]}, fopt=0.0)
    (axes,) = figure.axes
    (line,) = axes.lines
    assert line.get_xdata().tolist() == [5, 10, 20, 25, 30, 40]
    # Best by then: A inf 8 4 4 4 1, B 6 6 6 2 2 2, C inf inf inf inf 3 3; the middle one of each.
    np.testing.assert_array_equal(line.get_ydata(), [np.nan, 8, 6, 4, 3, 2])
    assert line.get_drawstyle() == "steps-post"
    corners = axes.collections[0].get_paths()[0].vertices
    # Quartiles of the same three, halfway to the middle one on either side, where they are finite.
    assert {(30, 2.5), (30, 3.5), (40, 1.5), (40, 2.5)} <= set(map(tuple, corners))
    assert corners[:, 0].min() == 30
    assert axes.get_yscale() == "log"


@pytest.mark.parametrize(
    ("best", "fopt", "scale", "label", "shown"),
    [
        ([3.0, 2.0], None, "log", "best f", [3.0, 2.0]),
        ([3.0, -2.0], None, "linear", "best f", [3.0, -2.0]),
        ([3.0, -2.0], -4.0, "log", "best f − (-4)", [7.0, 2.0]),
        ([np.inf, np.inf], None, "linear", "best f", [np.nan, np.nan]),
    ],
)
def test_scale_of_the_values(best, fopt, scale, label, shown):
    (axes,) = fmnes.plot_runs({"one": [([1, 2], best)]}, fopt=fopt).axes
    assert axes.get_yscale() == scale
    assert axes.get_ylabel() == label
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), shown)


def test_results_and_histories_are_runs():
    result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 3, 1.0, maxiter=9, rng=1)
    figure = fmnes.plot_runs({"result": [result], "history": [result.history], "pair": [A]})
    for line in figure.axes[0].lines[:2]:
        np.testing.assert_array_equal(line.get_xdata(), result.history["nfev"])
        np.testing.assert_array_equal(line.get_ydata(), result.history["best"])
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 3


def test_shares_of_targets():
    """A reaches 5, 3, 1 after 20, 40, 40; B reaches 3 after 25 and 5 after 25, and 1 never."""
    figure = fmnes.plot_ecdf({"both": [A, B]}, targets=[5.0, 3.0, 1.0])
    line, cross = figure.axes[0].lines
    assert line.get_xdata().tolist() == [5, 20, 25, 25, 40, 40, 40]
    np.testing.assert_allclose(line.get_ydata(), np.array([0, 1, 2, 3, 4, 5, 5]) / 6)
    assert cross.get_marker() == "x"
    assert cross.get_xdata() == [32.5]  # the median length of the two runs
    assert cross.get_ydata() == pytest.approx([3 / 6])  # where the line is there


def test_no_cross_where_every_target_was_reached():
    (line,) = fmnes.plot_ecdf({"one": [A]}, targets=[8.0, 1.0]).axes[0].lines
    assert line.get_ydata().tolist() == [0.0, 0.5, 1.0, 1.0]
    assert line.get_xdata().tolist() == [10, 10, 40, 40]


def test_evaluations_per_variable():
    (axes,) = fmnes.plot_ecdf({"one": [A]}, targets=[1.0], dim=5).axes
    assert axes.lines[0].get_xdata().tolist() == [2, 8, 8]
    assert axes.get_xlabel() == "evaluations / dimension"


def test_no_target_reached():
    line, _ = fmnes.plot_ecdf({"one": [C]}, targets=[-1.0]).axes[0].lines
    assert line.get_ydata().tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "draw", [fmnes.plot_runs, lambda runs, **k: fmnes.plot_ecdf(runs, 1.0, **k)]
)
def test_pictures_are_drawn_without_a_warning(draw):
    many = {f"solver {i}": [A, B, C] for i in range(9)}
    for runs in (many, {"nothing": [([1], [np.inf])]}):
        file = io.BytesIO()
        draw(runs, width=3.3).savefig(file, format="png", dpi=40)
        assert file.getvalue().startswith(b"\x89PNG")
    mine = Figure()
    assert draw(many, figure=mine) is mine


@pytest.mark.parametrize(
    ("runs", "error", "name"),
    [
        ([A], TypeError, "runs"),
        ({}, TypeError, "runs"),
        (None, TypeError, "runs"),
        ({"a": []}, TypeError, "runs['a']"),
        ({"a": [A, 3.0]}, TypeError, "runs['a'][1]"),
        ({"a": [([1, 2], [3.0])]}, ValueError, "runs['a'][0]"),
        ({"a": [([2, 2], [3.0, 1.0])]}, ValueError, "runs['a'][0]"),
        ({"a": [([1, 2], [1.0, 3.0])]}, ValueError, "runs['a'][0]"),
        ({"a": [([0, 2], [3.0, 1.0])]}, ValueError, "runs['a'][0]"),
    ],
)
def test_errors_name_the_run(runs, error, name):
    for draw in (fmnes.plot_runs, lambda runs: fmnes.plot_ecdf(runs, 1.0)):
        with pytest.raises(error, match=f"^{re.escape(name)}: expected "):
            draw(runs)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"^targets: expected numbers, got \[\]"):
        fmnes.plot_ecdf({"a": [A]}, [])
    with pytest.raises(ValueError, match=r"^dim: expected .*, got 0"):
        fmnes.plot_ecdf({"a": [A]}, 1.0, dim=0)
    with pytest.raises(ValueError, match=r"^fopt: expected .*, got nan"):
        fmnes.plot_runs({"a": [A]}, fopt=np.nan)
