"""What the figures share: points with error bars, fractions beside them, and the style."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fmnes._plot._style import make_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
new_figure = partial(make_figure, "fmnes paper")  # width and height in inches
_APART = 0.09  # distance of labels at the same place, relative to the height of the axes


class Point(NamedTuple):
    """A number with its interval; infinite if no trial reached the target."""

    x: float
    value: float
    low: float  # NaN if there is one trial
    high: float
    label: str  # a fraction, or empty


class Series(NamedTuple):
    """Points of one style; the style of matplotlib includes the label for the legend."""

    style: dict[str, Any]
    points: list[Point]


def draw(axes: Any, series: Sequence[Series], *, near: float = 0.0) -> None:
    """Draw series on a logarithmic axis; ``near`` is that of `_draw_labels`."""
    if not any(one.points for one in series):
        axes.text(0.5, 0.5, "not run", ha="center", va="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
        return
    axes.set_yscale("log")
    axes.margins(0.12, 0.2)
    axes.tick_params(which="both", labelsize=6)
    for style, points in series:
        solved = [point for point in points if math.isfinite(point.value)]
        lengths = [
            [p.value - p.low for p in solved],
            [p.high - p.value if math.isfinite(p.high) else 0.0 for p in solved],
        ]
        x, y = [point.x for point in solved], [point.value for point in solved]
        axes.errorbar(x, y, lengths, elinewidth=0.6, capsize=1.5, **style)
        for point in solved:
            if math.isinf(point.high):
                _draw_arrow(axes, point, style["color"])
    _draw_labels(axes, series, near)


def _draw_arrow(axes: Any, point: Point, color: str) -> None:
    """Draw an arrow to the top edge: the error bar has no upper end."""
    line = {"color": color, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
    axes.annotate(
        "",
        (point.x, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(point.x, point.value),
        textcoords="data",
        arrowprops={"arrowstyle": "->", **line},
    )


def _draw_labels(axes: Any, series: Sequence[Series], near: float) -> None:
    """Write each label beside its point, or at the top edge if the point is infinite.

    Labels whose points are at most ``near`` apart are placed below each other.
    """
    from matplotlib.patheffects import withStroke

    low, high = axes.get_ylim()
    left, right = axes.get_xlim()
    labelled = [
        (1.0 if math.isinf(p.value) else math.log(p.value / low, high / low), p, one.style["color"])
        for one in series
        for p in one.points
        if p.label
    ]
    placed: list[tuple[float, float]] = []
    for y, point, color in sorted(labelled, key=lambda one: (-one[0], one[1].x)):
        for other, height in placed:  # from the top down
            if abs(other - point.x) <= near and abs(height - y) < _APART:
                y = height - _APART
        placed.append((point.x, y))
        at_right = point.x > left + 0.8 * (right - left)  # no room to the right of the point
        axes.annotate(
            point.label,
            (point.x, y),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-2.5 if at_right else 2.5, -1),
            textcoords="offset points",
            ha="right" if at_right else "left",
            va="top",
            fontsize=5,
            color=color,
            path_effects=[withStroke(linewidth=1.2, foreground="white")],  # over lines
            zorder=5,
        )


def draw_legend(figure: "Figure", styles: Sequence[dict[str, Any]]) -> None:
    """Draw one legend below the whole figure."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **style) for style in styles]
    look = {"ncols": len(lines), "frameon": False, "fontsize": 6, "columnspacing": 1.0}
    figure.legend(handles=lines, loc="outside lower center", **look)
