"""Several runs of a restart schedule at once, which share the workers of an asynchronous search.

`fleet.py` has their candidates. Runs begin and end, and checkpoints are written, after a fixed
number of arrivals (a batch), which are one entry of the journal. So the order of arrival determines
everything, and a search that resumes repeats it.
"""

import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

from fmnes._arrays import Array
from fmnes._optimizer import Optimizer
from fmnes.evaluate import Outcome
from fmnes.records.history import History
from fmnes.records.merging import joined, merged
from fmnes.records.parts import Run
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.records.stopping import Budget
from fmnes.runs.fleet import Fleet, Lane
from fmnes.runs.restarts import IPOP
from fmnes.runs.sequential import FINAL, Runs
from fmnes.storage import npz
from fmnes.storage.contents import RUNS
from fmnes.storage.journal import Position

logger = logging.getLogger("fmnes")


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
        history = joined([run.history for run in runs])
        return merged(runs, history, status, self.budget.ftarget, advice, self._first_error)

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
