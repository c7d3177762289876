"""How functions and solvers look in the figures."""

from typing import Any

from fmnes.experiments import protocol
from fmnes.experiments.names import name_of
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Table

TITLES = {
    "sphere": "Sphere",
    "ktablet": "k-Tablet",
    "ellipsoid": "Ellipsoid",
    "rosenbrock": "Rosenbrock",
    "rastrigin": "Rastrigin",
    "cigar": "rotated cigar",
    "twoaxes": "rotated, 40 long axes",
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
SIGNS = {protocol.PAPER: "●", protocol.SAFE: "□"}  # as their markers; the colour is the same
RC: Any = {
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


def style_of(solver: Solver, table: Table) -> dict[str, Any]:
    """The paper's, or shades of grey for solvers that it does not know."""
    if solver in STYLES:
        return STYLES[solver]
    shade = 0.6 * table.others.index(solver) / len(table.others)
    return {"color": str(shade), "marker": "*", "linestyle": ":", "label": name_of(solver)}


def bar_style_of(solver: Solver) -> dict[str, Any]:
    """The colour of its line; the safe variant is hatched, as its line is broken."""
    color = STYLES[solver]["color"]
    if solver == protocol.SAFE:
        return {"facecolor": "white", "edgecolor": color, "hatch": "/////", "linewidth": 0.6}
    return {"facecolor": color, "edgecolor": color, "linewidth": 0.6}


def patch_of(solver: Solver) -> Any:
    """Its bar, in a legend."""
    from matplotlib.patches import Patch

    return Patch(label=STYLES[solver]["label"], **bar_style_of(solver))
