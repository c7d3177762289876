"""What all pictures share: colours that everybody can tell apart, sizes for a paper's column."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks

# M. Okabe, K. Ito: "Color universal design", 2008. In this order for lines beside each other.
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
VERMILION, PURPLE, SKY, BLACK = "#D55E00", "#CC79A7", "#56B4E9", "#000000"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("-", "--", "-.", ":")
PHASE_COLOURS = {1: SKY, 2: PURPLE, 3: ORANGE}

COLUMN = 3.3  # inches: a column of a paper in two columns
PAGE = 7.0


def make_figure(caller: str, width: float, height: float) -> Any:
    """An empty figure, drawn without a window; or how to install what draws it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(f"{caller} needs Matplotlib: pip install 'fmnes[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def check_width(width: float) -> None:
    """A width in inches that holds a legible panel."""
    if not (isinstance(width, int | float) and 2 <= width <= 100):
        raise ValueError(f"width: expected inches between 2 and 100, got {width!r}")


def check_fopt(fopt: float | None) -> None:
    """The value of a minimum, or None."""
    value = None if fopt is None else checks.real("fopt", fopt)
    if value is not None and not math.isfinite(value):
        raise ValueError(f"fopt: expected a finite number, got {fopt!r}")


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes of the index-th line: no two alike among the first 28."""
    dashes = DASHES[(index // len(COLOURS) + index) % len(DASHES)]
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": dashes, "linewidth": 1.2}


def dress(axes: Any, ylabel: str, *, log: bool = False, legend: int = 1) -> None:
    """Scale, label, grid and legend (in so many columns), in sizes for a paper's column."""
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
    """The x axis of every picture here, with numbers that do not run into each other."""
    axes.set_xlabel(text, fontsize=8)
    if axes.get_xscale() == "linear":
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)


def on_log_scale(values: NDArray[Any]) -> NDArray[np.float64]:
    """What a log scale can show; NaN, which leaves a gap, for all else."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values) & (values > 0), values, np.nan)
