"""The candidates in flight of several runs at once.

A worker that is free gets a candidate of the run with the fewest candidates in flight. A run is
told a generation as soon as enough of its values have arrived.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from fmnes._arrays import Array
from fmnes._optimizer import Optimizer
from fmnes.engines.asynchronous import X0, Origin
from fmnes.evaluate import Outcome, Value
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.runs.asynchronous import ArrivalCallback, Flight
from fmnes.runs.unfinished import Unfinished
from fmnes.storage.journal import Position

_MOST_RUNS = 2**20  # the number of a candidate is that of its run modulo this


class Lane:
    """One run and its candidates in flight; ``ended`` is why it takes no more generations."""

    def __init__(
        self, opt: Optimizer, x0: Array | None, saved: dict[str, Any] | None = None
    ) -> None:
        self.opt = opt
        self.ended: Status | None = None
        numbers = itertools.count(opt.run, _MOST_RUNS)
        if saved is None:
            self.flight = Flight(opt, x0, numbers=numbers)
        else:
            x0 = x0 if saved["x0_is_open"] else None
            self.flight = Flight(opt, x0, saved["flight"], numbers, x0_is_open=True)
            self.ended = None if saved["ended"] is None else Status(saved["ended"])
            origins = saved["flight"]["origins"].tolist()
            for i, value in zip(saved["arrived"].tolist(), saved["values"], strict=True):
                self.flight.arrive(Origin(*origins[i]), value if value.ndim else float(value))

    def take(self, number: int, value: Value) -> None:
        """Take a value; tell the run a generation if it is complete now."""
        flight, origin = self.flight, self.flight.origin_of(number)
        if origin == X0 or self.ended is not None:
            flight.take_extra(number, value)
        else:
            flight.arrive(origin, value)
            if flight.is_full():
                flight.tell(flight.outcome())

    def end(self, status: Status) -> None:
        """End the run: the values of an unfinished generation count, but are not told."""
        self.ended = status
        for number, value in self.flight.values.items():
            self.flight.take_extra(number, value)

    def result(self, status: Status) -> Result:
        """Return the result so far, with the values of the unfinished generation."""
        found = self.opt.result_with(self.ended or next(iter(self.opt.reasons()), status))
        kinds = self.opt.setup.constraints
        return Unfinished(self.flight, self.flight.values, kinds).added_to(found)

    def to_saved(self) -> dict[str, Any]:
        """Return what a checkpoint holds of the run."""
        flight, values = self.flight.to_saved(), self.flight.values
        index = {Origin(*origin): i for i, origin in enumerate(flight["origins"].tolist())}
        return {
            "search": self.opt.to_saved(),
            "flight": flight,
            "arrived": np.array([index[self.flight.origin_of(n)] for n in values], np.int64),
            "values": np.array(list(values.values()), np.float64),
            "ended": None if self.ended is None else str(self.ended),
            "x0_is_open": self.flight.x0_is_open,
        }


class Fleet:
    """The candidates in flight of all runs, and the arrivals of this batch."""

    def __init__(self, lanes: list[Lane], maxfevals: int | None, arrived: int = 0) -> None:
        self.lanes = lanes  # those that take no more generations stay until all values are there
        self._maxfevals, self.arrived = maxfevals, arrived  # without x0
        self.rows_ahead: Callable[[Position], int] = lambda _: 0
        self.begin_batch()

    def begin_batch(self) -> None:
        """Begin a batch: with as many arrivals as the smallest population has candidates."""
        self._origins: list[Origin] = []
        self._values: list[Value] = []
        self._errors: list[str] = []
        self.size = min(lane.opt.popsize for lane in self.lanes)
        left = None if self._maxfevals is None else self._maxfevals - 1 - self.arrived
        self._limit = np.inf if left is None else self.arrived + left // self.size * self.size
        self.may_continue = left is None or left >= self.size

    @property
    def has_arrivals(self) -> bool:
        """Whether values of this batch have arrived."""
        return bool(self._origins)

    def hand_out_again(self) -> None:
        """Hand out the candidates that a killed search had handed out."""
        for lane in self.lanes:
            born = Origin(lane.opt.nit, 0).of_run(lane.opt.run)
            lane.flight.hand_out_again(self.rows_ahead(Position(0, born.generation)))

    # === What a Stream sees ===

    def waiting(self) -> list[int]:
        """The candidates without a value."""
        return [number for lane in self.lanes for number in lane.flight.waiting()]

    def next(self) -> int | None:
        """Hand out a candidate of the run with the fewest in flight; None without a budget."""
        in_flight = [(len(lane.flight.waiting()), i) for i, lane in enumerate(self.lanes)]
        total = sum(count for count, _ in in_flight)
        if self.arrived + total >= self._limit:
            return None
        chosen = min(pair for pair in in_flight if self.lanes[pair[1]].ended is None)
        return self.lanes[chosen[1]].flight.hand_out()

    def is_full(self) -> bool:
        """Whether all values of the batch have arrived; that of x0 comes in addition."""
        return len(self._origins) - (X0 in self._origins) >= self.size

    def row(self, number: int) -> Array:
        """A candidate in the user's coordinates."""
        return self._lane(number % _MOST_RUNS).flight.row(number)

    def _lane(self, run: int) -> Lane:
        return next(lane for lane in self.lanes if lane.opt.run == run)

    def arrive(self, origin: Origin, value: Value) -> None:
        """Take a value of the journal."""
        run, its_own = origin.split()
        self._take(origin, self._lane(run).flight.number_of(its_own), value)

    def note(
        self, report: ArrivalCallback | None, number: int, value: Value, error: str | None
    ) -> None:
        """Take a value that a worker has returned."""
        run = number % _MOST_RUNS
        origin = self._lane(run).flight.origin_of(number).of_run(run)
        if report is not None:
            report(origin, value, error)
        if error is not None:
            self._errors.append(error)
        self._take(origin, number, value)

    def _take(self, origin: Origin, number: int, value: Value) -> None:
        self._origins.append(origin)
        self._values.append(value)
        self.arrived += origin != X0
        self._lane(number % _MOST_RUNS).take(number, value)
        self.hand_out_again()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of arrivals of a batch, and number of variables, as of an array."""
        return self.size, self.lanes[0].opt.dim

    @property
    def values(self) -> dict[int, Value]:
        """None: each run keeps its own."""
        return {}

    def outcome(self) -> Outcome:
        """The values of this batch in the order of arrival."""
        first = self._errors[0] if self._errors else None
        return Outcome(np.array(self._values), len(self._errors), first, self._origins)
