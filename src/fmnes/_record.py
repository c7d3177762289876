"""What a search remembers beside the state of its method: best so far, counters, history."""

import math
import time
from typing import Any

from fmnes._history import History
from fmnes._result import Status
from fmnes._stopping import Budget, Limits, Standing, Stopping, reasons, spent
from fmnes.engines import Generation


class Tally:
    """Best so far, counters, history and clock of one run."""

    def __init__(self, limits: Limits, sigma0: float) -> None:
        self.limits, self.sigma0 = limits, sigma0
        self.generation = self.nfev = self.nfailed = 0
        self.flat = self.infeasible = 0  # generations in a row
        self.varied = self.all_nan_at_first = False
        self.best_f = math.inf
        self.last: tuple[Any, ...] | None = None  # the fields of the last Generation
        self.history = History()
        self.started = time.monotonic()

    def record(
        self, now: tuple[Any, ...], seconds_objective: float, seconds_optimizer: float
    ) -> None:
        """Take in what a `Generation` showed."""
        (
            nan, feasible, least, _most, _size, median, flat,
            sigma, axis_ratio, norm_v, phase, deviation_min, deviation_max, _mean_max, _shrunk,
        ) = self.last = now  # fmt: skip
        self.generation += 1
        self.nfev += self.limits.popsize
        if nan:
            self.nfailed += nan
            if self.generation == 1 and nan == self.limits.popsize:
                self.all_nan_at_first = True
        self.flat = self.flat + 1 if flat else 0
        if not feasible:
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
                median,
                sigma,
                deviation_min,
                deviation_max,
                axis_ratio * axis_ratio,  # ** would raise beyond 1e308
                norm_v,
                phase,
                seconds_objective,
                seconds_optimizer,
            )
        )

    def held(self, budget: Budget, stopping: Stopping) -> list[Status]:
        """Every reason to end, the most telling first; empty while the search goes on."""
        limits = spent(
            budget, self.limits.popsize, self.best_f, self.nfev, self.generation, self.started
        )
        if self.last is None:
            return limits
        standing = Standing(
            self.best_f, self.flat, self.varied, self.infeasible, self.all_nan_at_first
        )
        now = Generation._make(self.last)
        found = reasons(stopping, self.limits, standing, now, self.history)
        if limits and limits[0] == Status.FTARGET:
            return [Status.FTARGET, *found, *limits[1:]]
        return found + limits

    def forget_convergence(self) -> None:
        """Leave it to the next generation to judge by tolerances that have changed."""
        if self.last is not None:
            self.last = Generation._make(self.last)._replace(shrunk=False)

    @property
    def landmarks(self) -> tuple[float, float]:
        """Step size and largest |coordinate| of the mean: two courses differ in them."""
        if self.last is None:
            return self.sigma0, 0.0
        now = Generation._make(self.last)
        return now.sigma, now.mean_max

    def __getstate__(self) -> dict[str, Any]:
        elapsed = time.monotonic() - self.started  # a clock means nothing elsewhere
        return {**self.__dict__, "started": elapsed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.started = time.monotonic() - state["started"]
