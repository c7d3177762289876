"""The first generation, tried with other step sizes if sigma0 does not fit the function at x0.

Methods that sample in pairs evaluate x0 + s y and x0 - s y. Half the difference of two values, the
odd part, shows the slope along y. Their mean minus f(x0), the even part, shows the curvature. On a
quadratic function the step size at which a generation gains most is

    s t   with   t = c mu_eff rms(odd) / (2 mean(even)),   c mu_eff = 0.37 popsize,

so one generation and f(x0) tell by which factor s is wrong. If t is far from 1, the same draws are
evaluated with another s. Each of these trials is the first generation of a search with another
sigma0, and the search continues with one of them. The evaluations of the other trials are lost. If
sigma0 fits, as it usually does, there are no trials, and the search is the same as without them.

A step size that fits the local slope and curvature may be wrong where there are many local minima.
There the odd parts at two step sizes are not alike, or a smaller s seems to be too large, too. Or
the function is steep only near x0, such as the share of wrong answers of a network, which no larger
weights change: there the odd parts hardly grow with s. In these cases the search keeps the step
size that it had.
"""

import logging
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, to_host
from fmnes._optimizer import Optimizer
from fmnes.algorithms import METHODS
from fmnes.arguments.shape import least_factor
from fmnes.arguments.start import Start
from fmnes.variables.bounds import Box

logger = logging.getLogger("fmnes")

_C_MU_EFF = 0.37  # c mu_eff / popsize, nearly the same for all numbers of variables
_FITS = (0.33, 25.0)  # values of t; the cost of a wrong step size grows slowly with its logarithm
_SMALL_T = 8.0  # where a search goes whose sigma0 is too small: badly scaled functions prefer it
_LEAST_AFTER_GROWTH = 1.0  # t: a sigma0 that was too small must not become too large
_MOST_GROWTH = 4.0  # from one trial to the next: a function may be curved further away only
_ALIKE = 0.5  # least cosine between the odd parts at two step sizes
_MOST_TRIALS = 8
_LEAST_PAIRS = 4
_UNKNOWN = 1e3  # a larger t only says that the curvature is lost in rounding errors
_RANGE = (1e-6, 1e6)  # of the factors
_RESOLVED = 4.0  # steps are at least so many times what floating-point numbers resolve at x0


def tries_steps(start: Start, *, given: bool) -> bool:
    """Return whether the first generation may try other step sizes than sigma0.

    If sigma0 is left out, every method that samples in pairs does; if it is given, those whose
    settings say so. With constraints, no single value shows how good a candidate is.
    """
    setup = start.setup
    wanted = not given or setup.settings.tries_steps
    in_pairs = METHODS[setup.method].ANTITHETIC and start.popsize >= 2 * _LEAST_PAIRS
    return wanted and in_pairs and setup.constraints is None


class TriedStep(NamedTuple):
    """A first generation."""

    factor: float  # of the step size, times sigma0
    values: NDArray[np.float64]  # candidate i + lambda/2 mirrors candidate i


class Parts(NamedTuple):
    """What the pairs of a trial show."""

    odd: NDArray[np.float64]  # NaN for a pair without values
    t: float  # by which factor the step size is wrong; inf if there is no curvature; NaN if unknown
    slope: float = 0.0  # rms of the odd part


def parts(values: NDArray[np.float64], f0: float) -> Parts:
    """Return the slopes along the pairs of a generation, and by which factor its step is wrong."""
    plus, minus = np.split(values / 4, 2)  # sums of 1e308 would overflow
    with np.errstate(invalid="ignore"):  # inf - inf
        odd, even = plus - minus, plus + minus - f0 / 2
    usable = np.isfinite(odd) & np.isfinite(even)
    odd = np.where(usable, odd, np.nan)
    if usable.sum() < _LEAST_PAIRS or not (scale := np.max(np.abs(odd[usable]))) > 0:
        return Parts(odd, math.nan)
    slope = scale * math.sqrt(np.mean((odd[usable] / scale) ** 2))
    curvature = float(np.mean(even[usable]))
    t = _C_MU_EFF * len(values) * slope / (2 * curvature) if curvature > 0 else math.inf
    return Parts(odd, math.inf if t > _UNKNOWN else t, slope)


def agree(one: Parts, other: Parts, factor: float) -> bool:
    """Return whether two trials show the same slopes and curvature.

    ``factor`` is the step size of ``other`` divided by that of ``one``. The trials agree if the
    slopes along the same directions are similar, and if they say that the smaller step is smaller.
    With a step that is too small, the odd part of a smooth function grows like the step itself.
    """
    if factor > 1 and not other.slope >= math.sqrt(factor) * one.slope:
        return False
    small, large = (other, one) if factor < 1 else (one, other)
    usable = ~(np.isnan(one.odd) | np.isnan(other.odd))
    a, b = (p.odd[usable] / np.max(np.abs(p.odd[usable]), initial=1e-300) for p in (one, other))
    norms = math.sqrt((a @ a) * (b @ b))
    if usable.sum() < _LEAST_PAIRS or norms == 0 or a @ b < _ALIKE * norms:
        return False
    return small.t >= 1.5 * large.t  # False if unknown


class Verdict(NamedTuple):
    """What to do after some trials."""

    chosen: int  # the trial to go on with
    factor: float | None  # a factor to try before; None if there is none


def judge(trials: Sequence[TriedStep], f0: float, most: float, least: float = 0.0) -> Verdict:
    """Return what to do after some trials; factors lie between ``least`` and ``most``."""
    shown = [parts(trial.values, f0) for trial in trials]
    chosen = 0
    for i in range(1, len(trials)):
        if not agree(shown[chosen], shown[i], trials[i].factor / trials[chosen].factor):
            return Verdict(chosen, None)
        chosen = i
    t, factor = shown[chosen].t, trials[chosen].factor
    pairs = list(zip(trials, shown, strict=True))
    too_small = [trial.factor for trial, part in pairs if part.t > _FITS[1]]
    least_t = _LEAST_AFTER_GROWTH if too_small else _FITS[0]
    too_large = [trial.factor for trial, part in pairs if part.t < least_t]
    if len(trials) == _MOST_TRIALS or least_t <= t <= _FITS[1] or math.isnan(t):
        return Verdict(chosen, None)
    if too_large and too_small:
        following = math.sqrt(min(too_large) * max(too_small))
    elif too_large:
        following = factor * t
    else:
        following = factor * min(t / _SMALL_T, _MOST_GROWTH)
    if following > factor:
        following = max(factor, min(following, most))
    following = min(max(following, least, _RANGE[0]), _RANGE[1])
    is_new = abs(math.log(following / factor)) > 0.1
    return Verdict(chosen, following if is_new else None)


class FirstGeneration:
    """The first generation of a search: evaluates x0 with it, and tries other step sizes."""

    def __init__(self, first: Optimizer, x0: Array | None, tries: bool) -> None:
        self._first, self._x0 = first, x0
        self._f0: Any = np.full(1, math.nan)  # of each evaluation of x0; with constraints, rows
        self._tries = tries
        self._trials: list[TriedStep] = []
        # Of the step size, of this generation and later of the search. A step of more than half the
        # range between two bounds ends anywhere in the range: begin with a sixth, as if left out.
        self._least = _least_factor(first) if tries else 0.0
        self.factor = 1.0
        if tries and _half_range(first) < 1:
            self.factor = max(_half_range(first) / 3, self._least)

    def begun(self) -> Optimizer:
        """Return the search to begin with."""
        return self._first if self.factor == 1.0 else self._first.rescaled(self.factor)

    @property
    def x0(self) -> Array | None:
        """The point that is evaluated together with the candidates."""
        return None if self._trials else self._x0

    @property
    def points(self) -> Array | None:
        """x0 as rows: one, or two if the method wants to know whether the objective is noisy."""
        if self.x0 is None:
            return None
        xp, maxfevals = array_namespace(self.x0), self._first.budget.maxfevals
        affordable = maxfevals is None or maxfevals >= self._first.popsize + 2
        twice = self._first.setup.settings.detects_noise and affordable
        return xp.stack([self.x0] * (2 if twice else 1))

    def restored(self, first: Optimizer, *, evaluates_x0: bool, factor: float) -> "FirstGeneration":
        """Return the same for a search that was saved before or after its first generation."""
        other = FirstGeneration(first, self._x0 if evaluates_x0 else None, self._tries)
        other.factor = factor
        return other

    @property
    def evaluates_x0(self) -> bool:
        """Whether x0 is part of the first generation."""
        return self._x0 is not None

    @property
    def is_in_between(self) -> bool:
        """Whether some trials are done and the generation is not."""
        return bool(self._trials)

    def tell(self, opt: Optimizer, values: NDArray[np.float64]) -> Optimizer:
        """Return the search to go on with, given the values of the candidates that ``opt`` asked.

        It has either been told its first generation, or is to be asked for another trial.
        """
        if self.x0 is not None:
            self._f0 = values[opt.popsize :]
            if len(self._f0) > 1 and self._f0[0] != self._f0[1] and np.isfinite(self._f0).all():
                opt = self._for_noise()
            opt.tell_extra(self._f0, lambda _: self._x0)
        self._trials.append(TriedStep(self.factor, values[: opt.popsize]))
        verdict = Verdict(0, None)
        if self._tries and np.isfinite(self._f0).all():
            f0 = float(np.mean(self._f0))
            most = _half_range(self._first) / 3
            verdict = judge(self._trials, f0, most=most, least=self._least)
        if verdict.factor is not None and self._may_try(opt):
            self.factor = verdict.factor
            return self._optimizer(self.factor, but=None)
        chosen = self._trials[verdict.chosen]
        if len(self._trials) > 1:
            self.factor = chosen.factor
            opt = self._optimizer(self.factor, but=verdict.chosen)
            opt.ask_vectors(rows=slice(0, 1))
            logger.info(
                "sigma0 = %.3g seemed not to fit x0: the search starts with %.3g, after %s",
                self._first.record.sigma0,
                opt.record.sigma0,
                checks.count(len(self._trials) - 1, "other trial"),
            )
        self._trials.clear()
        tell_values(opt, chosen.values)
        return opt

    def _for_noise(self) -> Optimizer:
        """Return the search with the settings for a noisy objective: it has the same candidates."""
        logger.info("two evaluations of x0 differ: the search adapts to a noisy objective")
        settings = self._first.setup.settings.for_noise()
        self._first = self._first.rescaled(1.0, settings=settings)
        opt = self._first.rescaled(self.factor)
        opt.ask_vectors(rows=slice(0, 1))
        return opt

    def _may_try(self, opt: Optimizer) -> bool:
        """Return whether the budget allows for one more trial, and nothing has ended the search."""
        budget = opt.budget
        best = min(
            *self._f0, *(np.nanmin(trial.values, initial=math.inf) for trial in self._trials)
        )
        spent = len(self._f0) + (len(self._trials) + 1) * opt.popsize
        seconds = time.monotonic() - opt.record.started
        return (
            (budget.ftarget is None or best > budget.ftarget)
            and best > -math.inf
            and (budget.maxfevals is None or spent <= budget.maxfevals)
            and (budget.timeout is None or seconds < budget.timeout)
        )

    def _optimizer(self, factor: float, but: int | None) -> Optimizer:
        """Return a search with another step size, told the values of all trials ``but`` one."""
        opt = self._first.rescaled(factor)
        opt.tell_extra(self._f0, lambda _: self._x0)
        for i, trial in enumerate(self._trials):
            if i != but:
                opt.tell_extra(trial.values, partial(self._candidate, trial.factor))
        return opt

    def _candidate(self, factor: float, i: int) -> Array:
        rows: Array = self._first.rescaled(factor).ask_vectors(rows=slice(i, i + 1))
        return rows[0, ...]


def tell_values(opt: Optimizer, values: NDArray[np.float64]) -> None:
    """Pass the values of all candidates to a search; with m constraints, 1 + m columns."""
    if values.ndim == 1:
        opt.tell(values)
    else:
        opt.tell(values[:, 0], constraints=values[:, 1:])


def _least_factor(opt: Optimizer) -> float:
    """Return the factor below which the search would take its steps for converged ones."""
    setup = opt.setup
    mean, shape = setup.mean, setup.shape
    least = least_factor(array_namespace(mean), mean, setup.deviations, shape)
    return min(_RESOLVED * least, 1.0)


def _half_range(opt: Optimizer) -> float:
    """Return the factor at which sigma0 is half the range of a variable with two bounds."""
    box: Box | None = opt.setup.box
    if box is None:
        return math.inf
    both = np.asarray(to_host(box.has_low & box.has_high))
    half = np.asarray(to_host(box.high - box.low), np.float64)[both] / 2
    return float(np.min(half / opt.setup.deviations[both], initial=math.inf))
