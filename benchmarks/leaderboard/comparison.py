"""Which trials are compared: those of one budget that ours and the others ran too."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from leaderboard import statistics
from leaderboard.opponents import FULL
from leaderboard.statistics import Rank, Run
from leaderboard.suites import SUITES
from leaderboard.trials import Suite

DEFAULT = "auto"  # the method that every table names, even if it has no trials there
MOST = 0.8  # of the trials that a solver must have to be compared
REFERENCES = (DEFAULT, "cr-fm-nes")  # the first that has trials says which are compared

_OWN = {name for one in SUITES.values() for name, s in one.solvers.items() if s.package == "fmnes"}
OWN = _OWN | {"fm-nes", "cr-fm-nes:paper"}  # the latter are in the rows of `fmnes coco` only


def label(solver: str) -> str:
    """Return the name of a solver for readers: which package, and which of its methods."""
    return f"fmnes {solver}" if solver in OWN else solver


class Budget(NamedTuple):
    """A class of trials: so many evaluations per variable, or as many as the suite says."""

    suite: Suite
    factor: float | None  # evaluations per variable; None: those of the suite

    @classmethod
    def of(cls, suite: Suite, row: Mapping[str, Any]) -> "Budget":
        """Return the class of a row."""
        own = row["budget"] == suite.budget(row["problem"], row["dim"])
        return cls(suite, None if own else row["budget"] / row["dim"])

    def __call__(self, problem: str, dim: int) -> int:
        """Return the evaluations of a trial."""
        if self.factor is None:
            return self.suite.budget(problem, dim)
        return round(self.factor * dim)

    def admits(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row is a trial of this class, or a longer one that begins as it.

        A solver that is told its budget runs differently with another one.
        """
        budget = self(row["problem"], row["dim"])
        solver = self.suite.solvers.get(row["solver"])
        told = solver is not None and solver.told
        return bool(row["budget"] == budget or (row["budget"] > budget and not told))


@dataclass(frozen=True)
class Comparison:
    """The trials of a suite that all of its solvers ran."""

    suite: Suite
    variables: str  # how many, such as "= 40"
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
    def ended(self) -> dict[str, dict[str, tuple[float, float]]]:
        """What the runs of each solver ended with, by problem."""
        found = {}
        for problem in self.problems:
            runs = [run for of in problem.values() for run in of]
            exact = self.suite.exact and all(run.best is not None for run in runs)
            found[runs[0].problem] = {
                name: statistics.final(of, self.suite.targets, exact=exact)
                for name, of in problem.items()
            }
        return found

    @cached_property
    def ranks(self) -> dict[str, Rank]:
        """The mean rank of each solver, the best first."""
        found = statistics.ranks(self.problems)
        return dict(sorted(found.items(), key=lambda one: one[1].mean))

    @cached_property
    def rivals(self) -> list[str]:
        """The solvers of other packages, the best first."""
        return [name for name in self.ranks if name not in OWN]


def comparisons(suite: Suite, rows: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """Return a comparison for each number of variables and each budget."""
    found = []
    for variables, here in _by_size(suite, rows).items():
        for budget in sorted({Budget.of(suite, row) for row in here}, key=_size):
            found.append(_compared(budget, variables, [row for row in here if budget.admits(row)]))
    return [one for one in found if one is not None and len(one.solvers) > 1]


def _by_size(suite: Suite, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows by number of variables; real problems are small or large."""
    groups = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["dim"]):
        size = "<=" if row["dim"] <= FULL else ">"
        groups[f"= {row['dim']}" if suite.targets else f"{size} {FULL}"].append(row)
    return groups


def _size(budget: Budget) -> float:
    return 0 if budget.factor is None else budget.factor


def _compared(
    budget: Budget, variables: str, rows: Sequence[Mapping[str, Any]]
) -> Comparison | None:
    """Return the comparison of the trials that all solvers have.

    They are those of the reference that another package ran with this very budget; longer trials
    stand in for solvers that were not run again with it. Who lacks many of them is left out.
    """
    trials: dict[str, dict[tuple[str, int, int], Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: -row["budget"]):  # the smallest that suffices stays
        key = row["problem"], row["dim"], row["seed"]
        trials.setdefault(row["solver"], {})[key] = row
    reference = next((name for name in REFERENCES if name in trials), None)
    if reference is None:
        return None
    others = {
        key
        for name, have in trials.items()
        for key, row in have.items()
        if name not in OWN and row["budget"] == budget(*key[:2])
    }
    wanted = [key for key in trials[reference] if key in others] or [*trials[reference]]
    most = MOST * len(wanted)
    chosen = [name for name, have in trials.items() if len(have.keys() & set(wanted)) >= most]
    shared = [key for key in wanted if all(key in trials[name] for name in chosen)]
    if not shared:
        return None
    common = [trials[name][key] for name in chosen for key in shared]
    runs = statistics.read(common, budget.suite.targets, budget)
    order = sorted(chosen, key=lambda name: -statistics.area(_of(runs, name)))
    left_out = sorted(set(trials) - set(chosen))
    title = f"{budget.suite.name}, d {variables}, {_named(runs)}"
    return Comparison(budget.suite, variables, title, reference, runs, order, left_out)


def _named(runs: Sequence[Run]) -> str:
    """Return the evaluations per variable, or the least and the most of them."""
    factors = sorted({round(run.budget / run.dim) for run in runs})
    return " to ".join(f"{factor} d" for factor in factors[:: max(1, len(factors) - 1)])


def _of(runs: Iterable[Run], solver: str) -> list[Run]:
    return [run for run in runs if run.solver == solver]
