"""Restart schedules: what to run next, as a pure function of the runs so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fmnes import _checks as checks
from fmnes._result import Run


class Start(NamedTuple):
    """How the next run begins."""

    popsize: int
    sigma_factor: float = 1.0  # times sigma0
    maxfevals: int | None = None  # at most this many evaluations of what is left


@dataclass(frozen=True)
class IPOP:
    """Restart with an increasing population size.

    A. Auger, N. Hansen: "A restart CMA evolution strategy with increasing population size",
    CEC 2005. A larger population averages over the small basins of a multimodal objective. Each
    run may use all that is left of the budget; the schedule ends when it no longer suffices for
    one generation.

    Parameters
    ----------
    n : int
        The largest number of restarts.
    factor : float
        By which the population grows from run to run.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.rastrigin(2)
    >>> result = fmnes.minimize(problem, problem.x0, 2.0, restarts=fmnes.IPOP(2, factor=3), rng=1)
    >>> [run.popsize for run in result.restarts]
    [6, 18, 54]
    """

    n: int
    factor: float = 2.0

    def __post_init__(self) -> None:
        checks.integer("n", self.n, least=0)
        if not self.factor >= 1:
            raise ValueError(f"factor: expected a number >= 1, got {self.factor!r}")

    def next(self, runs: Sequence[Run], seed: int) -> Start | None:
        """The run after ``runs``; None when the schedule is through."""
        if len(runs) > self.n:
            return None
        return Start(_even(runs[0].popsize * self.factor ** len(runs)))


@dataclass(frozen=True)
class BIPOP:
    """Restart in two regimes: ever larger populations, and small ones in between.

    N. Hansen: "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", GECCO 2009.
    The regime that has used fewer evaluations runs next. A small run starts from a random
    population size and a random, smaller sigma0, and may use half of what the last large one did.

    Parameters
    ----------
    n : int
        The largest number of doublings of the population; small runs are not counted.

    Examples
    --------
    >>> import fmnes
    >>> problem = fmnes.problems.rastrigin(2)
    >>> result = fmnes.minimize(problem, problem.x0, 2.0, restarts=fmnes.BIPOP(1), rng=1)
    >>> max(run.popsize for run in result.restarts)  # twice the first, and small ones
    12
    """

    n: int

    def __post_init__(self) -> None:
        checks.integer("n", self.n, least=0)

    def next(self, runs: Sequence[Run], seed: int) -> Start | None:
        """The run after ``runs``; None when the schedule is through."""
        spent_large = spent_small = 0
        doublings = 0
        last_large = runs[0]
        for i, run in enumerate(runs):  # the same decisions again: nothing else is remembered
            if i > 0 and spent_small < spent_large:
                spent_small += run.nfev
            else:
                spent_large += run.nfev
                doublings += i > 0
                last_large = run
        base = runs[0].popsize
        if spent_small < spent_large:
            u, v = np.random.default_rng([seed, len(runs)]).random(2)
            popsize = base * (0.5 * last_large.popsize / base) ** (u**2)
            return Start(max(4, _even(popsize)), 10 ** (-2 * v), last_large.nfev // 2)
        if doublings >= self.n:
            return None
        return Start(_even(base * 2.0 ** (doublings + 1)))


def read_restarts(value: int | IPOP | BIPOP) -> IPOP | BIPOP:
    """A schedule; an int means that many IPOP restarts."""
    if isinstance(value, IPOP | BIPOP):
        return value
    return IPOP(checks.integer("restarts", value, least=0))


def _even(popsize: float) -> int:
    """Rounded up to an even number, which every method takes."""
    return 2 * math.ceil(popsize / 2)
