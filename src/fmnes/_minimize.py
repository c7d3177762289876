"""minimize(): check the arguments, loop, return a Result."""

import contextlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, Never, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._coordinates import BoundsLike
from fmnes._history import DEFAULT_SIZE
from fmnes._optimizer import Optimizer
from fmnes._progress import Progress
from fmnes._restarts import BIPOP, IPOP, read_restarts
from fmnes._result import Result, Status
from fmnes._runs import Runs
from fmnes._signals import Interrupts
from fmnes._stopping import Stopping
from fmnes.algorithms import MethodName, MethodSettings
from fmnes.evaluate import (
    Evaluator,
    Outcome,
    ValueCallback,
    attach,
    call_user,
    end_if_unguarded,
    evaluate_vectorized,
    read_only,
)
from fmnes.evaluate.cluster import Cluster
from fmnes.storage.checkpoint import Checkpoint
from fmnes.storage.fingerprint import fingerprint


class Pool(Protocol):
    """A pool of workers: an executor of `concurrent.futures`, a Dask client, ..."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function in a worker, and return a handle with ``done()`` and ``result()``."""


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike | Result,
    sigma0: ArrayLike | None = None,
    *,
    args: tuple[Any, ...] = (),
    method: MethodName | MethodSettings = "cr-fm-nes",
    bounds: BoundsLike | None = None,
    popsize: int | None = None,
    ftarget: float | None = None,
    maxfevals: int | None = None,
    maxiter: int | None = None,
    timeout: float | None = None,
    stopping: Stopping | None = None,
    vectorized: bool = False,
    workers: int | Pool | Callable[..., Any] | Cluster | Evaluator | None = None,
    restarts: int | IPOP | BIPOP = 0,
    rng: "int | np.random.Generator | None" = None,
    callback: "Callable[[Result], bool | np.bool_ | None] | None" = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    resume: Literal["auto", "must", "never"] = "auto",
    history_size: float = DEFAULT_SIZE,
    **unknown: Never,
) -> Result:
    """Minimise a function of many variables, using only its values.

    Parameters
    ----------
    fun : callable
        The objective function ``fun(x, *args) -> float``. ``x`` is a read-only array of shape (d,)
        that is valid during the call. Return +inf for an infeasible point. NaN marks a failed
        evaluation and is ranked like an infeasible point.
    x0 : array_like of shape (d,), or Result
        The starting point. Its array library decides where the search runs (see `Optimizer`). A
        Result continues with its mean, step size and shape.
    sigma0 : float or array_like of shape (d,), optional
        Initial standard deviation: about a third of the distance within which you expect the
        optimum, and less beyond 1000 variables: 0.12 of the distance for 10^4 variables, 0.04 for
        10^5. By default a sixth of the range between the bounds, which must then be finite for
        every variable; or the step size of x0 if that is a Result.
    args : tuple, optional
        Further arguments of ``fun``.
    method : str or settings, optional
        A name of `fmnes.METHODS`, or settings such as ``fmnes.CRFMNES(variant="paper")``. The
        default is "cr-fm-nes".
    bounds : sequence of pairs, array of shape (d, 2), Bounds or scipy.optimize.Bounds, optional
        Bounds on the variables. All candidates and results lie inside.
    popsize : int, optional
        Number of candidates per generation.
    ftarget : float, optional
        The search ends when it finds a value that is at most ``ftarget``.
    maxfevals : int, optional
        Largest number of evaluations.
    maxiter : int, optional
        Largest number of generations of each run.
    timeout : float, optional
        Largest number of seconds of the whole search. The generation that is being evaluated when
        they are over is completed; limit single evaluations by ``Evaluator(timeout=...)``.
    stopping : Stopping, optional
        The tolerances that end a run which has converged or makes no progress.
    vectorized : bool, optional
        Whether to call ``fun`` once per generation with an array of shape (popsize, d), one
        candidate per row. (SciPy's ``vectorized`` passes the transpose.)
    workers : None, int, object with submit(), Cluster, or Evaluator, optional
        Where to evaluate: in this process (None), in a number of worker processes (-1: one for
        each CPU), in your own pool, on workers that hold the search themselves (`Cluster`), or
        as an `Evaluator` says.
    restarts : int, IPOP or BIPOP, optional
        Restart schedule. The search is repeated with other random numbers and larger populations
        until it reaches the target.
    rng : None, int or numpy.random.Generator, optional
        Source of the random seed. All random numbers of the search derive from this one seed.
        Without a seed, every search gives a different result.
    callback : callable, optional
        ``callback(intermediate_result)`` is called after each generation with a Result. To end
        the search, it returns True or raises StopIteration. Anything but True, False and None is
        a TypeError.
    progress : bool, optional
        Whether to show a progress bar on standard error.
    checkpoint : path or Checkpoint, optional
        A file in which to keep the search. If the process ends for any reason, repeat the same
        call: the search resumes where it stopped and gives the same result as without the
        interruption.
    resume : {"auto", "must", "never"}, optional
        "auto" resumes from ``checkpoint`` if the file exists; "must" raises an error if it does
        not; "never" starts again.
    history_size : int, optional
        The number of generations after which ``result.history`` is thinned out (see `History`);
        math.inf keeps a row for every generation.
    **unknown
        Any other name is a TypeError, which suggests the name that may be meant.

    Returns
    -------
    Result

    Raises
    ------
    Exception
        Exceptions of ``fun`` and ``callback`` propagate. They get two attributes: ``error.result``
        is the Result so far, and ``error.x`` the candidate whose evaluation failed (if
        ``vectorized``: all). Worker processes report failures as `EvaluationError`, with the same
        attributes.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 20, 2.0, ftarget=1e-8, rng=1)
    >>> result.success, result.status
    (True, <Status.FTARGET: 'ftarget'>)
    """
    checks.no_others(unknown, inspect.signature(minimize).parameters)
    checks.function("fun", fun)
    if callback is not None:
        checks.function("callback", callback)
    if not isinstance(args, tuple):
        raise TypeError(f"args: expected a tuple such as (a,), got {args!r}")
    checks.boolean("vectorized", vectorized)
    checks.boolean("progress", progress)
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
        history_size=history_size,
    )
    schedule, evaluation = read_restarts(restarts), _Evaluation(fun, args, vectorized, workers)
    with (
        Runs.open(first, schedule, checkpoint, resume, rng is not None, fingerprint(fun)) as runs,
        contextlib.closing(Progress(progress, runs)) as bar,
        Interrupts() as interrupts,
    ):
        try:
            try:
                with evaluation:
                    status = _loop(runs, evaluation, callback, bar, interrupts)
            except KeyboardInterrupt:  # a second one propagates
                status = Status.INTERRUPTED
            runs.save()
        except BaseException as error:
            _attach_result(error, runs)
            raise
        return runs.result(interrupts.answer(status))


def _attach_result(error: BaseException, runs: Runs) -> None:
    """Give an exception that ends the search the Result so far, so that no work is lost."""
    with contextlib.suppress(Exception):  # on a device that has failed there is no Result
        result = runs.result(Status.ERROR)
        attach(error, "result", result)
        if result.nfev:
            candidate = "" if getattr(error, "x", None) is None else ", `error.x` what failed"
            error.add_note(
                f"The exception ended the search after {result.nfev} evaluations. `error.result` "
                f"is the Result so far (best value {result.fun:.6g}){candidate}."
            )


def _loop(
    runs: Runs,
    evaluation: "_Evaluation",
    callback: "Callable[[Result], bool | np.bool_ | None] | None",
    bar: Progress,
    interrupts: Interrupts,
) -> Status:
    """Ask, evaluate and tell in run after run; return why the last run ended."""
    while True:
        opt = runs.current
        while not (reasons := opt.reasons()):
            x = evaluation.ask(opt)
            interrupts.allow()
            outcome = runs.evaluate(evaluation.evaluate, x)
            interrupts.defer()
            opt.tell(outcome.values)
            runs.after_generation(outcome.first_error)
            bar.update()
            if callback is not None:
                interrupts.allow()
                try:
                    if _says_stop(call_user(callback, runs.result(Status.RUNNING))):
                        return Status.CALLBACK
                except StopIteration:
                    return Status.CALLBACK
                finally:
                    interrupts.defer()
        if not runs.next_run(reasons[0]):
            return reasons[0]


def _says_stop(answer: Any) -> bool:
    """Return whether a callback's answer ends the search; TypeError if it is not clear."""
    if answer is not None and not isinstance(answer, bool | np.bool_):
        raise TypeError(
            "callback: expected it to return True to end the search, or False or None to continue, "
            f"got {answer!r:.60} of type {type(answer).__name__}"
        )
    return bool(answer)


class _Evaluation:
    """Evaluates populations; a context manager that closes the pools which it opened itself."""

    def __init__(
        self, fun: Callable[..., Any], args: tuple[Any, ...], vectorized: bool, workers: Any
    ) -> None:
        if vectorized and workers is not None:
            raise ValueError(
                "workers: expected None with vectorized=True, which calls fun once for the whole "
                f"population, got {workers!r}"
            )
        if workers is not None:
            end_if_unguarded()  # before a checkpoint is opened, which the driver has locked
        self._fun, self._args, self._vectorized = fun, args, vectorized
        self._own = not isinstance(workers, Evaluator)
        self._evaluator = Evaluator(workers) if self._own else workers
        self._memory: NDArray[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def ask(self, opt: Optimizer) -> Any:
        """Return the candidates, or the Population that workers build them from."""
        if not self._vectorized and self._evaluator.builds(8 * opt.popsize * opt.dim):
            population = opt.population()
            if population is not None:
                return population
        if self._memory is None or self._memory.shape[0] != opt.popsize:
            x = opt.ask()
            self._memory = x if isinstance(x, np.ndarray) else None
            return read_only(x)
        opt.ask(out=self._memory)  # use the same memory for every generation
        return read_only(self._memory)

    def evaluate(
        self, x: Any, known: Mapping[int, float] | None = None, report: ValueCallback | None = None
    ) -> Outcome:
        """Return the values of the candidates; see `Evaluator.evaluate`."""
        if self._vectorized:
            return evaluate_vectorized(self._fun, self._args, x)
        return self._evaluator.evaluate(self._fun, self._args, x, known, report)

    def __exit__(self, *exc_info: object) -> None:
        if self._own:
            self._evaluator.close()
