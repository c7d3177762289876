"""fmnes.plot: the lines drawn hold the history's numbers, whatever those are."""

import io
import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

import fmnes
from fmnes.records.history import COLUMNS

PANELS = ["values", "scales", "axis ratio", "shape", "phases", "seconds"]


def sphere(x):
    return float((x**2).sum())


def run(fun=sphere, **options):
    options = {"maxiter": 30, "rng": 1} | options
    return fmnes.minimize(fun, [3.0] * 5, 1.0, **options)


def panels(figure):
    return dict(zip(PANELS, figure.axes, strict=True))


def drawn(axes):
    """What each line of a panel holds, by its label, restarts aside."""
    lines = [line for line in axes.lines if not line.get_label().startswith("_")]
    return {line.get_label(): (line.get_xdata(), line.get_ydata()) for line in lines}


def stairs(axes):
    return {patch.get_label(): patch.get_data() for patch in axes.patches}


def made_up(count, **columns):
    """A history of ``count`` generations of ten evaluations; columns are 1 unless given."""
    rows = np.zeros(count, list(COLUMNS.items()))
    for name in COLUMNS:
        rows[name] = 1
    rows["nfev"] = 10 * np.arange(1, count + 1)
    for name, values in columns.items():
        rows[name] = values
    return fmnes.History(rows)


def test_lines_hold_the_history():
    result = run(method="cr-fm-nes")  # which has a v
    history = result.history
    shown = panels(fmnes.plot(result))
    expected = {
        "values": {
            "best so far": history["best"],
            "generation best": history["generation_best"],
            "median": history["median"],
        },
        "scales": {
            "sigma": history["sigma"],
            "largest deviation": history["deviation_max"],
            "smallest deviation": history["deviation_min"],
        },
        "axis ratio": {"√condition": history["condition"] ** 0.5},
        "shape": {
            "largest / smallest deviation": history["deviation_max"] / history["deviation_min"],
            "|v|": history["norm_v"],
        },
    }
    for panel, lines in expected.items():
        assert drawn(shown[panel]).keys() == lines.keys()
        for label, (x, y) in drawn(shown[panel]).items():
            np.testing.assert_array_equal(x, history["nfev"], panel)
            np.testing.assert_array_equal(y, lines[label], label)
            assert np.isfinite(y).all()
        assert shown[panel].get_yscale() == "log"


def test_a_history_alone_gives_the_same_lines():
    result = run()
    of_result, of_history = panels(fmnes.plot(result)), panels(fmnes.plot(result.history))
    for panel in PANELS[:4]:
        for label, (_, y) in drawn(of_result[panel]).items():
            np.testing.assert_array_equal(drawn(of_history[panel])[label][1], y)


def test_phases_and_seconds_of_each_generation():
    phase = [1, 1, 2, 3]
    seconds = np.array([1.0, 2.0, 3.0, 40.0])
    history = made_up(4, phase=phase, seconds_objective=seconds, nfev=[10, 20, 30, 50])
    shown = panels(fmnes.plot(history))
    assert list(stairs(shown["phases"])) == ["moving", "adapting", "converging"]
    for label, code in {"moving": 1, "adapting": 2, "converging": 3}.items():
        above, edges, below = stairs(shown["phases"])[label]
        assert edges.tolist() == [0, 10, 20, 30, 50]
        assert (above - below).tolist() == [float(p == code) for p in phase]
    (label,) = [label for label in stairs(shown["seconds"]) if label.startswith("objective")]
    assert label == "objective: 46 s in all"
    mean, edges, _ = stairs(shown["seconds"])[label]
    assert mean.tolist() == [0.1, 0.2, 0.3, 2.0]
    assert edges.tolist() == [0, 10, 20, 30, 50]


def test_bands_of_a_long_run():
    """Shares and seconds of bands, beside a loop over generations."""
    rng = np.random.default_rng(1)
    history = made_up(1234, phase=rng.integers(1, 4, 1234), seconds_optimizer=rng.random(1234))
    shown = panels(fmnes.plot(history))
    above, edges, below = stairs(shown["phases"])["adapting"]
    mean, same_edges, _ = stairs(shown["seconds"])[
        f"optimizer: {history['seconds_optimizer'].sum():.3g} s in all"
    ]
    assert edges.tolist() == same_edges.tolist()
    assert len(edges) == 61
    assert edges[0] == 0
    assert edges[-1] == 12340
    for band, (left, right) in enumerate(itertools.pairwise(edges)):
        inside = (history["nfev"] > left) & (history["nfev"] <= right)
        assert inside.sum() in (20, 21)
        share = (history["phase"][inside] == 2).sum() / inside.sum()
        assert above[band] - below[band] == pytest.approx(share, abs=1e-15)
        seconds = history["seconds_optimizer"][inside].sum() / (right - left)
        assert mean[band] == pytest.approx(seconds, rel=1e-13)


@pytest.mark.parametrize(("width", "columns"), [(3.3, 1), (7, 2)])
def test_a_method_without_phases_and_v(width, columns):
    """It has no panel that is empty, and no label of what it has not."""
    figure = fmnes.plot(run(method="snes"), width=width)
    figure.draw_without_rendering()
    shown = dict(zip([name for name in PANELS if name != "phases"], figure.axes, strict=True))
    assert all(axes.lines or axes.patches for axes in figure.axes)
    assert list(drawn(shown["shape"])) == ["largest / smallest deviation"]
    assert "v|" not in shown["shape"].get_ylabel()
    labelled = ["axis ratio", "shape", "seconds"] if columns == 2 else ["seconds"]
    assert [name for name, axes in shown.items() if axes.get_xlabel()] == labelled
    spans = {name: axes.get_position().width for name, axes in shown.items()}
    assert (spans["seconds"] > 1.5 * spans["values"]) == (columns == 2)


@pytest.mark.parametrize(("offset", "scale"), [(0, "symlog"), (20, "log"), (-200, "linear")])
def test_the_best_value_of_a_noisy_run_is_drawn_to_the_end(offset, scale):
    """A lucky value early on is the best one: above it, a log scale has nothing to show."""
    noise = np.random.default_rng(1).standard_normal(200)
    generation_best = 100 * 0.8 ** np.arange(200) + noise + offset
    generation_best[30] = -5.0 + offset
    best = np.minimum.accumulate(generation_best)
    rows = {"best": best, "generation_best": generation_best, "median": generation_best + 1}
    figure = fmnes.plot(made_up(200, **rows))
    shown = panels(figure)["values"]
    assert shown.get_yscale() == scale
    assert shown.get_ylabel() == "f"
    np.testing.assert_array_equal(drawn(shown)["best so far"][1], best)
    np.testing.assert_array_equal(drawn(shown)["generation best"][1], generation_best)
    figure.draw_without_rendering()
    low, high = shown.get_ylim()
    labels = [*shown.get_yticklabels(), *shown.get_yticklabels(minor=True)]
    assert any(low <= text.get_position()[1] <= high and text.get_text() for text in labels)


def test_a_run_that_has_converged_keeps_its_log_scale():
    best = np.maximum(100 * 0.8 ** np.arange(200), 1e-9) - 3.0
    shown = panels(fmnes.plot(made_up(200, best=best, generation_best=best)))["values"]
    assert shown.get_yscale() == "log"


@pytest.mark.parametrize(
    ("best", "floor"),
    [
        ([100.0, 10.0, 1.0], 0.0),  # falls by a factor of ten: as it is
        ([9.0, 5.0, 2.0], 2.0),  # else above the best
        ([3.0, -1.0, -5.0], -5.0),
        ([np.inf, 3.0, 2.5], 2.5),
        ([3.0, 1.0, 0.0], 0.0),
        ([2.0, -np.inf], 0.0),  # nothing to tell apart
    ],
)
def test_what_the_values_are_drawn_above(best, floor):
    shown = panels(fmnes.plot(made_up(len(best), best=best, generation_best=best)))["values"]
    assert shown.get_ylabel() == ("f" if floor == 0 else f"f − ({floor:g})")
    above = [b - floor if floor < b < np.inf else np.nan for b in best]
    np.testing.assert_array_equal(drawn(shown)["best so far"][1], above)


def test_values_above_a_known_minimum():
    shown = panels(fmnes.plot(made_up(2, best=[-1.0, -2.0]), fopt=-3.0))["values"]
    assert drawn(shown)["best so far"][1].tolist() == [2.0, 1.0]


def test_infeasible_generations_are_gaps():
    nan, inf = np.nan, np.inf
    history = made_up(3, best=[inf, 20.0, 1.0], generation_best=[inf, 20.0, inf], median=inf)
    lines = drawn(panels(fmnes.plot(history))["values"])
    np.testing.assert_array_equal(lines["best so far"][1], [nan, 20.0, 1.0])
    np.testing.assert_array_equal(lines["generation best"][1], [nan, 20.0, nan])
    np.testing.assert_array_equal(lines["median"][1], [nan] * 3)


def nothing_feasible(x):
    return np.inf


@pytest.mark.parametrize(
    ("fun", "options"),
    [
        (sphere, {}),
        (sphere, {"maxiter": 1, "method": "snes"}),
        (nothing_feasible, {"restarts": 1}),
        (lambda x: -float(abs(x).sum()), {"width": 3.3}),
    ],
)
def test_every_run_is_drawn_without_a_warning(fun, options):
    """Warnings are errors here: of empty log scales, say, or of panels that do not fit."""
    look = {"width": options.pop("width", 7)}
    file = io.BytesIO()
    fmnes.plot(run(fun, **options), **look).savefig(file, format="png", dpi=40)
    assert file.getvalue().startswith(b"\x89PNG")


def test_nothing_feasible_at_all():
    for label, (_, y) in drawn(panels(fmnes.plot(run(nothing_feasible)))["values"]).items():
        assert np.isnan(y).all(), label


def test_one_generation_can_be_seen():
    for axes in panels(fmnes.plot(run(maxiter=1))).values():
        for line in axes.lines:
            assert line.get_marker() == "o"
            assert len(line.get_xdata()) == 1


def test_restarts_are_marked():
    result = run(restarts=fmnes.IPOP(2), maxiter=4)
    ends = np.cumsum([part.nfev for part in result.restarts])[:-1].tolist()
    assert len(ends) == 2
    for axes in panels(fmnes.plot(result)).values():
        marks = [line for line in axes.lines if line.get_linestyle() == ":"]
        assert [line.get_xdata()[0] for line in marks] == ends


@pytest.mark.parametrize(("width", "columns"), [(3.3, 1), (7, 2)])
def test_width_of_a_column_and_of_a_page(width, columns):
    figure = fmnes.plot(run(), width=width)
    assert figure.get_figwidth() == width
    figure.draw_without_rendering()
    assert len({round(axes.get_position().x0, 3) for axes in figure.axes}) == columns
    labelled = [axes.get_xlabel() for axes in figure.axes]
    assert labelled == [""] * (6 - columns) + ["evaluations"] * columns


def test_a_figure_of_ones_own():
    mine = Figure(figsize=(4, 8))
    assert fmnes.plot(run(), figure=mine) is mine
    assert len(mine.axes) == 6


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("width", 1, ValueError),
        ("width", 330, ValueError),
        ("width", "7", TypeError),
        ("fopt", np.inf, ValueError),
        ("fopt", "0", TypeError),
    ],
)
def test_errors_name_the_argument(name, value, error):
    with pytest.raises(error, match=f"^{name}: expected .*, got {value!r}"):
        fmnes.plot(run(maxiter=1), **{name: value})


def test_what_is_not_a_run_is_refused():
    with pytest.raises(TypeError, match=r"^run: .*, got 'run'"):
        fmnes.plot("run")
    with pytest.raises(ValueError, match=r"^run: .*, got none"):
        fmnes.plot(fmnes.History())


def test_several_runs_are_for_another_function():
    result = run()
    with pytest.raises(TypeError, match=r"run: .*plot_runs") as raised:
        fmnes.plot([result, result])
    assert len(str(raised.value)) < 200  # not all numbers of both
    with pytest.raises(TypeError, match=r"runs: .*\[result") as raised:
        fmnes.plot_runs([result])
    assert len(str(raised.value)) < 200
