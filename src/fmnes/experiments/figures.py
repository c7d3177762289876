"""The paper's figures, redrawn in its layout, and those of the experiments that it leaves out."""

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fmnes.algorithms import _phases as phases
from fmnes.algorithms import cr_fm_nes, dx_nes_ic
from fmnes.experiments import protocol
from fmnes.experiments.claims import name_of
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {
    "sphere": "Sphere",
    "ktablet": "k-Tablet",
    "ellipsoid": "Ellipsoid",
    "rosenbrock": "Rosenbrock",
    "rastrigin": "Rastrigin",
    "cigar": "rotated cigar",
}
# The paper's colours: red, cyan, blue and green. Of two lines in one colour the broken one is ours.
STYLES: dict[Solver, dict[str, Any]] = {
    protocol.PAPER: {"color": "#d62728", "marker": "o", "label": "CR-FM-NES"},
    protocol.SAFE: {
        "color": "#d62728",
        "marker": "s",
        "linestyle": "--",
        "markerfacecolor": "white",
        "label": "CR-FM-NES, safe variant",
    },
    protocol.AUTHORS: {"color": "#7f7f7f", "marker": "x", "label": "CR-FM-NES, authors' package"},
    protocol.FM_NES: {"color": "#17becf", "marker": "^", "label": "FM-NES"},
    protocol.VD_CMA: {"color": "#1f4fd6", "marker": "v", "label": "VD-CMA"},
    protocol.SEP_CMA: {"color": "#2ca02c", "marker": "D", "label": "Sep-CMA"},
    protocol.R1_NES: {"color": "#9467bd", "marker": "P", "label": "R1-NES"},
}
_RC: Any = {
    "font.family": "serif",
    "mathtext.fontset": "cm",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "svg.hashsalt": "fmnes",  # the same data give the same file
}


def _new(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def learning_rates(table: Table) -> "Figure":
    """The learning rate of the covariance in CR-FM-NES and FM-NES (movement), lambda = 20."""
    del table  # it needs no runs
    dims, lam = protocol.TIME_DIMS, np.asarray(float(protocol.TIME_POPSIZE))
    movement = np.asarray(phases.MOVEMENT)
    figure = _new(3.3, 2.4)
    axes = figure.subplots()
    cr = [cr_fm_nes.fitted_eta_B(np, d, lam) for d in dims]
    fm = [dx_nes_ic.published_eta_B(np, d, movement, lam) for d in dims]
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
    solvers = [*solvers, *table.others]
    figure = _new(7.2, 0.4 + 1.5 * len(dims))
    grid = figure.subplots(len(dims), len(protocol.FUNCTIONS), squeeze=False)
    for row, dim in zip(grid, dims, strict=True):
        for axes, function in zip(row, protocol.FUNCTIONS, strict=True):
            for solver in solvers:
                _metric_line(axes, table, function, dim, solver)
            if axes.lines:
                axes.set_yscale("log")
                _few_ticks(axes, protocol.popsizes(function, dim))
            else:
                _say_not_run(axes)
            if dim == dims[0]:
                axes.set_title(TITLES[function])
            if dim == dims[-1]:
                axes.set_xlabel(r"population size $\lambda$")
        row[0].set_ylabel(f"$d = {dim}$")
    figure.supylabel("evaluations / success rate", fontsize=8)
    _legend_below(figure, [_style(solver, table) for solver in solvers])
    return figure


def _style(solver: Solver, table: Table) -> dict[str, Any]:
    """The paper's, or shades of grey for solvers that it does not know."""
    if solver in STYLES:
        return STYLES[solver]
    shade = 0.6 * table.others.index(solver) / len(table.others)
    return {"color": str(shade), "marker": "*", "linestyle": ":", "label": name_of(solver)}


def _metric_line(axes: Any, table: Table, function: str, dim: int, solver: Solver) -> None:
    """The metric with its 95 % interval; beside a point that not all trials reached, how many."""
    found = [
        (problem.popsize, cell)
        for (problem, who), cell in sorted(table.cells.items())
        if who == solver and problem[:2] == (function, dim)
    ]
    style = dict(_style(solver, table))
    label = style.pop("label")
    solved = [(lam, cell) for lam, cell in found if math.isfinite(cell.metric)]
    if not solved:  # nothing was run, or nothing reached the target: the tables say which
        return
    lam = [popsize for popsize, _ in solved]
    metric = np.asarray([cell.metric for _, cell in solved])
    spread = np.asarray([(cell.low, cell.high) for _, cell in solved]).T
    spread = np.where(np.isfinite(spread), spread, metric)  # one trial, or none in some resamples
    error = np.clip(np.abs(spread - metric), 0, None)
    axes.errorbar(lam, metric, yerr=error, capsize=1.5, elinewidth=0.6, label=label, **style)
    for popsize, cell in solved:
        if cell.successes < cell.trials:
            axes.annotate(
                f"{cell.successes}/{cell.trials}",
                (popsize, cell.metric),
                textcoords="offset points",
                xytext=(2, 2),
                fontsize=5,
                color=style["color"],
            )


def _say_not_run(axes: Any) -> None:
    axes.text(0.5, 0.5, "not run", ha="center", va="center", transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])


def _few_ticks(axes: Any, popsizes: Sequence[int]) -> None:
    from matplotlib.ticker import LogFormatterSciNotation, NullFormatter

    axes.set_xticks(popsizes[::2])
    margin = 0.08 * (popsizes[-1] - popsizes[0])
    axes.set_xlim(popsizes[0] - margin, popsizes[-1] + margin)
    low, high = axes.get_ylim()
    narrow = high / low < 10 * 1.5  # no decade inside: label some of the minor ticks
    axes.yaxis.set_minor_formatter(
        LogFormatterSciNotation(minor_thresholds=(2, 0.5)) if narrow else NullFormatter()
    )
    axes.tick_params(which="both", labelsize=6)


def _legend_below(figure: "Figure", styles: Iterable[dict[str, Any]]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **style) for style in styles]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False)


def computation_time(table: Table) -> "Figure":
    """Seconds of 1000 iterations, lambda = 20: mean and standard deviation."""
    figure = _new(3.3, 2.4)
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
    return figure


def representations(table: Table) -> "Figure":
    """What each covariance can follow, d = 80: evaluations over success rate."""
    functions = ("ellipsoid", "ktablet", "rosenbrock", "cigar")
    solvers = (protocol.R1_NES, protocol.SEP_CMA, protocol.VD_CMA, protocol.SAFE)
    figure = _new(7.2, 2.2)
    axes = figure.subplots()
    for k, solver in enumerate(solvers):
        for j, function in enumerate(functions):
            cells = [
                cell
                for (problem, who), cell in table.cells.items()
                if who == solver and problem == (function, 80, 18)
            ]
            place = j + (k - 1.5) * 0.18
            for cell in cells:
                if math.isfinite(cell.metric):
                    axes.bar(place, cell.metric, 0.16, color=STYLES[solver]["color"])
                else:
                    axes.text(place, 1.2e4, "none", rotation=90, ha="center", fontsize=6)
    if not (axes.patches or axes.texts):
        _say_not_run(axes)
        return figure
    axes.set_yscale("log")
    axes.set_ylim(1e4, None)
    axes.set_xticks(range(len(functions)), [TITLES[function] for function in functions])
    axes.set_ylabel("evaluations / success rate")
    _legend_below(figure, [STYLES[solver] for solver in solvers])
    return figure


def ablation(table: Table) -> "Figure":
    """The paper's method without some of its parts, over the whole of it."""
    labels = [textwrap.fill(solver[1], width=12) for solver in protocol.ABLATIONS]
    return _relative(table, protocol.ABLATIONS, labels)


def eta_B_sensitivity(table: Table) -> "Figure":
    """The paper's method with multiples of the fitted learning rate, over the fitted one."""
    labels = [rf"$\eta_B \times {scale:g}$" for scale in protocol.SCALES]
    return _relative(table, protocol.ETA_B, labels)


def _relative(table: Table, solvers: Sequence[Solver], labels: Sequence[str]) -> "Figure":
    """A panel for each dimension: the metric over that of the paper's method, by function."""
    figure = _new(7.2, 2.2)
    for axes, dim in zip(figure.subplots(1, 2, sharey=True), (80, 200), strict=True):
        for k, function in enumerate(protocol.FUNCTIONS):
            for j, solver in enumerate(solvers):
                ratios = table.ratios(function, dim, solver, protocol.PAPER).values()
                for ratio in ratios:
                    place = j + (k - 2) * 0.15
                    if math.isfinite(ratio):
                        axes.plot(place, ratio, "o", color=f"C{k}")
                    else:
                        axes.annotate("none", (place, 1), rotation=90, fontsize=5, color=f"C{k}")
        axes.axhline(1, color="black", linewidth=0.5)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_title(f"$d = {dim}$")
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter("{x:g}")
    figure.axes[0].set_ylabel("evaluations, relative")
    _legend_below(
        figure,
        [
            {"color": f"C{k}", "marker": "o", "linestyle": "", "label": TITLES[function]}
            for k, function in enumerate(protocol.FUNCTIONS)
        ],
    )
    return figure


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

    with matplotlib.rc_context(_RC):
        figure = FIGURES[name](table)
        figure.savefig(folder / f"{name}.png", dpi=200)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    (folder / f"{name}.svg").write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue()
