"""Whether two texts of one method need the same evaluations."""

from typing import NamedTuple

from fmnes.experiments import protocol
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Cell, Comparison, Problem, Table, compare

PAIRS = (  # what should be the same method
    (protocol.PAPER, protocol.AUTHORS),
    (protocol.SEP_FED_CMAES, protocol.SEP_CMAES),
    (protocol.SEP_FED_PYCMA, protocol.SEP_PYCMA),
    (protocol.VD_FED, protocol.VD_PYCMA),
)
ENOUGH = 10  # trials on each side
RULE = (
    "Two texts of one method should need the same evaluations: the means of the successes less "
    "than 5 % apart, or not significantly so (two-sided permutation test at 1 %), and success "
    "rates that do not differ significantly (Fisher's exact test at 1 %). Without a success on "
    f"either side, or with fewer than {ENOUGH} trials on one, nothing is decided."
)


class Agreement(NamedTuple):
    """Two texts of one method on one problem."""

    problem: Problem
    ours: Solver
    theirs: Solver
    cells: tuple[Cell, Cell]
    compared: Comparison

    def __str__(self) -> str:
        function, dim, popsize = self.problem
        return f"{function}, d = {dim}, λ = {popsize}"

    @property
    def verdict(self) -> str:
        """Whether it "agrees", "differs" or is "undecided"."""
        successes = [cell.successes for cell in self.cells]
        if min(cell.trials for cell in self.cells) < ENOUGH or not any(successes):
            return "undecided"
        difference, p, p_success = self.compared
        if not all(successes) or p_success < 0.01:
            return "differs"
        return "agrees" if abs(difference) < 0.05 or p > 0.01 else "differs"


def agreements(table: Table) -> list[Agreement]:
    """Each pair on each problem that both have run."""
    found = []
    for ours, theirs in PAIRS:
        for problem, solver in sorted(table.rows):
            if solver == ours and (problem, theirs) in table.rows:
                a, b = table.rows[problem, ours], table.rows[problem, theirs]
                cells = table.cells[problem, ours], table.cells[problem, theirs]
                found.append(Agreement(problem, ours, theirs, cells, compare(a, b)))
    return found
