"""The paper's figures, redrawn in its layout, and figures of the experiments that it leaves out."""

import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fmnes.benchmarking.statistics import Cell
from fmnes.experiments import protocol, rates
from fmnes.experiments.cases import Table
from fmnes.experiments.drawing import RC, Point, Series, draw, draw_legend, new_figure
from fmnes.experiments.protocol import FUNCTIONS, Solver, name_of
from fmnes.experiments.verdicts import over_paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLES = {
    "sphere": "Sphere",
    "ktablet": "k-Tablet",
    "ellipsoid": "Ellipsoid",
    "rosenbrock": "Rosenbrock",
    "rastrigin": "Rastrigin",
    "cigar": "rotated cigar",
    "twoaxes": "rotated, 40 long axes",
}
_STYLES: dict[Solver, dict[str, Any]] = {  # the paper's colours; the safe variant is dashed
    protocol.PAPER: {"color": "#d62728", "marker": "o"},
    protocol.SAFE: {
        "color": "#d62728",
        "marker": "s",
        "linestyle": "--",
        "markerfacecolor": "white",
    },
    protocol.AUTHORS: {"color": "#7f7f7f", "marker": "x"},
    protocol.FM_NES: {"color": "#17becf", "marker": "^"},
    protocol.VD_CMA: {"color": "#1f4fd6", "marker": "v"},
    protocol.SEP_CMA: {"color": "#2ca02c", "marker": "D"},
    protocol.R1_NES: {"color": "#9467bd", "marker": "P"},
}
SIGNS = {protocol.PAPER: "●", protocol.SAFE: "□"}  # their markers, because they share a colour


def _style_of(solver: Solver, table: Table) -> dict[str, Any]:
    """Return the style of a solver: shades of grey for those that the paper does not have."""
    if solver in _STYLES:
        return _STYLES[solver] | {"label": name_of(solver)}
    shade = 0.6 * table.others.index(solver) / len(table.others)
    return {"color": str(shade), "marker": "*", "linestyle": ":", "label": name_of(solver)}


def _shortfall(cell: Cell, sign: str = "") -> str:
    """Return the fraction of successes if some trial failed."""
    return "" if cell.successes == cell.trials else f"{sign}{cell.share}"


def learning_rates(table: Table) -> "Figure":
    """Draw the learning rate of the covariance in CR-FM-NES and FM-NES (movement), lambda = 20."""
    dims = protocol.TIME_DIMS
    lines = zip(*(rates.eta_B(dim, protocol.TIME_POPSIZE) for dim in dims), strict=True)
    figure = new_figure(3.3, 2.4)
    axes = figure.subplots()
    for solver, values in zip((protocol.PAPER, protocol.FM_NES), lines, strict=True):
        axes.plot(dims, values, **_style_of(solver, table))
    axes.set(xlabel="dimension $d$", ylabel="learning rate", ylim=(0, None))
    axes.legend(frameon=False)
    return figure


def _panels(dims: Sequence[int], solvers: Sequence[Solver], table: Table) -> "Figure":
    """Draw the metric by population size: a row for each dimension, a panel for each function."""
    there = {solver for case, solver in table.cells if case.dim in dims}
    solvers = list(dict.fromkeys([*solvers, *(who for who in table.others if who in there)]))
    styles = [_style_of(solver, table) for solver in solvers]
    figure = new_figure(7.2, 0.4 + 1.5 * len(dims))
    grid = figure.subplots(len(dims), len(FUNCTIONS), squeeze=False)
    for row, dim in zip(grid, dims, strict=True):
        for axes, function in zip(row, FUNCTIONS, strict=True):
            axes.set_xticks(protocol.popsizes(function, dim)[::2])
            points = [
                _points(table, function, dim, solver, SIGNS.get(solver, "")) for solver in solvers
            ]
            draw(axes, [*map(Series, styles, points)])
            if dim == dims[0]:
                axes.set_title(_TITLES[function])
            if dim == dims[-1]:
                axes.set_xlabel(r"population size $\lambda$")
        row[0].set_ylabel(f"$d = {dim}$")
    figure.supylabel("evaluations / success rate", fontsize=8)
    draw_legend(figure, styles)
    return figure


def _points(table: Table, function: str, dim: int, solver: Solver, sign: str = "") -> list[Point]:
    """Return the metric with its interval by population size."""
    return [
        Point(case.popsize, cell.metric, *cell.interval, _shortfall(cell, sign))
        for (case, who), cell in table.cells.items()
        if who == solver and case[:2] == (function, dim)
    ]


def computation_time(table: Table) -> "Figure":
    """Draw the seconds of 1000 iterations, lambda = 20: mean and standard deviation."""
    series = []
    for solver in (protocol.FM_NES, protocol.AUTHORS, protocol.SAFE):
        points = []
        for (dim, who), seconds in sorted(table.times.items()):
            if who == solver:
                mean, deviation = float(np.mean(seconds)), float(np.std(seconds))
                points.append(Point(dim, mean, mean - deviation, mean + deviation, ""))
        series.append(Series(_style_of(solver, table), points))
    figure = new_figure(3.3, 2.4)
    axes = figure.subplots()
    draw(axes, series)
    axes.set(xlabel="dimension $d$", ylabel="seconds for 1000 iterations")
    draw_legend(figure, [one.style for one in series])
    return figure


def representations(table: Table) -> "Figure":
    """Draw what each covariance can follow, d = 80: the metric by function."""
    figure = new_figure(7.2, 2.4)
    axes = figure.subplots()
    series = []
    for k, solver in enumerate(protocol.REPRESENTATIONS):
        points = [
            point._replace(x=j + (k - 2.5) * 0.15)
            for j, function in enumerate(protocol.SHAPES)
            for point in _points(table, function, 80, solver)
            if point.x == 18
        ]
        series.append(Series(_style_of(solver, table) | {"linestyle": ""}, points))
    draw(axes, series)
    axes.set_xticks(range(len(protocol.SHAPES)), [_TITLES[name] for name in protocol.SHAPES])
    axes.set_ylabel("evaluations / success rate")
    draw_legend(figure, [one.style for one in series])
    return figure


def _relative(labels: Mapping[Solver, str], table: Table) -> "Figure":
    """Draw the metric over that of the paper's method by function, a panel for each dimension."""
    figure = new_figure(7.2, 2.6)
    styles = [
        {"color": f"C{k}", "marker": "o", "linestyle": "", "label": _TITLES[function]}
        for k, function in enumerate(FUNCTIONS)
    ]
    for axes, dim in zip(figure.subplots(1, 2), (80, 200), strict=True):
        series = [Series(style, []) for style in styles]
        for j, solver in enumerate(labels):
            found = over_paper(table, dim, solver)
            for k, function in enumerate(FUNCTIONS):
                ratio = found.get(function)
                if ratio is not None and not math.isnan(ratio.value):
                    label = _shortfall(ratio.cells[0])
                    point = Point(j + (k - 2) * 0.15, ratio.value, *ratio.interval, label)
                    series[k].points.append(point)
        axes.set_title(f"$d = {dim}$")
        draw(axes, series, near=0.3)
        axes.axhline(1, color="black", linewidth=0.5)
        axes.set_xticks(range(len(labels)), [*labels.values()], fontsize=6.5)
    figure.axes[0].set_ylabel("evaluations, relative")
    draw_legend(figure, styles)
    return figure


_PARTS = {solver: textwrap.fill(name_of(solver), 13) for solver in protocol.ABLATIONS}
_MULTIPLES = {
    solver: rf"$\eta_B \times {scale:g}$"
    for solver, scale in zip(protocol.ETA_B, protocol.SCALES, strict=True)
}
_IN_80 = (protocol.FM_NES, protocol.PAPER, protocol.SAFE)
_IN_MORE = (protocol.VD_CMA, protocol.SEP_CMA, protocol.PAPER, protocol.SAFE)
FIGURES: dict[str, Callable[[Table], "Figure"]] = {
    "learning-rates": learning_rates,
    "against-fm-nes": partial(_panels, [80], _IN_80),
    "computation-time": computation_time,
    "high-dimensional": partial(_panels, [200, 600, 1000], _IN_MORE),
    "representations": representations,
    "ablation": partial(_relative, _PARTS),
    "eta-b": partial(_relative, _MULTIPLES),
}


def save(name: str, table: Table, folder: Path) -> bytes:
    """Draw one of the figures, write it as PNG and SVG, and return the PNG."""
    import matplotlib
    from PIL import Image

    image, picture = io.BytesIO(), folder / f"{name}.png"
    with matplotlib.rc_context(RC):
        figure = FIGURES[name](table)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(image, format="png", dpi=200)
    # 64 colours look the same as all of them, and the file is a third as large.
    reduced = Image.open(image).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    reduced.save(picture, optimize=True)
    return picture.read_bytes()
