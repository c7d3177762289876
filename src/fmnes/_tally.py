"""What a search remembers beside the state of its method: best so far, counters, history."""

import math
import time
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._history import History
from fmnes._result import Status
from fmnes._stopping import Budget, Progress, Stopping, reasons, spent
from fmnes.algorithms._shared import Array, Report, is_feasible


class Tally:
    """Best so far, counters, history and clock of one run."""

    def __init__(self, dim: int, popsize: int, linear: bool, at_first: Report) -> None:
        self.dim, self.popsize, self.linear = dim, popsize, linear
        self.sigma0 = float(at_first.sigma)
        self.initial_deviations = at_first.deviations
        self.deviation0 = float(array_namespace(at_first.deviations).max(at_first.deviations))
        self.generation = self.nfev = self.nfailed = 0
        self.flat = self.infeasible = 0  # generations in a row
        self.varied = self.all_nan_at_first = False
        self.best_f = math.inf
        self.best_x: Array | None = None
        self.history = History()
        self.reasons: list[Status] = []
        self.started = time.monotonic()

    def take(self, values: NDArray[np.float64], found: Array | None) -> None:
        """The values of one generation, and its best candidate if it is the best so far."""
        self.generation += 1
        self.nfev += self.popsize
        isnan = np.isnan(values)
        self.nfailed += int(isnan.sum())
        self.all_nan_at_first |= self.generation == 1 and bool(isnan.all())
        feasible = values[is_feasible(np, values)]
        self.infeasible = 0 if feasible.size else self.infeasible + 1
        flat = feasible.size == values.size and feasible.min() == feasible.max()
        self.flat = self.flat + 1 if flat else 0
        self.varied |= bool(feasible.size and not flat)
        if found is not None:
            self.best_f, self.best_x = float(feasible.min()), found

    def record(
        self,
        values: NDArray[np.float64],
        report: Report,
        mean: Array,
        stopping: Stopping,
        seconds: tuple[float, float],
    ) -> None:
        """Write the generation into the history and ask the stopping rules.

        ``seconds`` are those spent in the objective and in the optimizer.
        """
        figures = _figures(report, mean, stopping.tolx * self.initial_deviations)
        ranked = np.where(is_feasible(np, values), values, np.inf)
        self.history.append(
            (
                self.generation,
                self.nfev,
                self.best_f,
                ranked.min(),
                2 * np.median(ranked / 2),  # the mean of two values of 1e308 would overflow
                figures["sigma"],
                figures["deviation_min"],
                figures["deviation_max"],
                figures["axis_ratio"] * figures["axis_ratio"],  # ** would raise beyond 1e308
                figures["norm_v"],
                int(figures["phase"]),
                *seconds,
            )
        )
        now = self._progress(values, figures, mean)
        self.reasons = reasons(stopping, now, self.history)

    def _progress(
        self, values: NDArray[np.float64], figures: dict[str, float], mean: Array
    ) -> Progress:
        feasible = values[is_feasible(np, values)]
        with np.errstate(over="ignore", invalid="ignore"):
            spread = float(np.ptp(feasible)) if feasible.size else math.inf
        info = array_namespace(mean).finfo(mean.dtype)
        return Progress(
            dim=self.dim,
            popsize=self.popsize,
            best=self.best_f,
            spread=spread,
            size=float(np.max(np.abs(feasible))) if feasible.size else math.inf,
            flat=self.flat,
            varied=self.varied,
            infeasible=self.infeasible,
            all_nan_at_first=self.all_nan_at_first,
            shrunk=figures["shrunk"] == 1,
            deviation_min=figures["deviation_min"],
            deviation_max=figures["deviation_max"],
            axis_ratio=figures["axis_ratio"],
            # D and v keep full relative precision each; a full matrix loses what eps hides.
            axis_limit=1e15 if self.linear else 0.1 / math.sqrt(float(info.eps)),
            growth=figures["deviation_max"] / self.deviation0,
            mean_max=figures["mean_max"],
            tiny=float(info.smallest_normal),
            huge=float(info.max),
        )

    def held(self, budget: Budget) -> list[Status]:
        """Every reason to end, the most telling first; empty while the search goes on."""
        limits = spent(
            budget, self.popsize, self.best_f, self.nfev, self.generation, self.elapsed()
        )
        return [*(s for s in limits if s == Status.FTARGET), *self.reasons] + [
            s for s in limits if s != Status.FTARGET
        ]

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "started": self.elapsed()}  # a clock means nothing elsewhere

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.started = time.monotonic() - state["started"]


def _figures(report: Report, mean: Array, converged: Array) -> dict[str, float]:
    """The scalars of a report on the host: one small transfer from the device."""
    xp = array_namespace(mean)
    size = xp.abs(mean)
    resolved = xp.maximum(converged, xp.finfo(mean.dtype).eps * size)
    figures = {
        "sigma": report.sigma,
        "axis_ratio": report.axis_ratio,
        "norm_v": report.norm_v,
        "phase": xp.astype(report.phase, mean.dtype),
        "deviation_min": xp.min(report.deviations),
        "deviation_max": xp.max(report.deviations),
        "shrunk": xp.astype(xp.all(report.deviations <= resolved), mean.dtype),
        "mean_max": xp.max(size),
    }
    stacked = checks.to_host(xp.stack(list(figures.values())))
    return dict(zip(figures, stacked.tolist(), strict=True))
