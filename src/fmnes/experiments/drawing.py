"""What the figures share: points with intervals, fractions beside them, ticks of log axes."""

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_APART = 0.09  # labels at the same place, as a part of the height of the axes
_MANTISSAS = (  # of tick labels, the rounder ones first
    (1,),
    (1, 3),
    (1, 2, 5),
    (1, 1.5, 2, 3, 4, 6, 8),
    tuple(n / 2 for n in range(2, 20)),
    tuple(n / 10 for n in range(10, 100)),
)


def new_figure(width: float, height: float) -> "Figure":
    """In inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


class Point(NamedTuple):
    """A number with its interval; infinite where no trial reached the target."""

    x: float
    value: float
    low: float  # not numbers where there is one trial
    high: float
    label: str  # a fraction, or nothing
    color: str


def draw_intervals(axes: Any, points: Iterable[Point]) -> None:
    """Error bars; one without upper end is an arrow to the top edge. Once the limits are set."""
    for x, value, low, high, _, color in points:
        if not math.isfinite(value) or math.isnan(low):
            continue
        line = {"color": color, "linewidth": 0.6}
        if math.isfinite(high):
            bars = [[value - low], [high - value]]
            axes.errorbar(x, value, bars, fmt="none", ecolor=color, elinewidth=0.6, capsize=1.5)
            continue
        axes.plot([x, x], [low, value], **line)
        axes.annotate(
            "",
            (x, 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(x, value),
            textcoords="data",
            arrowprops={"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0, **line},
        )


def draw_labels(axes: Any, points: Iterable[Point], near: float = 0.0) -> None:
    """Each label beside its point, at the top edge if that is infinite.

    Of labels whose x is no further apart than ``near`` each goes below the one before.
    """
    from matplotlib.patheffects import withStroke

    left, right = axes.get_xlim()
    placed: list[tuple[float, float]] = []
    labelled = [point for point in points if point.label]
    for point in sorted(labelled, key=lambda point: (-_height(axes, point), point.x)):
        y = _height(axes, point)
        for other, height in placed:  # from the top down
            if abs(other - point.x) <= near and abs(height - y) < _APART:
                y = height - _APART
        placed.append((point.x, y))
        beyond = point.x > left + 0.8 * (right - left)  # there is no room on the right
        axes.annotate(
            point.label,
            (point.x, y),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-2.5 if beyond else 2.5, -1),
            textcoords="offset points",
            ha="right" if beyond else "left",
            va="top",
            fontsize=5,
            color=point.color,
            path_effects=[withStroke(linewidth=1.2, foreground="white")],  # over lines
            zorder=5,
        )


def _height(axes: Any, point: Point) -> float:
    """Of a point in its axes, from 0 to 1."""
    if not math.isfinite(point.value):
        return 1.0
    low, high = axes.get_ylim()
    return math.log(point.value / low) / math.log(high / low)


def set_log_limits(axes: Any, points: Iterable[Point]) -> None:
    """Room for all finite ends of intervals, and above them for labels of what has none."""
    points = list(points)
    ends = [end for p in points for end in (p.value, p.low, p.high) if 0 < end < math.inf]
    low, high = (min(ends), max(ends)) if ends else (1.0, 1.0)
    margin = max((high / low) ** 0.08, 1.05)
    unbounded = any(math.isinf(p.value) or math.isinf(p.high) for p in points)
    room = margin ** (4 if unbounded else 1)
    axes.set_yscale("log")
    labels = any(p.label for p in points)
    axes.set_ylim(low / margin ** (2 if labels else 1), high * room)


def set_log_ticks(axes: Any) -> None:
    """Between two and six tick labels, whatever the range."""
    low, high = axes.get_ylim()
    for mantissas in _MANTISSAS:
        ticks = list(_ticks(low, high, mantissas))
        if len(ticks) >= 2:
            break
    axes.set_yticks(ticks[:: math.ceil(len(ticks) / 6)])
    axes.yaxis.set_major_formatter(lambda tick, _: _scientific(tick))
    axes.yaxis.set_minor_formatter(lambda tick, _: "")
    axes.tick_params(axis="y", which="both", labelsize=6)


def _ticks(low: float, high: float, mantissas: Iterable[float]) -> Iterator[float]:
    for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for mantissa in mantissas:
            tick = mantissa * 10.0**exponent
            if low <= tick <= high:
                yield tick


def _scientific(tick: float) -> str:
    """Small numbers as they are, others as 2·10⁴."""
    if 0.01 <= tick < 1000:
        return f"{tick:g}"
    exponent = math.floor(math.log10(tick) + 1e-9)
    mantissa = f"{tick / 10.0**exponent:.2g}"
    power = f"10^{{{exponent}}}"
    return f"${power}$" if mantissa == "1" else rf"${mantissa}\cdot{power}$"


def draw_legend_below(figure: "Figure", styles: Iterable[dict[str, Any]]) -> None:
    """One line for the whole figure."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **style) for style in styles]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False)
