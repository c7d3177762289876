"""Compare solvers by evaluations over the success rate, with error bars and tests."""

import math
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

_RESAMPLES = 2000
Floats = NDArray[np.float64]


def _resampled(count: int, stream: int) -> NDArray[np.int64]:
    """Return which of ``count`` trials the bootstrap draws, one sample per row.

    One trial says nothing about the others: there are no samples of it.
    """
    samples = _RESAMPLES if count > 1 else 0
    return np.random.default_rng(stream).integers(count, size=(samples, count))


def _interval(samples: Floats) -> tuple[float, float]:
    """Return the 95 % interval; a sample that is NaN (inf / inf) could lie anywhere."""
    if not len(samples):
        return math.nan, math.nan
    unknown = np.isnan(samples)
    low = np.percentile(np.where(unknown, 0, samples), 2.5, method="nearest")  # no inf - inf
    high = np.percentile(np.where(unknown, np.inf, samples), 97.5, method="nearest")
    return float(low), float(high)


class TrialOutcome(Protocol):
    """What the metric needs to know of a trial."""

    @property
    def evaluations(self) -> int:
        """Evaluations until the target, or until the search ended."""

    @property
    def success(self) -> bool:
        """Whether the target was reached."""


class Cell:
    """The trials of one solver in one case, at least one."""

    def __init__(self, rows: Sequence[TrialOutcome]) -> None:
        self._evaluations = np.asarray([row.evaluations for row in rows], float)
        self._success = np.asarray([row.success for row in rows], float)
        self.trials, self.successes = len(rows), sum(row.success for row in rows)
        self.solved = self._evaluations[self._success == 1]  # evaluations of the successes

    def _metric(self, trials: NDArray[np.int64]) -> Floats:
        """Return the metric of these trials, along the last axis."""
        success = self._success[trials]
        count = success.sum(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = (self._evaluations[trials] * success).sum(-1)
            return np.where(count > 0, total / count / (count / success.shape[-1]), np.inf)

    @cached_property
    def metric(self) -> float:
        """Mean evaluations of the successes over the success rate; inf without success."""
        return float(self._metric(np.arange(self.trials)))

    def samples(self, stream: int = 0) -> Floats:
        """Return the metric in each sample of the bootstrap."""
        return self._metric(_resampled(self.trials, stream))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the metric by the bootstrap; NaN without success."""
        return _interval(self.samples()) if self.successes else (math.nan, math.nan)

    @property
    def mean(self) -> float:
        """Mean evaluations of the successes."""
        return float(np.mean(self.solved)) if self.successes else math.nan

    @property
    def share(self) -> str:
        """Successes over trials, as a fraction."""
        return f"{self.successes}/{self.trials}"

    def __str__(self) -> str:
        if self.successes == 0:
            return f"no success in {self.trials}"
        share = "" if self.successes == self.trials else f" ({self.successes} of {self.trials})"
        return f"{self.metric:.3g}{share}"


class Ratio(NamedTuple):
    """The ratio of two metrics, two times or two constants."""

    value: float
    samples: Floats  # by the bootstrap, drawn independently for both sides
    cells: tuple[Cell, ...] = ()  # of both sides
    trials: float = math.inf  # the smaller number of trials; inf for constants

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval by the bootstrap; NaN if a side has one trial."""
        return _interval(self.samples)

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "neither"
        low, high = self.interval
        known = "one trial" if math.isnan(low) else f"{low:.2f}, {high:.2f}"
        return f"{self.value:.2f} [{known}]"


def _divided(over: Floats, under: Floats) -> Floats:
    """Divide sample by sample; there are none if one side has none."""
    count = min(len(over), len(under))
    with np.errstate(invalid="ignore"):  # inf / inf: neither sample has a success
        return over[:count] / under[:count]


def ratio_of(over: Cell, under: Cell) -> Ratio:
    """Return the ratio of two metrics; NaN if neither side succeeded."""
    samples = _divided(over.samples(0), under.samples(1))
    trials = min(over.trials, under.trials)
    return Ratio(over.metric / under.metric, samples, (over, under), trials)


def ratio_of_times(over: Sequence[float], under: Sequence[float]) -> Ratio | None:
    """Return the ratio of two mean times; None if one side was not measured."""
    if not (over and under):
        return None
    sides = np.asarray(over), np.asarray(under)
    means = [t[_resampled(len(t), stream)].mean(-1) for stream, t in enumerate(sides)]
    fewest = min(len(over), len(under))
    return Ratio(float(sides[0].mean() / sides[1].mean()), _divided(*means), trials=fewest)


def typical(ratios: Collection[Ratio]) -> Ratio:
    """Return the geometric mean of ratios."""
    least = min(len(ratio.samples) for ratio in ratios)
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 or inf if one side never succeeds
        value = np.exp(np.mean(np.log([ratio.value for ratio in ratios])))
        logs = np.log([ratio.samples[:least] for ratio in ratios])
        return Ratio(float(value), np.exp(np.mean(logs, axis=0)))


class Comparison(NamedTuple):
    """How the evaluations and the success rates of two solvers differ in one case."""

    difference: float  # of the mean evaluations of successes, over the second; or NaN
    p: float  # of that difference: two-sided permutation test; 1 without successes
    p_success: float  # of the success rates: Fisher's exact test


def compare(a: Cell, b: Cell) -> Comparison:
    """Compare the first solver with the second."""
    from scipy.stats import fisher_exact, permutation_test

    counts = [[cell.successes, cell.trials - cell.successes] for cell in (a, b)]
    p_success = float(fisher_exact(counts).pvalue)
    if not (a.successes and b.successes):
        return Comparison(math.nan, 1.0, p_success)
    result = permutation_test(
        (a.solved, b.solved),
        lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis),
        vectorized=True,
        n_resamples=9999,
        rng=np.random.default_rng(0),
    )
    return Comparison(a.mean / b.mean - 1, float(result.pvalue), p_success)
