"""The result of an evaluation: values, failures, and what `on_error` does with failures."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.records.result import Result

OnError = Literal["raise", "penalize"]
Value = float | NDArray[np.float64]  # a number; f, g_1, ..., g_m for an objective with constraints
ValueCallback = Callable[[int, Any, str | None], object]  # (candidate, Value, error text)


class EvaluationError(RuntimeError):
    """A candidate could not be evaluated: every attempt raised, hung, or lost its worker.

    Attributes
    ----------
    x : array of shape (d,), or None
        The candidate, if there was a single one.
    result : Result or None
        The Result so far, if `minimize` was running. Other exceptions of the objective get the same
        two attributes.

    Examples
    --------
    >>> import fmnes
    >>> def broken(x):
    ...     raise OSError("no licence")
    >>> with fmnes.Evaluator(retries=1) as evaluator:
    ...     try:
    ...         fmnes.minimize(broken, [1.0, 2.0], 0.5, workers=evaluator)
    ...     except fmnes.EvaluationError as error:
    ...         print("no licence" in str(error), error.x.shape, error.result.nfev)
    True (2,) 0
    """

    x: Any = None
    result: Result | None = None


def attach(error: BaseException, name: str, value: Any) -> None:
    """Set an attribute of an exception, unless the exception uses the name itself.

    A search inside the objective of another one has attached its own: the outer search replaces it.
    """
    with contextlib.suppress(AttributeError, TypeError):
        is_nested = isinstance(getattr(error, "result", None), Result)
        if is_nested or getattr(error, name, None) is None:
            setattr(error, name, value)


_VALUES = "_fmnes_values"  # the attribute of an exception that `keep_values` sets


def keep_values(error: BaseException, values: Mapping[int, Value]) -> None:
    """Attach the values that candidates had when an exception ended their evaluation.

    Not reported one by one, which would slow down objectives that take microseconds.
    """
    with contextlib.suppress(AttributeError, TypeError):
        setattr(error, _VALUES, values)


def kept_values(error: BaseException) -> Mapping[int, Value]:
    """Return the values of the candidates that were evaluated before an exception."""
    values: Mapping[int, Value] = getattr(error, _VALUES, {})
    return values


class Failure(NamedTuple):
    """Why one attempt gave no value, as plain text, which can be sent between processes."""

    summary: str  # type and message on one line
    traceback: str = ""
    bad_value: bool = False  # the objective did return, but not a real number
    lost: bool = False  # with its worker; the objective may not be the cause

    @property
    def text(self) -> str:
        """The traceback, or the summary if there is none."""
        return self.traceback or self.summary


class Outcome(NamedTuple):
    """The values of a population, in the order of its rows; with m constraints, shape (n, 1 + m).

    `nfailed` counts the candidates that failed in every attempt. Their value is NaN. Candidates for
    which the objective itself returned NaN are not counted.
    """

    values: NDArray[np.float64]
    nfailed: int = 0
    first_error: str | None = None  # of the failed candidate with the smallest index
    origins: Sequence[Any] = ()  # of the candidates, in an asynchronous search


class EvaluationRecord:
    """What is known so far in the evaluation of one population."""

    def __init__(
        self,
        popsize: int,
        on_error: OnError,
        known: Mapping[int, Value],
        report: ValueCallback | None,
        row: Callable[[int], Any],
        constraints: int = 0,
    ) -> None:
        self.values = np.full((popsize, 1 + constraints) if constraints else popsize, np.nan)
        for candidate, value in known.items():
            if not 0 <= candidate < popsize:
                raise ValueError(
                    f"known: expected candidates from 0 to {popsize - 1}, got {candidate}"
                )
            self.values[candidate] = value
        # The candidates without a final value, in order.
        self.open = dict.fromkeys(i for i in range(popsize) if i not in known)
        self._on_error, self._report, self._row = on_error, report, row
        self._nan: Value = np.full(1 + constraints, np.nan) if constraints else np.nan
        self._failures: dict[int, Failure] = {}

    def succeed(self, candidate: int, value: Value) -> None:
        """Record a value."""
        self.values[candidate] = value
        self._close(candidate, value, None)

    def fail(self, candidate: int, failure: Failure, attempts: int) -> None:
        """Record a final failure; with ``on_error="raise"`` it ends the evaluation."""
        if self._on_error == "raise":
            # Without workers, a bad value raises TypeError, too.
            kind = TypeError if failure.bad_value else EvaluationError
            times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
            where = f"\n\nwhere it was evaluated:\n{failure.traceback}"
            error = kind(
                f"candidate {candidate} failed ({times}): {failure.summary}"
                + (where if failure.traceback else "")
            )
            attach(error, "x", self._row(candidate))
            raise error
        self._failures[candidate] = failure
        self._close(candidate, self._nan, failure.text)

    def _close(self, candidate: int, value: Value, error: str | None) -> None:
        del self.open[candidate]
        if self._report is not None:
            self._report(candidate, value, error)

    def known(self) -> dict[int, Value]:
        """The final values so far, by candidate."""
        final = (i for i in range(len(self.values)) if i not in self.open)
        return {i: self.values[i] for i in final}

    def outcome(self) -> Outcome:
        """The values and the failures."""
        if not self._failures:
            return Outcome(self.values)
        first = self._failures[min(self._failures)]
        return Outcome(self.values, len(self._failures), first.text)


class StreamRecord(EvaluationRecord):
    """The same for candidates that are handed out one by one, without end: nothing is kept."""

    def __init__(
        self,
        on_error: OnError,
        report: ValueCallback,
        row: Callable[[int], Any],
        constraints: int = 0,
    ) -> None:
        super().__init__(0, on_error, {}, report, row, constraints)
        self.row, self._tell = row, report

    def succeed(self, candidate: int, value: Value) -> None:
        """Report a value."""
        self._tell(candidate, value, None)

    def _close(self, candidate: int, value: Value, error: str | None) -> None:
        self._failures.clear()
        self._tell(candidate, value, error)
