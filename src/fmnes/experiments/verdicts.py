"""Verdicts: claims with the checks that decide them, and agreement of two implementations.

A check compares ratios of metrics at the same population size, or their geometric mean (typically),
with bounds. It holds or fails if the 95 % intervals of the ratios lie on one side of the bounds. It
is undecided if an interval contains a bound, or if a side has only one trial. The second solver of
a ratio is the one that the claim praises: a check fails if that solver succeeds in no trial.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from fmnes.benchmarking.statistics import Cell, Comparison, Ratio, compare, typical
from fmnes.experiments import protocol
from fmnes.experiments.cases import Case, Table
from fmnes.experiments.protocol import Solver, name_of

FEW = 5  # with fewer trials the intervals are much too narrow, and verdicts say so


class Expectation(NamedTuple):
    """The range in which a claim expects ratios."""

    words: str  # of the paper, which the numbers translate
    low: float = 0.0
    high: float = math.inf
    typically: bool = False  # bounds for the geometric mean, rather than for each ratio

    def __str__(self) -> str:
        numbers = [f"above {self.low:.3g}"] * (self.low > 0)
        numbers += [f"below {self.high:.3g}"] * math.isfinite(self.high)
        return f"{self.words} ({'typically ' * self.typically}{' and '.join(numbers)})"

    def outcome(self, ratios: Collection[Ratio]) -> str:
        """Return "holds" if all intervals are inside, "fails" if one is outside, or "undecided"."""
        if any(_second_never_succeeds(ratio) for ratio in ratios):
            return "fails"
        bounded = [typical(ratios)] if self.typically else ratios
        intervals = [ratio.interval for ratio in bounded]
        if all(self.low < low and high <= self.high for low, high in intervals):
            return "holds"
        outside = any(high < self.low or low > self.high for low, high in intervals)
        return "fails" if outside else "undecided"


def _second_never_succeeds(ratio: Ratio) -> bool:
    """Return whether the second solver failed in all of several trials; one may be chance."""
    return bool(ratio.cells) and ratio.cells[1].trials > 1 and ratio.cells[1].successes == 0


class Check(NamedTuple):
    """One statement that the rows decide."""

    pair: str  # what is divided by what
    where: tuple[str, ...]  # function and dimension
    bounds: Expectation
    ratios: Mapping[str, Ratio]  # by what differs between them

    @property
    def outcome(self) -> str:
        """Whether the check "holds", "fails", is "undecided" or was "not run"."""
        return self.bounds.outcome(self.ratios.values()) if self.ratios else "not run"

    def __str__(self) -> str:
        numbers = []
        for at, ratio in self.ratios.items():
            shares = " and ".join(cell.share for cell in ratio.cells)
            numbers.append(f"{ratio} ({', '.join(filter(None, (at, shares)))})")
        if numbers and self.bounds.typically:
            numbers.append(f"typically {typical(self.ratios.values())}")
        measured = ", ".join(numbers) or self.outcome
        return f"{', '.join((self.pair, *self.where))}: {measured}. Expected: {self.bounds}."


def each_case(
    table: Table,
    over: Solver,
    under: Solver,
    bounds: Expectation,
    functions: Iterable[str] = protocol.FUNCTIONS,
    dims: Iterable[int] = (80, 200),
    *,
    all_popsizes: bool = True,  # or the smallest only
) -> Iterator[Check]:
    """Yield a check of two solvers for each function and dimension."""
    for dim in dims:
        for function in functions:
            chosen = protocol.popsizes(function, dim)[:1]
            ratios = {
                f"λ = {popsize}": ratio
                for popsize, ratio in table.ratios(function, dim, over, under).items()
                if all_popsizes or popsize in chosen
            }
            yield Check(pair_of(over, under), (function, f"d = {dim}"), bounds, ratios)


def pair_of(over: Solver, under: Solver) -> str:
    """Return what is divided by what."""
    return f"{name_of(over)} / {name_of(under)}"


def over_paper(table: Table, dim: int, solver: Solver) -> dict[str, Ratio]:
    """Return ratios to the paper's method at the smallest population size, by function."""
    found = {}
    for function in protocol.FUNCTIONS:
        ratios = table.ratios(function, dim, solver, protocol.PAPER)
        smallest = protocol.popsizes(function, dim)[0]
        if smallest in ratios:
            found[function] = ratios[smallest]
    return found


class Claim(NamedTuple):
    """A sentence of the paper, how we read it in numbers, and what the rows say about it."""

    name: str
    section: str
    quote: str  # word for word except for LaTeX; empty if the claim is ours
    reading: str  # how we understand it
    checks: tuple[Check, ...]

    @property
    def words(self) -> tuple[str, str]:
        """The claim, and our reading with the bounds of its checks."""
        bounds = "; ".join(dict.fromkeys(str(check.bounds) for check in self.checks))
        quote = f"“{self.quote}”" if self.quote else "No claim of the paper."
        return quote, f"Our reading: {self.reading} Bounds: {bounds}."

    def count(self, outcome: str) -> int:
        """Return how many of the checks have this outcome."""
        return sum(check.outcome == outcome for check in self.checks)

    @property
    def held(self) -> str:
        """The number of checks that hold, and how many are open."""
        others = [
            f", {count} {outcome}"
            for outcome in ("undecided", "not run")
            if (count := self.count(outcome))
        ]
        decided = [check for check in self.checks if check.outcome in ("holds", "fails")]
        trials = (ratio.trials for check in decided for ratio in check.ratios.values())
        least = min(trials, default=FEW)
        few = f", some by {least:g} trials only" if least < FEW else ""
        return f"{self.count('holds')} of {len(decided)}{few}" + "".join(others)

    @property
    def verdict(self) -> str:
        """The verdict, computed from the checks alone."""
        hold, fail, missing = map(self.count, ("holds", "fails", "not run"))
        if not (hold or fail):
            return "not run" if missing == len(self.checks) else "undecided"
        if hold and fail:
            return "confirmed in part"
        verdict = "confirmed" if hold else "contradicted"
        return verdict if hold + fail == len(self.checks) else f"{verdict} where the data decide"

    @property
    def measured(self) -> list[str]:
        """The range of the ratios of each pair, by place; if there are many, by dimension."""
        pairs: dict[str, dict[str, list[float]]] = {}
        many = len({check.where for check in self.checks}) > 6
        for check in self.checks:
            where = check.where[-1] if many else ", ".join(check.where)
            values = [ratio.value for ratio in check.ratios.values()]
            if values:
                pairs.setdefault(check.pair, {}).setdefault(where, []).extend(values)
        return [
            f"{pair}: " + "; ".join(f"{_range(values)} ({where})" for where, values in each.items())
            for pair, each in pairs.items()
        ]


def _range(ratios: list[float]) -> str:
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    if not known:
        return "neither solves it"
    low, high = _short(min(known)), _short(max(known))
    return low if low == high else f"{low} to {high}"


def _short(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:.0f}".replace("inf", "∞")


# === Whether two implementations of one method need the same evaluations ===

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
