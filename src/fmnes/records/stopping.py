"""The rules that end a search, each with a name, checked after every generation."""

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fmnes import _checks as checks
from fmnes.engines import Generation
from fmnes.records.record import Limits, Record, Windows
from fmnes.records.status import Status


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """Tolerances that end a search which has converged or makes no progress.

    Parameters
    ----------
    tolx : float
        The search has converged when every standard deviation is below ``tolx`` times its initial
        value; less than 1. It has also converged when floating-point numbers cannot resolve the
        standard deviations at the mean.
    tolfun : float
        The search has converged when the values of the current generation and the best values of
        the last 10 + 30 d/popsize generations (60 in place of 30 with integers or choices) differ
        by less than ``tolfun`` times the largest absolute value; less than 1. There is no absolute
        tolerance, so scaling the objective function changes nothing.
    tolsigmaup : float
        The search ends when the largest standard deviation has grown by this factor.
    flat : int
        The search ends after this number of consecutive generations in which all values are equal:
        with status "tolfun" if values differed earlier, with "flat" if they never did.
    stagnation : int, optional
        The search ends when neither the best nor the median value improves over this number of
        generations. The default is 200 + 100 d^1.5/popsize, and five times as many for the method
        "auto" while it adapts its learning rates: it then averages noise over many generations
        before values show it. 0 switches the rule off. Of more than
        100,000 generations, the rule looks at every second one, every third one, and so on.
    infeasible : int
        The search ends after this number of consecutive generations without a feasible candidate.

    ``math.inf`` switches the rules of ``tolsigmaup``, ``flat``, ``stagnation`` and ``infeasible``
    off.

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
        # A relative tolerance of 1 holds in the first generation, as does a count of 0.
        for name in ("tolx", "tolfun"):
            checks.real(name, getattr(self, name), least=0, below=1)
        checks.real("tolsigmaup", self.tolsigmaup, above=1)
        for name, least in (("flat", 1), ("stagnation", 0), ("infeasible", 1)):
            value = getattr(self, name)
            is_off = isinstance(value, float) and value == math.inf
            if not is_off and not (name == "stagnation" and value is None):
                object.__setattr__(self, name, checks.integer(name, value, least=least))


def read_stopping(value: Stopping | None) -> Stopping:
    """Return the tolerances of a search: the default ones if none are given."""
    if value is not None and not isinstance(value, Stopping):
        raise TypeError(f"stopping: expected fmnes.Stopping(...), got {value!r}")
    return Stopping() if value is None else value


# Where several constraints meet, some generations have no feasible candidate by chance.
_LONG_VIOLATED = 20
_SAME = 1e-7  # relative difference of values; constraints have a tolerance of 1.5e-8


class Budget(NamedTuple):
    """Limits on evaluations, generations and seconds, and the target value."""

    ftarget: float | None = None
    maxfevals: int | None = None
    maxiter: int | None = None
    timeout: float | None = None

    def less(self, evaluations: int) -> "Budget":
        """The same with fewer evaluations."""
        if self.maxfevals is None:
            return self
        return self._replace(maxfevals=self.maxfevals - evaluations)


def windows(
    stopping: Stopping, limits: Limits, patience: int = 1, *, discrete: bool = False
) -> Windows:
    """Return how many of the last generations the rules of tolfun and stagnation look at.

    A method that averages noise over many generations asks for ``patience`` times the default.
    ``discrete``: the search has integers or choices.
    """
    stagnation = stopping.stagnation
    if stagnation is None:
        stagnation = patience * (200 + math.ceil(100 * limits.dim**1.5 / limits.popsize))
    elif stagnation == math.inf:
        stagnation = 0
    return Windows(tolfun_window(limits.dim, limits.popsize, discrete=discrete), stagnation)


def tolfun_window(dim: int, popsize: int, *, discrete: bool = False) -> int:
    """Return how many of the last generations the rule of tolfun looks at.

    The margin changes one of d integers to a certain neighbour, and none of the others, about once
    in 9 d candidates. With 60 d candidates, few searches end before this one was tried.
    """
    return 10 + math.ceil((60 if discrete else 30) * dim / popsize)


def reasons(record: Record, budget: Budget, stopping: Stopping) -> list[Status]:
    """Return every reason to end a run, the most informative first; empty if it continues."""
    spent = _spent(record, budget)
    if record.last is None:
        return spent
    found = _rules(record, record.last, stopping)
    if spent and spent[0] == Status.FTARGET:
        return [Status.FTARGET, *found, *spent[1:]]
    return found + spent


def _spent(record: Record, budget: Budget) -> list[Status]:
    """Return the limits of the budget that are reached."""
    reached, ftarget, next_nfev = [], budget.ftarget, record.nfev + record.popsize
    if ftarget is not None and record.best_f <= ftarget and record.best_f < math.inf:
        reached.append(Status.FTARGET)
    if budget.maxiter is not None and record.generation >= budget.maxiter:
        reached.append(Status.MAXITER)
    if budget.maxfevals is not None and next_nfev > budget.maxfevals:
        reached.append(Status.MAXFEVALS)
    if budget.timeout is not None and time.monotonic() - record.started >= budget.timeout:
        reached.append(Status.TIMEOUT)
    return reached


def _rules(record: Record, now: Generation, stopping: Stopping) -> list[Status]:
    """Return the rules about the search itself that hold after generation ``now``."""
    limits = record.limits
    holding = []
    # With constraints there may be values to rank, and none of a feasible candidate.
    found = record.best_f < math.inf or record.varied
    if record.best_f == -math.inf:
        holding.append(Status.UNBOUNDED)
    # Without a feasible candidate the distribution contracts by itself: that is no convergence.
    hopeless = record.all_nan_at_first or record.infeasible >= stopping.infeasible
    if hopeless or (now.shrunk and not found):
        holding.append(Status.INFEASIBLE)
    if _out_of_scale(limits, now):
        holding.append(Status.SCALE)
    converged = []
    if now.shrunk and found and not record.infeasible:
        converged.append(Status.TOLX)
    if _converged_values(record, now, stopping):
        converged.append(Status.TOLFUN)
    holding.extend([Status.VIOLATED] if converged and _has_left(record, now) else converged)
    if record.flat >= stopping.flat and not record.varied:
        holding.append(Status.FLAT)
    if now.axis_ratio > limits.axis_ratio:
        holding.append(Status.CONDITION)
    if now.deviation_max > stopping.tolsigmaup * limits.deviation0:
        holding.append(Status.SIGMA_UP)
    if now.deviation_min < limits.tiny:
        holding.append(Status.SIGMA_UNDERFLOW)
    if _stagnates(record):
        holding.append(Status.STAGNATION)
    return holding


def _has_left(record: Record, now: Generation) -> bool:
    """Return whether the best candidate is feasible, and the search has left it for good.

    With many equalities few candidates satisfy all of them, even if the search is at the solution.
    It has not left if the values there are the best one up to what the tolerance changes.
    """
    if record.violated <= _LONG_VIOLATED or record.best_f == math.inf:
        return False
    return not abs(now.least - record.best_f) <= _SAME * now.size


def _out_of_scale(limits: Limits, now: Generation) -> bool:
    """Return whether mean or samples, ten deviations away, may overflow; NaN counts too."""
    limit = limits.huge * checks.ROOM
    return not (now.deviation_max < limit and now.mean_max < limit)


def _converged_values(record: Record, now: Generation, stopping: Stopping) -> bool:
    """Return whether the current values and the best of the last generations agree to tolfun.

    A search whose values differed once, and then do not for ``flat`` generations, has converged.
    """
    if record.varied and record.flat >= stopping.flat:
        return True
    # With constraints, the values may agree before a candidate satisfies all equalities.
    if not record.varied or record.infeasible or record.best_f == math.inf:
        return False
    tolerance = stopping.tolfun * now.size
    if not now.most - now.least <= tolerance:
        return False
    if len(record.recent_best) != record.recent_best.maxlen:
        return False
    recent = np.array(record.recent_best)
    with np.errstate(over="ignore"):
        return bool(np.max(recent) - np.min(recent) <= tolerance)


def _stagnates(record: Record) -> bool:
    """Return whether the last third of a window has no better medians than its first third."""
    recent = record.recent
    if record.generation % recent.every or recent.window == 0 or not recent.is_full:
        return False
    for column in recent.columns():
        third = math.ceil(len(column) / 3)
        values = column / 2  # the median of 1e308 would overflow
        if np.median(values[-third:]) < np.median(values[:third]):
            return False
    return True
