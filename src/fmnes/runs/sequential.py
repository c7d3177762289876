"""The runs of a restart schedule as one search, with its checkpoint."""

import dataclasses
import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

import numpy as np

from fmnes._arrays import Array
from fmnes._optimizer import Optimizer
from fmnes.evaluate import Outcome, Value, kept_values
from fmnes.records.history import History
from fmnes.records.merging import joined, merged
from fmnes.records.parts import Run
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.records.stopping import Budget
from fmnes.runs.asynchronous import Flight
from fmnes.runs.first_generation import FirstGeneration, tell_values
from fmnes.runs.restarts import BIPOP, IPOP
from fmnes.runs.unfinished import Unfinished
from fmnes.storage.checkpoint import Checkpoint, CheckpointFiles
from fmnes.storage.fingerprint import Fingerprint
from fmnes.storage.identity import check_same, compare_code
from fmnes.storage.journal import Opening, Position
from fmnes.storage.move import moved

logger = logging.getLogger("fmnes")

# After one of these, another run would be useless or unwanted.
FINAL = (Status.FTARGET, Status.UNBOUNDED, Status.TIMEOUT, Status.CALLBACK)


class Runs:
    """The finished runs, the current run, and what is left of the budget.

    A context manager, which closes the files of the checkpoint at its end.
    """

    def __init__(
        self,
        first: Optimizer,
        schedule: IPOP | BIPOP,
        files: CheckpointFiles | None,
        *,
        objective: Fingerprint | None = None,
        x0: Array | None = None,
        tries: bool = False,
        asynchronous: bool = False,
    ) -> None:
        self._first = FirstGeneration(first, x0, tries)
        self.current = self._first.begun()
        self.flight = Flight(first, x0) if asynchronous else None
        self.budget = first.budget  # of all runs together
        self._schedule, self._files, self._objective = schedule, files, objective
        self._finished: list[Result] = []
        self._unfinished: Unfinished | None = None
        self.resumed_at = 0  # the number of evaluations in the files of a search that resumes
        self._first_error: str | None = None
        self._started = time.monotonic()

    @classmethod
    def open(
        cls,
        first: Optimizer,
        schedule: IPOP | BIPOP,
        checkpoint: str | os.PathLike[str] | Checkpoint | None,
        *,
        x0: Array,
        tries: bool,
        resume: str,
        seeded: bool,
        objective: Fingerprint | None,
        asynchronous: bool = False,
        popsize: int | None = None,
    ) -> "Runs":
        """Return a new search, or the one saved at ``checkpoint`` if it has the same arguments.

        ``x0`` is the point that is evaluated with the first generation, and ``tries`` is whether
        this generation tries other step sizes. A saved search has its own ``popsize`` if none is
        given: the number of workers, which it may depend on, may be another one now.
        """
        if checkpoint is None:
            if resume == "must":
                raise ValueError("checkpoint: expected a path with resume='must', got None")
            return cls(first, schedule, None, x0=x0, tries=tries, asynchronous=asynchronous)
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        kinds = first.setup.constraints
        files = CheckpointFiles(checkpoint, 0 if kinds is None else kinds.number)
        runs = cls(
            first,
            schedule,
            files,
            objective=objective,
            x0=x0,
            tries=tries,
            asynchronous=asynchronous,
        )
        try:
            files.open()
            saved = None if resume == "never" else files.load(must=resume == "must")
            if saved is None:
                runs.save()  # now, because a seed that was drawn at random must not be lost
            else:
                check_same(
                    first.setup,
                    popsize,
                    schedule,
                    saved,
                    seeded=seeded,
                    asynchronous=asynchronous,
                )
                compare_code(objective, saved["objective"], checkpoint.path)
                runs._restore(saved)
                files.resume(runs._position)
                runs.resumed_at = runs.nfev + files.values_ahead
                logger.info("resumed %s at %d evaluations", checkpoint.path, runs.resumed_at)
        except BaseException:
            runs.close()
            raise
        return runs

    @classmethod
    def of_file(cls, saved: dict[str, Any]) -> "Runs":
        """Return the runs of a checkpoint, to look at."""
        _join_histories(saved)
        runs = cls(Optimizer.from_saved(saved["current"]), IPOP(0), None)
        runs._finished, runs._first_error = saved["finished"], saved["first_error"]
        return runs

    def _restore(self, saved: dict[str, Any]) -> None:
        """Continue from what a checkpoint holds, with the budget and tolerances of this call."""
        current, stopping = self._here(saved["current"]), self.current.setup.stopping
        _join_histories(saved)
        current["tally"].history.size = self.current.record.history.size
        self._finished, self._first_error = self._named(saved["finished"]), saved["first_error"]
        self._started -= saved["elapsed"]
        this = self._schedule.next(self._ended, current["setup"].seed) if self._finished else None
        cap = None if this is None else this.maxfevals
        budget = self._budget_left(cap, current["tally"].started)
        self.current = Optimizer.from_saved(current, budget=budget, stopping=stopping)
        self._first = self._first.restored(
            self.current, evaluates_x0=saved["evaluates_x0"], factor=saved["sigma_factor"]
        )
        if self.flight is not None:
            x0 = self._first.x0 if self.current.run == 0 else None
            self.flight = Flight(self.current, x0, saved["flight"])

    def _here(self, search: dict[str, Any]) -> dict[str, Any]:
        """Return a saved search with what a file does not know: a device, and a Space's class."""
        like, space = self.current.like, self.current.setup.space
        search = search if isinstance(like, np.ndarray) else moved(search, like)
        return {**search, "setup": search["setup"]._replace(space=space)}

    def _named(self, results: list[Result]) -> list[Result]:
        """Return saved results of finished runs with the Space of this call."""
        space = self.current.setup.space
        return [dataclasses.replace(result, space=space) for result in results]

    @property
    def nfev(self) -> int:
        """The number of evaluations of all runs so far."""
        return sum(run.nfev for run in self._finished) + self.current.nfev

    @property
    def elapsed(self) -> float:
        """Seconds since the start, including those of earlier processes."""
        return time.monotonic() - self._started

    @property
    def _ended(self) -> list[Run]:
        return [result.restarts[0] for result in self._finished]

    @property
    def _position(self) -> Position:
        return Position(self.current.run, self.current.nit)

    @property
    def _signature(self) -> tuple[float, float]:
        """Numbers that differ if the candidates do; see `Opening`."""
        return self.current.record.signature

    # === Each generation ===

    @property
    def points(self) -> Array | None:
        """The points that are evaluated together with the next generation: x0 with the first."""
        return self._first.points if self._position == (0, 0) else None

    def ask(self, ask: Callable[[Optimizer, Array | None], Any]) -> Any:
        """Return the candidates of a generation; of an asynchronous search, those in flight."""
        if self.flight is None:
            return ask(self.current, self.points)
        if self._files is not None:
            self.flight.hand_out_again(self._files.rows_ahead(self._position))
        return self.flight

    def evaluate(self, evaluate: Callable[..., Outcome], x: Any) -> Outcome:
        """Return the values of the candidates; with a checkpoint, all values go to its journal."""
        known = {} if self.flight is not None else self.current.known
        if known:
            evaluate = partial(_evaluate_others, evaluate, known)
        try:
            return self._evaluate(evaluate, x)
        except BaseException as error:
            kinds = self.current.setup.constraints
            self._unfinished = Unfinished(x, kept_values(error), kinds, known)
            raise

    def _evaluate(self, evaluate: Callable[..., Outcome], x: Any) -> Outcome:
        files = self._files
        if files is None:
            return evaluate(x)
        opening = Opening(*self._position, x.shape[0], *self._signature)
        if files.discard_foreign(opening):
            self.save()  # a checkpoint begins a new journal
        return files.evaluate(opening, evaluate, x)

    def tell(self, outcome: Outcome) -> bool:
        """Pass the values of a generation to the current run; save a checkpoint if it is time.

        Returns False if this was a trial: the first generation is not complete.
        """
        if self.flight is not None:
            self.flight.tell(outcome)
        elif self._position == (0, 0):
            self.current = self._first.tell(self.current, outcome.values)
        else:
            tell_values(self.current, outcome.values)
        self._note_told(outcome)
        return self.current.nit > 0

    def _note_told(self, outcome: Outcome) -> None:
        """Keep the first error; save a checkpoint if it is time."""
        if outcome.first_error is not None and self._first_error is None:
            self._first_error = outcome.first_error
        if self._files is not None:
            self._files.told()
            if self._files.due():
                self.save()

    def inject(self, x: Any, f: Any = None) -> None:
        """Let points from elsewhere take part in the next generation; see `Optimizer.inject`.

        A checkpoint is saved with them: the callback that passes them is not called again for this
        generation if the search resumes.
        """
        if self.flight is not None:
            raise ValueError("inject: expected a search that is not asynchronous, got one that is")
        self.current.inject(x, f)
        self.save()

    # === Run after run ===

    def reasons(self) -> list[Status]:
        """Return the reasons to end the current run, the most informative first."""
        return self.current.reasons(None if self.flight is None else self.flight.budget)

    def next_run(self, status: Status) -> bool:
        """Begin the next run of the schedule; False if there is none, or no budget for it."""
        if status in FINAL:
            return False
        ended = self.current.result_with(status)
        self._finished.append(dataclasses.replace(ended, history=History()))
        following = self._schedule.next(self._ended, self.current.setup.seed)
        if following is not None:
            budget = self._budget_left(following.maxfevals, time.monotonic())
            if budget.maxfevals is None or budget.maxfevals >= following.popsize:
                logger.info(
                    "run %d ended (%s) at %.6g after %d evaluations; the next has popsize %d",
                    len(self._finished),
                    status,
                    ended.fun,
                    ended.nfev,
                    following.popsize,
                )
                factor = following.sigma_factor * self._first.factor
                following = following._replace(sigma_factor=factor)
                run, history = self.current.run + 1, self.current.record.history.snapshot()
                self.current = self.current.restarted(following, budget, run, history)
                self.flight = None if self.flight is None else Flight(self.current)
                return True
        self._finished.pop()
        return False

    def _budget_left(self, cap: int | None, begun: float) -> Budget:
        """Return the budget of a run that began at time ``begun``, at most ``cap`` evaluations."""
        maxfevals, timeout = self.budget.maxfevals, self.budget.timeout
        if maxfevals is not None:
            maxfevals -= sum(run.nfev for run in self._finished)
        if cap is not None:
            maxfevals = cap if maxfevals is None else min(cap, maxfevals)
        if timeout is not None:
            timeout = max(timeout - (begun - self._started), 0.0)
        return self.budget._replace(maxfevals=maxfevals, timeout=timeout)

    def result(self, status: Status) -> Result:
        """Return the result of all runs: the best of them, with the totals of all."""
        last = self.current.result_with(status)
        if self._unfinished is not None:
            last = self._unfinished.added_to(last)
        runs = [*self._finished, last]
        advice = self.current.record.advice
        history = last.history  # of all runs
        return merged(runs, history, status, self.budget.ftarget, advice, self._first_error)

    # === On disk ===

    def save(self) -> None:
        """Write a checkpoint, if the search has one.

        Between the trials of a first generation nothing is written: the journal has their values.
        """
        if self._files is not None and not self._first.is_in_between:
            self._files.save(self._content(), self._position)

    def _content(self) -> dict[str, Any]:
        """Return what a checkpoint holds."""
        return {
            "current": self.current.to_saved(),
            "elapsed": self.elapsed,
            "finished": self._finished,
            "first_error": self._first_error,
            "evaluates_x0": self._first.evaluates_x0,
            "sigma_factor": self._first.factor,
            "schedule": repr(self._schedule),
            "objective": self._objective,
            "flight": None if self.flight is None else self.flight.to_saved(),
            "parallel": None,
        }

    def close(self) -> None:
        """Close the files of the checkpoint."""
        if self._files is not None:
            self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _evaluate_others(
    evaluate: Callable[..., Outcome],
    known: Mapping[int, Value],
    x: Any,
    found: Mapping[int, Value] | None = None,
    report: Any = None,
) -> Outcome:
    """Evaluate the candidates of a generation whose values nobody knows."""
    return evaluate(x, {**known, **(found or {})}, report)


def _join_histories(saved: dict[str, Any]) -> None:
    """Put the rows of all runs into the current one: files of format 3 hold them run by run."""
    finished, record = saved["finished"], saved["current"]["tally"]
    if not any(len(run.history) for run in finished):
        return
    record.history = joined([*(run.history for run in finished), record.history])
    saved["finished"] = [dataclasses.replace(run, history=History()) for run in finished]
