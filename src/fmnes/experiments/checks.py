"""Statements that the rows decide.

A check compares ratios with a threshold, which stands beside the words that it translates; ratios
are between metrics at the same population size, and what is called typical is their geometric mean.
It holds or fails where the 95 % interval of the ratio lies on one side of the threshold, and is
undecided where the interval crosses it, or where a side has but one trial. The second of two
solvers is the one that the claim praises: where no trial of it succeeds the check fails, whatever
the first one does.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from fmnes.experiments import protocol
from fmnes.experiments.names import name_of
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Ratio, Table, typical

FEW = 5  # With fewer trials than that the intervals are much too narrow, which is said with them.


class Check(NamedTuple):
    """One statement that the rows decide."""

    outcome: str  # "holds", "fails", "undecided" or "not run"
    pair: str  # what is divided by what
    where: tuple[str, ...]  # function and dimension
    asked: str  # the threshold
    ratios: tuple[float, ...] = ()
    numbers: str = ""  # the ratios in words, with their intervals
    trials: float = math.inf  # the fewest behind a side of a ratio

    def __str__(self) -> str:
        said = self.numbers or self.outcome
        return f"{', '.join((self.pair, *self.where))}: {said}. Asked: {self.asked}."


class Asked(NamedTuple):
    """What a check asks of ratios: that they lie between two numbers."""

    words: str  # which the numbers translate
    low: float = 0.0
    high: float = math.inf
    typically: bool = False  # of their geometric mean, rather than of each

    def __str__(self) -> str:
        bounds = [f"above {self.low:.3g}"] * (self.low > 0)
        bounds += [f"below {self.high:.3g}"] * math.isfinite(self.high)
        return f"{self.words} ({'typically ' * self.typically}{' and '.join(bounds)})"

    def outcome(self, ratios: Collection[Ratio]) -> str:
        """By the 95 % intervals: all of them inside, or one outside."""
        if any(_praise_is_undue(ratio) for ratio in ratios):
            return "fails"
        asked = [typical(ratios)] if self.typically else ratios
        intervals = [ratio.interval for ratio in asked]
        if all(self.low < low and high <= self.high for low, high in intervals):
            return "holds"
        outside = any(high < self.low or low > self.high for low, high in intervals)
        return "fails" if outside else "undecided"


def _praise_is_undue(ratio: Ratio) -> bool:
    """Whether the second one solves nothing; of one trial that is chance."""
    second = ratio.cells[-1] if ratio.cells else None
    return second is not None and second.trials > 1 and second.successes == 0


def decide(pair: str, where: tuple[str, ...], asked: Asked, ratios: Mapping[str, Ratio]) -> Check:
    """Of ratios, by what each is at."""
    if not ratios:
        return Check("not run", pair, where, str(asked))
    numbers = [
        f"{ratio} ({', '.join(filter(None, (at, ratio.shares)))})" for at, ratio in ratios.items()
    ]
    if asked.typically:
        numbers.append(f"typically {typical(ratios.values())}")
    return Check(
        asked.outcome(ratios.values()),
        pair,
        where,
        str(asked),
        tuple(ratio.value for ratio in ratios.values()),
        ", ".join(numbers),
        min(ratio.trials for ratio in ratios.values()),
    )


def by_popsize(
    table: Table,
    functions: Iterable[str],
    dims: Iterable[int],
    over: Solver,
    under: Solver,
    asked: Asked,
) -> Iterator[Check]:
    """For each function and dimension: the metric of one solver over that of another."""
    for dim in dims:
        for function in functions:
            found = table.ratios(function, dim, over, under)
            ratios = {f"λ = {popsize}": ratio for popsize, ratio in found.items()}
            yield decide(pair_of(over, under), (function, f"d = {dim}"), asked, ratios)


def pair_of(over: Solver, under: Solver) -> str:
    """What is divided by what."""
    return f"{name_of(over)} / {name_of(under)}"


def at_the_default(table: Table, function: str, dim: int, over: Solver) -> dict[int, Ratio]:
    """Over the paper's method, at the smallest population size; or nothing."""
    smallest = protocol.popsizes(function, dim)[0]
    found = table.ratios(function, dim, over, protocol.PAPER)
    return {popsize: ratio for popsize, ratio in found.items() if popsize == smallest}


def each_function(
    table: Table,
    solver: Solver,
    asked: Asked,
    functions: Iterable[str] = protocol.FUNCTIONS,
    dims: Iterable[int] = (80, 200),
) -> Iterator[Check]:
    """A check for each: what a part does depends on the function."""
    for dim in dims:
        for function in functions:
            found = at_the_default(table, function, dim, solver)
            ratios = {f"λ = {popsize}": ratio for popsize, ratio in found.items()}
            yield decide(pair_of(solver, protocol.PAPER), (function, f"d = {dim}"), asked, ratios)
