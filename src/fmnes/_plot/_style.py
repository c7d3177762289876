"""What all figures share: sizes for papers, and colours for colour-blind readers too."""

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# M. Okabe, K. Ito: "Color universal design", 2008. COLOURS has the order for lines in one panel.
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
VERMILION, PURPLE, SKY, BLACK = "#D55E00", "#CC79A7", "#56B4E9", "#000000"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("-", "--", "-.", ":")
PHASE_COLOURS = {1: SKY, 2: PURPLE, 3: ORANGE}

COLUMN = 3.3  # inches: a column of a paper in two columns
PAGE = 7.0


def read_width(width: float) -> float:
    """Return a width in inches; more than 100 must be another unit."""
    if checks.finite("width", width, least=2) > 100:
        raise ValueError(f"width: expected at most 100 inches, got {width!r}")
    return width


def make_figure(caller: str, width: float, height: float) -> "Figure":
    """Return an empty figure, which needs no window; sizes in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(f"{caller} needs Matplotlib: pip install 'fmnes[plot]'") from None
    _teach_notebook(Figure)
    return Figure(figsize=(width, height), layout="constrained")


def read_figure(figure: Any) -> "Figure":
    """Return the figure of a caller to draw into."""
    if not (hasattr(figure, "subplots") and hasattr(figure, "add_subplot")):
        raise TypeError(f"figure: expected a matplotlib.figure.Figure, got {figure!r:.60}")
    drawn_into: Figure = figure
    return drawn_into


def _teach_notebook(figure: "type[Figure]") -> None:
    """In a notebook, make a figure at the end of a cell appear, as if pyplot had been imported."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or figure in shell.display_formatter.formatters["image/png"]:
        return
    from IPython.core.pylabtools import select_figure_formats

    select_figure_formats(shell, {"png"})


def line_style(index: int) -> dict[str, Any]:
    """Return colour and dashes of the index-th line; the first 28 lines all differ."""
    dashes = DASHES[(index // len(COLOURS) + index) % len(DASHES)]
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": dashes, "linewidth": 1.2}


def dress(axes: Any, ylabel: str, *, log: bool = False, legend: int = 1) -> None:
    """Set scale, label, grid and a legend of ``legend`` columns, in sizes for a paper's column."""
    if log:
        axes.set_yscale("log")
    axes.set_ylabel(ylabel, fontsize=8)
    axes.tick_params(labelsize=7, which="both")
    axes.xaxis.get_offset_text().set_fontsize(7)
    axes.yaxis.get_offset_text().set_fontsize(7)
    axes.grid(alpha=0.3, linewidth=0.5)
    if legend:
        look = {"framealpha": 0.7, "borderpad": 0.3, "columnspacing": 0.8, "handletextpad": 0.5}
        handle = 1.8 if legend == 1 else 0.8
        axes.legend(fontsize=6.5, loc="best", ncols=legend, handlelength=handle, **look)


def label_evaluations(axes: Any, text: str = "evaluations") -> None:
    """Label the x axis, with tick labels short enough not to overlap."""
    axes.set_xlabel(text, fontsize=8)
    if axes.get_xscale() == "linear":
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)


def finite(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the values that are finite, and NaN, which leaves a gap, for the others."""
    return np.where(np.isfinite(values), values, np.nan)


def on_log_scale(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the values that a log scale can show, and NaN, which leaves a gap, for the others."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values) & (values > 0), values, np.nan)
