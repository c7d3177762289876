"""One page of it all: verdicts, figures, the tables behind them, and what was run and what not."""

import html
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fmnes.experiments import coverage, figures, protocol, results, tables
from fmnes.experiments.agreement import Agreement, agreements
from fmnes.experiments.checks import at_the_default
from fmnes.experiments.claims import Claim, claims
from fmnes.experiments.statistics import Problem, Table, typical
from fmnes.experiments.styles import SIGNS

_BARS = "Error bars: 95 % intervals by the bootstrap over trials; an arrow: without upper end. "
_FRACTIONS = (
    "A fraction: so many of the trials reached the target (all of them, where there is none). "
    "Where none did it stands at the top edge, below others that are there already. "
)
_LINES = (
    "CR-FM-NES red (filled circles: the paper's variant, hollow squares: the safe variant, the "
    "default of this library)"
)
_SIGNS = (
    f"Before a red fraction: {SIGNS[protocol.PAPER]} paper's, {SIGNS[protocol.SAFE]} safe variant. "
)
_CAPTIONS = {
    "learning-rates": "Learning rate of the covariance matrix in CR-FM-NES (red) and FM-NES (cyan, "
    "movement phase), λ = 20. Computed from the formulas.",
    "against-fm-nes": f"d = 80: {_LINES}, FM-NES cyan. The smaller, the better. "
    f"{_BARS}{_FRACTIONS}{_SIGNS}",
    "computation-time": "Seconds of 1000 iterations, λ = 20: mean (line) and standard deviation "
    "(shadow) of the trials counted below. FM-NES (cyan) is NumPy and LAPACK here, the authors' "
    "package (grey) NumPy, the safe variant (red) compiled. The processor is named with the "
    "versions, below.",
    "high-dimensional": f"d = 200, 600 and 1000: {_LINES}, VD-CMA blue, Sep-CMA green. "
    f"The smaller, the better. {_BARS}{_FRACTIONS}{_SIGNS}",
    "representations": "What each covariance can follow, d = 80, λ = 18: R1-NES (purple) has no "
    "diagonal, Sep-CMA (green) no direction, VD-CMA (blue) and CR-FM-NES (red; hatched: safe "
    "variant) have both, FM-NES (cyan) has a full matrix. The smaller, the better. "
    f"{_BARS}{_FRACTIONS}",
    "ablation": "The paper's method without some of its parts, relative to the whole of it: "
    f"evaluations over success rate, at the smallest λ. {_BARS}{_FRACTIONS}",
    "eta-b": "The paper's method with multiples of the fitted learning rate, relative to the "
    f"fitted one: evaluations over success rate, at the smallest λ. {_BARS}{_FRACTIONS}",
}
_SECTIONS = {  # a heading, and the figures below it
    "Against FM-NES, d = 80": ("learning-rates", "against-fm-nes", "computation-time"),
    "Against VD-CMA and Sep-CMA, d = 200, 600 and 1000": ("high-dimensional",),
    "What each covariance can follow (sections III-A and IV-B)": ("representations",),
    "What the parts contribute (section IV-C)": ("ablation",),
    "The fitted learning rate (section III-C)": ("eta-b",),
}
_TABLES = {  # the experiments whose cells stand below a figure, at some dimensions
    "against-fm-nes": (("fm-nes", "witnesses"), (80,)),
    "high-dimensional": (("high-dimensional", "witnesses"), (200, 600, 1000)),
    "representations": (("representations",), (80,)),
    "ablation": (("ablation",), (80, 200)),
    "eta-b": (("eta-b",), (80, 200)),
}
_STYLE = """
body { font: 16px/1.5 Georgia, 'Times New Roman', serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: .82rem; margin: 1rem 0; width: 100%; }
thead { border-top: 1.5px solid; border-bottom: 1px solid; } tbody { border-bottom: 1.5px solid; }
th, td { text-align: left; padding: .15rem .6rem .15rem 0; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.5rem 0; text-align: center; } figure svg { width: 46%; height: auto; }
figure.wide svg { width: 100%; }
figcaption { font-size: .88rem; text-align: left; color: #333; }
summary { cursor: pointer; font-size: .9rem; color: #444; }
.verdict { font-weight: bold; white-space: nowrap; } .confirmed { color: #1a7f37; }
.contradicted { color: #b42318; } .part, .undecided { color: #9a6700; } .missing { color: #777; }
.differs { color: #b42318; } .scroll { overflow-x: auto; }
ul { margin: .2rem 0; padding-left: 1.1rem; } li { font-size: .82rem; } .no { color: #b42318; }
"""
_KINDS = {  # of verdicts; all others are so in part, or as far as decided
    "confirmed": "confirmed",
    "contradicted": "contradicted",
    "not run": "missing",
}
_MARKS = {"holds": "", "fails": " class=no", "undecided": " class=undecided"}


def write(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """The page, its figures and parts for other pages, from a file of rows; returns its path."""
    rows = results.read_some(path)
    table = Table(rows.values())
    judged, compared = claims(table), agreements(table)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    drawn = {name: figures.save(name, table, out) for name in figures.FIGURES}
    for name, lines in {
        "claims.md": _claims_in_markdown(judged),
        "witnesses.md": tables.witnesses_in_markdown(compared),
        "coverage.md": (f"- {sentence}" for sentence in coverage.sentences(rows)),
        "report.html": _page(rows, table, drawn, judged, compared),
    }.items():
        (out / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return out / "report.html"


def _page(
    rows: Mapping[protocol.Trial, results.Row],
    table: Table,
    drawn: Mapping[str, str],
    judged: Sequence[Claim],
    compared: Sequence[Agreement],
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
        f"error bars are 95 % intervals by the bootstrap over trials. {len(rows)} trials.</p>"
    )
    yield "<h2>What the paper claims, and what these trials say</h2>"
    yield from _claims(judged)
    numbers = {name: number for number, name in enumerate(drawn, start=1)}
    for heading, names in _SECTIONS.items():
        yield f"<h2>{heading}</h2>"
        for name in names:
            yield from _figure(table, name, numbers[name], drawn[name])
    yield "<h2>The appendix: the older H</h2>"
    yield f"<p>{html.escape(' '.join(_older_H(table)))}</p>"
    yield from tables.cells(table, ["older-h"], [80])
    yield "<h2>Independent witnesses</h2>"
    yield from tables.witnesses(compared)
    constants = tables.cells(table, ["constants"])
    yield from tables.details("The constants of packages: the numbers", constants)
    yield "<h2>What was run, and what was not</h2><ul>"
    yield from (f"<li>{html.escape(sentence)}</li>" for sentence in coverage.sentences(rows))
    yield "</ul>"
    yield from tables.header(["experiment", "d", "trials run", "of the full protocol"])
    for name, dims, ran, wanted in coverage.counts(rows):
        yield f"<tr><td>{name}<td>{dims}<td class=number>{ran}<td class=number>{wanted}"
    yield "</tbody></table></div>"
    yield "<h2>With what</h2><ul>"
    for versions, count in Counter(row.versions for row in rows.values()).most_common():
        yield f"<li>{html.escape(versions)}: {count} trials</li>"
    yield "</ul></html>"


def _older_H(table: Table) -> Iterator[str]:
    """What is compared, and how it came out."""
    yield (
        "The natural gradient of v and D divides by a matrix H, which the appendix of the paper "
        "corrects. The paper's variant is run with the H of before and with the right one, at "
        "d = 80 and the smallest λ."
    )
    ratios = {
        function: ratio
        for function in protocol.FUNCTIONS
        for ratio in at_the_default(table, function, 80, protocol.OLDER_H).values()
    }
    if ratios:
        each = ", ".join(f"{function} {ratio}" for function, ratio in ratios.items())
        yield (
            f"The evaluations with the older one over those with the right one: {each}; typically "
            f"(geometric mean) {typical(ratios.values())}."
        )
    else:
        yield "Not run."
    yield "Which H is right, and where the two differ at all, is on the page docs/appendix.md."


def _figure(table: Table, name: str, number: int, svg: str) -> Iterator[str]:
    wide = " class=wide" if name in _TABLES else ""  # all but the two of a column's width
    yield f"<figure{wide}>{svg[svg.index('<svg') :]}"
    count = _trials_shown(table, *_TABLES[name]) if name in _TABLES else ""
    yield f"<figcaption><b>Figure {number}.</b> {_CAPTIONS[name]}{count}</figcaption></figure>"
    if name in _TABLES:
        yield from tables.details("The numbers", tables.cells(table, *_TABLES[name]))
    elif name == "computation-time":
        yield from tables.details("The numbers", tables.times(table))


def _trials_shown(table: Table, experiments: Sequence[str], dims: Sequence[int]) -> str:
    """How many trials there are behind a number, by dimension."""
    said = []
    for dim in dims:
        wanted = {
            (Problem(trial.function, dim, trial.popsize), trial.solver)
            for trial in protocol.trials_of(experiments[:1], protocol.full)  # those of the figure
            if trial.dim == dim
        }
        counts = [table.cells[key].trials for key in wanted & table.cells.keys()]
        if counts:
            low, high = min(counts), max(counts)
            said.append(f"{low if low == high else f'{low} to {high}'} (d = {dim})")
    return f"Trials of each: {', '.join(said)}." if said else ""


def _claims(found: Iterable[Claim]) -> Iterator[str]:
    yield from tables.header(["Section", "Claim, and what was measured", "Verdict"])
    for claim in found:
        kind = _KINDS.get(claim.verdict, "part")
        yield f"<tr><td>{claim.where}<td>{'<br>'.join(map(html.escape, claim.words))}<ul>"
        yield from (f"<li>{html.escape(measured)}</li>" for measured in claim.measured)
        yield "</ul>"
        if claim.checks:
            yield from tables.details(f"checks that hold: {claim.held}", _checks(claim))
        yield f"<td class='verdict {kind}'>{claim.verdict}"
    yield "</tbody></table></div>"
    yield (
        "<p>Ratios are between metrics at the same &lambda;, with 95 % intervals by the bootstrap; "
        "behind them successes over trials of either side. &infin;: only the second one reached "
        "the target. A check asks its threshold of every ratio, or of their geometric mean "
        "(&ldquo;typically&rdquo;); it is decided where the intervals lie on one side of it, and "
        "fails where the second one, which the claim praises, reaches the target in no trial. "
        "Intervals of few trials are too narrow: those of two cover about 67 %, of three 80 %, of "
        "five 88 %, of ten 92 %.</p>"
    )


def _checks(claim: Claim) -> Iterator[str]:
    yield "<ul>"
    for check in claim.checks:
        mark = _MARKS.get(check.outcome, " class=missing")
        yield f"<li{mark}>{html.escape(str(check))} <b>{check.outcome}</b></li>"
    yield "</ul>"


def _claims_in_markdown(found: Iterable[Claim]) -> Iterator[str]:
    yield "| section | claim | measured | verdict | checks that hold |"
    yield "|---|---|---|---|---|"
    for claim in found:
        words, measured = "<br>".join(claim.words), "<br>".join(claim.measured)
        yield f"| {claim.where} | {words} | {measured} | **{claim.verdict}** | {claim.held} |"
