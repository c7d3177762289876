"""The tables of the page: what each solver needed, seconds, and how texts of one method agree."""

import html
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from fmnes.experiments import protocol
from fmnes.experiments.agreement import PAIRS, RULE, Agreement
from fmnes.experiments.names import name_of
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Cell, Problem, Table


def details(summary: str, lines: Iterable[str]) -> Iterator[str]:
    """What a reader sees on demand."""
    yield f"<details><summary>{summary}</summary>"
    yield from lines
    yield "</details>"


def cells(
    table: Table, experiments: Sequence[str], dims: Sequence[int] = (80, 200)
) -> Iterator[str]:
    """Problems down, solvers across."""
    trials = [
        trial for trial in protocol.trials_of(experiments, protocol.full) if trial.dim in dims
    ]
    problems = sorted({(t.dim, _order(t.function), t.popsize, t.function) for t in trials})
    there = {(trial.function, trial.dim, trial.popsize) for trial in trials}
    beside = {solver for problem, solver in table.cells if problem in there} & {*table.others}
    solvers = list(dict.fromkeys([*(trial.solver for trial in trials), *sorted(beside)]))
    yield from header(["d", "function", "&lambda;", *map(name_of, solvers)])
    for dim, _, popsize, function in problems:
        problem = Problem(function, dim, popsize)
        found = [table.cells.get((problem, who)) for who in solvers]
        if any(cell is not None for cell in found):
            yield f"<tr><td>{dim}<td>{function}<td>{popsize}"
            yield from (f"<td class=number>{_cell(cell)}" for cell in found)
    yield "</tbody></table></div>"


def _order(function: str) -> int:
    """Table I's functions first, in its order."""
    order = protocol.FUNCTIONS
    return order.index(function) if function in order else len(order)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    interval = f" [{cell.low:.3g}, {cell.high:.3g}]" if math.isfinite(cell.low) else ""
    return f"{cell}{interval}"


def times(table: Table) -> Iterator[str]:
    """Mean and standard deviation of the seconds."""
    solvers = sorted({solver for _, solver in table.times})
    yield from header(["d", *map(name_of, solvers)])
    for dim in sorted({dim for dim, _ in table.times}):
        yield f"<tr><td>{dim}"
        for solver in solvers:
            t = table.times.get((dim, solver))
            said = f"{np.mean(t):.3g} (sd {np.std(t):.2g}, {len(t)} trials)" if t else ""
            yield f"<td class=number>{said}"
    yield "</tbody></table></div>"


def header(names: Iterable[str]) -> Iterator[str]:
    """The beginning of a table."""
    head = "".join(f"<th>{name}" for name in names)
    yield f"<div class=scroll><table><thead><tr>{head}</thead><tbody>"


def witnesses(found: Sequence[Agreement]) -> Iterator[str]:
    """How many problems they agree on, and each of them."""
    yield f"<p>{html.escape(RULE)}</p>"
    if not found:
        yield "<p>Not run.</p>"
        return
    yield from header(["ours", "theirs", "agree", "differ", "undecided"])
    for pair, by in _by_pair(found).items():
        yield "<tr>" + "".join(f"<td>{name_of(solver)}" for solver in pair)
        yield from (f"<td class=number>{len(ones)}" for ones in by.values())
    yield "</tbody></table></div>"
    yield from details("Each problem", _every_agreement(found))


def _every_agreement(found: Sequence[Agreement]) -> Iterator[str]:
    sides = ("ours: mean, successes", "theirs: mean, successes")
    yield from header(
        ["ours", "theirs", "problem", *sides, "difference", "p", "p of successes", "verdict"]
    )
    for one in found:
        yield f"<tr><td>{name_of(one.ours)}<td>{name_of(one.theirs)}<td>{one}"
        yield from (f"<td class=number>{_side(cell)}" for cell in one.cells)
        difference, p, p_success = one.compared
        yield f"<td class=number>{_percent(difference)}<td>{p:.2g}<td>{p_success:.2g}"
        yield f"<td class={one.verdict}>{one.verdict}"
    yield "</tbody></table></div>"


def _side(cell: Cell) -> str:
    """Mean and successes; without a success there is no mean."""
    return f"{cell.mean:.4g}, {cell.share}" if cell.successes else f"none of {cell.trials}"


def _by_pair(found: Iterable[Agreement]) -> dict[tuple[Solver, Solver], dict[str, list[Agreement]]]:
    """The agreements of each pair that has some, by verdict."""
    by: dict[tuple[Solver, Solver], dict[str, list[Agreement]]] = {
        pair: {verdict: [] for verdict in ("agrees", "differs", "undecided")} for pair in PAIRS
    }
    for one in found:
        by[one.ours, one.theirs][one.verdict].append(one)
    return {pair: ones for pair, ones in by.items() if any(ones.values())}


def witnesses_in_markdown(found: Iterable[Agreement]) -> Iterator[str]:
    """The same in short, with those that differ."""
    yield "| ours | theirs | problems that agree | undecided | those that differ |"
    yield "|---|---|---|---|---|"
    for (ours, theirs), by in _by_pair(found).items():
        differ = [
            f"{one}: {_percent(one.compared.difference)}, "
            f"{' and '.join(cell.share for cell in one.cells)}"
            for one in by["differs"]
        ]
        agree, undecided = len(by["agrees"]), len(by["undecided"])
        cells = (ours, theirs), (agree, undecided, "; ".join(differ) or "none")
        yield f"| {' | '.join([*map(name_of, cells[0]), *map(str, cells[1])])} |"


def _percent(difference: float) -> str:
    """A difference of means; there is none where one side never succeeds."""
    return "no mean" if math.isnan(difference) else f"{difference:+.1%}"
