"""The rows of the paper's experiments by case and solver."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from fmnes.benchmarking.statistics import Cell, Ratio, ratio_of, ratio_of_times
from fmnes.experiments.protocol import EXPERIMENTS, Solver, trials_of
from fmnes.experiments.results import TrialResult


class Case(NamedTuple):
    """A function at a dimension and a population size."""

    function: str
    dim: int
    popsize: int

    def __str__(self) -> str:
        return f"{self.function}, d = {self.dim}, λ = {self.popsize}"


class Table:
    """The rows by case and solver."""

    def __init__(self, rows: Iterable[TrialResult]) -> None:
        self.times: dict[tuple[int, Solver], list[float]] = defaultdict(list)
        grouped: dict[tuple[Case, Solver], list[TrialResult]] = defaultdict(list)
        for row in rows:
            trial = row.trial
            if trial.experiment == "time":
                self.times[trial.dim, trial.solver].append(row.seconds)
            else:
                grouped[Case(trial.function, trial.dim, trial.popsize), trial.solver].append(row)
        self.cells = {key: Cell(rows) for key, rows in sorted(grouped.items())}
        self._trials = {row.trial for rows in grouped.values() for row in rows}

    @cached_property
    def others(self) -> list[Solver]:
        """The solvers that a user put beside those of the protocol."""
        others = self._trials.difference(trials_of(EXPERIMENTS))
        return sorted({trial.solver for trial in others})

    def ratios(self, function: str, dim: int, a: Solver, b: Solver) -> dict[int, Ratio]:
        """Return the metric of a over that of b by population size."""
        return {
            case.popsize: ratio_of(cell, self.cells[case, b])
            for (case, solver), cell in self.cells.items()
            if solver == a and case[:2] == (function, dim) and (case, b) in self.cells
        }

    def growth(self, solver: Solver, start: int, end: int) -> Ratio | None:
        """Return the mean seconds at dimension ``end`` over those at ``start``."""
        return ratio_of_times(
            self.times.get((end, solver), []), self.times.get((start, solver), [])
        )
