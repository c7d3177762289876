"""When a search ends: the rules, each with a name, checked after every generation."""

import math
import time
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from fmnes._history import History
from fmnes._result import Status
from fmnes.engines import Generation


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

    Examples
    --------
    >>> import fmnes
    >>> rough = fmnes.Stopping(tolx=1e-3, tolfun=1e-6)
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 5, 2.0, stopping=rough, rng=1)
    >>> result.success, result.status
    (True, <Status.TOLX: 'tolx'>)
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


class Limits(NamedTuple):
    """What a run's rules measure by: it does not change while the run goes on."""

    dim: int
    popsize: int
    deviation0: float  # the largest initial deviation
    axis_ratio: float  # beyond it rounding rules the covariance
    tiny: float  # smallest normal and largest finite number of the dtype
    huge: float


class Standing(NamedTuple):
    """Where a run stands after its last generation."""

    best: float  # best value so far; inf where there is none
    flat: int  # generations in a row with equal values
    varied: bool  # whether values of one generation ever differed
    infeasible: int  # generations in a row without a feasible candidate
    all_nan_at_first: bool


def reasons(
    stopping: Stopping, limits: Limits, run: Standing, now: Generation, history: History
) -> list[Status]:
    """Every rule about the search itself that holds, the most telling first."""
    held = []
    found = run.best < math.inf
    if run.best == -math.inf:
        held.append(Status.UNBOUNDED)
    # Without a feasible candidate the distribution contracts by itself: no convergence.
    hopeless = run.all_nan_at_first or run.infeasible >= stopping.infeasible
    if hopeless or (now.shrunk and not found):
        held.append(Status.INFEASIBLE)
    if _out_of_scale(limits, now):
        held.append(Status.SCALE)
    if now.shrunk and found and not run.infeasible:
        held.append(Status.TOLX)
    if _converged_values(stopping, limits, run, now, history):
        held.append(Status.TOLFUN)
    if run.flat >= stopping.flat and not run.varied:
        held.append(Status.FLAT)
    if now.axis_ratio > limits.axis_ratio:
        held.append(Status.CONDITION)
    if now.deviation_max > stopping.tolsigmaup * limits.deviation0:
        held.append(Status.SIGMA_UP)
    if now.deviation_min < limits.tiny:
        held.append(Status.SIGMA_UNDERFLOW)
    if _stagnates(stopping, limits, history):
        held.append(Status.STAGNATION)
    return held


def spent(
    budget: Budget, popsize: int, best: float, nfev: int, generation: int, started: float
) -> list[Status]:
    """Every limit of the budget that is reached; ``started`` on the clock of time.monotonic."""
    ftarget, maxfevals, maxiter, timeout = budget
    held = []
    if ftarget is not None and best <= ftarget:
        held.append(Status.FTARGET)
    if maxiter is not None and generation >= maxiter:
        held.append(Status.MAXITER)
    if maxfevals is not None and nfev + popsize > maxfevals:
        held.append(Status.MAXFEVALS)
    if timeout is not None and time.monotonic() - started >= timeout:
        held.append(Status.TIMEOUT)
    return held


def _out_of_scale(limits: Limits, now: Generation) -> bool:
    """Samples reach some ten deviations from the mean; both must stay finite. NaN counts too."""
    limit = limits.huge * 1e-3
    return not (now.deviation_max < limit and now.mean_max < limit)


def _converged_values(
    stopping: Stopping, limits: Limits, run: Standing, now: Generation, history: History
) -> bool:
    """The current values, and the best of the last generations, agree to tolfun.

    A search that saw differences and then sees none for ``flat`` generations has converged too.
    """
    if run.varied and run.flat >= stopping.flat:
        return True
    if not run.varied or run.infeasible:
        return False
    tolerance = stopping.tolfun * now.size
    if not now.most - now.least <= tolerance:
        return False
    window = 10 + math.ceil(30 * limits.dim / limits.popsize)
    if len(history) < window:
        return False
    recent = history.last("generation_best", window)
    with np.errstate(over="ignore"):
        return bool(np.max(recent) - np.min(recent) <= tolerance)


def _stagnates(stopping: Stopping, limits: Limits, history: History) -> bool:
    """Medians over the last third of a window are no better than over its first third."""
    window = stopping.stagnation
    if window is None:
        window = 200 + math.ceil(100 * limits.dim**1.5 / limits.popsize)
    every = max(1, window // 20)  # the medians cost O(window): look only now and then
    if window == 0 or len(history) < window or len(history) % every:
        return False
    third = math.ceil(window / 3)
    for column in ("generation_best", "median"):
        values = history.last(column, window) / 2  # so that medians of 1e308 do not overflow
        if np.median(values[-third:]) < np.median(values[:third]):
            return False
    return True
