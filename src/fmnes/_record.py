"""The record of one run: what each generation showed, the best value so far, counters."""

import math
import time
from typing import Any, NamedTuple

from fmnes._history import History
from fmnes.engines import Generation


class Limits(NamedTuple):
    """Numbers that the stopping rules compare with; they are fixed during a run."""

    dim: int
    popsize: int
    deviation0: float  # the largest initial standard deviation
    axis_ratio: float  # beyond this ratio, rounding errors dominate the covariance matrix
    tiny: float  # smallest normal and largest finite number of the dtype
    huge: float


class Record:
    """Best value so far, counters, history and clock of one run."""

    def __init__(self, limits: Limits, sigma0: float) -> None:
        self.limits, self.sigma0 = limits, sigma0
        self.generation = self.nfev = self.nfailed = 0
        self.flat = self.infeasible = 0  # generations in a row: equal values, nothing feasible
        self.varied = False  # whether the values of one generation ever differed
        self.all_nan_at_first = False
        self.best_f = math.inf
        self.last: Generation | None = None
        self.history = History()
        self.started = time.monotonic()

    def add(self, now: Generation, seconds_objective: float, seconds_optimizer: float) -> None:
        """Add what a generation showed."""
        self.last = now
        self.generation += 1
        self.nfev += self.limits.popsize
        least, flat = now.least, now.flat
        if nan := now.nan:
            self.nfailed += nan
            if self.generation == 1 and nan == self.limits.popsize:
                self.all_nan_at_first = True
        self.flat = self.flat + 1 if flat else 0
        if not now.feasible:
            self.infeasible += 1
        else:
            self.infeasible = 0
            self.varied = self.varied or not flat
            if least < self.best_f:
                self.best_f = least
        self.history.append(
            (
                self.generation,
                self.nfev,
                self.best_f,
                least,
                now.median,
                now.sigma,
                now.deviation_min,
                now.deviation_max,
                now.axis_ratio * now.axis_ratio,  # ** would raise beyond 1e308
                now.norm_v,
                now.phase,
                seconds_objective,
                seconds_optimizer,
            )
        )

    def forget_convergence(self) -> None:
        """Clear the verdict about tolx, because the tolerances have changed."""
        if self.last is not None:
            self.last = Generation._make(self.last)._replace(shrunk=False)

    @property
    def signature(self) -> tuple[float, float]:
        """Step size and largest |coordinate| of the mean.

        Two searches that differ in anything differ in these numbers after a few generations.
        """
        return (self.sigma0, 0.0) if self.last is None else (self.last.sigma, self.last.mean_max)

    def __getstate__(self) -> dict[str, Any]:
        last = None if self.last is None else Generation._make(self.last)
        elapsed = time.monotonic() - self.started  # the clock of another process differs
        return {**self.__dict__, "last": last, "started": elapsed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.last is not None:  # files of older versions hold a plain tuple
            self.last = Generation._make(self.last)
        self.started = time.monotonic() - state["started"]
