"""Run after run of a restart schedule as one search, with its checkpoint."""

import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np

from fmnes._arrays import to_host
from fmnes._history import History
from fmnes._optimizer import Optimizer
from fmnes._restarts import BIPOP, IPOP
from fmnes._result import Result, Run, Status
from fmnes._start import Setup
from fmnes._stopping import Budget
from fmnes.evaluate import Outcome
from fmnes.storage import npz
from fmnes.storage.checkpoint import Checkpoint, Store
from fmnes.storage.journal import Place

logger = logging.getLogger("fmnes")

_SAVED = ("current", "elapsed", "finished", "first_error", "schedule")
# After these a further run would be pointless, or unwanted.
_FINAL = (Status.FTARGET, Status.UNBOUNDED, Status.TIMEOUT, Status.CALLBACK)


class Search:
    """The runs that have ended, the one that goes on, and what is left of the budget.

    A context, that lets go of the checkpoint's files at its end.
    """

    def __init__(self, first: Optimizer, schedule: IPOP | BIPOP, store: Store | None) -> None:
        self.current = first
        self._schedule, self._store = schedule, store
        self.budget = first.budget  # of all runs together
        self._finished: list[Result] = []
        self._history = History()  # of all runs, as far as somebody has asked for it
        self._first_error: str | None = None
        self._started = time.monotonic()

    @classmethod
    def open(
        cls,
        first: Optimizer,
        schedule: IPOP | BIPOP,
        checkpoint: str | os.PathLike[str] | Checkpoint | None,
        resume: str,
        seeded: bool,
    ) -> "Search":
        """A new search, or the one saved at ``checkpoint`` if it is of the same problem."""
        if checkpoint is None:
            if resume == "must":
                raise ValueError("checkpoint: expected a path with resume='must', got None")
            return cls(first, schedule, None)
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        store = Store(checkpoint)
        search = cls(first, schedule, store)
        try:
            store.open()
            saved = None if resume == "never" else store.load(_SAVED, must=resume == "must")
            if saved is None:
                search.save()  # from the start: a seed that was not given cannot be asked for again
            else:
                search._go_on(store, saved, seeded)
        except BaseException:
            search.close()
            raise
        return search

    @classmethod
    def read(cls, path: str | os.PathLike[str], status: Status) -> Result:
        """What the checkpoint at ``path`` comes to, whoever is using it."""
        saved = npz.read(path, (*_SAVED, "search"), "checkpoint")
        npz.check_search(saved["current"])
        search = cls(Optimizer.from_saved(saved["current"]), IPOP(0), None)
        search._finished, search._first_error = saved["finished"], saved["first_error"]
        return search.result(status)

    def _go_on(self, store: Store, saved: dict[str, Any], seeded: bool) -> None:
        """Take the place of the search that was saved, and read what is known since."""
        _check_same(self.current, saved, self._schedule, seeded)
        npz.check_search(saved["current"])
        self.current = Optimizer.from_saved(saved["current"], self.current.setup.stopping)
        self._finished, self._first_error = saved["finished"], saved["first_error"]
        self._started -= saved["elapsed"]
        start = self._schedule.next(self._runs, self.current.setup.seed) if self._runs else None
        cap = None if start is None else start.maxfevals
        self.current.budget = self._left(cap, self.current.tally.started)
        store.resume(self._address)

    @property
    def _address(self) -> tuple[int, int]:
        return self.current.run, self.current.nit

    @property
    def nfev(self) -> int:
        """Evaluations of all runs so far."""
        return sum(result.nfev for result in self._finished) + self.current.nfev

    @property
    def elapsed(self) -> float:
        """Seconds, those of earlier processes included."""
        return time.monotonic() - self._started

    @property
    def _runs(self) -> list[Run]:
        return [result.restarts[0] for result in self._finished]

    # === Each generation ===

    def journaled(self, evaluate: Callable[..., Outcome]) -> Callable[[Any], Outcome]:
        """The same, with every value entered in the journal; as it is where there is none."""
        return evaluate if self._store is None else partial(self._evaluate, self._store, evaluate)

    def _evaluate(self, store: Store, evaluate: Callable[..., Outcome], x: Any) -> Outcome:
        opt = self.current
        place = Place(*self._address, opt.popsize, *opt.tally.landmarks)
        if store.strays(place):
            self.save()
        entry = store.begin(place)
        if not entry.complete:
            outcome = evaluate(x, entry.known.copy(), partial(store.report, entry))
            store.complete(entry, outcome.values)
        return entry.outcome()

    def note(self, first_error: str | None) -> None:
        """After each generation: keep the first error, save now and then."""
        if first_error is not None and self._first_error is None:
            self._first_error = first_error
        if self._store is not None:
            self._store.told()
            if self._store.due():
                self.save()

    # === Run after run ===

    def next_run(self, status: Status) -> bool:
        """Begin the next run of the schedule; False if there is none, or no budget for it."""
        if status in _FINAL:
            return False
        ended = [*self._finished, self.current.end(status)]
        self._finished, previous = ended, self._finished
        start = self._schedule.next(self._runs, self.current.setup.seed)
        if start is None:
            self._finished = previous
            return False
        budget = self._left(start.maxfevals, time.monotonic())
        if budget.maxfevals is not None and budget.maxfevals < start.popsize:
            self._finished = previous
            return False
        logger.info(
            "run %d ended (%s) at %.6g after %d evaluations; the next has popsize %d",
            len(ended),
            status,
            ended[-1].fun,
            ended[-1].nfev,
            start.popsize,
        )
        self.current = self.current.restarted(
            budget, start.popsize, run=len(ended), sigma_factor=start.sigma_factor
        )
        return True

    def _left(self, cap: int | None, begun: float) -> Budget:
        """What is left of the budget for a run that began then, ``cap`` evaluations at most."""
        maxfevals, timeout = self.budget.maxfevals, self.budget.timeout
        if maxfevals is not None:
            maxfevals -= sum(result.nfev for result in self._finished)
        if cap is not None:
            maxfevals = cap if maxfevals is None else min(cap, maxfevals)
        if timeout is not None:
            timeout = max(timeout - (begun - self._started), 0.0)
        return self.budget._replace(maxfevals=maxfevals, timeout=timeout)

    def result(self, status: Status) -> Result:
        """All runs in one: the best point of all, and the distribution of the run it is from."""
        last = self.current.end(status)
        runs = [*self._finished, last]
        best = min(runs, key=lambda run: run.fun)
        reached = self.budget.ftarget is not None and best.fun <= self.budget.ftarget
        return Result(
            x=best.x,
            fun=best.fun,
            nfev=sum(run.nfev for run in runs),
            nit=sum(run.nit for run in runs),
            success=reached or (self.budget.ftarget is None and best.success),
            status=status,
            message=status.sentence,
            mean=best.mean,
            sigma=best.sigma,
            history=self._joined([run.history for run in runs]),
            restarts=tuple(run.restarts[0] for run in runs),
            nfailed=sum(run.nfailed for run in runs),
            first_error=self._first_error,
            shape=best.shape,
        )

    def _joined(self, histories: list[History]) -> History:
        """One history of several runs: evaluations and best-so-far go on from run to run."""
        if len(histories) == 1:
            return histories[0]
        joined, begin = self._history, 0
        for history in histories:
            if len(joined) < begin + len(history):  # there are rows that we have not seen
                rows = history.to_array(len(joined) - begin)
                if begin:
                    generation, nfev, best = (
                        joined.last(column, len(joined) - begin + 1)[0]
                        for column in ("generation", "nfev", "best")
                    )
                    rows["generation"] += generation
                    rows["nfev"] += nfev
                    rows["best"] = np.minimum(rows["best"], best)
                joined.extend(rows)
            begin += len(history)
        return joined.snapshot()

    # === On disk ===

    def save(self) -> None:
        """Write the checkpoint, where there is to be one."""
        if self._store is None:
            return
        content = {
            "current": self.current.to_saved(),
            "elapsed": self.elapsed,
            "finished": self._finished,
            "first_error": self._first_error,
            "schedule": repr(self._schedule),
        }
        self._store.save(content, self._address)

    def close(self) -> None:
        """Let go of the checkpoint's files; all that is known is in them."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


# What the fields of a Setup are called outside.
_ARGUMENTS = {"mean": "x0", "deviations": "sigma0", "box": "bounds", "seed": "rng"}


def _check_same(
    asked: Optimizer, saved: dict[str, Any], schedule: IPOP | BIPOP, seeded: bool
) -> None:
    """Refuse to go on with the search of another problem."""
    mine, theirs = asked.setup, saved["current"]["setup"]
    differing = [
        _ARGUMENTS.get(name, name)
        + (f" ({getattr(theirs, name)} there)" if name == "method" else "")
        for name in Setup._fields
        if name != "stopping" and (seeded or name != "seed")
        if not _equal(getattr(mine, name), getattr(theirs, name))
    ]
    if mine.mean.shape != theirs.mean.shape:
        differing.insert(0, f"the number of variables ({theirs.mean.shape[0]} there)")
    finished = saved["finished"]
    popsize = finished[0].restarts[0].popsize if finished else saved["current"]["popsize"]
    if asked.popsize != popsize:
        differing.append(f"popsize ({popsize} there)")
    if repr(schedule) != saved["schedule"]:
        differing.append(f"restarts ({saved['schedule']} there)")
    if differing:
        raise ValueError(
            "checkpoint: expected a saved search of this problem, got one that differs in "
            f"{', '.join(differing)}; give another path, or resume='never' to start anew"
        )


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_equal(p, q) for p, q in zip(a, b, strict=True))
    if hasattr(a, "__dataclass_fields__") and type(a) is type(b):
        return all(_equal(getattr(a, n), getattr(b, n)) for n in a.__dataclass_fields__)
    if a is None or b is None or isinstance(a, str):
        return bool(a is b or a == b)
    here, there = (np.asarray(to_host(value)) for value in (a, b))
    return here.dtype == there.dtype and np.array_equal(here, there)
