"""The tables of the page, in HTML without blank lines, so that Markdown pages can include them."""

import html
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fmnes.benchmarking.statistics import Cell
from fmnes.experiments.cases import Case, Table
from fmnes.experiments.protocol import EXPERIMENTS, Trial, name_of, trials_of
from fmnes.experiments.verdicts import PAIRS, Agreement, Claim

_COLOURS = {
    **dict.fromkeys(("confirmed", "holds", "agree"), "good"),
    **dict.fromkeys(("contradicted", "fails", "differ"), "bad"),
    "not run": "missing",
}


def grid(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table of cells in HTML."""
    head = "".join(f"<th>{name}" for name in header)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in rows)
    return f"<div class=scroll><table><thead><tr>{head}<tbody>\n{body}\n</table></div>"


def bullets(items: Iterable[str]) -> str:
    """Return a list in HTML."""
    return "<ul>" + "".join(f"\n<li>{item}</li>" for item in items) + "\n</ul>"


def details(summary: str, content: str) -> str:
    """Return what a reader unfolds."""
    return f"<details><summary>{summary}</summary>\n{content}\n</details>"


def coloured(verdict: str) -> str:
    """Return a verdict or an outcome in its colour."""
    kind = _COLOURS.get(verdict, "open")
    return f"<b class={kind}>{verdict}</b>"


def claims(found: Iterable[Claim]) -> str:
    """Return the claims with their measured ratios, checks and verdicts."""
    rows = []
    for claim in found:
        checks = bullets(f"{html.escape(str(c))} {coloured(c.outcome)}" for c in claim.checks)
        content = "<br>".join(map(html.escape, claim.words))
        content += bullets(map(html.escape, claim.measured))
        content += details(f"checks that hold: {claim.held}", checks)
        section = f'<span id="{claim.name}">{claim.section}</span>'
        rows.append((section, content, coloured(claim.verdict)))
    return grid(["Section", "Claim, and what was measured", "Verdict"], rows)


def summary(found: Iterable[Claim]) -> str:
    """Return one row for each claim: how we read it, its verdict, and a link to the details."""
    rows = [
        (
            claim.section,
            f'<a href="#{claim.name}">{html.escape(claim.reading)}</a>',
            claim.held,
            coloured(claim.verdict),
        )
        for claim in found
    ]
    return grid(["Section", "Claim, as we read it", "Checks that hold", "Verdict"], rows)


def cells(table: Table, experiments: Sequence[str], dims: Sequence[int] = (80, 200)) -> str:
    """Return the metric by case (rows) and solver (columns)."""
    trials = [trial for trial in trials_of(experiments) if trial.dim in dims]
    cases = dict.fromkeys(Case(trial.function, trial.dim, trial.popsize) for trial in trials)
    beside = {solver for case, solver in table.cells if case in cases} & {*table.others}
    solvers = list(dict.fromkeys([*(trial.solver for trial in trials), *sorted(beside)]))
    rows = []
    for case in cases:
        found = [table.cells.get((case, solver)) for solver in solvers]
        if any(found):
            rows.append([case.dim, case.function, case.popsize, *map(_cell, found)])
    return grid(["d", "function", "&lambda;", *map(name_of, solvers)], rows)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    low, high = cell.interval
    return f"{cell} [{low:.3g}, {high:.3g}]" if math.isfinite(low) else str(cell)


def times(table: Table) -> str:
    """Return mean and standard deviation of the seconds."""
    rows = [
        [name_of(solver), dim, f"{np.mean(t):.3g}", f"{np.std(t):.2g}", len(t)]
        for (dim, solver), t in sorted(table.times.items())
    ]
    return grid(["solver", "d", "mean", "standard deviation", "trials"], rows)


def agreement(found: Sequence[Agreement]) -> str:
    """Return in how many cases two implementations agree, and each case."""
    rows = []
    for pair in PAIRS:
        verdicts = Counter(one.verdict for one in found if (one.ours, one.theirs) == pair)
        differing = [str(one.case) for one in found if one[1:3] == pair and one.verdict == "differ"]
        counts = [verdicts[verdict] for verdict in ("agree", "undecided", "differ")]
        rows.append([*map(name_of, pair), *counts, "; ".join(differing) or "none"])
    each = [
        [
            *map(name_of, (one.ours, one.theirs)),
            one.case,
            *map(_successes, one.cells),
            "" if math.isnan(one.compared.difference) else f"{one.compared.difference:+.1%}",
            *(f"{p:.2g}" for p in one.compared[1:]),
            coloured(one.verdict),
        ]
        for one in found
    ]
    names = ["ours", "theirs"]
    means = ["ours: mean, successes", "theirs: mean, successes", "difference"]
    summary = grid([*names, "cases that agree", "undecided", "differ", "those that differ"], rows)
    listed = grid([*names, "case", *means, "p", "p of successes", "verdict"], each)
    return f"{summary}\n{details('Each case', listed)}"


def _successes(cell: Cell) -> str:
    return f"{cell.mean:.4g}, {cell.share}" if cell.successes else f"none of {cell.trials}"


def coverage(rows: Mapping[Trial, Any]) -> str:
    """Return how many trials of each experiment have been run; in detail if it is not complete."""
    lines: list[tuple[object, ...]] = []
    for name, (_, trials) in EXPERIMENTS.items():
        dims = sorted({trial.dim for trial in trials})
        for group in [dims] if name == "time" else [[dim] for dim in dims]:
            wanted = [trial for trial in trials if trial.dim in group]
            done = [trial for trial in wanted if trial in rows]
            label = " to ".join(map(str, dict.fromkeys((group[0], group[-1]))))
            detail = _by_popsize(done) if len(done) < len(wanted) else "complete"
            lines.append((name, label, len(done), len(wanted), detail))
    others = Counter(trial.solver for trial in rows.keys() - {*trials_of(EXPERIMENTS)})
    lines += [
        ("beside", "", count, "", name_of(solver)) for solver, count in sorted(others.items())
    ]
    return grid(["experiment", "d", "trials run", "of the full protocol", "in detail"], lines)


def _by_popsize(trials: Iterable[Trial]) -> str:
    """Return the number of trials of each function at each population size."""
    functions: dict[str, Counter[int]] = {}
    for trial in trials:
        functions.setdefault(trial.function, Counter())[trial.popsize] += 1
    return "; ".join(
        f"{function}: " + ", ".join(f"{count} at λ = {size}" for size, count in counts.items())
        for function, counts in functions.items()
    )
