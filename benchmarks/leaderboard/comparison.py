"""Which trials are compared: those that one of our methods ran and the others ran too."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from leaderboard import statistics
from leaderboard.statistics import Rank, Run
from leaderboard.suites import SUITES
from leaderboard.trials import Suite

REFERENCES = ("auto", "fmnes", "cr-fm-nes")  # the first that has trials says which are compared

_OWN = {name for one in SUITES.values() for name, s in one.solvers.items() if s.package == "fmnes"}
OWN = _OWN | {"fm-nes", "cr-fm-nes:paper"}  # the latter are in the rows of `fmnes coco` only


def label(solver: str) -> str:
    """Return the name of a solver for readers: which package, and which of its methods."""
    return f"fmnes {solver}" if solver in OWN and not solver.startswith("fmnes") else solver


@dataclass(frozen=True)
class Comparison:
    """The trials of a suite that all of its solvers ran, at one number of variables or at all."""

    suite: Suite
    title: str
    reference: str
    runs: list[Run]
    solvers: list[str]  # in the order of their areas, the largest first
    left_out: list[str]  # with trials, but not with all that the reference has

    def of(self, solver: str) -> list[Run]:
        """Return the runs of a solver."""
        return [run for run in self.runs if run.solver == solver]

    @cached_property
    def problems(self) -> list[dict[str, list[Run]]]:
        """The runs of each solver, problem by problem."""
        return statistics.common(self.runs, self.solvers)

    @cached_property
    def ranks(self) -> dict[str, Rank]:
        """The mean rank of each solver, the best first."""
        found = statistics.ranks(self.problems)
        return dict(sorted(found.items(), key=lambda one: one[1].mean))


def comparisons(suite: Suite, rows: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """Return a comparison for each number of variables; of real problems one of all."""
    if not suite.targets:
        found = [_compared(suite, suite.name, rows)]
    else:
        dims = sorted({row["dim"] for row in rows})
        found = [
            _compared(suite, f"{suite.name}, d = {dim}", [row for row in rows if row["dim"] == dim])
            for dim in dims
        ]
    return [one for one in found if one is not None and len(one.solvers) > 1]


def _compared(suite: Suite, title: str, rows: Sequence[Mapping[str, Any]]) -> Comparison | None:
    trials: dict[str, dict[tuple[str, int, int], Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["budget"]):  # the largest budget stays
        key = row["problem"], row["dim"], row["seed"]
        trials.setdefault(row["solver"], {})[key] = row
    reference = next((name for name in REFERENCES if name in trials), None)
    if reference is None:
        return None
    wanted = trials[reference].keys()
    complete = [name for name, have in trials.items() if wanted <= have.keys()]
    chosen = [trials[name][key] for name in complete for key in wanted]
    runs = statistics.read(chosen, suite.targets)
    order = sorted(complete, key=lambda name: -statistics.area(_of(runs, name)))
    left_out = sorted(set(trials) - set(complete))
    return Comparison(suite, title, reference, runs, order, left_out)


def _of(runs: Iterable[Run], solver: str) -> list[Run]:
    return [run for run in runs if run.solver == solver]
