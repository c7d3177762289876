"""Workers that never wait: the candidates in flight, and their way through an Evaluator.

A worker that is free gets a candidate of the newest distribution. The next popsize values that
arrive are a generation, even if their candidates were drawn from older distributions
(`engines/asynchronous.py`). Given the order of arrival everything is determined: the journal keeps
it, so a search that resumes repeats the same generations.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace

from fmnes._arrays import Array, constant
from fmnes._optimizer import Optimizer
from fmnes.engines.asynchronous import X0, Candidate, Origin
from fmnes.evaluate import (
    Evaluator,
    ObjectiveCall,
    Outcome,
    StreamRecord,
    Supply,
    Value,
    keep_values,
    read_only,
)
from fmnes.records.stopping import Budget

ArrivalCallback = Callable[[Origin, Value, str | None], object]


class Flight:
    """The candidates of one run that are being evaluated, and the values of this generation.

    Candidates have numbers in the order in which they were handed out. Those of this generation
    that have values are kept until the generation is told.
    """

    def __init__(
        self,
        opt: Optimizer,
        x0: Array | None = None,
        saved: Mapping[str, Array] | None = None,
        numbers: Iterator[int] | None = None,
        *,
        x0_is_open: bool | None = None,
    ) -> None:
        opt.make_asynchronous()
        self._opt, self._x0 = opt, x0
        self._numbers = itertools.count() if numbers is None else numbers
        self._candidates: dict[int, Candidate] = {}
        self._values: dict[int, Value] = {}  # of this generation, in the order of arrival
        self._errors: list[str] = []
        self._number_of: dict[Origin, int] = {}
        self._next_row = 0
        if x0_is_open is None:
            x0_is_open = opt.record.extra_nfev == 0
        self.x0_is_open = x0 is not None and x0_is_open
        if self.x0_is_open:
            self._add(Candidate(X0, opt.setup_here().mean))
        if saved is not None:
            ys = constant(array_namespace(opt.like), saved["y"], opt.like)
            for (generation, row), y in zip(saved["origins"].tolist(), ys, strict=True):
                self._add(Candidate(Origin(generation, row), y))
                if generation == opt.nit:
                    self._next_row = max(self._next_row, row + 1)

    def _add(self, candidate: Candidate) -> int:
        number = next(self._numbers)
        self._candidates[number] = candidate
        self._number_of[candidate.origin] = number
        return number

    @property
    def budget(self) -> Budget:
        """The budget of the run, less the evaluation of x0 while its value has not arrived."""
        return self._opt.budget.less(1) if self.x0_is_open else self._opt.budget

    # === What an Evaluator sees: a Supply ===

    def waiting(self) -> list[int]:
        """The candidates without a value: those that were running when a search was killed."""
        return [number for number in self._candidates if number not in self._values]

    def next(self) -> int | None:
        """Hand out a candidate of the newest distribution; None if the budget is used up."""
        handed_out = self._opt.nit * self._opt.popsize + len(self._candidates) - self.x0_is_open
        return None if handed_out >= self._limit else self.hand_out()

    def hand_out(self) -> int:
        """Hand out a candidate of the newest distribution; the budget is not checked."""
        self._next_row += 1
        return self._add(self._opt.candidate(self._next_row - 1))

    @property
    def _limit(self) -> float:
        """How many candidates this run may have without x0: those up to its last generation."""
        popsize, budget = self._opt.popsize, self.budget
        most = math.inf if budget.maxiter is None else budget.maxiter
        if budget.maxfevals is not None:
            most = min(most, (budget.maxfevals - self._opt.record.extra_nfev) // popsize)
        return most * popsize

    def is_full(self) -> bool:
        """Whether all values of a generation have arrived; that of x0 comes in addition."""
        return len(self._values) - (self._number_of.get(X0) in self._values) >= self._opt.popsize

    def row(self, number: int) -> Array:
        """A candidate in the user's coordinates."""
        if self._candidates[number].origin == X0:
            return read_only(self._x0)
        return read_only(self._opt.row(self._candidates[number]))

    # === Generations ===

    def hand_out_again(self, rows: int) -> None:
        """Hand out the first candidates of this generation that a killed search had handed out."""
        while self._next_row < rows:
            self.hand_out()

    def number_of(self, origin: Origin) -> int:
        """The number of a candidate in flight; ValueError if the search did not hand it out."""
        if origin not in self._number_of:
            raise ValueError(
                f"checkpoint: expected values of candidates in flight, got one of {origin}, which "
                "the search did not hand out; resume='never' starts again"
            )
        return self._number_of[origin]

    def origin_of(self, number: int) -> Origin:
        """Where a candidate in flight comes from."""
        return self._candidates[number].origin

    def arrive(self, origin: Origin, value: Value) -> None:
        """Take a value of the journal."""
        self._values[self.number_of(origin)] = value

    def take_extra(self, number: int, value: Value) -> None:
        """Take the value of x0, or of a candidate that no generation has room for any more."""
        x, origin = self.row(number), self._candidates.pop(number).origin
        del self._number_of[origin]
        self._values.pop(number, None)
        if origin == X0:
            self.x0_is_open = False
        self._opt.tell_extra(np.array([value]), lambda _: x)

    def note(
        self, report: ArrivalCallback | None, number: int, value: Value, error: str | None
    ) -> None:
        """Take a value that a worker has returned."""
        if report is not None:
            report(self._candidates[number].origin, value, error)
        self._values[number] = value
        if error is not None:
            self._errors.append(error)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of candidates of a generation, and number of variables, as of an array."""
        return self._opt.popsize, self._opt.dim

    @property
    def values(self) -> dict[int, Value]:
        """The values of this generation, by the numbers of their candidates."""
        return self._values.copy()

    def outcome(self) -> Outcome:
        """The values of this generation in the order of arrival."""
        origins = [self._candidates[number].origin for number in self._values]
        first = self._errors[0] if self._errors else None
        return Outcome(np.array(list(self._values.values())), len(self._errors), first, origins)

    def tell(self, outcome: Outcome) -> None:
        """Update the distribution with the values of a generation, in the order of arrival."""
        if not self._values:  # all of them come from the journal
            for origin, value in zip(outcome.origins, outcome.values, strict=True):
                self.arrive(origin, value)
        candidates = [self._candidates.pop(number) for number in self._values]
        for candidate in candidates:
            del self._number_of[candidate.origin]
        self._values, self._errors, self._next_row = {}, [], 0
        is_x0 = np.array([candidate.origin == X0 for candidate in candidates])
        if is_x0.any() and self._x0 is not None:
            self.x0_is_open = False
            self._opt.tell_extra(outcome.values[is_x0], lambda _: self._x0)
        others = [candidate for candidate in candidates if candidate.origin != X0]
        self._opt.tell_arrivals(others, outcome.values[~is_x0])

    def to_saved(self) -> dict[str, Array]:
        """Return what a checkpoint holds: the candidates, including those of this generation."""
        like = self._opt.like
        candidates = [one for one in self._candidates.values() if one.origin != X0]
        xp = array_namespace(like)
        y = xp.stack([candidate.y for candidate in candidates]) if candidates else like[None, :][:0]
        origins = [candidate.origin for candidate in candidates]
        return {"origins": np.array(origins, np.int64).reshape(-1, 2), "y": y}


class InFlight(Supply, Protocol):
    """Candidates in flight as a Stream sees them: those of one run, or of several."""

    def row(self, number: int) -> Array:
        """Return a candidate in the user's coordinates."""

    def arrive(self, origin: Origin, value: Value) -> None:
        """Take a value of the journal."""

    def note(
        self, report: ArrivalCallback | None, number: int, value: Value, error: str | None
    ) -> None:
        """Take a value that a worker has returned."""

    def outcome(self) -> Outcome:
        """Return the values since the last call, in the order of arrival."""

    @property
    def values(self) -> dict[int, Value]:
        """The values that no run has been told yet, by the numbers of their candidates."""


class Stream:
    """Evaluates the candidates in flight, run after run."""

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        evaluator: Evaluator,
        constraints: int = 0,
    ) -> None:
        self._call, self._evaluator = ObjectiveCall(fun, args, constraints), evaluator
        self._report: ArrivalCallback | None = None
        self._flight: InFlight | None = None
        self._record: StreamRecord | None = None

    def evaluate(
        self,
        flight: InFlight,
        known: Mapping[Origin, Value] | None = None,
        report: ArrivalCallback | None = None,
    ) -> Outcome:
        """Return the values of the next generation, in the order of arrival.

        ``known`` holds the values of the journal, and ``report`` enters a new one there.
        """
        if flight is not self._flight or self._record is None:  # a new run begins
            self._evaluator.end_stream()
            self._flight = flight
            self._record = self._evaluator.new_stream(
                self._note, flight.row, self._call.constraints
            )
        for origin, value in (known or {}).items():
            flight.arrive(origin, value)
        self._report = report
        try:
            self._evaluator.stream(self._call, self._record, flight)
        except BaseException as error:
            keep_values(error, flight.values)
            raise
        return flight.outcome()

    def _note(self, number: int, value: Value, error: str | None) -> None:
        if self._flight is not None:
            self._flight.note(self._report, number, value, error)
