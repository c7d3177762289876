"""The loop in which solvers other than `fmnes.minimize` run, and the rules that end it.

Evaluations are counted in whole generations. A run ends at the target, when another generation
would exceed the budget, when the values of a generation agree in 14 digits (a local minimum), or
when the solver itself cannot continue. Only the first of these counts as a success.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.problems import Problem


class RunSpec(NamedTuple):
    """What a solver is asked to do."""

    problem: Problem
    popsize: int
    seed: int
    ftarget: float
    maxfevals: int


class RunResult(NamedTuple):
    """The number of evaluations of a run, and the best value."""

    evaluations: int
    value: float


class Monitor:
    """Counts the evaluations of a run, keeps the best value, and says when the run ends."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self._evaluations, self._best, self._equal = 0, math.inf, False

    def note(self, f: NDArray[np.float64]) -> None:
        """Take in the values of one generation."""
        self._evaluations += len(f)
        least, most = float(np.min(f)), float(np.max(f))
        self._best = min(self._best, least)  # a NaN is never less
        self._equal = not most - least > 1e-14 * abs(most)

    def goes_on(self) -> bool:
        """Return whether there is another generation."""
        spent = self._evaluations + self._spec.popsize > self._spec.maxfevals
        return not (spent or self._equal or self._best <= self._spec.ftarget)

    @property
    def result(self) -> RunResult:
        """What the run has reached."""
        return RunResult(self._evaluations, self._best)


def ask_and_tell(
    spec: RunSpec, ask: Callable[[], Any], tell: Callable[[Any, NDArray[np.float64]], Any]
) -> RunResult:
    """Run a solver to its end; ``ask`` returns candidates, or None if the solver has to stop."""
    monitor = Monitor(spec)
    while monitor.goes_on():
        x = ask()
        if x is None:
            break
        f = spec.problem(np.asarray(x))
        monitor.note(f)
        tell(x, f)
    return monitor.result
