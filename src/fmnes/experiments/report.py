"""The page: a summary, verdicts, figures, the tables behind them, and what has been run."""

import base64
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fmnes.benchmarking.lines import PathLike
from fmnes.benchmarking.statistics import typical
from fmnes.experiments import figures, protocol, tables
from fmnes.experiments.cases import Case, Table
from fmnes.experiments.claims import claims
from fmnes.experiments.figures import SIGNS
from fmnes.experiments.results import TrialResult, read_some
from fmnes.experiments.verdicts import RULE, Agreement, Claim, agreements, over_paper

_METRIC = "Smaller is better. "
_BARS = (
    "Error bars: 95 % bootstrap intervals over trials; an arrow means that the interval has no "
    "upper end. A fraction gives the trials that reached the target, where not all did; it is at "
    "the top edge where none did. "
)
_RED = (
    f"CR-FM-NES red ({SIGNS[protocol.PAPER]} the paper's variant, {SIGNS[protocol.SAFE]} the safe "
    "variant, the default of this library)"
)
_CAPTIONS = {
    "learning-rates": "Learning rate of the covariance matrix in CR-FM-NES (red) and FM-NES (cyan, "
    "movement phase), λ = 20, computed from the formulas.",
    "against-fm-nes": f"d = 80: {_RED}, FM-NES cyan. {_METRIC}{_BARS}",
    "computation-time": "Seconds for 1000 iterations, λ = 20: mean and standard deviation (error "
    "bars). FM-NES (cyan) uses NumPy and LAPACK, the authors' package (grey) NumPy; the safe "
    "variant of CR-FM-NES (red) is compiled. The last section names the processor.",
    "high-dimensional": f"d = 200, 600 and 1000: {_RED}, VD-CMA blue, Sep-CMA green. "
    f"{_METRIC}{_BARS}",
    "representations": "Five forms of the covariance matrix, d = 80, λ = 18: R1-NES (purple) has "
    "one direction v, Sep-CMA (green) a diagonal D, VD-CMA (blue) and CR-FM-NES (red) have both, "
    f"FM-NES (cyan) has a full matrix. {_METRIC}{_BARS}",
    "ablation": "The paper's method without some of its parts: evaluations divided by success "
    f"rate, relative to the whole method, at the smallest λ. {_BARS}",
    "eta-b": "The paper's method with multiples of its fitted learning rate: evaluations divided "
    f"by success rate, relative to the fitted rate, at the smallest λ. {_BARS}",
}
_FIGURES = {  # a heading, and the figures below it
    "Against FM-NES, d = 80": ("learning-rates", "against-fm-nes", "computation-time"),
    "Against VD-CMA and Sep-CMA, d = 200, 600 and 1000": ("high-dimensional",),
    "Which problems each covariance matrix can solve (sections III-A and IV-B)": (
        "representations",
    ),
    "What the parts contribute (section IV-C)": ("ablation",),
    "The fitted learning rate (section III-C)": ("eta-b",),
}
_TABLES = {  # the experiments and dimensions of the table below a figure
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
td { font-variant-numeric: tabular-nums; } .scroll { overflow-x: auto; }
figure { margin: 1.5rem 0; text-align: center; } figure img { max-width: 100%; }
figcaption { font-size: .88rem; text-align: left; color: #333; }
summary { cursor: pointer; font-size: .9rem; color: #444; }
ul { margin: .2rem 0; padding-left: 1.1rem; } li { font-size: .82rem; }
a { color: #1f4fd6; } nav li { font-size: .95rem; } h2, td span { scroll-margin-top: 1rem; }
.good { color: #1a7f37; } .bad { color: #b42318; } .open { color: #9a6700; }
.missing { color: #777; }
"""
_INTRODUCTION = """\
<p>This page repeats the experiments of M. Nomura, I. Ono: &ldquo;Fast moving natural evolution
strategy for high-dimensional problems&rdquo;, CEC 2022, and checks each claim of the paper. A trial
minimizes a function of d variables with a population of &lambda; candidates. It succeeds if it
reaches 10<sup>&minus;10</sup> within 5d&middot;10<sup>4</sup> evaluations. The metric is the mean
number of evaluations of the successful trials, divided by the success rate: less is better.</p>"""
_HOW_TO_READ = """\
<p>Each claim is translated into checks. A check compares ratios of the metric of two solvers at the
same &lambda;, or the geometric mean of these ratios (&ldquo;typically&rdquo;), with bounds. Each
ratio is followed by its 95 % bootstrap interval and by the successes of both solvers; &infin; means
that only the second solver reached the target. A check holds or fails if the intervals lie on one
side of the bounds, and is undecided otherwise. It also fails if the second solver, which the claim
praises, never reaches the target. Intervals of few trials are too narrow: those of two trials cover
about 67 %, of three 80 %, of five 88 %, of ten 92 %.</p>"""


class _Section(NamedTuple):
    """A heading of the page with what stands below it, in HTML."""

    heading: str
    content: str

    @property
    def name(self) -> str:
        """The address of the section within the page."""
        return re.sub(r"\W+", "-", self.heading.lower()).strip("-")

    def __str__(self) -> str:
        return f'<h2 id="{self.name}">{self.heading}</h2>\n{self.content}'


def write(path: PathLike, folder: PathLike) -> Path:
    """Write the page with its figures, and tables for other pages; return the path of the page."""
    rows = read_some(path)
    table = Table(rows.values())
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    found, pairs = claims(table), agreements(table)
    parts = {
        "claims.md": tables.claims(found),
        "witnesses.md": tables.agreement(pairs),
        "coverage.md": tables.coverage(rows),
    }
    page = out / "report.html"
    summary = _Section("Summary", _summary(len(rows), found, pairs))
    parts[page.name] = "\n".join(_page([summary, *_sections(rows, table, out, parts)]))
    for name, text in parts.items():
        (out / name).write_text(f"{text}\n", encoding="utf-8")
    return page


def _page(sections: Sequence[_Section]) -> Iterator[str]:
    """Yield the lines of the page: title, introduction, summary, contents, the other sections."""
    title = "The CR-FM-NES paper, run again"
    yield "<!doctype html><html lang=en><meta charset=utf-8>"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>"
    yield f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>\n{_INTRODUCTION}"
    summary, *others = sections
    yield str(summary)
    listed = tables.bullets(f'<a href="#{one.name}">{one.heading}</a>' for one in others)
    yield f"<nav><h2>Contents</h2>{listed}</nav>"
    yield from map(str, others)


def _summary(trials: int, found: Sequence[Claim], pairs: Iterable[Agreement]) -> str:
    """Return the verdicts in numbers, and a row for each claim."""
    verdicts = Counter(claim.verdict for claim in found).most_common()
    counts = ", ".join(f"{count} {tables.coloured(verdict)}" for verdict, count in verdicts)
    compared = Counter(one.verdict for one in pairs)
    agree, differ = compared["agree"], compared["differ"]
    return (
        f"<p>{len(found)} claims, checked with {trials} trials of our own: {counts}.</p>\n"
        f"{tables.summary(found)}\n"
        f"<p>{compared.total()} comparisons with other packages' implementations of the same "
        f"methods: {agree} agree, {differ} differ, {compared['undecided']} undecided.</p>"
    )


def _sections(
    rows: Mapping[protocol.Trial, TrialResult], table: Table, folder: Path, parts: Mapping[str, str]
) -> Iterator[_Section]:
    """Yield the sections below the summary."""
    yield _Section("The claims and the checks", _HOW_TO_READ + parts["claims.md"])
    for heading, names in _FIGURES.items():
        drawn = [_figure(table, name, figures.save(name, table, folder)) for name in names]
        yield _Section(heading, "\n".join(drawn))
    about = f"<p>{html.escape(' '.join(_older_H(table)))}</p>"
    yield _Section("The older H (appendix)", about + tables.cells(table, ["older-h"], [80]))
    constants = tables.cells(table, ["constants"])
    content = f"<p>{html.escape(RULE)}</p>{parts['witnesses.md']}\n"
    content += tables.details("Our methods with the constants of other packages", constants)
    yield _Section("Other implementations", content)
    yield _Section("What was run", parts["coverage.md"])
    versions = Counter(row.versions for row in rows.values()).most_common()
    listed = tables.bullets(f"{html.escape(text)}: {count} trials" for text, count in versions)
    yield _Section("Versions", listed)


def _older_H(table: Table) -> Iterator[str]:
    """Yield what is compared, and the result."""
    yield (
        "The natural gradient of v and D divides by a matrix H, which the appendix of the paper "
        "corrects. We run the paper's variant with the older H and with the corrected one, at "
        "d = 80 and the smallest λ."
    )
    ratios = over_paper(table, 80, protocol.OLDER_H)
    each = ", ".join(f"{function} {ratio}" for function, ratio in ratios.items())
    yield (
        f"Evaluations with the older H, relative to the corrected one: {each}; geometric mean "
        f"{typical(ratios.values())}."
        if ratios
        else "Not run."
    )
    yield "The page docs/appendix.md derives H, and shows where the two differ."


def _figure(table: Table, name: str, image: bytes) -> str:
    """Return a figure, which the page contains, with its caption and its numbers."""
    number = list(figures.FIGURES).index(name) + 1
    numbers = count = ""
    if name in _TABLES:
        numbers, count = tables.cells(table, *_TABLES[name]), _trials_shown(table, *_TABLES[name])
    elif name == "computation-time":
        numbers = tables.times(table)
    width = 1000 if name in _TABLES else 460
    data = base64.b64encode(image).decode("ascii")
    caption = f"<b>Figure {number}.</b> {_CAPTIONS[name]}{count}"
    return (
        f'<figure><img width={width} alt="Figure {number}" src="data:image/png;base64,{data}">\n'
        f"<figcaption>{caption}</figcaption></figure>\n"
        + (tables.details("The numbers", numbers) if numbers else "")
    )


def _trials_shown(table: Table, experiments: Sequence[str], dims: Sequence[int]) -> str:
    """Return how many trials there are behind a number, by dimension."""
    counts: dict[int, set[int]] = {dim: set() for dim in dims}
    for trial in protocol.trials_of(experiments[:1]):  # those of the figure
        cell = table.cells.get((Case(trial.function, trial.dim, trial.popsize), trial.solver))
        if cell is not None:
            counts[trial.dim].add(cell.trials)
    listed = [
        f"{' to '.join(map(str, sorted({min(found), max(found)})))} (d = {dim})"
        for dim, found in counts.items()
        if found
    ]
    return f"Trials of each: {', '.join(listed)}." if listed else ""
