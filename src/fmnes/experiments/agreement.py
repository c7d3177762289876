"""Whether two implementations of one method need the same evaluations."""

from typing import NamedTuple

from fmnes.experiments import protocol
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Case, Cell, Comparison, Table, compare

PAIRS = (  # implementations that should be the same method
    (protocol.PAPER, protocol.AUTHORS),
    (protocol.SEP_CMAES_RATES, protocol.SEP_CMAES),
    (protocol.SEP_PYCMA_RATES, protocol.SEP_PYCMA),
    (protocol.VD_PYCMA_RATES, protocol.VD_PYCMA),
)
ENOUGH = 10  # trials on each side
RULE = (
    "Two implementations of one method agree if the mean evaluations of their successes are less "
    "than 5 % apart or do not differ significantly (two-sided permutation test at 1 %), and their "
    "success rates do not differ significantly (Fisher's exact test at 1 %). Without a success on "
    f"either side, or with fewer than {ENOUGH} trials on one, nothing is decided."
)


class Agreement(NamedTuple):
    """Two implementations of one method in one case."""

    case: Case
    ours: Solver
    theirs: Solver
    cells: tuple[Cell, Cell]
    compared: Comparison

    @property
    def verdict(self) -> str:
        """Whether the two agree ("agree", "differ" or "undecided")."""
        successes = [cell.successes for cell in self.cells]
        if min(cell.trials for cell in self.cells) < ENOUGH or not any(successes):
            return "undecided"
        difference, p, p_success = self.compared
        if not all(successes) or p_success < 0.01:
            return "differ"
        return "agree" if abs(difference) < 0.05 or p > 0.01 else "differ"


def agreements(table: Table) -> list[Agreement]:
    """Return each pair in each case that both have run."""
    return [
        Agreement(case, ours, theirs, (cell, other), compare(cell, other))
        for ours, theirs in PAIRS
        for (case, solver), cell in table.cells.items()
        if solver == ours and (other := table.cells.get((case, theirs)))
    ]
