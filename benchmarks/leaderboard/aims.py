"""What the default method aims for on the leaderboard, and where the stored trials stand."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from leaderboard import statistics
from leaderboard.comparison import DEFAULT, Comparison
from leaderboard.rotated import FUNCTIONS, PUBLISHED_DIM, SOLVED, place
from leaderboard.rows import Row, Stored
from leaderboard.statistics import Run
from leaderboard.tables import longest
from pages import table

LARGE = 40  # variables from which on the default aims to be first on bbob-largescale


def aims(found: Sequence[Comparison], stored: Stored) -> str:
    """Return the aims, and how far they are reached."""
    compared = [one for one in found if one.rivals and one.reference == DEFAULT]
    rows = [
        row for row in stored["rotated"] if row["dim"] == PUBLISHED_DIM and row["solver"] == DEFAULT
    ]
    lines = [
        [f"first on bbob-largescale with {LARGE} variables and more", _large(compared)],
        ["first on 12 of the 20 rotated functions, d = 2000", _rotated(compared)],
        ["mean rank below 9.1 of the 77 published optimizers, d = 2000", _places(rows)],
        ["discus, d = 2000: 1e-10 in fewer than 3.1e6 evaluations", _longest("discus", rows)],
        ["ellipsoid, d = 2000: below 567 with 5e6 evaluations", _longest("ellipsoid", rows)],
        ["first or within 2 % of the first on every real problem", _real(compared)],
    ]
    return table(["aim", "stored trials"], lines)


def _of(found: Iterable[Comparison], suite: str) -> list[Comparison]:
    return [one for one in found if one.suite.name == suite]


def _large(found: Sequence[Comparison]) -> str:
    large = [one for one in _of(found, "bbob-largescale") if one.runs[0].dim >= LARGE]
    first = [one for one in large if next(iter(one.ranks)) == DEFAULT]
    return f"first in {len(first)} of {len(large)} comparisons"


def _rotated(found: Sequence[Comparison]) -> str:
    """Return on how many functions no other package ends with a better median."""
    texts = []
    for one in _of(found, "rotated"):
        if one.runs[0].dim == PUBLISHED_DIM:
            first = _first(one, lambda ours, best: ours <= best)
            factor = one.runs[0].budget / one.runs[0].dim
            texts.append(f"{len(first)} of {len(one.ended)} with {factor:.0f} d evaluations")
    return "; ".join(texts) if texts else "no trials"


def _first(
    one: Comparison, ahead: Callable[[tuple[float, float], tuple[float, float]], bool]
) -> list[str]:
    return [
        problem
        for problem, ended in one.ended.items()
        if ahead(ended[DEFAULT], min(ended[name] for name in one.rivals))
    ]


def _real(found: Sequence[Comparison]) -> str:
    texts = []
    for one in _of(found, "real"):
        first = _first(one, lambda ours, best: not statistics.behind(ours, best))
        others = ", ".join(name for name in one.ended if name not in first)
        texts.append(f"{len(first)} of {len(one.ended)}" + (f" (not {others})" if others else ""))
    return "; ".join(texts) if texts else "no trials"


def _by_problem(rows: Iterable[Row]) -> dict[str, list[Run]]:
    rows = list(rows)
    found = {name: longest([row for row in rows if row["problem"] == name]) for name in FUNCTIONS}
    return {name: runs for name, runs in found.items() if runs}


def _places(rows: Iterable[Row]) -> str:
    kinds = Counter(place(runs) for runs in _by_problem(rows).values())
    decided = {kind: count for kind, count in kinds.items() if "place " in kind}
    texts = [f"{kind} on {count}" for kind, count in sorted(decided.items())]
    if kinds["open"]:
        texts.append(f"the trials of {kinds['open']} functions are too short to say")
    return ", ".join(texts)


def _longest(problem: str, rows: Iterable[Row]) -> str:
    runs = _by_problem(rows).get(problem)
    if not runs:
        return "no trials"
    ended, spent = statistics.final(runs, (SOLVED,), exact=True)
    return f"{spent:.2e}" if spent < float("inf") else f"{ended:.3g} at {runs[0].budget:.2g}"
