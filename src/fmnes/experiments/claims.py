"""What the paper claims, with the measured numbers and a verdict computed from them.

A claim is made of checks. A check compares ratios with a threshold, which stands beside the words
that it translates; ratios are between metrics at the same population size, and what is called
typical is their geometric mean. It holds or fails where the 95 % interval of the ratio lies on one
side of the threshold, and is undecided where the interval crosses it, or where a side has but one
trial.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fmnes.experiments import protocol
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Ratio, Table, typical

NAMES = {
    protocol.SAFE: "CR-FM-NES (safe)",
    protocol.PAPER: "CR-FM-NES (paper)",
    protocol.AUTHORS: "the authors' package",
    protocol.FM_NES: "FM-NES",
    protocol.R1_NES: "R1-NES",
    protocol.VD_CMA: "VD-CMA",
    protocol.SEP_CMA: "Sep-CMA",
    protocol.VD_PYCMA: "pycma's VD-CMA",
    protocol.VD_FED: "VD-CMA with pycma's rates",
    protocol.SEP_CMAES: "cmaes' SepCMA",
    protocol.SEP_PYCMA: "pycma's diagonal CMA-ES",
    protocol.SEP_FED_CMAES: "Sep-CMA with cmaes' rates",
    protocol.SEP_FED_PYCMA: "Sep-CMA with pycma's rates",
    protocol.OLDER_H: "CR-FM-NES with the older H",
    protocol.ABLATIONS[0]: "without distance weights",
    protocol.ABLATIONS[1]: "with one learning rate of sigma",
    protocol.ABLATIONS[2]: "with neither phases nor distance weights",
    protocol.ABLATIONS[3]: "without the rank-one update",
    protocol.ABLATIONS[4]: "with none of the three",
}


def name_of(solver: Solver) -> str:
    """As a reader knows it."""
    method, variant = solver
    known = f"CR-FM-NES, {variant}" if method == "cr-fm-nes" else method
    return NAMES.get(solver, known)


class Check(NamedTuple):
    """One statement that the rows decide."""

    outcome: str  # "holds", "fails", "undecided" or "not run"
    pair: str  # what is divided by what
    where: tuple[str, ...]  # function and dimension
    asked: str  # the threshold
    ratios: tuple[float, ...] = ()
    numbers: str = ""  # the ratios in words, with their intervals

    def __str__(self) -> str:
        said = self.numbers or self.outcome
        return f"{', '.join((self.pair, *self.where))}: {said}. Asked: {self.asked}."


class Claim(NamedTuple):
    """Some words of the paper, and what the rows say to them."""

    where: str
    words: str
    checks: tuple[Check, ...]

    def count(self, outcome: str) -> int:
        """How many of the checks came out so."""
        return sum(check.outcome == outcome for check in self.checks)

    @property
    def held(self) -> str:
        """How the checks came out."""
        others = [
            f", {count} {outcome}"
            for outcome in ("undecided", "not run")
            if (count := self.count(outcome))
        ]
        decided = self.count("holds") + self.count("fails")
        return f"{self.count('holds')} of {decided}" + "".join(others)

    @property
    def verdict(self) -> str:
        """From the checks alone."""
        hold, fail, missing = map(self.count, ("holds", "fails", "not run"))
        if not (hold or fail):
            return "not run" if missing == len(self.checks) else "undecided"
        if hold and fail:
            return "confirmed in part"
        verdict = "confirmed" if hold else "contradicted"
        return verdict if hold + fail == len(self.checks) else f"{verdict} as far as decided"

    @property
    def measured(self) -> list[str]:
        """For each pair the range of its ratios, by place; where that is long, by dimension."""
        pairs: dict[str, dict[str, list[float]]] = {}
        many = len({check.where for check in self.checks}) > 6
        for check in self.checks:
            where = check.where[-1] if many else ", ".join(check.where)
            if check.ratios:
                pairs.setdefault(check.pair, {}).setdefault(where, []).extend(check.ratios)
        return [
            f"{pair}: " + "; ".join(f"{_range(ratios)} ({where})" for where, ratios in each.items())
            for pair, each in pairs.items()
        ]


def _range(ratios: list[float]) -> str:
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    if not known:
        return "neither solves it"
    low, high = _times(min(known)), _times(max(known))
    return low if low == high else f"{low} to {high}"


def _times(ratio: float) -> str:
    """In a few digits; where one side never succeeded, in its usual sign."""
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:.0f}".replace("inf", "∞")


def claims(table: Table) -> list[Claim]:
    """All of them, in the order of the paper."""
    return [
        Claim(where, words, tuple(checks(table)))
        for where, words, checks in (
            (
                "III-A",
                "The performance of Sep-CMA deteriorates on problems with variable dependencies, "
                "that of R1-NES on ill-conditioned problems; the representation with v and D "
                "alleviates both.",
                _representations,
            ),
            (
                "III-C",
                "The learning rate eta_B was fitted. (Our reading: no other multiple of it is much "
                "better over the five functions together.)",
                _eta_B,
            ),
            (
                "IV-B",
                "At d = 80 CR-FM-NES needs several times fewer evaluations than FM-NES on "
                "ellipsoid and k-tablet, about half on Rosenbrock, and no more on Rastrigin.",
                _against_fm_nes,
            ),
            (
                "IV-B",
                "The computation time of FM-NES increases rapidly with d (as d^3), while that of "
                "CR-FM-NES stays flat.",
                _time,
            ),
            (
                "IV-C",
                "At d >= 200, on ellipsoid and k-tablet, CR-FM-NES is competitive with Sep-CMA.",
                _level_with_sep_cma,
            ),
            (
                "IV-C",
                "On Rosenbrock CR-FM-NES is substantially ahead of Sep-CMA, and ahead of VD-CMA.",
                _ahead_on_rosenbrock,
            ),
            ("IV-C", "CR-FM-NES is ahead on Rastrigin.", _ahead_on_rastrigin),
            (
                "IV-C",
                "VD-CMA shows clearly better performance than R1-NES.",
                _vd_cma_against_r1_nes,
            ),
            (
                "IV-C",
                "CR-FM-NES beats VD-CMA because of what it inherits from FM-NES: distance weights "
                "and phases. (Our reading: it beats VD-CMA, and without them it needs at least 5 % "
                "more evaluations.)",
                _ablation,
            ),
            (
                "ours",
                "The rank-one update counts as well. (No claim of the paper: what the ablation "
                "adds.)",
                _rank_one,
            ),
        )
    ]


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

    def outcome(self, ratios: Iterable[Ratio]) -> str:
        """By the 95 % intervals: all of them inside, or one outside."""
        asked = [typical(ratios)] if self.typically else ratios
        intervals = [ratio.interval for ratio in asked]
        if all(self.low < low and high <= self.high for low, high in intervals):
            return "holds"
        outside = any(high < self.low or low > self.high for low, high in intervals)
        return "fails" if outside else "undecided"


def _check(pair: str, where: tuple[str, ...], asked: Asked, ratios: Mapping[str, Ratio]) -> Check:
    """Of ratios, by what each is at."""
    if not ratios:
        return Check("not run", pair, where, str(asked))
    numbers = [
        f"{ratio} ({', '.join(filter(None, (at, ratio.shares)))})" for at, ratio in ratios.items()
    ]
    if asked.typically:
        numbers.append(f"typically {typical(ratios.values())}")
    values = tuple(ratio.value for ratio in ratios.values())
    return Check(
        asked.outcome(ratios.values()), pair, where, str(asked), values, ", ".join(numbers)
    )


def _by_popsize(
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
            yield _check(_pair(over, under), (function, f"d = {dim}"), asked, ratios)


def _pair(over: Solver, under: Solver) -> str:
    return f"{name_of(over)} / {name_of(under)}"


_AHEAD = Asked("ahead", 1.0)


def _against_fm_nes(table: Table) -> Iterator[Check]:
    for functions, asked in (
        (("ellipsoid", "ktablet"), Asked("several times", 2.0)),
        (("rosenbrock",), Asked("about half", 1.5, 3.0, typically=True)),
        (("rastrigin",), Asked("no more", 0.95, typically=True)),
    ):
        yield from _by_popsize(table, functions, [80], protocol.FM_NES, protocol.PAPER, asked)


def _level_with_sep_cma(table: Table) -> Iterator[Check]:
    functions, dims = ("ellipsoid", "ktablet"), (200, 600, 1000)
    asked = Asked("competitive", 0.8, typically=True)
    yield from _by_popsize(table, functions, dims, protocol.SEP_CMA, protocol.PAPER, asked)


def _ahead_on_rosenbrock(table: Table) -> Iterator[Check]:
    for other, asked in (
        (protocol.SEP_CMA, Asked("substantially ahead", 1.5)),
        (protocol.VD_CMA, _AHEAD),
    ):
        dims = (200, 600, 1000)
        yield from _by_popsize(table, ["rosenbrock"], dims, other, protocol.PAPER, asked)


def _ahead_on_rastrigin(table: Table) -> Iterator[Check]:
    for other in (protocol.VD_CMA, protocol.SEP_CMA):
        dims = (200, 600, 1000)
        yield from _by_popsize(table, ["rastrigin"], dims, other, protocol.PAPER, _AHEAD)


def _representations(table: Table) -> Iterator[Check]:
    for both in (protocol.VD_CMA, protocol.PAPER, protocol.SAFE):
        for functions, other, low in (
            (("cigar",), protocol.SEP_CMA, 2.0),
            (("rosenbrock",), protocol.SEP_CMA, 1.0),
            (("ellipsoid", "ktablet"), protocol.R1_NES, 2.0),
        ):
            asked = Asked("deteriorates", low)
            yield from _by_popsize(table, functions, [80], other, both, asked)


def _vd_cma_against_r1_nes(table: Table) -> Iterator[Check]:
    functions = ("ellipsoid", "ktablet", "rosenbrock", "cigar")
    asked = Asked("clearly better", 1.2)
    yield from _by_popsize(table, functions, [80], protocol.R1_NES, protocol.VD_CMA, asked)


def _at_the_default(table: Table, function: str, dim: int, over: Solver) -> dict[int, Ratio]:
    """Over the paper's method, at the smallest population size; or nothing."""
    smallest = protocol.popsizes(function, dim)[0]
    found = table.ratios(function, dim, over, protocol.PAPER)
    return {popsize: ratio for popsize, ratio in found.items() if popsize == smallest}


def _eta_B(table: Table) -> Iterator[Check]:
    not_much_better = Asked("does not save a quarter", 0.75, typically=True)
    for solver in protocol.ETA_B:
        for dim in (80, 200):
            ratios = {
                function: ratio
                for function in protocol.FUNCTIONS
                for ratio in _at_the_default(table, function, dim, solver).values()
            }
            yield _check(_pair(solver, protocol.PAPER), (f"d = {dim}",), not_much_better, ratios)


_COUNTS = Asked("5 % more without it", 1.05)


def _ablation(table: Table) -> Iterator[Check]:
    weights, _, weights_and_phases, *_ = protocol.ABLATIONS
    yield from _each_function(table, protocol.VD_CMA, _AHEAD)
    yield from _each_function(table, weights, _COUNTS)
    yield from _each_function(table, weights_and_phases, _COUNTS)


def _rank_one(table: Table) -> Iterator[Check]:
    return _each_function(table, protocol.ABLATIONS[3], _COUNTS)


def _each_function(table: Table, solver: Solver, asked: Asked) -> Iterator[Check]:
    """A check for each: what a part does depends on the function."""
    for dim in (80, 200):
        for function in protocol.FUNCTIONS:
            found = _at_the_default(table, function, dim, solver)
            ratios = {f"λ = {popsize}": ratio for popsize, ratio in found.items()}
            yield _check(_pair(solver, protocol.PAPER), (function, f"d = {dim}"), asked, ratios)


def _time(table: Table) -> Iterator[Check]:
    flat, rises = Asked("flat", high=2.0), Asked("increases", 2.0)
    for solver, start, asked in (
        (protocol.SAFE, 10, flat),
        (protocol.AUTHORS, 10, flat),
        (protocol.FM_NES, 10, rises),
        (protocol.FM_NES, 50, Asked("as d^3, or d^2.5 to d^3.5", 2**2.5, 2**3.5)),
    ):
        pair = f"seconds at d = 100 / at d = {start}"
        ratio = table.growth(solver, start, 100)
        found = {}
        if ratio is not None:
            exponent = math.log(ratio.value, 100 / start)
            found[f"as d^{exponent:.1f}"] = ratio
        yield _check(pair, (name_of(solver),), asked, found)
