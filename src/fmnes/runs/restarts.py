"""Restart schedules: each computes the next run from the runs so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmnes import _checks as checks
from fmnes.records.parts import Run


class NextRun(NamedTuple):
    """How the next run begins."""

    popsize: int
    sigma_factor: float = 1.0  # times sigma0
    maxfevals: int | None = None  # a limit below what is left of the budget


@dataclass(frozen=True)
class IPOP:
    """Restart with an increasing population size.

    A. Auger, N. Hansen: "A restart CMA evolution strategy with increasing population size",
    CEC 2005. A larger population averages over the small basins of a multimodal objective. Each
    run may use the whole remaining budget. The schedule ends when the budget does not suffice for
    another generation.

    Parameters
    ----------
    n : int
        The largest number of restarts.
    factor : float
        The population size grows by this factor from run to run.
    parallel : int
        The number of runs that share the workers of an asynchronous search; see
        docs/restarts.md. By default one run follows the other.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.rastrigin(2)
    >>> result = fmnes.minimize(problem, problem.x0, 2.0, restarts=fmnes.IPOP(2, factor=3), rng=1)
    >>> [run.popsize for run in result.restarts]
    [6, 18, 54]
    """

    sizes_may_change: ClassVar[bool] = True  # of the generations of a run
    n: int
    factor: float = 2.0
    parallel: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, least=0))
        checks.finite("factor", self.factor, least=1)
        object.__setattr__(self, "parallel", checks.integer("parallel", self.parallel, least=1))

    def __repr__(self) -> str:
        parallel = "" if self.parallel == 1 else f", parallel={self.parallel}"
        return f"IPOP(n={self.n}, factor={self.factor}{parallel})"  # checkpoints hold it

    def next(self, runs: Sequence[Run], seed: int) -> NextRun | None:
        """Return the run that follows ``runs``; None if the schedule has ended."""
        if len(runs) > self.n:
            return None
        return NextRun(_even(runs[0].popsize * self.factor ** len(runs)))


@dataclass(frozen=True)
class BIPOP:
    """Restart alternately with increasing and with small population sizes.

    N. Hansen: "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", GECCO 2009.
    The regime that has used fewer evaluations runs next. A small run has a random population size
    and a random, smaller sigma0. It may use half as many evaluations as the last large run.

    Parameters
    ----------
    n : int
        The largest number of doublings of the population; small runs are not counted.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.rastrigin(2)
    >>> result = fmnes.minimize(problem, problem.x0, 2.0, restarts=fmnes.BIPOP(1), rng=1)
    >>> max(run.popsize for run in result.restarts)  # twice the first; the others are smaller
    12
    """

    sizes_may_change: ClassVar[bool] = False  # evaluations are counted by the popsize of a run
    parallel: ClassVar[int] = 1  # a run depends on what the runs before it have used
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, least=0))

    def next(self, runs: Sequence[Run], seed: int) -> NextRun | None:
        """Return the run that follows ``runs``; None if the schedule has ended."""
        spent_large = spent_small = 0
        doublings = 0
        last_large = runs[0]
        for i, run in enumerate(runs):  # repeat the earlier decisions: they are not stored
            spent = run.nit * run.popsize  # without x0, which the first run evaluates
            if i > 0 and spent_small < spent_large:
                spent_small += spent
            else:
                spent_large += spent
                doublings += i > 0
                last_large = run
        base = runs[0].popsize
        if spent_small < spent_large:
            u, v = np.random.default_rng([seed, len(runs)]).random(2)
            popsize = base * (0.5 * last_large.popsize / base) ** (u**2)
            half = last_large.nit * last_large.popsize // 2
            return NextRun(max(4, _even(popsize)), 10 ** (-2 * v), half)
        if doublings >= self.n:
            return None
        return NextRun(_even(base * 2.0 ** (doublings + 1)))


def read_restarts(value: int | IPOP | BIPOP) -> IPOP | BIPOP:
    """Return a schedule; a number n means ``IPOP(n)``."""
    if isinstance(value, IPOP | BIPOP):
        return value
    try:
        return IPOP(checks.integer("restarts", value, least=0))
    except TypeError as error:
        raise TypeError(f"{error} (for a schedule, pass IPOP(9) or BIPOP(9))") from None


def _even(popsize: float) -> int:
    """Return ``popsize`` rounded up to an even number, which every method accepts."""
    return 2 * math.ceil(popsize / 2)
