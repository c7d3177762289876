"""The page: verdicts, figures, the tables behind them, and what has been run."""

import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fmnes.benchmarking.log import PathLike
from fmnes.benchmarking.statistics import typical
from fmnes.experiments import figures, protocol, tables
from fmnes.experiments.cases import Case, Table
from fmnes.experiments.claims import claims
from fmnes.experiments.figures import SIGNS
from fmnes.experiments.results import Row, read_some
from fmnes.experiments.verdicts import RULE, agreements, over_paper

_METRIC = "Smaller is better. "
_BARS = (
    "Error bars: 95 % intervals by the bootstrap over trials; an arrow: no upper end. A fraction "
    "gives the trials that reached the target, if not all did; it is at the top edge if none did. "
)
_RED = (
    f"CR-FM-NES red ({SIGNS[protocol.PAPER]} the paper's variant, {SIGNS[protocol.SAFE]} the safe "
    "variant, the default of this library)"
)
_CAPTIONS = {
    "learning-rates": "Learning rate of the covariance matrix in CR-FM-NES (red) and FM-NES (cyan, "
    "movement phase), λ = 20, computed from the formulas.",
    "against-fm-nes": f"d = 80: {_RED}, FM-NES cyan. {_METRIC}{_BARS}",
    "computation-time": "Seconds of 1000 iterations, λ = 20: mean and standard deviation (error "
    "bars). FM-NES (cyan) is NumPy and LAPACK here, the authors' package (grey) NumPy, the safe "
    "variant (red) compiled. The versions below name the processor.",
    "high-dimensional": f"d = 200, 600 and 1000: {_RED}, VD-CMA blue, Sep-CMA green. "
    f"{_METRIC}{_BARS}",
    "representations": "What each covariance can follow, d = 80, λ = 18: R1-NES (purple) has no "
    "diagonal, Sep-CMA (green) no direction, VD-CMA (blue) and CR-FM-NES (red) have both, FM-NES "
    f"(cyan) has a full matrix. {_METRIC}{_BARS}",
    "ablation": "The paper's method without some of its parts, relative to the whole method: "
    f"evaluations over success rate, at the smallest λ. {_BARS}",
    "eta-b": "The paper's method with multiples of the fitted learning rate, relative to the "
    f"fitted one: evaluations over success rate, at the smallest λ. {_BARS}",
}
_SECTIONS = {  # a heading, and the figures below it
    "Against FM-NES, d = 80": ("learning-rates", "against-fm-nes", "computation-time"),
    "Against VD-CMA and Sep-CMA, d = 200, 600 and 1000": ("high-dimensional",),
    "What each covariance can follow (sections III-A and IV-B)": ("representations",),
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
figure { margin: 1.5rem 0; text-align: center; } figure svg { width: 46%; height: auto; }
figure.wide svg { width: 100%; }
figcaption { font-size: .88rem; text-align: left; color: #333; }
summary { cursor: pointer; font-size: .9rem; color: #444; }
ul { margin: .2rem 0; padding-left: 1.1rem; } li { font-size: .82rem; }
.good { color: #1a7f37; } .bad { color: #b42318; } .open { color: #9a6700; }
.missing { color: #777; }
"""
_INTRODUCTION = """\
<p>M. Nomura, I. Ono: &ldquo;Fast moving natural evolution strategy for high-dimensional
problems&rdquo;, CEC 2022. Its protocol: functions of Table I, target 10<sup>&minus;10</sup>, budget
5d&middot;10<sup>4</sup> evaluations, five population sizes each. The metric is the mean number of
evaluations of the successful trials over the success rate.</p>"""
_HOW_TO_READ = """\
<p>Ratios are between metrics at the same &lambda;, with 95 % intervals by the bootstrap, followed
by successes over trials of both sides. &infin;: only the second solver reached the target. A check
compares every ratio, or their geometric mean (&ldquo;typically&rdquo;), with its bounds. It is
decided if the intervals lie on one side of the bounds, and fails if the second solver, which the
claim praises, reaches the target in no trial. Intervals of few trials are too narrow: those of two
trials cover about 67 %, of three 80 %, of five 88 %, of ten 92 %.</p>"""


def write(path: PathLike, folder: PathLike) -> Path:
    """Write the page with its figures, and tables for other pages; return the path of the page."""
    rows = read_some(path)
    table = Table(rows.values())
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    parts = {
        "claims.md": tables.claims(claims(table)),
        "witnesses.md": tables.agreement(agreements(table)),
        "coverage.md": tables.coverage(rows),
    }
    page = out / "report.html"
    parts[page.name] = "\n".join(_page(rows, table, out, parts))
    for name, text in parts.items():
        (out / name).write_text(f"{text}\n", encoding="utf-8")
    return page


def _page(
    rows: Mapping[protocol.Trial, Row], table: Table, folder: Path, parts: Mapping[str, str]
) -> Iterator[str]:
    title = "The CR-FM-NES paper, run again"
    yield "<!doctype html><html lang=en><meta charset=utf-8>"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>"
    yield f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>\n{_INTRODUCTION}"
    yield f"<h2>What the paper claims, and what {len(rows)} trials say</h2>"
    yield parts["claims.md"] + _HOW_TO_READ
    for heading, names in _SECTIONS.items():
        yield f"<h2>{heading}</h2>"
        for name in names:
            yield from _figure(table, name, figures.save(name, table, folder))
    yield f"<h2>The appendix: the older H</h2><p>{html.escape(' '.join(_older_H(table)))}</p>"
    yield tables.cells(table, ["older-h"], [80])
    yield f"<h2>Other implementations</h2><p>{html.escape(RULE)}</p>{parts['witnesses.md']}"
    yield tables.details("With the constants of packages", tables.cells(table, ["constants"]))
    yield f"<h2>What was run</h2>{parts['coverage.md']}<h2>Versions</h2>"
    versions = Counter(row.versions for row in rows.values()).most_common()
    yield tables.bullets(f"{html.escape(text)}: {count} trials" for text, count in versions)


def _older_H(table: Table) -> Iterator[str]:
    """Yield what is compared, and the result."""
    yield (
        "The natural gradient of v and D divides by a matrix H, which the appendix of the paper "
        "corrects. The paper's variant is run with the older H and with the right one, at d = 80 "
        "and the smallest λ."
    )
    ratios = over_paper(table, 80, protocol.OLDER_H)
    each = ", ".join(f"{function} {ratio}" for function, ratio in ratios.items())
    yield (
        f"Evaluations with the older H over those with the right one: {each}; geometric mean "
        f"{typical(ratios.values())}."
        if ratios
        else "Not run."
    )
    yield "The page docs/appendix.md shows which H is right, and where the two differ."


def _figure(table: Table, name: str, svg: str) -> Iterator[str]:
    number = list(figures.FIGURES).index(name) + 1
    wide = " class=wide" if name in _TABLES else ""
    count = _trials_shown(table, *_TABLES[name]) if name in _TABLES else ""
    yield f"<figure{wide}>{svg[svg.index('<svg') :]}"
    yield f"<figcaption><b>Figure {number}.</b> {_CAPTIONS[name]}{count}</figcaption></figure>"
    if name in _TABLES:
        yield tables.details("The numbers", tables.cells(table, *_TABLES[name]))
    elif name == "computation-time":
        yield tables.details("The numbers", tables.times(table))


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
