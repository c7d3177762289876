"""minimize(): check, loop, return a Result."""

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._optimizer import Optimizer
from fmnes._progress import Progress
from fmnes._restarts import BIPOP, IPOP, read_restarts
from fmnes._result import Result, Status
from fmnes._runs import Search
from fmnes._signals import Interrupts
from fmnes._stopping import Stopping
from fmnes.evaluate import Evaluator, Outcome, evaluate_vectorized, read_only
from fmnes.evaluate._outcome import Report
from fmnes.storage.checkpoint import Checkpoint


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike | Result,
    sigma0: ArrayLike | None = None,
    *,
    args: tuple[Any, ...] = (),
    method: Any = "cr-fm-nes",
    bounds: Any = None,
    popsize: int | None = None,
    ftarget: float | None = None,
    maxfevals: int | None = None,
    maxiter: int | None = None,
    timeout: float | None = None,
    stopping: Stopping | None = None,
    vectorized: bool = False,
    workers: Any = None,
    restarts: int | IPOP | BIPOP = 0,
    rng: "int | np.random.Generator | None" = None,
    callback: Callable[[Result], Any] | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    resume: str = "auto",
) -> Result:
    """Minimise a function of many variables from its values alone.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args) -> float``, x a read-only array of shape (d,) that is valid during the
        call. +inf marks an infeasible point; NaN a failed evaluation, ranked like one.
    x0 : array_like of shape (d,), or Result
        Where to start; a previous Result starts where that one ended. Its array library decides
        where everything lives (see `Optimizer`).
    sigma0 : float or array_like of shape (d,)
        Initial standard deviation: about a third of the distance within which you expect the
        optimum. May be left out if x0 is a Result.
    args : tuple
        Further arguments of ``fun``.
    method : str or settings
        "cr-fm-nes" (the default), another name of `fmnes.METHODS`, or settings such as
        ``fmnes.CRFMNES(variant="paper")``.
    bounds : sequence of (low, high), array of shape (d, 2), Bounds or scipy.optimize.Bounds
        What is evaluated and returned always lies inside.
    popsize : int, optional
        Candidates per generation.
    ftarget : float, optional
        A value that is good enough.
    maxfevals : int, optional
        No evaluation is started beyond this number.
    maxiter, timeout : optional
        Limits on generations (of each run) and on seconds (of the whole search).
    stopping : Stopping, optional
        The tolerances that end a converged or hopeless run.
    vectorized : bool
        Call ``fun`` once per generation with the (popsize, d) array, rows are candidates.
        (SciPy's own ``vectorized`` hands over the transpose.)
    workers : None, int, object with submit(), Cluster, or Evaluator
        Where to evaluate: here, in that many processes, in a pool of yours, on workers that hold
        the search themselves, or by the policies of an `Evaluator`.
    restarts : int, IPOP or BIPOP
        Restarts with other draws and larger populations until the target is reached.
    rng : None, int or numpy.random.Generator
        One seed is drawn from it, and everything follows from that seed.
    callback : callable
        ``callback(intermediate_result)`` after each generation; StopIteration ends the search.
    progress : bool
        Show a progress bar on standard error.
    checkpoint : path or Checkpoint, optional
        Keep the search there, every value as it arrives, and go on from there next time: to the
        same bits, whenever and however the process was ended.
    resume : {"auto", "must", "never"}
        Go on from ``checkpoint`` if it is there; insist on it; or start anew.

    Returns
    -------
    Result

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 20, 2.0, ftarget=1e-8, rng=1)
    >>> result.success, result.status
    (True, <Status.FTARGET: 'ftarget'>)
    """
    checks.function("fun", fun)
    if callback is not None:
        checks.function("callback", callback)
    if not isinstance(args, tuple):
        raise TypeError(f"args: expected a tuple such as (a,), got {args!r}")
    checks.choice("resume", resume, ("auto", "must", "never"))
    first = Optimizer(
        x0,
        sigma0,
        method=method,
        popsize=popsize,
        bounds=bounds,
        rng=rng,
        ftarget=ftarget,
        maxfevals=maxfevals,
        maxiter=maxiter,
        timeout=timeout,
        stopping=stopping,
    )
    schedule, evaluation = read_restarts(restarts), _Evaluation(fun, args, vectorized, workers)
    with (
        Search.open(first, schedule, checkpoint, resume, rng is not None) as search,
        contextlib.closing(Progress(progress)) as bar,
        Interrupts() as interrupts,
    ):
        try:
            with evaluation:
                evaluate = search.journaled(evaluation.evaluate)
                status = _loop(search, evaluation.ask, evaluate, callback, bar, interrupts)
        except KeyboardInterrupt:  # a second one, from here on, propagates
            status = Status.INTERRUPTED
        search.save()
        return search.result(interrupts.answer(status))


def _loop(
    search: Search,
    ask: Callable[[Optimizer], Any],
    evaluate: Callable[[Any], Outcome],
    callback: Callable[[Result], Any] | None,
    bar: Progress,
    interrupts: Interrupts,
) -> Status:
    """Run after run of the schedule: ask, evaluate, tell, until there is nothing left to do."""
    while True:
        opt = search.current
        while not (held := opt.stop()):
            x = ask(opt)
            interrupts.allow()
            outcome = evaluate(x)
            interrupts.defer()
            opt.tell(outcome.values)
            search.note(outcome.first_error)
            bar.update(search)
            if callback is not None:
                interrupts.allow()
                try:
                    callback(search.result(Status.RUNNING))
                except StopIteration:
                    return Status.CALLBACK
                finally:
                    interrupts.defer()
        status = Status(next(iter(held)))
        if not search.next_run(status):
            return status


class _Evaluation:
    """Context: how one population is evaluated; closes the pools that it opened itself."""

    def __init__(
        self, fun: Callable[..., Any], args: tuple[Any, ...], vectorized: bool, workers: Any
    ) -> None:
        if vectorized and workers is not None:
            raise ValueError(
                "workers: expected None with vectorized=True, where fun sees the whole "
                f"population at once, got {workers!r}"
            )
        self._fun, self._args, self._vectorized = fun, args, vectorized
        self._own = not isinstance(workers, Evaluator)
        self._evaluator = Evaluator(workers) if self._own else workers
        self._memory: NDArray[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def ask(self, opt: Optimizer) -> Any:
        """The candidates, or what workers build them from where that is less to send."""
        if not self._vectorized and self._evaluator.builds(8 * opt.popsize * opt.dim):
            population = opt.population()
            if population is not None:
                return population
        if self._memory is None or self._memory.shape[0] != opt.popsize:
            x = opt.ask()
            self._memory = x if isinstance(x, np.ndarray) else None
            return read_only(x)
        opt.ask(out=self._memory)  # every generation in the same memory
        return read_only(self._memory)

    def evaluate(
        self, x: Any, known: Mapping[int, float] | None = None, report: Report | None = None
    ) -> Outcome:
        if self._vectorized:
            return evaluate_vectorized(self._fun, self._args, x)
        return self._evaluator.evaluate(self._fun, self._args, x, known, report)

    def __exit__(self, *exc_info: object) -> None:
        if self._own:
            self._evaluator.close()
