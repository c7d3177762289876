"""The paper's figures, redrawn in its layout, and those of the experiments that it leaves out."""

import io
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fmnes.experiments import protocol, rates
from fmnes.experiments.checks import at_the_default
from fmnes.experiments.drawing import (
    Point,
    draw_intervals,
    draw_labels,
    draw_legend_below,
    new_figure,
    set_log_limits,
    set_log_ticks,
)
from fmnes.experiments.names import name_of
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Table
from fmnes.experiments.styles import RC, SIGNS, STYLES, TITLES, bar_style_of, patch_of, style_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def learning_rates(table: Table) -> "Figure":
    """The learning rate of the covariance in CR-FM-NES and FM-NES (movement), lambda = 20."""
    del table  # it needs no runs
    dims = protocol.TIME_DIMS
    cr, fm = zip(*(rates.eta_B(dim, protocol.TIME_POPSIZE) for dim in dims), strict=True)
    figure = new_figure(3.3, 2.4)
    axes = figure.subplots()
    axes.plot(dims, cr, **STYLES[protocol.PAPER])
    axes.plot(dims, fm, **STYLES[protocol.FM_NES])
    axes.set(xlabel="dimension $d$", ylabel="learning rate", ylim=(0, None))
    axes.legend(frameon=False)
    return figure


def against_fm_nes(table: Table) -> "Figure":
    """CR-FM-NES and FM-NES at d = 80: evaluations over success rate, by population size."""
    return _panels(table, [80], [protocol.FM_NES, protocol.PAPER, protocol.SAFE])


def high_dimensional(table: Table) -> "Figure":
    """CR-FM-NES, VD-CMA and Sep-CMA at d = 200, 600 and 1000."""
    solvers = [protocol.VD_CMA, protocol.SEP_CMA, protocol.PAPER, protocol.SAFE]
    return _panels(table, [200, 600, 1000], solvers)


def _panels(table: Table, dims: Sequence[int], solvers: Sequence[Solver]) -> "Figure":
    """A row for each dimension, a panel for each function; with a user's own solvers."""
    there = {solver for problem, solver in table.cells if problem.dim in dims}
    solvers = list(dict.fromkeys([*solvers, *(who for who in table.others if who in there)]))
    figure = new_figure(7.2, 0.4 + 1.5 * len(dims))
    grid = figure.subplots(len(dims), len(protocol.FUNCTIONS), squeeze=False)
    for row, dim in zip(grid, dims, strict=True):
        for axes, function in zip(row, protocol.FUNCTIONS, strict=True):
            lines = {
                solver: _signed(_points(table, function, dim, solver), SIGNS.get(solver, ""))
                for solver in solvers
            }
            if any(lines.values()):
                _metric_lines(axes, table, lines, protocol.popsizes(function, dim))
            else:
                _say_not_run(axes)
            if dim == dims[0]:
                axes.set_title(TITLES[function])
            if dim == dims[-1]:
                axes.set_xlabel(r"population size $\lambda$")
        row[0].set_ylabel(f"$d = {dim}$")
    figure.supylabel("evaluations / success rate", fontsize=8)
    draw_legend_below(figure, [style_of(solver, table) for solver in solvers])
    return figure


def _points(table: Table, function: str, dim: int, solver: Solver) -> list[Point]:
    """The metric with its interval by population size; where not all trials succeeded, how many."""
    return [
        Point(
            problem.popsize,
            cell.metric,
            cell.low,
            cell.high,
            cell.shortfall,
            style_of(solver, table)["color"],
        )
        for (problem, who), cell in sorted(table.cells.items())
        if who == solver and problem[:2] == (function, dim)
    ]


def _signed(points: Sequence[Point], sign: str) -> list[Point]:
    """With a sign before each label, that tells whose it is."""
    return [point._replace(label=point.label and f"{sign}{point.label}") for point in points]


def _metric_lines(
    axes: Any, table: Table, lines: dict[Solver, list[Point]], popsizes: Sequence[int]
) -> None:
    every = [point for points in lines.values() for point in points]
    for solver, points in lines.items():
        solved = [point for point in points if math.isfinite(point.value)]
        style = {key: value for key, value in style_of(solver, table).items() if key != "label"}
        axes.plot([point.x for point in solved], [point.value for point in solved], **style)
    margin = 0.12 * (popsizes[-1] - popsizes[0])
    axes.set_xlim(popsizes[0] - margin, popsizes[-1] + margin)
    axes.set_xticks(popsizes[::2])
    axes.tick_params(axis="x", labelsize=6)
    set_log_limits(axes, every)
    set_log_ticks(axes)
    draw_intervals(axes, every)
    draw_labels(axes, every)


def _say_not_run(axes: Any) -> None:
    axes.text(0.5, 0.5, "not run", ha="center", va="center", transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])


def computation_time(table: Table) -> "Figure":
    """Seconds of 1000 iterations, lambda = 20: mean and standard deviation."""
    figure = new_figure(3.3, 2.4)
    axes = figure.subplots()
    for solver in (protocol.FM_NES, protocol.AUTHORS, protocol.SAFE):
        times = {dim: t for (dim, who), t in sorted(table.times.items()) if who == solver}
        if not times:
            continue
        mean = np.asarray([np.mean(t) for t in times.values()])
        spread = np.asarray([np.std(t) for t in times.values()])
        style = STYLES[solver]
        axes.plot(list(times), mean, **style)
        axes.fill_between(
            list(times), mean - spread, mean + spread, color=style["color"], alpha=0.3, linewidth=0
        )
    axes.set(xlabel="dimension $d$", ylabel="seconds for 1000 iterations", yscale="log")
    if axes.lines:
        axes.legend(frameon=False, fontsize=6)
        set_log_ticks(axes)
    return figure


def representations(table: Table) -> "Figure":
    """What each covariance can follow, d = 80: evaluations over success rate."""
    functions, solvers = protocol.SHAPES, protocol.REPRESENTATIONS
    figure = new_figure(7.2, 2.4)
    axes = figure.subplots()
    bars = {
        solver: [
            point._replace(x=j + (k - 2.5) * 0.15, color="black")
            for j, function in enumerate(functions)
            for point in _points(table, function, 80, solver)
            if point.x == 18
        ]
        for k, solver in enumerate(solvers)
    }
    every = [point for points in bars.values() for point in points]
    if not every:
        _say_not_run(axes)
        return figure
    set_log_limits(axes, every)
    bottom, _ = axes.get_ylim()
    for solver, points in bars.items():
        for point in points:
            if math.isfinite(point.value):
                axes.bar(point.x, point.value - bottom, 0.13, bottom, **bar_style_of(solver))
    axes.set_xlim(-0.6, len(functions) - 0.4)
    axes.set_xticks(range(len(functions)), [TITLES[function] for function in functions])
    axes.set_ylabel("evaluations / success rate")
    set_log_ticks(axes)
    draw_intervals(axes, every)
    draw_labels(axes, [bar._replace(value=max(bar.value, bar.high)) for bar in every])
    figure.legend(
        handles=[patch_of(solver) for solver in solvers],
        loc="outside lower center",
        ncols=len(solvers),
        frameon=False,
    )
    return figure


def ablation(table: Table) -> "Figure":
    """The paper's method without some of its parts, over the whole of it."""
    labels = [textwrap.fill(name_of(solver), width=13) for solver in protocol.ABLATIONS]
    return _relative(table, protocol.ABLATIONS, labels)


def eta_B_sensitivity(table: Table) -> "Figure":
    """The paper's method with multiples of the fitted learning rate, over the fitted one."""
    labels = [rf"$\eta_B \times {scale:g}$" for scale in protocol.SCALES]
    return _relative(table, protocol.ETA_B, labels)


def _relative(table: Table, solvers: Sequence[Solver], labels: Sequence[str]) -> "Figure":
    """A panel for each dimension: the metric over that of the paper's method, by function."""
    figure = new_figure(7.2, 2.6)
    every = {dim: list(_relative_points(table, dim, solvers)) for dim in (80, 200)}
    together = [point for points in every.values() for point in points]
    for axes, (dim, points) in zip(figure.subplots(1, 2), every.items(), strict=True):
        axes.set_title(f"$d = {dim}$")
        if not points:
            _say_not_run(axes)
            continue
        for point in points:
            if math.isfinite(point.value):
                axes.plot(point.x, point.value, "o", color=point.color)
        axes.axhline(1, color="black", linewidth=0.5)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.set_xticks(range(len(labels)), labels, fontsize=6.5)
        set_log_limits(axes, together)
        set_log_ticks(axes)
        draw_intervals(axes, points)
        draw_labels(axes, points, near=0.3)
    figure.axes[0].set_ylabel("evaluations, relative")
    draw_legend_below(
        figure,
        [
            {"color": f"C{k}", "marker": "o", "linestyle": "", "label": TITLES[function]}
            for k, function in enumerate(protocol.FUNCTIONS)
        ],
    )
    return figure


def _relative_points(table: Table, dim: int, solvers: Sequence[Solver]) -> Iterator[Point]:
    for k, function in enumerate(protocol.FUNCTIONS):
        for j, solver in enumerate(solvers):
            for ratio in at_the_default(table, function, dim, solver).values():
                x, over = j + (k - 2) * 0.15, ratio.cells[0]
                if not math.isnan(ratio.value):
                    yield Point(x, ratio.value, *ratio.interval, over.shortfall, f"C{k}")


FIGURES: dict[str, Callable[[Table], "Figure"]] = {
    "learning-rates": learning_rates,
    "against-fm-nes": against_fm_nes,
    "computation-time": computation_time,
    "high-dimensional": high_dimensional,
    "representations": representations,
    "ablation": ablation,
    "eta-b": eta_B_sensitivity,
}


def save(name: str, table: Table, folder: Path) -> str:
    """Draw one of the figures, write it as PNG and SVG, and return the SVG."""
    import matplotlib

    with matplotlib.rc_context(RC):
        figure = FIGURES[name](table)
        figure.savefig(folder / f"{name}.png", dpi=200)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    (folder / f"{name}.svg").write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue()
