"""docs/leaderboard.md, its picture, and an HTML page with everything, from the stored trials."""

import html
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pages import table, with_tables

from leaderboard import pictures, rows, statistics
from leaderboard.comparison import DEFAULT, OWN, Comparison, comparisons, label
from leaderboard.rotated import PUBLISHED, place
from leaderboard.statistics import Run
from leaderboard.suites import SUITES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/leaderboard.md"
PICTURE = ROOT / "docs/pictures/leaderboard.png"
FRONT = ("bbob-largescale, d = 40, 300 d", "real", "bbob-mixint, d = 20")  # how titles begin

FEW = 5  # a comparison of fewer problems does not count in the sentences


def write(folder: Path, out: Path) -> Path:
    """Write the page, its picture and the HTML page; return the path of the latter."""
    found = all_comparisons(folder)
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables(found)), encoding="utf-8")
    if in_front := front(found):
        pictures.front(in_front).savefig(PICTURE, dpi=150)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(as_html(found), encoding="utf-8")
    return out


def all_comparisons(folder: Path = rows.FOLDER) -> list[Comparison]:
    """Return the comparisons of all suites."""
    return [
        comparison
        for suite in SUITES.values()
        for comparison in comparisons(suite, rows.all_rows(suite, folder))
    ]


def front(found: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons of the picture: the first one of each title."""
    first = (next((one for one in found if one.title.startswith(title)), None) for title in FRONT)
    return [one for one in first if one is not None]


def tables(found: Sequence[Comparison]) -> dict[str, str]:
    """Return what the page has between its marks, by name."""
    filled = {"sentences": sentences(found), "summary": summary(found), "losses": losses(found)}
    for name in SUITES:
        of_suite = [one for one in found if one.suite.name == name]
        parts = [f"### {one.title}\n\n{standing(one)}{_left_out(one)}" for one in of_suite]
        if name == "real":
            parts += [values(one) for one in of_suite]
        if name == "rotated":
            parts += [beside_published(one) for one in of_suite if "2000" in one.title]
        filled[name] = "\n\n".join(parts) if parts else "No trials are stored yet."
    return filled


# === Tables ===


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
    return table(["solver", "mean rank", "targets reached", "area", "solved"], lines)


def _left_out(comparison: Comparison) -> str:
    names = comparison.left_out + [DEFAULT] * (DEFAULT not in comparison.solvers)
    if not names:
        return ""
    listed = ", ".join(map(_name, dict.fromkeys(names)))
    return f"\n\nNot in this table, because they did not run all of these trials: {listed}."


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
        for problem in one.problems:
            ended = {name: statistics.final(of, one.suite.targets) for name, of in problem.items()}
            for other in sorted(one.rivals, key=ended.__getitem__)[:1]:
                if statistics.behind(ended[one.reference], ended[other]):
                    lost[other].append(problem[other][0].problem)
        for other, names in sorted(lost.items(), key=lambda item: -len(item[1])):
            count = f"{len(names)} of {len(one.problems)}"
            lines.append([one.title, _name(one.reference), other, count, ", ".join(names)])
    titles = ["suite, variables, budget", "ours", "who is first", "problems", "which"]
    return table(titles, lines) if lines else "None."


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
    return f"Median of the best value, and quartiles:\n\n{table(titles, lines)}"


def beside_published(comparison: Comparison) -> str:
    """Return our running times to 1e-10 beside the best of the 77 published optimizers."""
    lines = []
    for (problem, _), by_solver in sorted(statistics.grouped(comparison.runs).items()):
        first, value, evaluations = PUBLISHED[problem][0]
        best = f"{evaluations:.2g}" if value <= 1e-10 else f"{value:.3g} at {evaluations:.2g}"
        cells = [_reached(by_solver[name]) for name in comparison.solvers]
        lines.append([problem, f"{first}: {best}", *cells])
    titles = ["function", "best published median", *map(_name, comparison.solvers)]
    return (
        "Evaluations to 1e-10 (expected running time), or the median value at the end. In brackets "
        "the place that a solver would have among the 77 published ones:\n\n" + table(titles, lines)
    )


def _reached(runs: Sequence[Run]) -> str:
    """Return the running time or the median value, and the place among the published ones."""
    time = statistics.running_time(runs)
    if math.isfinite(time):
        text = f"{time:.2e}"
    elif any(run.best is None for run in runs):
        text = "not known"
    else:
        text = f"{statistics.medians(_bests(runs))[0]:.3g} at {runs[0].budget:.2g}"
    return f"{text} ({place(runs)})"


def _bests(runs: Sequence[Run]) -> list[float]:
    return [run.best for run in runs if run.best is not None]


def sentences(found: Sequence[Comparison]) -> str:
    """Return three sentences: what was compared, where ours is first, and where it is not."""
    found = [one for one in found if one.rivals and len(one.problems) >= FEW]
    ahead = [one for one in found if one.reference == DEFAULT and not _better(one)]
    behind = [one for one in found if one.reference == DEFAULT and _better(one)]
    solvers = {name for one in found for name in one.solvers}
    trials = sum(len(one.runs) for one in found)
    return (
        f"{len(solvers)} solvers ran {trials} trials, on the same problems with the same budgets. "
        f"{label(DEFAULT)}, our default, has the best mean rank of all packages in {len(ahead)} of "
        f"{len(ahead + behind)} comparisons{_listed(ahead)}. "
        f"Another package is better or as good in {len(behind)}{_listed(behind, name_first=True)}."
    )


def _listed(found: Sequence[Comparison], *, name_first: bool = False) -> str:
    """Return the suites with their numbers of variables, and who is first there."""
    dims: dict[str, list[str]] = defaultdict(list)
    for one in found:
        who = f" ({one.rivals[0]})" if name_first else ""
        of_suite = dims[one.suite.name + who]
        if one.suite.targets:
            of_suite += {f"{run.dim}" for run in one.runs} - {*of_suite}
    texts = [f"{name}{', d = ' if of else ''}{', '.join(of)}" for name, of in dims.items()]
    return f": {'; '.join(texts)}" if texts else ""


def _better(comparison: Comparison) -> list[str]:
    """Return the solvers of other packages whose mean rank is as good as ours, or better."""
    ranks = comparison.ranks
    ours = ranks[comparison.reference].mean
    return [name for name in comparison.rivals if ranks[name].mean <= ours]


def _name(name: str) -> str:
    return f"**{label(name)}**" if name in OWN else name


def _rank(rank: statistics.Rank) -> str:
    return f"{rank.mean:.1f} [{rank.low:.1f}, {rank.high:.1f}]"


# === The page for a browser ===

HEAD = '<!doctype html><meta charset="utf-8"><title>Leaderboard</title><style>'
HEAD += "body{font:14px sans-serif;max-width:70em;margin:2em auto}img{max-width:100%}"
HEAD += "td,th{padding:2px 8px;border-bottom:1px solid #ddd;text-align:left}</style>"


def as_html(found: Sequence[Comparison]) -> str:
    """Return a page that needs no other file: pictures and all tables."""
    parts = ["<h1>Leaderboard</h1>", f"<p>{html.escape(sentences(found))}</p>"]
    parts.append(_html_table(summary(found)))
    for one in found:
        parts.append(f"<h2>{html.escape(one.title)}</h2>")
        parts.append(pictures.as_html(pictures.details(one)))
        parts.append(_html_table(standing(one)))
        parts.append("<h3>Expected running time to the last target reached by anyone</h3>")
        parts.append(_html_table(running_times(one)))
    return HEAD + "\n".join(parts)


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


def _html_table(markdown: str) -> str:
    """Return a table of `pages.table` as HTML."""
    plain = html.escape(markdown.replace("**", "").replace("`", ""))
    head, _, *lines = (line.strip("| ").split(" | ") for line in plain.splitlines())
    titles = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in lines)
    return f"<table><tr>{titles}</tr>{body}</table>"
