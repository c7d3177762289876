"""What comes back from an evaluation: values, failures, and the policy about failures."""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

OnError = Literal["raise", "penalize"]
Report = Callable[[int, float, str | None], object]  # (candidate, value, why it failed)


class EvaluationError(RuntimeError):
    """A candidate could not be evaluated: every attempt raised, hung, or lost its worker.

    Examples
    --------
    >>> import fmnes
    >>> def broken(x):
    ...     raise OSError("no licence")
    >>> with fmnes.Evaluator(retries=1) as evaluator:
    ...     try:
    ...         fmnes.minimize(broken, [1.0, 2.0], 0.5, workers=evaluator)
    ...     except fmnes.EvaluationError as error:
    ...         print("no licence" in str(error))
    True
    """


class Failure(NamedTuple):
    """Why one attempt gave no value, as plain text: it crosses processes whatever was raised."""

    summary: str  # type and message on one line
    traceback: str = ""
    bad_value: bool = False  # the objective did return, but not a real number
    lost: bool = False  # with its worker; the objective need not be to blame

    @property
    def text(self) -> str:
        """The traceback, or the summary where there is none."""
        return self.traceback or self.summary


class Outcome(NamedTuple):
    """The values of a population, in the order of its rows.

    `nfailed` counts the candidates that failed every attempt; their value is NaN, so they are
    among the NaNs of `values`, as are those for which the objective itself returned NaN.
    """

    values: NDArray[np.float64]
    nfailed: int = 0
    first_error: str | None = None  # of the failed candidate with the smallest index


class Ledger:
    """One evaluation's books: who has a value, who failed, and what `on_error` makes of that."""

    def __init__(
        self,
        popsize: int,
        on_error: OnError,
        known: Mapping[int, float],
        report: Report | None,
    ) -> None:
        self.values = np.full(popsize, np.nan)
        for candidate, value in known.items():
            if not 0 <= candidate < popsize:
                raise ValueError(
                    f"known: expected candidates from 0 to {popsize - 1}, got {candidate}"
                )
            self.values[candidate] = value
        self.open = dict.fromkeys(i for i in range(popsize) if i not in known)  # in order
        self._on_error, self._report = on_error, report
        self._failures: dict[int, Failure] = {}

    def succeed(self, candidate: int, value: float) -> None:
        """Enter a value."""
        self.values[candidate] = value
        self._close(candidate, value, None)

    def fail(self, candidate: int, failure: Failure, attempts: int) -> None:
        """Enter a failure for good; under ``on_error="raise"`` it ends the evaluation."""
        if self._on_error == "raise":
            # A bad value is a TypeError with a pool as it is without one.
            error = TypeError if failure.bad_value else EvaluationError
            raise error(_report(candidate, failure, attempts))
        self._failures[candidate] = failure
        self._close(candidate, math.nan, failure.text)

    def _close(self, candidate: int, value: float, error: str | None) -> None:
        del self.open[candidate]
        if self._report is not None:
            self._report(candidate, value, error)

    def outcome(self) -> Outcome:
        """The books closed."""
        if not self._failures:
            return Outcome(self.values)
        first = self._failures[min(self._failures)]
        return Outcome(self.values, len(self._failures), first.text)


def _report(candidate: int, failure: Failure, attempts: int) -> str:
    times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    text = f"candidate {candidate} failed ({times}): {failure.summary}"
    return f"{text}\n\nwhere it was evaluated:\n{failure.traceback}" if failure.traceback else text
