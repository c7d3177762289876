"""The record of one run: what each generation showed, the best value so far, counters."""

import logging
import math
import time
from array import array
from collections import deque
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes.engines import Generation
from fmnes.records.history import History

logger = logging.getLogger("fmnes")

_MOST_RECENT = 100_000  # generations that the rule of stagnation looks at
_RISING = 90  # generations of medians in which a search is seen to rise


class Limits(NamedTuple):
    """Numbers that the stopping rules compare with; they are fixed during a run."""

    dim: int
    popsize: int  # of the first generation
    deviation0: float  # the largest initial standard deviation
    axis_ratio: float  # beyond this ratio, rounding errors dominate the covariance matrix
    tiny: float  # smallest normal and largest finite number of the dtype
    huge: float


class Windows(NamedTuple):
    """How many of the last generations the stopping rules look at; 0 for a rule that is off."""

    tolfun: int
    stagnation: int


class Feasible(NamedTuple):
    """What a generation of a search with constraints showed of the objective itself.

    The values of its `Generation` are those that were ranked. They are comparable only as long as
    the multipliers of the constraints do not change.
    """

    best: float  # the least value of a feasible candidate; inf if there is none
    violation: float  # the median of the violations


class Recent:
    """Best and median values of the generations in a window; of a long window, every n-th one.

    The window of the rule of stagnation grows as d^1.5, so that it may not fit in memory.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.every = max(1, window // 20)  # medians cost O(window): compute them rarely
        self._step = max(1, math.ceil(window / _MOST_RECENT))
        self._count = math.ceil(window / self._step)
        self._most = 2 * self._count  # then the older half goes
        self._best, self._median = array("d"), array("d")

    def add(self, generation: int, best: float, median: float) -> None:
        """Add the values of a generation, if it is one of those to keep."""
        if generation % self._step == 0:
            self._best.append(best)
            self._median.append(median)
            if len(self._best) > self._most:
                del self._best[: -self._count or None], self._median[: -self._count or None]

    @property
    def is_full(self) -> bool:
        """Whether the run is as long as the window."""
        return len(self._best) >= self._count

    def columns(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the best and the median values in the window."""
        best, median = np.array(self._best), np.array(self._median)
        return best[-self._count :], median[-self._count :]

    def resized(self, window: int) -> "Recent":
        """Return the same values for another window."""
        other = Recent(window)
        if other._step == self._step:
            other._extend(*self.columns())
        return other

    def _extend(self, best: NDArray[np.float64], median: NDArray[np.float64]) -> None:
        self._best.extend(best.tolist())
        self._median.extend(median.tolist())

    def to_saved(self) -> dict[str, Any]:
        """Return what a file holds of the values."""
        best, median = self.columns()
        return {"window": self.window, "best": best, "median": median}

    @classmethod
    def from_saved(cls, saved: dict[str, Any]) -> "Recent":
        """Return the values of `to_saved`; an error if they are of another kind."""
        recent = cls(checks.integer("window", saved["window"], least=0))
        recent._extend(_vector(saved["best"]), _vector(saved["median"]))
        return recent

    @classmethod
    def from_history(cls, history: History) -> "Recent":
        """Return the last values of a history that was never thinned out."""
        rows = history.to_array()[-_MOST_RECENT:]
        saved = {"window": len(rows), "best": rows["generation_best"], "median": rows["median"]}
        return cls.from_saved(saved)


def rises(medians: Collection[float]) -> bool:
    """Return whether values rise from each third of a full window to the next, beyond their noise.

    The noise is the median of the differences to the median of each third.
    """
    values = np.array(medians) / 4  # differences of 1e308 would overflow
    if len(values) < _RISING or not np.isfinite(values).all():
        return False
    thirds = values.reshape(3, -1)
    middle = np.median(thirds, axis=1)
    noise = np.median(np.abs(thirds - middle[:, None]))
    return bool(middle[0] < middle[1] < middle[2] and middle[2] - middle[0] > 3 * noise)


_FROM_FORMAT_6 = {
    "first_median": math.inf,
    "extra_nfev": 0,
    "free": 0,
    "extra_f": math.inf,
    "violated": 0,
    "rose_at": 0,
}


def _vector(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return values of a file; ValueError if they are no vector of numbers."""
    if values.ndim != 1 or values.dtype != np.float64:
        raise ValueError(f"record: expected a vector of numbers, got {values.dtype}")
    return values


class Record:
    """Best value so far, counters, history and clock of one run.

    The history may begin with the rows of earlier runs; the counters are those of this run.
    """

    def __init__(self, limits: Limits, sigma0: float, windows: Windows, history: History) -> None:
        self.limits, self.sigma0 = limits, sigma0
        self.popsize = limits.popsize  # of the next generation
        self.generation = self.nfev = self.nfailed = 0
        self.flat = self.infeasible = 0  # generations in a row: equal values, nothing usable
        self.violated = 0  # generations in a row in which all candidates violate a constraint
        self.varied = False  # whether the values of one generation ever differed
        self.all_nan_at_first = False
        self.best_f = math.inf
        # Points outside of the generations, such as x0: how many, and their best value.
        self.extra_nfev, self.extra_f = 0, math.inf
        self.free = 0  # candidates that were not evaluated: their values were known, or withdrawn
        self.listed_nfev = 0  # evaluations in the rows of the history
        self.last: Generation | None = None
        self.medians: deque[float] = deque(maxlen=_RISING)  # of the last generations
        self.first_median = math.inf
        self.rose_at = 0  # the first generation after which they had risen for long; 0: never
        self.history = history
        # For the stopping rules: the best values of the last generations, and those in a window.
        self.recent_best: deque[float] = deque(maxlen=windows.tolfun)
        self.recent = Recent(windows.stagnation)
        self.started = time.monotonic()

    def add_extra(
        self, values: NDArray[np.float64], feasible: Feasible | None = None
    ) -> int | None:
        """Add the values of points that are evaluated before the first generation, such as x0.

        Returns the index of the best one if it is the best so far; see `add` for ``feasible``.
        """
        self.extra_nfev += len(values)
        self.nfev += len(values)
        self.nfailed += int(np.isnan(values).sum())
        usable = np.where(np.isnan(values), np.inf, values)
        best = int(np.argmin(usable))
        found = float(usable[best]) if feasible is None else feasible.best
        if not found < self.best_f:
            return None
        self.best_f = self.extra_f = found
        return best

    @property
    def best_is_extra(self) -> bool:
        """Whether no candidate was better than the points evaluated before the generations."""
        return self.extra_f < math.inf and self.extra_f == self.best_f

    def add(
        self,
        now: Generation,
        seconds_objective: float,
        seconds_optimizer: float,
        feasible: Feasible | None = None,
        free: int = 0,
    ) -> None:
        """Add what a generation showed; ``feasible`` if the search has constraints.

        ``free`` is the number of candidates that were not evaluated.
        """
        self.last = now
        self.generation += 1
        self.free += free
        self.nfev += self.popsize - free
        least, flat = now.least, now.flat
        if nan := now.nan:
            self.nfailed += nan
            if self.generation == 1 and nan == self.popsize:
                self.all_nan_at_first = True
        self.flat = self.flat + 1 if flat else 0
        if not now.feasible:
            self.infeasible += 1
        else:
            self.infeasible = 0
            self.varied = self.varied or not flat
        found = feasible.best if feasible is not None else least if now.feasible else math.inf
        if found < self.best_f:
            self.best_f = found
        self.recent_best.append(least)
        if feasible is None:
            self.recent.add(self.generation, least, now.median)
            self._watch(now.median)
        else:  # progress that does not depend on the multipliers
            self.violated = 0 if feasible.best < math.inf else self.violated + 1
            self.recent.add(self.generation, now.deviation_max, feasible.violation)
        generation, nfev, best = self.history.totals  # of earlier runs too
        nfev, self.listed_nfev = nfev + self.nfev - self.listed_nfev, self.nfev
        self.history.append(
            (  # in the order of `history.Row`
                generation + 1,
                nfev,
                self.best_f if self.best_f < best else best,
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

    def _watch(self, median: float) -> None:
        """Warn once if the medians rise for long, and are worse than at the start.

        A search of a noisy function that has come near its optimum may rise for a while, too.
        """
        if self.generation == 1:
            self.first_median = median
        self.medians.append(median)
        if self.generation % (_RISING // 3) or self.rose_at or median <= self.first_median:
            return
        if rises(self.medians):
            self.rose_at = self.generation
            logger.warning("%s", self.advice)

    @property
    def advice(self) -> str:
        """What to do about values that have risen for long; empty if they have not."""
        if not self.rose_at:
            return ""
        return (
            f"The median value of a generation rose for {_RISING} generations until generation "
            f"{self.rose_at}: sigma0 = {self.sigma0:.3g} may be too large for {self.limits.dim} "
            f"variables and popsize {self.limits.popsize}. Try sigma0 = {self.sigma0 / 10:.2g}, or "
            "a larger popsize if there are many local minima."
        )

    def forget_convergence(self) -> None:
        """Clear the verdict about tolx, because the tolerances have changed."""
        if self.last is not None:
            self.last = Generation._make(self.last)._replace(shrunk=False)

    def set_windows(self, windows: Windows) -> None:
        """Keep as many recent values as the stopping rules need."""
        self.recent_best = deque(self.recent_best, maxlen=windows.tolfun)
        self.recent = self.recent.resized(windows.stagnation)

    @property
    def signature(self) -> tuple[float, float]:
        """Step size and largest |coordinate| of the mean.

        Two searches that differ in anything differ in these numbers after a few generations.
        """
        return (self.sigma0, 0.0) if self.last is None else (self.last.sigma, self.last.mean_max)

    def __getstate__(self) -> dict[str, Any]:
        last = None if self.last is None else Generation._make(self.last)
        elapsed = time.monotonic() - self.started  # the clock of another process differs
        return {
            **self.__dict__,
            "last": last,
            "recent_best": np.array(self.recent_best),
            "medians": np.array(self.medians),
            "recent": self.recent.to_saved(),
            "started": elapsed,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        older = {"listed_nfev": state["nfev"], "popsize": state["limits"].popsize}
        self.__dict__.update(_FROM_FORMAT_6 | older | state)
        medians = _vector(state.get("medians", np.empty(0)))
        self.medians = deque(medians.tolist(), maxlen=_RISING)
        if self.last is not None:  # files of older versions hold a plain tuple
            self.last = Generation._make(self.last)
        if "recent" in state:
            self.recent_best = deque(_vector(state["recent_best"]).tolist())
            self.recent = Recent.from_saved(state["recent"])
        else:  # files of format 3 hold no recent values, but all rows of the run
            self.recent_best = deque(self.history["generation_best"].tolist())
            self.recent = Recent.from_history(self.history)
        self.started = time.monotonic() - state["started"]
