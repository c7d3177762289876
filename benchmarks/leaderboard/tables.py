"""The tables of the page, in Markdown."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from leaderboard import statistics
from leaderboard.comparison import DEFAULT, OWN, Comparison, label
from leaderboard.opponents import OPPONENTS
from leaderboard.rotated import FUNCTIONS, PUBLISHED, PUBLISHED_DIM, SOLVED, TARGETS, place
from leaderboard.rows import Row
from leaderboard.statistics import Run
from pages import table


def standing(comparison: Comparison) -> str:
    """Return the solvers of a comparison, the best first."""
    lines = []
    for name, rank in comparison.ranks.items():
        runs = comparison.of(name)
        solved = sum(math.isfinite(run.hits[-1]) for run in runs)
        lines.append(
            [
                _name(name),
                _rank(rank),
                f"{100 * statistics.share(runs):.0f} %",
                f"{statistics.area(runs):.3f}",
                f"{solved} of {len(runs)}",
            ]
        )
    titles = ["solver", "mean rank", "targets reached", "area", "solved"]
    return table(titles, lines)


def left_out(comparison: Comparison) -> str:
    """Return a sentence about the solvers that are not in the comparison, or ""."""
    names = comparison.left_out + [DEFAULT] * (DEFAULT not in comparison.solvers)
    if not names:
        return ""
    listed = ", ".join(map(_name, dict.fromkeys(names)))
    return f"Not in this table, because they did not run all of these trials: {listed}."


def summary(found: Sequence[Comparison]) -> str:
    """Return where our default method, or another one of ours, stands in each comparison."""
    lines = []
    for one in found:
        ranks, order, others = one.ranks, list(one.ranks), one.rivals
        trials = len(one.of(one.reference))
        lines.append(
            [
                one.title,
                f"{len(one.problems)} ({trials} trials)",
                f"{order.index(one.reference) + 1} of {len(order)}",
                f"{_name(one.reference)}: {_rank(ranks[one.reference])}",
                f"{_name(others[0])}: {_rank(ranks[others[0]])}" if others else "none ran",
            ]
        )
    titles = ["suite, variables, budget", "problems", "our place", "our mean rank", "best other"]
    return table(titles, lines)


def losses(found: Sequence[Comparison]) -> str:
    """Return on which problems another package ends more than two per cent ahead of ours."""
    lines = []
    for one in found:
        lost: dict[str, list[str]] = defaultdict(list)
        for problem, ended in one.ended.items():
            for other in sorted(one.rivals, key=ended.__getitem__)[:1]:
                if statistics.behind(ended[one.reference], ended[other]):
                    lost[other].append(problem)
        for other, names in sorted(lost.items(), key=lambda item: -len(item[1])):
            count = f"{len(names)} of {len(one.problems)}"
            lines.append([one.title, _name(one.reference), other, count, ", ".join(names)])
    titles = ["suite, variables, budget", "ours", "who is first", "problems", "which"]
    return table(titles, lines)


def values(comparison: Comparison) -> str:
    """Return the median of the best values and their quartiles, problem by problem."""
    groups = statistics.grouped(comparison.runs)
    lines = []
    for (problem, _), by_solver in groups.items():
        found = {name: statistics.medians(_bests(runs)) for name, runs in by_solver.items()}
        least = min(middle for middle, _, _ in found.values())
        cells = []
        for name in comparison.solvers:
            middle, low, high = found[name]
            text = f"{middle:.4g} [{low:.4g}, {high:.4g}]"
            cells.append(f"**{text}**" if middle == least else text)
        budget = by_solver[comparison.reference][0].budget
        lines.append([problem, budget, *cells])
    titles = ["problem", "evaluations", *map(_name, comparison.solvers)]
    return table(titles, lines)


def beside_published(rows: Iterable[Row]) -> str:
    """Return the longest trials of 2000 variables beside the best of 77 published optimizers."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["dim"] == PUBLISHED_DIM:
            found[row["problem"]][row["solver"]].append(row)
    solvers = [name for name in OPPONENTS if any(name in by_solver for by_solver in found.values())]
    lines = []
    for problem in filter(found.__contains__, FUNCTIONS):
        first, value, evaluations = PUBLISHED[problem][0]
        best = f"{evaluations:.2g}" if value <= SOLVED else f"{value:.3g} at {evaluations:.2g}"
        cells = [_reached(found[problem][name]) for name in solvers]
        lines.append([problem, f"{first}: {best}", *cells])
    titles = ["function", "best published median", *map(_name, solvers)]
    return table(titles, lines)


def longest(rows: Sequence[Row]) -> list[Run]:
    """Return the runs of the rows with the largest budget, of one problem and solver."""
    most = max((row["budget"] for row in rows), default=0)
    chosen = [row for row in rows if row["budget"] == most]
    return statistics.read(chosen, TARGETS, lambda problem, dim: most)


def _reached(rows: Sequence[Row]) -> str:
    """Return the running time or the median value, and the place among the published ones."""
    runs = longest(rows)
    if not runs:
        return ""
    time = statistics.running_time(runs)
    if math.isfinite(time):
        return f"{time:.2e} ({place(runs)})"
    return f"{statistics.medians(_bests(runs))[0]:.3g} at {runs[0].budget:.2g} ({place(runs)})"


def _bests(runs: Sequence[Run]) -> list[float]:
    return [run.best for run in runs if run.best is not None]


def running_times(comparison: Comparison) -> str:
    """Return the expected running time of each solver to the hardest target that was reached."""
    lines = []
    for (problem, dim), by_solver in statistics.grouped(comparison.runs).items():
        every = [run for runs in by_solver.values() for run in runs]
        reached = max((int(np.isfinite(run.hits).sum()) for run in every), default=0)
        if reached == 0:
            continue
        times = [statistics.running_time(by_solver[n], reached - 1) for n in comparison.solvers]
        cells = [f"{time:.3g}" if math.isfinite(time) else "-" for time in times]
        lines.append([f"{problem}, d = {dim}", reached, *cells])
    return table(["problem", "targets", *map(label, comparison.solvers)], lines)


def _name(name: str) -> str:
    return f"**{label(name)}**" if name in OWN else name


def _rank(rank: statistics.Rank) -> str:
    return f"{rank.mean:.1f} [{rank.low:.1f}, {rank.high:.1f}]"
