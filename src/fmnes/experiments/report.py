"""One page of it all: verdicts, figures, the tables behind them, and what was run and what not."""

import html
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fmnes.experiments import figures, protocol, results
from fmnes.experiments.claims import Agreement, Claim, agreements, claims, name_of
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Cell, Problem, Table

_CAPTIONS = {
    "learning-rates": "Learning rate of the covariance matrix in CR-FM-NES and FM-NES (movement "
    "phase), &lambda; = 20. Computed from the formulas.",
    "against-fm-nes": "CR-FM-NES and FM-NES at d = 80. The smaller, the better.",
    "computation-time": "Seconds of 1000 iterations, &lambda; = 20: mean (line) and standard "
    "deviation (shadow) of 30 trials. FM-NES here is NumPy and LAPACK, the authors' package NumPy, "
    "the safe variant compiled.",
    "high-dimensional": "CR-FM-NES, VD-CMA and Sep-CMA at d = 200, 600 and 1000.",
    "representations": "What each covariance can follow, d = 80, &lambda; = 18. "
    "&ldquo;none&rdquo;: no trial reached the target within the budget.",
    "ablation": "The paper's method without some of its parts, relative to the whole of it.",
    "eta-b": "Multiples of the fitted learning rate, relative to the fitted one.",
}
_TABLES = {  # which experiments' cells stand below a figure
    "against-fm-nes": ("fm-nes",),
    "high-dimensional": ("high-dimensional", "witnesses"),
    "representations": ("representations",),
    "ablation": ("ablation",),
    "eta-b": ("eta-b", "older-h"),
}
_STYLE = """
body { font: 16px/1.5 Georgia, 'Times New Roman', serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: .82rem; margin: 1rem 0; width: 100%; }
thead { border-top: 1.5px solid; border-bottom: 1px solid; } tbody { border-bottom: 1.5px solid; }
th, td { text-align: left; padding: .15rem .6rem .15rem 0; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.5rem 0; text-align: center; } figure svg { max-width: 100%; height: auto; }
figure.wide svg { width: 100%; }
figcaption { font-size: .88rem; text-align: left; color: #333; }
summary { cursor: pointer; font-size: .9rem; color: #444; }
.verdict { font-weight: bold; white-space: nowrap; } .confirmed { color: #1a7f37; }
.contradicted { color: #b42318; } .part { color: #9a6700; } .missing { color: #777; }
ul { margin: .2rem 0; padding-left: 1.1rem; } li { font-size: .82rem; } .no { color: #b42318; }
"""
_CLASSES = {
    "confirmed": "confirmed",
    "contradicted": "contradicted",
    "confirmed in part": "part",
    "not run": "missing",
}


def write(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """The page, its figures and verdicts, from a file of rows; returns the path of the page."""
    rows = results.read(path)
    if not rows:
        raise ValueError(f"{path}: expected at least one trial, got none")
    table = Table(rows.values())
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    drawn = {name: figures.save(name, table, out) for name in figures.FIGURES}
    (out / "claims.md").write_text("\n".join(_markdown(claims(table))), encoding="utf-8")
    page = out / "report.html"
    page.write_text("\n".join(_page(rows, table, drawn)), encoding="utf-8")
    return page


def _page(
    rows: dict[protocol.Trial, results.Row], table: Table, drawn: dict[str, str]
) -> Iterator[str]:
    yield "<!doctype html><html lang=en><meta charset=utf-8>"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>"
    yield f"<title>The CR-FM-NES paper, run again</title><style>{_STYLE}</style>"
    yield "<h1>The CR-FM-NES paper, run again</h1>"
    yield (
        "<p>M. Nomura, I. Ono: &ldquo;Fast moving natural evolution strategy for high-dimensional "
        "problems&rdquo;, CEC 2022. Its protocol: functions of Table I, target 10<sup>&minus;10"
        "</sup>, budget 5d&middot;10<sup>4</sup> evaluations, five population sizes each. The "
        "metric is the mean number of evaluations of the successful trials over the success rate; "
        "error bars are 95 % intervals by the bootstrap over trials. Beside a point that not every "
        f"trial reached stands how many did. {len(rows)} trials.</p>"
    )
    yield "<h2>What the paper claims, and what these trials say</h2>"
    yield from _claims(claims(table))
    for number, (name, svg) in enumerate(drawn.items(), start=1):
        wide = " class=wide" if name in _TABLES else ""  # all but the two of a column's width
        yield f"<figure{wide}>{svg[svg.index('<svg') :]}"
        yield f"<figcaption><b>Figure {number}.</b> {_CAPTIONS[name]}</figcaption></figure>"
        if name in _TABLES:
            yield "<details><summary>The numbers</summary>"
            yield from _cells(table, _TABLES[name])
            yield "</details>"
    yield "<h2>Independent witnesses</h2>"
    yield from _agreements(agreements(table))
    yield "<h2>What was run, and what was not</h2>"
    yield from _coverage(rows)
    yield "<h2>With what</h2><ul>"
    for versions, count in Counter(row.versions for row in rows.values()).most_common():
        yield f"<li>{html.escape(versions)}: {count} trials</li>"
    yield "</ul></html>"


def _claims(found: Iterable[Claim]) -> Iterator[str]:
    yield "<table><thead><tr><th>Section<th>Claim and numbers<th>Verdict</thead><tbody>"
    for claim in found:
        kind = _CLASSES[claim.verdict]
        yield f"<tr><td>{claim.where}<td>{html.escape(claim.words)}<details><summary>"
        yield f"checks that hold: {claim.held}</summary><ul>"
        for check in claim.checks:
            mark = {True: "", False: " class=no", None: " class=missing"}[check.holds]
            yield f"<li{mark}>{html.escape(check.numbers)}</li>"
        yield f"</ul></details><td class='verdict {kind}'>{claim.verdict}"
    yield "</tbody></table>"
    yield (
        "<p>Ratios are between metrics at the same &lambda;. The verdicts are computed from the "
        "rows; what &ldquo;several times&rdquo; or &ldquo;competitive&rdquo; have to mean stands "
        "in <code>fmnes.experiments.claims</code>.</p>"
    )


def _markdown(found: Iterable[Claim]) -> Iterator[str]:
    """The verdicts as a table for pages in Markdown."""
    yield "| section | claim | verdict | checks that hold |"
    yield "|---|---|---|---|"
    for claim in found:
        yield f"| {claim.where} | {claim.words} | **{claim.verdict}** | {claim.held} |"
    yield ""


def _cells(table: Table, experiments: Sequence[str]) -> Iterator[str]:
    """Problems down, solvers across."""
    trials = protocol.trials_of(experiments, protocol.full)
    solvers = [*dict.fromkeys(trial.solver for trial in trials), *table.others]
    problems = sorted({(t.dim, _order(t.function), t.popsize, t.function) for t in trials})
    yield from _header(["d", "function", "&lambda;", *map(name_of, solvers)])
    for dim, _, popsize, function in problems:
        problem = Problem(function, dim, popsize)
        found = [table.cells.get((problem, who)) for who in solvers]
        if any(cell is not None for cell in found):
            yield f"<tr><td>{dim}<td>{function}<td>{popsize}"
            yield from (f"<td class=number>{_cell(cell)}" for cell in found)
    yield "</tbody></table>"


def _order(function: str) -> int:
    """Table I's functions first, in its order."""
    order = protocol.FUNCTIONS
    return order.index(function) if function in order else len(order)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    interval = f" [{cell.low:.3g}, {cell.high:.3g}]" if math.isfinite(cell.low) else ""
    return f"{cell}{interval}"


def _header(names: Iterable[str]) -> Iterator[str]:
    yield "<table><thead><tr>" + "".join(f"<th>{name}" for name in names) + "</thead><tbody>"


def _agreements(found: Sequence[Agreement]) -> Iterator[str]:
    if not found:
        yield "<p>Not run.</p>"
        return
    pairs: dict[tuple[Solver, Solver], list[Agreement]] = {}
    for one in found:
        pairs.setdefault((one.ours, one.theirs), []).append(one)
    yield (
        "<p>Two texts of one method should need the same evaluations: the means of the successes "
        "less than 5 % apart, or not significantly so (two-sided permutation test at 1 %).</p>"
    )
    yield from _header(["ours", "theirs", "problems that agree", "those that do not"])
    for (ours, theirs), ones in pairs.items():
        differ = [one for one in ones if not one.holds]
        yield f"<tr><td>{name_of(ours)}<td>{name_of(theirs)}"
        yield f"<td class=number>{len(ones) - len(differ)} of {len(ones)}<td>"
        yield "; ".join(f"{one.problem}: {one.difference:+.1%}, p = {one.p:.2g}" for one in differ)
    yield "</tbody></table>"


def _coverage(rows: dict[protocol.Trial, results.Row]) -> Iterator[str]:
    """For each experiment and dimension how many trials of the full protocol there are."""
    yield from _header(["experiment", "d", "trials run", "of the full protocol", "not run"])
    for name in protocol.EXPERIMENTS:
        trials = protocol.trials_of([name], protocol.full)
        for dim in sorted({trial.dim for trial in trials}):
            wanted = [trial for trial in trials if trial.dim == dim]
            missing = [trial for trial in wanted if trial not in rows]
            yield f"<tr><td>{name}<td>{dim}<td class=number>{len(wanted) - len(missing)}"
            yield f"<td class=number>{len(wanted)}<td>{_summary(missing)}"
    yield "</tbody></table>"


def _summary(missing: Sequence[protocol.Trial]) -> str:
    by = Counter((trial.function, name_of(trial.solver)) for trial in missing)
    if len(by) > 6:
        return f"{len(missing)} trials of {len({function for function, _ in by})} functions"
    return "; ".join(f"{function}, {who}: {count}" for (function, who), count in by.items())
