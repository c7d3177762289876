"""When a search ends: the rules, each with a name, checked after every generation."""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from fmnes._history import History
from fmnes._result import Status


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """Limits that end a search; the defaults end a converged one and let a slow one go on.

    Parameters
    ----------
    tolx : float
        Converged when every standard deviation is below ``tolx`` times its initial value. (What
        floating-point numbers no longer resolve at the mean counts as converged in any case.)
    tolfun : float
        Converged when the values of the current generation and the best of the last
        10 + 30 d/popsize generations differ by less than ``tolfun`` times their largest size.
        There is no absolute tolerance: an objective times 1e-300 takes the same steps.
    tolsigmaup : float
        End when the largest standard deviation has grown by this factor.
    flat : int
        End after this many generations in a row whose values are all equal: as converged where
        values differed before, as flat where they never did.
    stagnation : int or None
        End when neither best nor median improve over this many generations;
        200 + 100 d^1.5/popsize by default.
    infeasible : int
        End after this many generations in a row without a feasible candidate.
    """

    tolx: float = 1e-14
    tolfun: float = 1e-14
    tolsigmaup: float = 1e8
    flat: int = 20
    stagnation: int | None = None
    infeasible: int = 100

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "stagnation" and value is None:
                continue
            if not (isinstance(value, int | float) and value >= 0):
                raise ValueError(f"{f.name}: expected a number >= 0, got {value!r}")


class Budget(NamedTuple):
    """What the user is willing to spend, and the value that is good enough."""

    ftarget: float | None = None
    maxfevals: int | None = None
    maxiter: int | None = None
    timeout: float | None = None


class Progress(NamedTuple):
    """What the rules look at: where the search stands after a generation."""

    dim: int
    popsize: int
    best: float  # best value so far; inf where there is none
    spread: float  # largest minus smallest feasible value of the generation
    size: float  # largest |value| of the generation's feasible ones
    flat: int  # generations in a row with equal values
    varied: bool  # whether values of one generation ever differed
    infeasible: int  # generations in a row without a feasible candidate
    all_nan_at_first: bool
    shrunk: bool  # every deviation is below tolx times its initial value, or what is resolved
    deviation_min: float
    deviation_max: float
    axis_ratio: float
    axis_limit: float
    growth: float  # of the largest deviation since the start
    mean_max: float  # largest |coordinate| of the mean
    tiny: float  # smallest normal and largest finite number of the dtype
    huge: float


def reasons(stopping: Stopping, now: Progress, history: History) -> list[Status]:
    """Every rule about the search itself that holds, the most telling first."""
    found = now.best < math.inf
    held = {
        Status.UNBOUNDED: now.best == -math.inf,
        # Without a feasible candidate the distribution contracts by itself: no convergence.
        Status.INFEASIBLE: now.all_nan_at_first
        or now.infeasible >= stopping.infeasible
        or (now.shrunk and not found),
        Status.SCALE: _out_of_scale(now),
        Status.TOLX: now.shrunk and found and not now.infeasible,
        Status.TOLFUN: _converged_values(stopping, now, history),
        Status.FLAT: now.flat >= stopping.flat and not now.varied,
        Status.CONDITION: now.axis_ratio > now.axis_limit,
        Status.SIGMA_UP: now.growth > stopping.tolsigmaup,
        Status.SIGMA_UNDERFLOW: now.deviation_min < now.tiny,
        Status.STAGNATION: _stagnates(stopping, now, history),
    }
    return [status for status, holds in held.items() if holds]


def spent(
    budget: Budget, popsize: int, best: float, nfev: int, generation: int, seconds: float
) -> list[Status]:
    """Every limit of the budget that is reached."""
    ftarget, maxfevals, maxiter, timeout = budget
    held = {
        Status.FTARGET: ftarget is not None and best <= ftarget,
        Status.MAXITER: maxiter is not None and generation >= maxiter,
        Status.MAXFEVALS: maxfevals is not None and nfev + popsize > maxfevals,
        Status.TIMEOUT: timeout is not None and seconds >= timeout,
    }
    return [status for status, holds in held.items() if holds]


def _out_of_scale(now: Progress) -> bool:
    """Samples reach some ten deviations from the mean; both must stay finite. NaN counts too."""
    limit = now.huge * 1e-3
    return not (now.deviation_max < limit and now.mean_max < limit)


def _converged_values(stopping: Stopping, now: Progress, history: History) -> bool:
    """The current values, and the best of the last generations, agree to tolfun.

    A search that saw differences and then sees none for ``flat`` generations has converged too.
    """
    if now.varied and now.flat >= stopping.flat:
        return True
    if not now.varied or now.infeasible:
        return False
    window = 10 + math.ceil(30 * now.dim / now.popsize)
    tolerance = stopping.tolfun * now.size
    if len(history) < window or not now.spread <= tolerance:
        return False
    recent = history.last("generation_best", window)
    with np.errstate(over="ignore"):
        return bool(np.max(recent) - np.min(recent) <= tolerance)


def _stagnates(stopping: Stopping, now: Progress, history: History) -> bool:
    """Medians over the last third of a window are no better than over its first third."""
    window = stopping.stagnation
    if window is None:
        window = 200 + math.ceil(100 * now.dim**1.5 / now.popsize)
    every = max(1, window // 20)  # the medians cost O(window): look only now and then
    if window == 0 or len(history) < window or len(history) % every:
        return False
    third = math.ceil(window / 3)
    for column in ("generation_best", "median"):
        values = history.last(column, window) / 2  # so that medians of 1e308 do not overflow
        if np.median(values[-third:]) < np.median(values[:third]):
            return False
    return True
