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
    deviation: float  # standard deviation of the evaluations of the successes

    def __str__(self) -> str:
        if self.successes == 0:
            return f"no success in {self.trials}"
        share = "" if self.successes == self.trials else f" ({self.successes} of {self.trials})"
        return f"{self.metric:.3g}{share}"


def cell_of(rows: Sequence[Row]) -> Cell:
    """The cell of some rows, at least one."""
    evaluations = np.asarray([row.evaluations for row in rows], float)
    success = np.asarray([row.success for row in rows], float)
    metric = float(_metric(evaluations, success))
    low, high = _interval(evaluations, success)
    solved = evaluations[success == 1]
    deviation = float(np.std(solved, ddof=1)) if len(solved) > 1 else math.nan
    return Cell(len(rows), int(success.sum()), metric, low, high, deviation)


def _metric(
    evaluations: NDArray[np.float64], success: NDArray[np.float64], axis: int = -1
) -> NDArray[np.float64]:
    """(mean evaluations of the successes) / (success rate), along an axis."""
    count = success.sum(axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        metric = (evaluations * success).sum(axis) / count / (count / success.shape[axis])
    return np.where(count > 0, metric, np.inf)


def _interval(
    evaluations: NDArray[np.float64], success: NDArray[np.float64]
) -> tuple[float, float]:
    """The 95 % interval of the metric: trials are drawn again, with replacement."""
    from scipy.stats import bootstrap

    if len(evaluations) < 2 or not success.any():
        return math.nan, math.nan
    with np.errstate(invalid="ignore"):  # inf - inf, where a sample holds no success
        result = bootstrap(
            (evaluations, success),
            _metric,
            paired=True,
            vectorized=True,
            method="percentile",
            n_resamples=_RESAMPLES,
            rng=np.random.default_rng(0),
        )
    low, high = result.confidence_interval
    return float(low), float(high)


class Comparison(NamedTuple):
    """Two solvers on the same problem: how the means of the successes' evaluations differ."""

    difference: float  # of the means, over the second
    p: float  # two-sided permutation test; 1 where there is nothing to permute


def compare(a: Sequence[Row], b: Sequence[Row]) -> Comparison:
    """The first against the second."""
    from scipy.stats import permutation_test

    x, y = ([row.evaluations for row in rows if row.success] for rows in (a, b))
    if not x or not y:
        return Comparison(math.nan, 1.0)
    result = permutation_test(
        (x, y),
        lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis),
        vectorized=True,
        n_resamples=9999,
        rng=np.random.default_rng(0),
    )
    return Comparison(float(np.mean(x) / np.mean(y)) - 1, float(result.pvalue))


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
        """Solvers that the protocol does not know: those that a user put beside."""
        known = {trial.solver for trial in trials_of(EXPERIMENTS, full)}
        return sorted({solver for _, solver in self.rows} - known)

    def ratios(self, function: str, dim: int, a: Solver, b: Solver) -> dict[int, float]:
        """By population size: the metric of a over that of b, where at least one succeeded."""
        ratios = {}
        for problem, solver in self.cells:
            if solver != a or problem[:2] != (function, dim) or (problem, b) not in self.cells:
                continue
            over, under = self.cells[problem, a].metric, self.cells[problem, b].metric
            if math.isfinite(over) or math.isfinite(under):
                ratios[problem.popsize] = over / under
        return dict(sorted(ratios.items()))


def typical(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    return math.exp(np.mean(np.log(list(ratios))))
