"""fmnes.plot(): the course of one search in six panels, similar to those of pycma."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._plot import _style as style
from fmnes.records.history import PHASES, History
from fmnes.records.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Values and look (arguments of `plot`) of the lines of a panel, by label.
_Lines = dict[str, tuple[NDArray[Any], dict[str, Any]]]
_Scale = dict[str, Any]  # arguments of `set_yscale`
_TWO_COLUMNS = 5.0  # inches: from this width on, the panels stand in two columns
_MOST_BANDS = 60  # more than that could not be told apart
_MOST_LOST = 0.2  # share of a run that may pass after the best value, where a log scale ends
_CONVERGED = 1e-3  # generations this near to the best value, relative to the first, have found it


def plot(
    run: Result | History,
    *,
    fopt: float | None = None,
    width: float = style.PAGE,
    figure: "Figure | None" = None,
) -> "Figure":
    """Draw the course of a search and return the Matplotlib figure, which a notebook shows.

    Six panels over the evaluations show the objective; the step size with the smallest and largest
    standard deviation of a coordinate; the axis ratio of the distribution; the ratio of those
    deviations and |v|; the share of each phase (not for a method without phases); and the seconds
    per evaluation. Dotted lines mark restarts.

    Parameters
    ----------
    run : Result or History
        The result of `minimize`, or ``opt.result`` at any time; or only its history, in which
        restarts are not known.
    fopt : float, optional
        The minimum, if you know it. Its difference to the objective is drawn. By default, the
        objective itself is drawn if it is positive and falls by a factor of ten, and otherwise its
        difference to the best value found.
    width : float
        Width in inches: 7 for a page; 3.3 for a column of a paper, with all panels in one column.
    figure : matplotlib.figure.Figure, optional
        The figure to draw into; by default a new one. ``figure.savefig(path)`` saves it.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 5, 1.0, maxiter=30, rng=1)
    >>> figure = fmnes.plot(result, width=3.3)
    >>> [axes.get_ylabel() for axes in figure.axes[:2]]
    ['f', 'step size']
    """
    if not isinstance(run, Result | History):
        raise TypeError(
            f"run: expected a Result or a History (plot_runs draws several), got {run!r:.60}"
        )
    record = run.history if isinstance(run, Result) else run
    if len(record) == 0:
        raise ValueError("run: expected at least one complete generation, got none")
    if fopt is not None:
        checks.finite("fopt", fopt)
    if figure is None:
        width = style.read_width(width)
        figure = style.make_figure("plot", width, 7.2 if width < _TWO_COLUMNS else 6.0)
    else:
        figure = style.read_figure(figure)
    rows = record.to_array()
    layout = _layout(rows, 1 if figure.get_figwidth() < _TWO_COLUMNS else 2)
    panels = figure.subplot_mosaic(layout, sharex=True)
    _draw_values(panels["values"], rows, fopt)
    for name, draw in _PANELS.items():
        if name in panels:
            draw(panels[name], rows)
    above_wide_one = layout[-2] if layout[-1][0] == layout[-1][-1] and len(layout[-1]) > 1 else []
    for name in (*above_wide_one, layout[-1][0], layout[-1][-1]):
        style.label_evaluations(panels[name])
        panels[name].tick_params(axis="x", labelbottom=True)
    if len(rows) == 1:  # a line through one point cannot be seen
        for line in (line for axes in panels.values() for line in axes.lines):
            line.set_marker("o")
    if isinstance(run, Result):
        _mark_restarts(panels.values(), run)
    figure.suptitle(_headline(run, rows), fontsize=8)
    return figure


def _layout(rows: NDArray[Any], columns: int) -> list[Any]:
    """Return the names of the panels in rows; a method without phases has no panel for them."""
    names = ["values", *_PANELS]
    if not rows["phase"].any():
        names.remove("phases")
    if columns == 1:
        return [[name] for name in names]
    pairs = [names[i : i + 2] for i in range(0, len(names), 2)]
    return [pair if len(pair) == 2 else 2 * pair for pair in pairs]


def _headline(run: Result | History, rows: NDArray[Any]) -> str:
    ended = f"{run.status}: " if isinstance(run, Result) else ""
    nfev = checks.count(rows["nfev"][-1], "evaluation")
    return f"{ended}f = {rows['best'][-1]:.6g} after {nfev}"


def _mark_restarts(panels: Any, run: Result) -> None:
    begun = np.cumsum([part.nfev for part in run.restarts])[:-1]
    for axes in panels:
        for nfev in begun:
            axes.axvline(nfev, color=style.BLACK, linestyle=":", linewidth=0.7)


def _draw_lines(
    axes: Any, rows: NDArray[Any], ylabel: str, lines: _Lines, scale: _Scale | None = None
) -> None:
    """Draw lines over the evaluations, on a log scale unless another one is given."""
    for label, (values, look) in lines.items():
        shown = style.on_log_scale(values) if scale is None else style.finite(values)
        axes.plot(rows["nfev"], shown, label=label, **{"lw": 1, **look})
    style.dress(axes, ylabel, log=scale is None)
    if scale is not None:
        axes.set_yscale(**scale)


def _draw_values(axes: Any, rows: NDArray[Any], fopt: float | None) -> None:
    """Draw best, generation best and median, as differences to ``fopt`` or `_floor`.

    If the generations stay away from the best value, as on a noisy objective, their difference to
    it would show nothing of the best value after it was found: f itself is drawn.
    """
    floor = _floor(rows["best"]) if fopt is None else fopt
    noise = _noise(rows, floor)
    if fopt is None and noise > 0:
        floor = 0.0
    lines: _Lines = {
        "best so far": (rows["best"] - floor, {"color": style.BLUE, "lw": 2}),
        "generation best": (rows["generation_best"] - floor, {"color": style.ORANGE, "lw": 0.8}),
        "median": (rows["median"] - floor, {"color": style.BLACK, "lw": 0.6}),
    }
    label = "f" if floor == 0 else f"f − ({floor:.6g})"
    _draw_lines(axes, rows, label, lines, _scale(rows["best"] - floor, noise) if noise else None)


def _scale(best: NDArray[Any], noise: float) -> _Scale | None:
    """Return the scale for values with noise; None, for a log scale, if they are positive."""
    finite = best[np.isfinite(best)]
    if finite[-1] > 0:
        return None
    if finite[0] < 0:
        return {"value": "linear"}
    return {"value": "symlog", "linthresh": 10.0 ** math.ceil(math.log10(noise))}


def _noise(rows: NDArray[Any], floor: float) -> float:
    """Return how far generations stay above the best value if a log scale loses it; otherwise 0."""
    above = rows["best"] - floor
    lost = above <= 0
    known = np.isfinite(above)
    if not known.any() or np.count_nonzero(lost) <= _MOST_LOST * len(rows):
        return 0.0
    with np.errstate(invalid="ignore"):
        distance = float(np.median(rows["generation_best"][lost] - rows["best"][lost]))
    converged = _CONVERGED * float(above[known][0] - above[known][-1])
    return distance if converged < distance < np.inf else 0.0


def _floor(best: NDArray[Any]) -> float:
    """Return what to subtract: 0 if the values themselves fill a log scale, else the lowest."""
    finite = best[np.isfinite(best)]
    if finite.size == 0:
        return 0.0
    first, lowest = float(finite[0]), float(finite[-1])
    return 0.0 if lowest > 0 and (first == lowest or first >= 10 * lowest) else lowest


def _draw_scales(axes: Any, rows: NDArray[Any]) -> None:
    lines: _Lines = {
        "largest deviation": (rows["deviation_max"], {"color": style.VERMILION, "ls": "--"}),
        "sigma": (rows["sigma"], {"color": style.BLUE}),
        "smallest deviation": (rows["deviation_min"], {"color": style.GREEN, "ls": "-."}),
    }
    _draw_lines(axes, rows, "step size", lines)


def _draw_axis_ratio(axes: Any, rows: NDArray[Any]) -> None:
    """Draw the ratio of longest to shortest axis: the square root of the condition number."""
    lines: _Lines = {"√condition": (np.sqrt(rows["condition"]), {"color": style.BLUE})}
    _draw_lines(axes, rows, "axis ratio", lines)


def _draw_shape(axes: Any, rows: NDArray[Any]) -> None:
    """Draw where the axis ratio comes from: different coordinates (D), or one direction (v)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = rows["deviation_max"] / rows["deviation_min"]
    lines: _Lines = {"largest / smallest deviation": (spread, {"color": style.PURPLE})}
    ylabel = "spread"
    if not np.isnan(rows["norm_v"]).all():
        lines["|v|"] = rows["norm_v"], {"color": style.GREEN, "ls": "--"}
        ylabel = "spread of D, |v|"
    _draw_lines(axes, rows, ylabel, lines)


def _draw_phases(axes: Any, rows: NDArray[Any]) -> None:
    """Draw the share of each phase among the generations of each band, stacked."""
    first, edges = _bands(rows)
    below = np.zeros(len(first))
    for code, name in PHASES.items():
        count = np.add.reduceat(rows["phase"] == code, first, dtype=np.float64)
        above = below + count / np.diff(first, append=len(rows))
        axes.stairs(
            above, edges, baseline=below, fill=True, color=style.PHASE_COLOURS[code], label=name
        )
        below = above
    style.dress(axes, "share of phase", legend=3)
    axes.set_ylim(0, 1)


def _draw_seconds(axes: Any, rows: NDArray[Any]) -> None:
    """Draw the mean seconds per evaluation in each band, for objective and optimizer."""
    first, edges = _bands(rows)
    for column, name, colour, dashes in (
        ("seconds_objective", "objective", style.VERMILION, "-"),
        ("seconds_optimizer", "optimizer", style.BLUE, "--"),
    ):
        mean = np.add.reduceat(rows[column], first) / np.diff(edges)
        label = f"{name}: {rows[column].sum():.3g} s in all"
        shown = style.on_log_scale(mean)
        axes.stairs(shown, edges, baseline=None, label=label, color=colour, linestyle=dashes)
    style.dress(axes, "s / evaluation", log=True)


def _bands(rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the first row of each band, and the edges of the bands in evaluations.

    Each row is a band of its own; in a long run, the bands hold equal numbers of rows, up to one.
    """
    count = len(rows)
    bands = min(count, _MOST_BANDS)
    bounds = np.arange(bands + 1) * count // bands
    edges = np.concatenate([[0], rows["nfev"]])[bounds]
    return bounds[:-1], edges.astype(np.float64)


# The other panels than that of the values, in their order.
_PANELS = {
    "scales": _draw_scales,
    "axis ratio": _draw_axis_ratio,
    "shape": _draw_shape,
    "phases": _draw_phases,
    "seconds": _draw_seconds,
}
