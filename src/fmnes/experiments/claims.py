"""What the paper claims, with the measured numbers and a verdict computed from them.

A claim is made of checks; each looks at the rows and says whether it holds, or that there are no
rows for it. Ratios are between metrics at the same population size; what is called typical is
their geometric mean. The thresholds stand beside the words that they translate.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fmnes.experiments import protocol
from fmnes.experiments.protocol import Solver
from fmnes.experiments.statistics import Table, compare, typical

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
}


def name_of(solver: Solver) -> str:
    """As a reader knows it."""
    method, variant = solver
    known = f"CR-FM-NES, {variant}" if method == "cr-fm-nes" else method
    return NAMES.get(solver, known)


class Check(NamedTuple):
    """One statement that the rows decide."""

    holds: bool | None  # None: there are no rows for it
    numbers: str


class Claim(NamedTuple):
    """Some words of the paper, and what the rows say to them."""

    where: str
    words: str
    checks: tuple[Check, ...]

    @property
    def held(self) -> str:
        """How many of the checks that could be decided hold."""
        decided = [check.holds for check in self.checks if check.holds is not None]
        missing = len(self.checks) - len(decided)
        return f"{sum(decided)} of {len(decided)}" + (f", {missing} not run" if missing else "")

    @property
    def verdict(self) -> str:
        """From the checks alone."""
        decided = [check.holds for check in self.checks if check.holds is not None]
        if not decided:
            return "not run"
        if all(decided):
            return "confirmed"
        return "confirmed in part" if any(decided) else "contradicted"


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
                "The learning rate eta_B was fitted: no other multiple of it is much better.",
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
                "and phases. (Without them it should need more evaluations.)",
                _ablation,
            ),
        )
    ]


def _ratio(
    table: Table,
    functions: Iterable[str],
    dims: Iterable[int],
    over: Solver,
    under: Solver,
    holds: Callable[[Sequence[float]], bool],
) -> Iterator[Check]:
    """For each function and dimension: the metric of one solver over that of another."""
    for dim in dims:
        for function in functions:
            ratios = table.ratios(function, dim, over, under)
            about = f"{function}, d = {dim}: {name_of(over)} / {name_of(under)}"
            if not ratios:
                yield Check(None, f"{about}: not run")
                continue
            each = ", ".join(f"{ratio:.2f} (λ = {lam})" for lam, ratio in ratios.items())
            yield Check(holds(list(ratios.values())), f"{about}: {each}")


def _typically(low: float, high: float = math.inf) -> Callable[[Sequence[float]], bool]:
    return lambda ratios: low <= typical(ratios) <= high


def _always(low: float) -> Callable[[Sequence[float]], bool]:
    return lambda ratios: min(ratios) > low


def _against_fm_nes(table: Table) -> Iterator[Check]:
    pair = protocol.FM_NES, protocol.PAPER
    yield from _ratio(table, ("ellipsoid", "ktablet"), [80], *pair, _always(2.0))  # several times
    yield from _ratio(table, ["rosenbrock"], [80], *pair, _typically(1.5, 3.0))  # about half
    yield from _ratio(table, ["rastrigin"], [80], *pair, _typically(0.95))  # no more


def _level_with_sep_cma(table: Table) -> Iterator[Check]:
    pair = protocol.SEP_CMA, protocol.PAPER
    yield from _ratio(table, ("ellipsoid", "ktablet"), (200, 600, 1000), *pair, _typically(0.8))


def _ahead_on_rosenbrock(table: Table) -> Iterator[Check]:
    dims = (200, 600, 1000)
    yield from _ratio(
        table, ["rosenbrock"], dims, protocol.SEP_CMA, protocol.PAPER, _always(1.5)
    )  # substantially
    yield from _ratio(table, ["rosenbrock"], dims, protocol.VD_CMA, protocol.PAPER, _always(1.0))


def _ahead_on_rastrigin(table: Table) -> Iterator[Check]:
    for other in (protocol.VD_CMA, protocol.SEP_CMA):
        yield from _ratio(
            table, ["rastrigin"], (200, 600, 1000), other, protocol.PAPER, _always(1.0)
        )


def _representations(table: Table) -> Iterator[Check]:
    worse = _always(2.0)
    yield from _ratio(table, ["cigar"], [80], protocol.SEP_CMA, protocol.VD_CMA, worse)
    yield from _ratio(table, ["rosenbrock"], [80], protocol.SEP_CMA, protocol.VD_CMA, _always(1.0))
    yield from _ratio(
        table, ("ellipsoid", "ktablet"), [80], protocol.R1_NES, protocol.VD_CMA, worse
    )


def _vd_cma_against_r1_nes(table: Table) -> Iterator[Check]:
    functions = ("ellipsoid", "ktablet", "rosenbrock", "cigar")
    yield from _ratio(table, functions, [80], protocol.R1_NES, protocol.VD_CMA, _always(1.2))


def _eta_B(table: Table) -> Iterator[Check]:
    """Much better: a quarter fewer evaluations, in the geometric mean over the five functions."""
    for dim in (80, 200):
        for solver in protocol.ETA_B:
            each = {
                function: ratio
                for function in protocol.FUNCTIONS
                for ratio in table.ratios(function, dim, solver, protocol.PAPER).values()
            }
            about = f"d = {dim}: {solver[1]} / fitted"
            if not each:
                yield Check(None, f"{about}: not run")
                continue
            numbers = ", ".join(f"{ratio:.2f} ({function})" for function, ratio in each.items())
            yield Check(typical(each.values()) > 0.75, f"{about}: {numbers}")


def _ablation(table: Table) -> Iterator[Check]:
    """Each part counts where the method without it is slower on some function, by 5 % or more."""
    for dim in (80, 200):
        for solver in protocol.ABLATIONS:
            each = {
                function: ratio
                for function in protocol.FUNCTIONS
                for ratio in table.ratios(function, dim, solver, protocol.PAPER).values()
            }
            about = f"d = {dim}: {solver[1]} / all"
            if not each:
                yield Check(None, f"{about}: not run")
                continue
            numbers = ", ".join(f"{ratio:.2f} ({function})" for function, ratio in each.items())
            yield Check(max(each.values()) > 1.05, f"{about}: {numbers}")


def _time(table: Table) -> Iterator[Check]:
    """Flat: less than doubled from d = 10 to 100. As d^3: an exponent of 2.5 to 3.5 from d = 50."""
    for solver in (protocol.SAFE, protocol.AUTHORS, protocol.FM_NES):
        mean = {dim: np.mean(times) for (dim, who), times in table.times.items() if who == solver}
        if not {10, 50, 100} <= mean.keys():
            yield Check(None, f"{name_of(solver)}: not run")
            continue
        growth = float(mean[100] / mean[10])
        numbers = f"{name_of(solver)}: {growth:.2f} times the seconds of d = 10 at d = 100"
        if solver != protocol.FM_NES:
            yield Check(growth < 2, numbers)
            continue
        yield Check(growth > 2, numbers)
        slope = float(np.log2(mean[100] / mean[50]))
        yield Check(2.5 <= slope <= 3.5, f"FM-NES: grows as d^{slope:.1f} from d = 50 to 100")


class Agreement(NamedTuple):
    """Two texts of one method on one problem."""

    problem: str
    ours: Solver
    theirs: Solver
    difference: float  # of the means, over theirs
    p: float

    @property
    def holds(self) -> bool:
        """Less than 5 % apart, or not significantly."""
        return abs(self.difference) < 0.05 or self.p > 0.01


PAIRS = (  # what should be the same method
    (protocol.PAPER, protocol.AUTHORS),
    (protocol.SEP_FED_CMAES, protocol.SEP_CMAES),
    (protocol.SEP_FED_PYCMA, protocol.SEP_PYCMA),
    (protocol.VD_FED, protocol.VD_PYCMA),
)


def agreements(table: Table) -> list[Agreement]:
    """Each pair on each problem that both have run."""
    found = []
    for ours, theirs in PAIRS:
        for problem, solver in sorted(table.rows):
            if solver == ours and (problem, theirs) in table.rows:
                a, b = table.rows[problem, ours], table.rows[problem, theirs]
                about = f"{problem.function}, d = {problem.dim}, λ = {problem.popsize}"
                found.append(Agreement(about, ours, theirs, *compare(a, b)))
    return found
