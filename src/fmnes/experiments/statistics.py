"""The paper's metric, its error bars, and tests of differences."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.experiments.protocol import EXPERIMENTS, Solver, Trial, full, trials_of
from fmnes.experiments.results import Row

_RESAMPLES = 2000


class Cell(NamedTuple):
    """What the trials of one solver on one problem, at one population size, came to."""

    trials: int
    successes: int
    metric: float  # mean evaluations of the successes over the success rate; inf without success
    low: float  # its 95 % interval by the bootstrap
    high: float
    mean: float  # of the evaluations of the successes

    def __str__(self) -> str:
        if self.successes == 0:
            return f"no success in {self.trials}"
        share = "" if self.successes == self.trials else f" ({self.successes} of {self.trials})"
        return f"{self.metric:.3g}{share}"

    @property
    def share(self) -> str:
        """Successes over trials, as a fraction."""
        return f"{self.successes}/{self.trials}"

    @property
    def shortfall(self) -> str:
        """That fraction where some trial failed; nothing otherwise."""
        return "" if self.successes == self.trials else self.share


def cell_of(rows: Sequence[Row]) -> Cell:
    """The cell of some rows, at least one."""
    evaluations, success = _outcomes(rows)
    solved = evaluations[success == 1]
    low, high = _interval(_resampled(rows, 0)) if len(solved) else (math.nan, math.nan)
    return Cell(
        len(rows),
        len(solved),
        float(_metric(evaluations, success)),
        low,
        high,
        float(np.mean(solved)) if len(solved) else math.nan,
    )


def _outcomes(rows: Sequence[Row]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Evaluations and successes (0 or 1) of each."""
    outcomes = np.asarray([(row.evaluations, row.success) for row in rows], float)
    return outcomes[:, 0], outcomes[:, 1]


def _metric(evaluations: NDArray[np.float64], success: NDArray[np.float64]) -> NDArray[np.float64]:
    """(mean evaluations of the successes) / (success rate), along the last axis."""
    count = success.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        metric = (evaluations * success).sum(-1) / count / (count / success.shape[-1])
    return np.where(count > 0, metric, np.inf)


def _again(count: int, stream: int) -> NDArray[np.int64]:
    """Which of so many trials the bootstrap draws, with replacement; one row a sample.

    One trial says nothing of how others would come out: of it no sample can be drawn.
    """
    samples = _RESAMPLES if count > 1 else 0
    return np.random.default_rng(stream).integers(count, size=(samples, count))


def _resampled(rows: Sequence[Row], stream: int) -> NDArray[np.float64]:
    """The metric in each sample of the bootstrap."""
    evaluations, success = _outcomes(rows)
    drawn = _again(len(rows), stream)
    return _metric(evaluations[drawn], success[drawn])


def _interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    """95 % of the samples lie in it; one that is no number (of inf / inf) could lie anywhere."""
    if not len(samples):
        return math.nan, math.nan
    unknown = np.isnan(samples)
    low = np.percentile(np.where(unknown, 0, samples), 2.5, method="nearest")  # no inf - inf
    high = np.percentile(np.where(unknown, np.inf, samples), 97.5, method="nearest")
    return float(low), float(high)


class Ratio(NamedTuple):
    """Of two metrics, or of two times."""

    value: float
    samples: NDArray[np.float64]  # of the bootstrap, both sides drawn by themselves
    cells: tuple[Cell, ...] = ()  # of both sides
    trials: float = math.inf  # the fewest of a side; of two constants there are none

    @property
    def shares(self) -> str:
        """Successes over trials of both sides."""
        return " and ".join(cell.share for cell in self.cells)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval by the bootstrap; no numbers where a side has one trial."""
        return _interval(self.samples)

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "neither"
        low, high = self.interval
        known = "one trial" if math.isnan(low) else f"{low:.2f}, {high:.2f}"
        return f"{self.value:.2f} [{known}]"


def typical(ratios: Iterable[Ratio]) -> Ratio:
    """The geometric mean."""
    ratios = list(ratios)
    least = min(len(ratio.samples) for ratio in ratios)
    with np.errstate(divide="ignore", invalid="ignore"):  # where one side never succeeds: 0 or inf
        value = np.exp(np.mean(np.log([ratio.value for ratio in ratios])))
        logs = np.log([ratio.samples[:least] for ratio in ratios])
        return Ratio(float(value), np.exp(np.mean(logs, axis=0)))


class Comparison(NamedTuple):
    """Two solvers on the same problem: how their evaluations and their successes differ."""

    difference: float  # of the means of the successes' evaluations, over the second; or nan
    p: float  # of it: two-sided permutation test; 1 where there is nothing to permute
    p_success: float  # of the success rates: Fisher's exact test


def compare(a: Sequence[Row], b: Sequence[Row]) -> Comparison:
    """The first against the second."""
    from scipy.stats import fisher_exact, permutation_test

    x, y = ([row.evaluations for row in rows if row.success] for rows in (a, b))
    counts = [[len(x), len(a) - len(x)], [len(y), len(b) - len(y)]]
    p_success = float(fisher_exact(counts).pvalue)
    if not x or not y:
        return Comparison(math.nan, 1.0, p_success)
    result = permutation_test(
        (x, y),
        lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis),
        vectorized=True,
        n_resamples=9999,
        rng=np.random.default_rng(0),
    )
    return Comparison(float(np.mean(x) / np.mean(y)) - 1, float(result.pvalue), p_success)


class Problem(NamedTuple):
    """A function at a dimension and a population size."""

    function: str
    dim: int
    popsize: int


class Table:
    """The rows, by problem and solver."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: dict[tuple[Problem, Solver], list[Row]] = defaultdict(list)
        self.times: dict[tuple[int, Solver], list[float]] = defaultdict(list)
        for row in rows:
            trial: Trial = row.trial
            if trial.experiment == "time":
                self.times[trial.dim, trial.solver].append(row.seconds)
            else:
                problem = Problem(trial.function, trial.dim, trial.popsize)
                self.rows[problem, trial.solver].append(row)

    @cached_property
    def cells(self) -> dict[tuple[Problem, Solver], Cell]:
        """Each with its cell."""
        return {key: cell_of(rows) for key, rows in self.rows.items()}

    @cached_property
    def others(self) -> list[Solver]:
        """Those that a user put beside: solvers of trials that the protocol does not have."""
        known = set(trials_of(EXPERIMENTS, full))
        trials = {row.trial for rows in self.rows.values() for row in rows}
        return sorted({trial.solver for trial in trials - known})

    def ratios(self, function: str, dim: int, a: Solver, b: Solver) -> dict[int, Ratio]:
        """By population size: the metric of a over that of b; nan where neither succeeded."""
        ratios = {}
        for problem, solver in sorted(self.cells):
            if solver == a and problem[:2] == (function, dim) and (problem, b) in self.cells:
                over, under = self.cells[problem, a], self.cells[problem, b]
                samples = [_resampled(self.rows[problem, who], k) for k, who in enumerate((a, b))]
                ratios[problem.popsize] = Ratio(
                    over.metric / under.metric,
                    _quotients(*samples),
                    (over, under),
                    min(over.trials, under.trials),
                )
        return ratios

    def growth(self, solver: Solver, start: int, end: int) -> Ratio | None:
        """The mean seconds at one dimension over those at another, smaller one."""
        small, large = (np.asarray(self.times.get((dim, solver), [])) for dim in (start, end))
        if not (len(small) and len(large)):
            return None
        means = [
            times[_again(len(times), stream)].mean(-1)
            for stream, times in enumerate((large, small))
        ]
        fewest = min(len(small), len(large))
        return Ratio(float(large.mean() / small.mean()), _quotients(*means), trials=fewest)


def _quotients(over: NDArray[np.float64], under: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sample by sample; none, where one side has none."""
    count = min(len(over), len(under))
    with np.errstate(invalid="ignore"):  # inf / inf: in neither sample was a success
        return over[:count] / under[:count]
