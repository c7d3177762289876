"""docs/leaderboard.md, its picture, and an HTML page with everything, from the stored trials."""

import html
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from leaderboard import aims, pictures, rows, tables
from leaderboard.comparison import DEFAULT, Comparison, comparisons, label
from leaderboard.rows import Stored
from leaderboard.suites import SUITES
from pages import with_tables

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/leaderboard.md"
PICTURE = ROOT / "docs/pictures/leaderboard.png"
FRONT = ("bbob-largescale, d = 40, 300 d", "real, d <=", "bbob-mixint, d = 20")  # how titles begin

VALUES = "Median of the best value, and quartiles:"
FEW = 5  # a comparison of fewer problems does not count in the sentences


def write(folder: Path, out: Path) -> Path:
    """Write the page, its picture and the HTML page; return the path of the latter."""
    stored = {suite.name: rows.all_rows(suite, folder) for suite in SUITES.values()}
    found = all_comparisons(stored)
    page = with_tables(PAGE.read_text(encoding="utf-8"), parts(found, stored))
    PAGE.write_text(page, encoding="utf-8")
    if in_front := front(found):
        pictures.front(in_front).savefig(PICTURE, dpi=150)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(as_html(found, stored), encoding="utf-8")
    return out


def all_comparisons(stored: Stored) -> list[Comparison]:
    """Return the comparisons of all suites."""
    return [one for name, rows in stored.items() for one in comparisons(SUITES[name], rows)]


def front(found: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons of the picture: the first one of each title."""
    first = (next((one for one in found if one.title.startswith(title)), None) for title in FRONT)
    return [one for one in first if one is not None]


def parts(found: Sequence[Comparison], stored: Stored) -> dict[str, str]:
    """Return what the page has between its marks, by name."""
    filled = {
        "sentences": sentences(found, stored),
        "summary": tables.summary(found),
        "aims": aims.aims(found, stored),
        "losses": tables.losses(found),
        "published": tables.beside_published(stored["rotated"]),
    }
    for name in SUITES:
        of_suite = [one for one in found if one.suite.name == name]
        texts = []
        for one in of_suite:
            texts += [f"### {one.title}", tables.standing(one), tables.left_out(one)]
            if not one.suite.targets:
                texts += [VALUES, tables.values(one)]
        filled[name] = "\n\n".join(filter(None, texts)) or "No trials are stored yet."
    return filled


def sentences(found: Sequence[Comparison], stored: Stored) -> str:
    """Return three sentences: what was compared, how often ours is first, and where it is not."""
    solvers = {row["solver"] for rows in stored.values() for row in rows}
    trials = sum(map(len, stored.values()))
    counted = [one for one in found if one.rivals and len(one.problems) >= FEW]
    counted = [one for one in counted if one.reference == DEFAULT]
    behind = [one for one in counted if _better(one)]
    first = f"{len(counted) - len(behind)} of {len(counted)} comparisons"
    return (
        f"{len(solvers)} solvers ran {trials} trials, on the same problems with the same budgets. "
        f"{label(DEFAULT)}, our default, has the best mean rank of all packages in {first}. "
        f"Another package is better or as good in {len(behind)}{_listed(behind)}."
    )


def _listed(found: Sequence[Comparison]) -> str:
    """Return the suites with their numbers of variables, and who is first there."""
    variables: dict[str, list[str]] = defaultdict(list)
    for one in found:
        of_suite = variables[f"{one.rivals[0]} on {one.suite.name}"]
        if one.variables not in of_suite:
            of_suite.append(one.variables)
    texts = [f"{name}, d {', '.join(of).replace(', =', ',')}" for name, of in variables.items()]
    return f": {'; '.join(texts)}" if texts else ""


def _better(comparison: Comparison) -> list[str]:
    """Return the solvers of other packages whose mean rank is as good as ours, or better."""
    ranks = comparison.ranks
    ours = ranks[comparison.reference].mean
    return [name for name in comparison.rivals if ranks[name].mean <= ours]


# === The page for a browser ===

HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Leaderboard</title><style>'
HEAD += "body{font:14px sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
HEAD += "img{max-width:100%}div{overflow-x:auto}"
HEAD += "td,th{padding:2px 8px;border-bottom:1px solid #ddd;text-align:left}</style>"


def as_html(found: Sequence[Comparison], stored: Stored) -> str:
    """Return a page that needs no other file: pictures and all tables."""
    texts = ["<h1>Leaderboard</h1>", f"<p>{html.escape(sentences(found, stored))}</p>"]
    links = [f'<li><a href="#{i}">{html.escape(one.title)}</a>' for i, one in enumerate(found)]
    texts.append(f"<ul>{''.join(links)}</ul>")
    texts += ["<h2>All suites</h2>", _html_table(tables.summary(found))]
    texts += ["<h2>Where other packages are better</h2>", _html_table(tables.losses(found))]
    for i, one in enumerate(found):
        texts.append(f'<h2 id="{i}">{html.escape(one.title)}</h2>')
        texts.append(pictures.as_html(pictures.details(one), one.title))
        texts += [_html_table(tables.standing(one)), f"<p>{_plain(tables.left_out(one))}</p>"]
        if not one.suite.targets:
            texts += [f"<h3>{VALUES}</h3>", _html_table(tables.values(one))]
        texts.append("<h3>Expected running time to the last target reached by anyone</h3>")
        texts.append(_html_table(tables.running_times(one)))
    return HEAD + "\n".join(texts)


def _plain(markdown: str) -> str:
    return html.escape(markdown.replace("**", "").replace("`", ""))


def _html_table(markdown: str) -> str:
    """Return a table of `pages.table` as HTML."""
    head, _, *lines = (line[2:-2].split(" | ") for line in _plain(markdown).splitlines())
    titles = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in lines)
    return f"<div><table><tr>{titles}</tr>{body}</table></div>"
