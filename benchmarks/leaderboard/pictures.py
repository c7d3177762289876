"""The pictures: shares of targets over evaluations, performance profiles, and ranks."""

import base64
import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fmnes._plot import _style as style
from leaderboard import statistics
from leaderboard.comparison import OWN, Comparison, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RED, BLUE = style.VERMILION, style.BLUE
OURS = {"auto": RED, "cr-fm-nes": BLUE}  # in every picture, with thick lines
OTHERS = (style.GREEN, style.PURPLE, style.ORANGE, style.SKY, style.BLACK, "#999999")
MOST = 8  # lines in one panel


def front(comparisons: Sequence[Comparison]) -> "Figure":
    """Return the picture of the page: shares of targets for the suites that say most."""
    figure = style.make_figure("leaderboard", 9.0, 3.4)
    panels = figure.subplots(1, len(comparisons), squeeze=False)[0]
    for axes, comparison in zip(panels, comparisons, strict=True):
        shares(axes, comparison)
        axes.set_title(_title(comparison), fontsize=8)
    return figure


def details(comparison: Comparison) -> "Figure":
    """Return shares of targets, the performance profile, and ranks of one comparison."""
    figure = style.make_figure("leaderboard", 10.0, 3.6)
    left, middle, right = figure.subplots(1, 3)
    shares(left, comparison)
    profile(middle, comparison)
    ranks(right, comparison)
    figure.suptitle(_title(comparison), fontsize=9)
    return figure


def as_html(figure: "Figure", title: str) -> str:
    """Return an image that is part of the page."""
    file = io.BytesIO()
    figure.savefig(file, dpi=130, format="png")
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'


def shares(axes: Any, comparison: Comparison) -> None:
    """Draw the share of targets reached over evaluations per variable."""
    most = max(run.budget / run.dim for run in comparison.runs)
    evaluations = np.geomspace(0.5, most, 200)
    for name in shown(comparison):
        reached = statistics.distribution(comparison.of(name), evaluations)
        axes.semilogx(evaluations, reached, label=label(name), **look(name, comparison))
    style.dress(axes, "share of targets reached")
    axes.set_xlabel("evaluations / d", fontsize=8)
    axes.set(ylim=(0, 1), xlim=(0.5, most))


def profile(axes: Any, comparison: Comparison) -> None:
    """Draw on how many pairs of a problem and a target a solver is within a factor of the best."""
    factors = np.geomspace(1, 100, 100)
    problems, names = comparison.problems, shown(comparison)
    targets = range(0, len(comparison.runs[0].hits), 10)
    times = {
        name: [statistics.running_time(problem[name], k) for problem in problems for k in targets]
        for name in names
    }
    solved = np.isfinite(np.array(list(times.values()))).any(axis=0)
    times = {name: np.array(of)[solved] for name, of in times.items()}
    for name, share in statistics.profile(times, factors).items():
        axes.semilogx(factors, share, **look(name, comparison))
    style.dress(axes, "share of problems and targets", legend=0)
    axes.set_xlabel("running time / best running time", fontsize=8)
    axes.set(ylim=(0, 1), xlim=(1, 100))


def ranks(axes: Any, comparison: Comparison) -> None:
    """Draw mean ranks with their intervals."""
    names = list(comparison.ranks)
    for place, (name, rank) in enumerate(comparison.ranks.items()):
        colour = OURS.get(name, BLUE if name in OWN else "#555555")
        axes.plot([rank.low, rank.high], [place, place], color=colour, linewidth=1.5)
        axes.plot(rank.mean, place, "o", color=colour, markersize=4)
    axes.set_yticks(range(len(names)), map(label, names), fontsize=7)
    axes.invert_yaxis()
    style.dress(axes, "", legend=0)
    axes.set_xlabel("mean rank, 95 % interval", fontsize=8)


def shown(comparison: Comparison) -> list[str]:
    """Return the solvers of a panel: two of ours, and the best of other packages."""
    ours = [name for name in comparison.solvers if name in OURS]
    others = [name for name in comparison.solvers if name not in OWN]
    return ours + others[: MOST - len(ours)]


def look(name: str, comparison: Comparison) -> dict[str, Any]:
    """Return colour and dashes of a solver; ours are thick."""
    if name in OURS:
        return {"color": OURS[name], "linewidth": 2.2}
    index = [one for one in shown(comparison) if one not in OURS].index(name)
    dashes = style.DASHES[1 + index % 3]
    return {"color": OTHERS[index % len(OTHERS)], "linestyle": dashes, "linewidth": 1.2}


def _title(comparison: Comparison) -> str:
    problems, solver = comparison.problems, comparison.reference
    trials = len(comparison.of(solver))
    return f"{comparison.title}: {len(problems)} problems, {trials} trials"
