"""Several runs of a restart schedule at once, which share the workers of an asynchronous search.

A worker that is free gets a candidate of the run with the fewest candidates in flight. A run is
told a generation as soon as enough of its values have arrived. Runs begin and end, and checkpoints
are written, after a fixed number of arrivals (a batch), which are one entry of the journal. So the
order of arrival determines everything, and a search that resumes repeats it.
"""

import dataclasses
import itertools
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fmnes._arrays import Array
from fmnes._optimizer import Optimizer
from fmnes.engines.asynchronous import X0, Origin
from fmnes.evaluate import Outcome, Value
from fmnes.records.history import History
from fmnes.records.merging import joined, merged
from fmnes.records.parts import Run
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.records.stopping import Budget
from fmnes.runs.asynchronous import ArrivalCallback, Flight
from fmnes.runs.restarts import IPOP
from fmnes.runs.sequential import FINAL, Runs
from fmnes.runs.unfinished import Unfinished
from fmnes.storage import npz
from fmnes.storage.contents import RUNS
from fmnes.storage.journal import Position

logger = logging.getLogger("fmnes")

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


class ParallelRuns(Runs):
    """The runs of a schedule, several of them at once."""

    def __init__(self, first: Optimizer, schedule: Any, *args: Any, **options: Any) -> None:
        super().__init__(first, schedule, *args, **(options | {"asynchronous": False}))
        self._popsize, self._batches, self._begun = first.popsize, 0, 1
        self._numbers: list[int] = []  # of the finished runs
        first.budget = self._budget_of_a_run()
        self._fleet = Fleet([Lane(first, self._first.x0)], self.budget.maxfevals)
        while len(self._fleet.lanes) < schedule.parallel and self._begin_run():
            pass

    def _budget_of_a_run(self) -> Budget:
        """Return the limits of each run; those of all runs together are checked here."""
        return Budget(ftarget=self.budget.ftarget, maxiter=self.budget.maxiter)

    def _begin_run(self) -> bool:
        """Begin the next run of the schedule; False if there is none, or no budget for it."""
        first = Run(self._popsize, 0.0, 0, 0, 0.0, Status.RUNNING)
        following = self._schedule.next([first] * self._begun, self.current.setup.seed)
        left, fleet = self.budget.maxfevals, self._fleet
        spoken_for = fleet.arrived + sum(
            lane.opt.popsize for lane in fleet.lanes if not lane.opt.nit
        )
        if following is None or (left is not None and left - spoken_for <= following.popsize):
            return False
        history = History(size=self.current.record.history.size)
        opt = self.current.restarted(following, self._budget_of_a_run(), self._begun, history)
        self._begun += 1
        fleet.lanes.append(Lane(opt, None))
        fleet.begin_batch()
        return True

    def _restore(self, saved: dict[str, Any]) -> None:
        """Continue from what a checkpoint holds, with the budget and tolerances of this call."""
        parallel, stopping = saved["parallel"], self.current.setup.stopping
        self._finished, self._first_error = self._named(saved["finished"]), saved["first_error"]
        self._started -= saved["elapsed"]
        self._numbers, self._batches = parallel["numbers"], parallel["batches"]
        self._popsize, self._begun = parallel["popsize"], parallel["begun"]
        lanes, size = [], self.current.record.history.size
        for lane in parallel["lanes"]:
            budget = self._budget_of_a_run()
            search = self._here(lane["search"])
            search["tally"].history.size = size
            opt = Optimizer.from_saved(search, budget=budget, stopping=stopping)
            lanes.append(Lane(opt, self._first.x0 if opt.run == 0 else None, lane))
        self._fleet = Fleet(lanes, self.budget.maxfevals, parallel["arrived"])
        self.current = lanes[0].opt

    @property
    def nfev(self) -> int:
        """The number of evaluations of all runs so far."""
        lanes = sum(lane.opt.nfev + len(lane.flight.values) for lane in self._fleet.lanes)
        return lanes + sum(run.nfev for run in self._finished)

    @property
    def _position(self) -> Position:
        return Position(0, self._batches)

    @property
    def _signature(self) -> tuple[float, float]:
        found = [lane.opt.record.signature for lane in self._fleet.lanes]
        return sum(sigma for sigma, _ in found), max(mean for _, mean in found)

    # === Each batch ===

    def ask(self, ask: Callable[[Optimizer, Array | None], Any]) -> Any:
        """Return the candidates in flight."""
        if self._files is not None:
            self._fleet.rows_ahead = self._files.rows_ahead
        self._fleet.hand_out_again()
        return self._fleet

    def tell(self, outcome: Outcome) -> bool:
        """End a batch; False if no run has completed a generation yet."""
        if not self._fleet.has_arrivals:  # all of them come from the journal
            for origin, value in zip(outcome.origins, outcome.values, strict=True):
                self._fleet.arrive(origin, value)
        self._batches += 1
        for lane in [lane for lane in self._fleet.lanes if lane.ended is not None]:
            self._finish(lane)
        self._fleet.begin_batch()
        self.current = max((lane.opt for lane in self._fleet.lanes), key=lambda opt: opt.nit)
        self._note_told(outcome)
        return self.current.nit > 0

    def _finish(self, lane: Lane) -> None:
        """Keep the result of a run that has ended, if none of its candidates is in flight."""
        if not lane.flight.waiting() and len(self._fleet.lanes) > 1:
            self._fleet.lanes.remove(lane)
            self._finished.append(lane.result(Status.RUNNING))
            self._numbers.append(lane.opt.run)

    def inject(self, x: Any, f: Any = None) -> None:
        """Raise an error: an asynchronous search has no generation to put a point into."""
        raise ValueError("inject: expected a search that is not asynchronous, got one that is")

    def evaluate(self, evaluate: Callable[..., Outcome], x: Any) -> Outcome:
        """Return the values of a batch; each run keeps its own if an exception ends the search."""
        return self._evaluate(evaluate, x)

    def reasons(self) -> list[Status]:
        """Return why a run has to end, the most informative reason first."""
        found = [(lane.opt.reasons(), lane) for lane in self._active()]
        found = [(reasons, lane) for reasons, lane in found if reasons]
        final = [pair for pair in found if pair[0][0] in FINAL]
        if final:
            return final[0][0]
        timeout = self.budget.timeout
        if timeout is not None and self.elapsed >= timeout:
            return [Status.TIMEOUT]
        if not self._fleet.may_continue:
            return [Status.MAXFEVALS]
        return found[0][0] if found else []

    def _active(self) -> Iterator[Lane]:
        return (lane for lane in self._fleet.lanes if lane.ended is None)

    def next_run(self, status: Status) -> bool:
        """End the runs that have a reason to, and begin others; False if the search ends."""
        if status in FINAL or not self._fleet.may_continue:
            return False
        ending = [lane for lane in self._active() if lane.opt.reasons()]
        begun = [self._begin_run() for _ in ending]
        if not any(begun) and len(ending) == len(list(self._active())):
            return False
        for lane in ending:
            lane.end(lane.opt.reasons()[0])
            logger.info("run %d ended (%s)", lane.opt.run + 1, lane.ended)
            self._finish(lane)
        self._fleet.begin_batch()
        return True

    def result(self, status: Status) -> Result:
        """Return the result of all runs: the best of them, with the totals of all."""
        lanes = [(lane.opt.run, lane.result(status)) for lane in self._fleet.lanes]
        pairs = [*zip(self._numbers, self._finished, strict=True), *lanes]
        runs = [result for _, result in sorted(pairs, key=lambda pair: pair[0])]
        advice = self.current.record.advice
        result = merged(runs, status, self.budget.ftarget, advice, self._first_error)
        return dataclasses.replace(result, history=joined([run.history for run in runs]))

    def save(self) -> None:
        """Write a checkpoint, if the search has one. Within a batch, the journal has the values."""
        if not self._fleet.has_arrivals:
            super().save()

    @classmethod
    def of_file(cls, saved: dict[str, Any]) -> "ParallelRuns":
        """Return the runs of a checkpoint, to look at."""
        runs = cls(Optimizer.from_saved(saved["current"]), IPOP(0), None)
        runs._restore(saved)
        return runs

    def _content(self) -> dict[str, Any]:
        return super()._content() | {
            "parallel": {
                "lanes": [lane.to_saved() for lane in self._fleet.lanes],
                "numbers": self._numbers,
                "batches": self._batches,
                "begun": self._begun,
                "popsize": self._popsize,
                "arrived": self._fleet.arrived,
            }
        }


def read_result(path: str | os.PathLike[str], status: Status) -> Result:
    """Return the result of the checkpoint at ``path``, even while a search is using it."""
    saved = npz.read(path, RUNS, "checkpoint")
    kind = Runs if saved["parallel"] is None else ParallelRuns
    return kind.of_file(saved).result(status)
