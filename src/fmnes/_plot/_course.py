"""fmnes.plot(run): the course of one search in six panels, as pycma's users know it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmnes._history import PHASES, History
from fmnes._plot import _style as style
from fmnes._result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TWO_COLUMNS = 5.0  # inches from which on two panels fit beside each other
_MOST_BANDS = 60  # more than this side by side cannot be told apart


def plot(
    run: Result | History,
    *,
    fopt: float | None = None,
    width: float = style.PAGE,
    figure: Any = None,
) -> "Figure":
    """Draw the course of a search and return the Matplotlib figure.

    Six panels over the evaluations: the objective; the step size with the smallest and largest
    standard deviation of a coordinate; the axis ratio of the distribution; the spread of its
    deviations and |v|; the share of each phase; the seconds for each evaluation. Dotted lines
    mark restarts.

    Parameters
    ----------
    run : Result or History
        Of `minimize`, or ``opt.result`` at any time; or a history alone, which does not know
        where restarts were.
    fopt : float, optional
        The minimum, if you know it: the objective is drawn above it. By default it is drawn as it
        is if positive and falling by a factor of ten, and else above the best value found.
    width : float
        In inches: 7 for a page; 3.3 for a paper's column, where the panels stand in one column.
    figure : matplotlib.figure.Figure, optional
        Where to draw; a new one by default. Save it with ``figure.savefig(path)``.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 5, 1.0, maxiter=30, rng=1)
    >>> figure = fmnes.plot(result, width=3.3)
    >>> [axes.get_ylabel() for axes in figure.axes[:2]]
    ['f', 'step size']
    """
    if not isinstance(run, Result | History):
        raise TypeError(f"run: expected a Result or a History, got {run!r}")
    record = run.history if isinstance(run, Result) else run
    if len(record) == 0:
        raise ValueError("run: expected at least one generation, got none")
    style.check_fopt(fopt)
    if figure is None:
        style.check_width(width)
        figure = style.make_figure("plot", width, 7.2 if width < _TWO_COLUMNS else 6.0)
    columns = 1 if figure.get_figwidth() < _TWO_COLUMNS else 2
    rows = record.to_array()
    panels = figure.subplots(6 // columns, columns, sharex=True).ravel()
    _draw_values(panels[0], rows, fopt)
    _draw_scales(panels[1], rows)
    _draw_axis_ratio(panels[2], rows)
    _draw_shape(panels[3], rows)
    _draw_phases(panels[4], rows)
    _draw_seconds(panels[5], rows)
    for axes in panels[-columns:]:
        style.label_evaluations(axes)
    if len(rows) == 1:  # a line through one point cannot be seen
        for line in (line for axes in panels for line in axes.lines):
            line.set_marker("o")
    if isinstance(run, Result):
        _mark_restarts(panels, run)
    figure.suptitle(_headline(run, rows), fontsize=8)
    return figure  # type: ignore[no-any-return]


def _headline(run: Result | History, rows: NDArray[Any]) -> str:
    ended = f"{run.status}: " if isinstance(run, Result) else ""
    return f"{ended}f = {rows['best'][-1]:.6g} after {rows['nfev'][-1]} evaluations"


def _mark_restarts(panels: Any, run: Result) -> None:
    begun = np.cumsum([part.nfev for part in run.restarts])[:-1]
    for axes in panels:
        for nfev in begun:
            axes.axvline(nfev, color=style.BLACK, linestyle=":", linewidth=0.7)


def _draw_values(axes: Any, rows: NDArray[Any], fopt: float | None) -> None:
    """Best, generation best and median, on a log scale above what `_floor` says."""
    floor = _floor(rows["best"]) if fopt is None else fopt
    for column, name, colour, thickness in (
        ("best", "best so far", style.BLUE, 2.0),
        ("generation_best", "generation best", style.ORANGE, 0.8),
        ("median", "median", style.BLACK, 0.6),
    ):
        shown = style.on_log_scale(rows[column] - floor)
        axes.plot(rows["nfev"], shown, label=name, color=colour, linewidth=thickness)
    style.dress(axes, "f" if floor == 0 else f"f − ({floor:.6g})", log=True)


def _floor(best: NDArray[Any]) -> float:
    """What to subtract: nothing where the values themselves fill a log scale, else the lowest."""
    finite = best[np.isfinite(best)]
    if finite.size == 0:
        return 0.0
    first, lowest = float(finite[0]), float(finite[-1])
    return 0.0 if lowest > 0 and (first == lowest or first >= 10 * lowest) else lowest


def _draw_scales(axes: Any, rows: NDArray[Any]) -> None:
    nfev = rows["nfev"]
    for column, name, colour, dashes in (
        ("deviation_max", "largest deviation", style.VERMILION, "--"),
        ("sigma", "sigma", style.BLUE, "-"),
        ("deviation_min", "smallest deviation", style.GREEN, "-."),
    ):
        shown = style.on_log_scale(rows[column])
        axes.plot(nfev, shown, label=name, color=colour, linestyle=dashes, linewidth=1)
    style.dress(axes, "step size", log=True)


def _draw_axis_ratio(axes: Any, rows: NDArray[Any]) -> None:
    """The square root of the condition number: longest over shortest axis."""
    shown = style.on_log_scale(np.sqrt(rows["condition"]))
    axes.plot(rows["nfev"], shown, label="√condition", color=style.BLUE, linewidth=1)
    style.dress(axes, "axis ratio", log=True)


def _draw_shape(axes: Any, rows: NDArray[Any]) -> None:
    """Where the axis ratio comes from: unequal coordinates (D), or one direction (v)."""
    nfev = rows["nfev"]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = style.on_log_scale(rows["deviation_max"] / rows["deviation_min"])
    axes.plot(nfev, spread, label="largest / smallest deviation", color=style.PURPLE, linewidth=1)
    if not np.isnan(rows["norm_v"]).all():
        shown = style.on_log_scale(rows["norm_v"])
        axes.plot(nfev, shown, label="|v|", color=style.GREEN, linestyle="--", linewidth=1)
    style.dress(axes, "spread of D, |v|", log=True)


def _draw_phases(axes: Any, rows: NDArray[Any]) -> None:
    """The share of each phase among the generations of each band, stacked."""
    if not rows["phase"].any():
        where = {"ha": "center", "va": "center", "transform": axes.transAxes}
        axes.text(0.5, 0.5, "a method without phases", fontsize=7, **where)
        style.dress(axes, "phases", legend=0)
        axes.set_yticks([])
        return
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
    """Seconds for an evaluation, on average over each band: in the objective, in the method."""
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
    """Generations in bands: the first of each band, and the bands' edges in evaluations.

    Each generation is a band; in a long run each band holds as many generations as the next, one
    more or less.
    """
    count = len(rows)
    bands = min(count, _MOST_BANDS)
    bounds = np.arange(bands + 1) * count // bands
    edges = np.concatenate([[0], rows["nfev"]])[bounds]
    return bounds[:-1], edges.astype(np.float64)
