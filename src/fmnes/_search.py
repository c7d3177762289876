"""Run after run of a restart schedule as one search, with its checkpoint."""

import logging
import os
import time
import warnings
from typing import Any

import numpy as np

from fmnes import _checks as checks
from fmnes._history import History
from fmnes._optimizer import Optimizer
from fmnes._restarts import BIPOP, IPOP
from fmnes._result import Result, Status
from fmnes._setup import Setup
from fmnes._stopping import Budget

logger = logging.getLogger("fmnes")

_SAVE_EVERY = 10.0  # seconds
_SAVED = ("current", "finished", "first_error", "schedule")
# After these a further run would be pointless, or unwanted.
_FINAL = (
    Status.FTARGET,
    Status.UNBOUNDED,
    Status.TIMEOUT,
    Status.CALLBACK,
    Status.INTERRUPTED,
)


class Search:
    """The runs that have ended, the one that goes on, and what is left of the budget."""

    def __init__(
        self, first: Optimizer, schedule: IPOP | BIPOP, path: str | os.PathLike[str] | None
    ) -> None:
        self.current = first
        self._schedule, self._path = schedule, path
        self._budget = first.budget
        self._finished: list[Result] = []
        self._first_error: str | None = None
        self._started = self._saved = time.monotonic()

    @classmethod
    def open(
        cls,
        first: Optimizer,
        schedule: IPOP | BIPOP,
        path: str | os.PathLike[str] | None,
        resume: str,
        seeded: bool,
    ) -> "Search":
        """A new search, or the one saved at ``path`` if it is of the same problem."""
        search = cls(first, schedule, path)
        if path is None:
            if resume == "must":
                raise ValueError("checkpoint: expected a path with resume='must', got None")
            return search
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):  # now, and not after hours of evaluations
            raise FileNotFoundError(f"checkpoint: expected a folder that exists, got {folder}")
        if resume == "never" or not os.path.exists(path):
            if resume == "must":
                raise FileNotFoundError(f"checkpoint: expected a saved search at {path}, got none")
            return search
        from fmnes import _checkpoint  # here: it would double the time of import

        saved = _checkpoint.read(path, _SAVED)
        current = Optimizer.from_saved(saved["current"])
        _check_same(first, current, saved, schedule, seeded)
        search._finished, search._first_error = saved["finished"], saved["first_error"]
        search.current = current
        search.current.budget = search._left(None)
        return search

    def note(self, first_error: str | None) -> None:
        """After each generation: keep the first error, save now and then."""
        self._first_error = self._first_error or first_error
        if self._path is not None and time.monotonic() - self._saved >= _SAVE_EVERY:
            self.save()

    def next_run(self, status: Status) -> bool:
        """Begin the next run of the schedule; False if there is none, or no budget for it."""
        if status in _FINAL:
            return False
        ended = [*self._finished, self.current.end(status)]
        runs = [result.restarts[0] for result in ended]
        start = self._schedule.next(runs, self.current.setup.seed)
        if start is None:
            return False
        self._finished, previous = ended, self._finished
        budget = self._left(start.maxfevals)
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

    def _left(self, cap: int | None) -> Budget:
        """What is left of the budget for the current run, ``cap`` at most."""
        maxfevals, timeout = self._budget.maxfevals, self._budget.timeout
        if maxfevals is not None:
            maxfevals -= sum(result.nfev for result in self._finished)
        if cap is not None:
            maxfevals = cap if maxfevals is None else min(cap, maxfevals)
        if timeout is not None:
            timeout = max(timeout - (time.monotonic() - self._started), 0.0)
        return self._budget._replace(maxfevals=maxfevals, timeout=timeout)

    def result(self, status: Status) -> Result:
        """All runs in one: the best point of all, and the distribution of the run it is from."""
        last = self.current.end(status)
        runs = [*self._finished, last]
        best = min(runs, key=lambda run: run.fun)
        reached = self._budget.ftarget is not None and best.fun <= self._budget.ftarget
        return Result(
            x=best.x,
            fun=best.fun,
            nfev=sum(run.nfev for run in runs),
            nit=sum(run.nit for run in runs),
            success=reached or (self._budget.ftarget is None and best.success),
            status=status,
            message=status.sentence,
            mean=best.mean,
            sigma=best.sigma,
            history=_joined([run.history for run in runs]),
            restarts=tuple(run.restarts[0] for run in runs),
            nfailed=sum(run.nfailed for run in runs),
            first_error=self._first_error,
            shape=best.shape,
        )

    def save(self) -> None:
        """Write the checkpoint, where there is to be one.

        A full disk is no reason to lose the search: the old file stays, and a warning says so.
        """
        if self._path is None:
            return
        from fmnes import _checkpoint

        content = {
            "current": self.current.to_saved(),
            "finished": self._finished,
            "first_error": self._first_error,
            "schedule": repr(self._schedule),
        }
        try:
            _checkpoint.write(self._path, content)
        except OSError as error:
            warnings.warn(f"the checkpoint {self._path} was not written: {error}", stacklevel=4)
        self._saved = time.monotonic()


def _check_same(
    asked: Optimizer, saved: Optimizer, content: dict[str, Any], schedule: Any, seeded: bool
) -> None:
    """Refuse to go on with the search of another problem."""
    mine, theirs = asked.setup, saved.setup
    differing = [
        name
        for name in Setup._fields
        if name != "stopping" and (seeded or name != "seed")
        if not _equal(getattr(mine, name), getattr(theirs, name))
    ]
    first_popsize = content["finished"][0].restarts[0].popsize if content["finished"] else None
    if asked.popsize != (first_popsize or saved.popsize):
        differing.append("popsize")
    if repr(schedule) != content["schedule"]:
        differing.append("restarts")
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
    return np.array_equal(np.asarray(checks.to_host(a)), np.asarray(checks.to_host(b)))


def _joined(histories: list[History]) -> History:
    """One history of several runs: evaluations and best-so-far go on from run to run."""
    if len(histories) == 1:
        return histories[0]
    parts, generation, nfev, best = [], 0, 0, np.inf
    for history in histories:
        rows = history.to_array()
        rows["generation"] += generation
        rows["nfev"] += nfev
        rows["best"] = np.minimum(rows["best"], best)
        if len(rows):
            generation, nfev, best = rows["generation"][-1], rows["nfev"][-1], rows["best"][-1]
        parts.append(rows)
    return History(np.concatenate(parts))
