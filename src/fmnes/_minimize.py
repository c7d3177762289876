"""minimize(): check the arguments, loop, return a Result."""

import contextlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, Never, Protocol, Self

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array
from fmnes._optimizer import Optimizer
from fmnes._progress import Progress
from fmnes._signals import Interrupts
from fmnes.algorithms import MethodName, MethodSettings
from fmnes.arguments.start import read_point, read_start
from fmnes.constraints.functions import ConstrainedObjective, Piece, read_constraints
from fmnes.constraints.kinds import Kinds
from fmnes.evaluate import (
    Evaluator,
    Outcome,
    Value,
    attach,
    call_user,
    end_if_unguarded,
    evaluate_vectorized,
    read_only,
)
from fmnes.evaluate.cluster import Cluster
from fmnes.points.data import read_points_of
from fmnes.records.history import DEFAULT_SIZE
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.records.stopping import Stopping
from fmnes.runs.asynchronous import Flight, Stream
from fmnes.runs.first_generation import tries_steps
from fmnes.runs.parallel import Fleet, ParallelRuns
from fmnes.runs.restarts import BIPOP, IPOP, read_restarts
from fmnes.runs.sequential import Runs
from fmnes.storage.checkpoint import Checkpoint
from fmnes.storage.fingerprint import fingerprint
from fmnes.variables.bounds import BoundsLike
from fmnes.variables.space import OfSpace, Space, of_named_values


class Pool(Protocol):
    """A pool of workers: an executor of `concurrent.futures`, a Dask client, ..."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function in a worker, and return a handle with ``done()`` and ``result()``."""


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike | Result | Space | tuple[Any, ...],
    sigma0: ArrayLike | Mapping[str, Any] | None = None,
    *,
    args: tuple[Any, ...] = (),
    method: MethodName | MethodSettings = "auto",
    bounds: BoundsLike | None = None,
    constraints: Any = (),
    integrality: ArrayLike | None = None,
    popsize: int | None = None,
    ftarget: float | None = None,
    maxfevals: int | None = None,
    maxiter: int | None = None,
    timeout: float | None = None,
    stopping: Stopping | None = None,
    vectorized: bool = False,
    workers: int | Pool | Callable[..., Any] | Cluster | Evaluator | None = None,
    asynchronous: bool = False,
    restarts: int | IPOP | BIPOP = 0,
    rng: "int | np.random.Generator | None" = None,
    callback: "Callable[..., bool | np.bool_ | None] | None" = None,
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
    x0 : array_like of shape (d,), Result, Space, or (X, F)
        The starting point. Its array library decides where the search runs (see `Optimizer`). A
        Result continues with its mean, step size, shape and multipliers. A `Space` has named
        variables: then ``fun`` gets a dict of their values, and ``result.best`` is one. Points X of
        shape (n, d) with known values F set mean, ``sigma0`` and shape; with named variables,
        ``(space, X, F)`` with a list of dicts X. ``x0`` is evaluated too, together with the first
        generation, so the result is never worse than it. Of a Result, the best candidate ``x0.x``
        is evaluated.
    sigma0 : float or array_like of shape (d,), optional
        Initial standard deviation: about a third of the distance within which you expect the
        optimum, and less beyond 1000 variables: 0.12 of the distance for 10^4 variables, 0.04 for
        10^5. By default the distance is half the range of a variable with two bounds. For the
        others it is the typical size of their x0 (the median of the absolute values other than
        0), or 3 if x0 is 0. If x0 is a Result, the default is its step size. With a Space, it is a
        dict by name.
    args : tuple, optional
        Further arguments of ``fun``.
    method : str or settings, optional
        A name of `fmnes.METHODS`, or settings such as ``fmnes.CRFMNES(variant="paper")``. The
        default is "auto".
    bounds : sequence of pairs, array of shape (d, 2), Bounds or scipy.optimize.Bounds, optional
        Bounds on the variables. All candidates and results lie inside.
    constraints : constraint, sequence of constraints, int or Constraints, optional
        `scipy.optimize.NonlinearConstraint`, `LinearConstraint` or `Bounds`, a dict such as
        ``{"type": "ineq", "fun": function}``, or a sequence of these. A number m means that ``fun``
        returns ``(f, g)`` with m numbers that have to be <= 0; see `Constraints` for equalities
        and tolerances. Candidates may violate constraints during the search, unlike ``bounds``.
    integrality : int or array_like of shape (d,), optional
        1 for each variable that takes integers only, 0 for the others, or one number for all.
        Integer variables need two finite bounds. The candidates have integers there, as
        floating-point numbers, and every integer variable keeps a chance to change.
    popsize : int, optional
        Number of candidates per generation.
    ftarget : float, optional
        The search ends when it finds a value that is at most ``ftarget``.
    maxfevals : int, optional
        Largest number of evaluations, at least popsize + 1: x0 and one generation.
    maxiter : int, optional
        Largest number of generations of each run.
    timeout : float, optional
        Largest number of seconds of the whole search. The generation that is being evaluated when
        they are over is completed; limit single evaluations by ``Evaluator(timeout=...)``.
    stopping : Stopping, optional
        The tolerances that end a run which has converged or makes no progress.
    vectorized : bool, optional
        Whether to call ``fun`` once per generation with an array of shape (popsize, d), one
        candidate per row. The array of the first generation has one row more, which is x0.
        (SciPy's ``vectorized`` passes the transpose.)
    workers : None, int, object with submit(), Cluster, or Evaluator, optional
        Where to evaluate: in this process (None), in a number of worker processes (-1: one for
        each CPU), in your own pool, on workers that hold the search themselves (`Cluster`), or
        as an `Evaluator` says.
    asynchronous : bool, optional
        If True, a worker gets its next candidate as soon as it is free. The result then depends on
        the order in which values arrive, and a generation has at least as many candidates as there
        are workers (if their number is fixed). By default, all workers wait for the slowest
        candidate of each generation. See docs/asynchronous.md.
    restarts : int, IPOP or BIPOP, optional
        Restart schedule. The search is repeated with other random numbers and larger populations
        until it reaches the target.
    rng : None, int or numpy.random.Generator, optional
        Source of the random seed. All random numbers of the search derive from this one seed.
        Without a seed, every search gives a different result.
    callback : callable, optional
        ``callback(intermediate_result)`` is called after each generation with a Result. To end
        the search, it returns True or raises StopIteration. Anything but True, False and None is
        a TypeError. A callback with two required arguments also gets the function
        ``inject(x, f=None)``, which puts points from elsewhere into the next generation, as
        `Optimizer.inject` does.
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
        math.inf keeps a row for every generation. Runs that are in progress at once
        (``restarts=IPOP(parallel=...)``) are thinned out one by one.
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
    checks.arguments("args", args)
    checks.boolean("vectorized", vectorized)
    checks.boolean("asynchronous", asynchronous)
    checks.boolean("progress", progress)
    checks.choice("resume", resume, ("auto", "must", "never"))
    x0 = read_points_of(x0)
    with Interrupts() as interrupts:  # first: a signal waits until there is a Result to return
        start = read_start(
            x0=x0,
            sigma0=sigma0,
            method=method,
            popsize=popsize,
            bounds=bounds,
            integrality=integrality,
            rng=rng,
            ftarget=ftarget,
            maxfevals=maxfevals,
            maxiter=maxiter,
            timeout=timeout,
            stopping=stopping,
            with_x0=True,
        )
        point = read_point(x0, start.setup)
        if constraints:
            interrupts.allow()  # their functions are called once
        kinds, pieces = constraints_from(constraints, point, start.setup.space)
        interrupts.defer()
        start = start.constrained(kinds, x0)
        number = 0 if kinds is None else kinds.number
        objective: Callable[..., Any] = fun
        if start.setup.space is not None:
            objective = OfSpace(fun, start.setup.space)
        if pieces:
            constrained = ConstrainedObjective(objective, pieces)
            objective = constrained.of_population if vectorized else constrained
        schedule = read_restarts(restarts)
        evaluation = _Evaluation(
            objective,
            args,
            workers,
            vectorized=vectorized,
            constraints=number,
            asynchronous=asynchronous,
        )
        if start.setup.settings.adapts_popsize:
            _check_sizes_may_change(schedule, evaluation)
        if schedule.parallel > 1 and not evaluation.asynchronous:
            raise ValueError(f"restarts: expected asynchronous=True with {schedule}, got False")
        least = -(-evaluation.least_popsize // schedule.parallel)  # rounded up
        first = Optimizer.started(start.enlarged(least), history_size)
        tries = not (isinstance(x0, Result) or evaluation.asynchronous)
        tries = tries and tries_steps(start, given=sigma0 is not None)
        with (
            (Runs if schedule.parallel == 1 else ParallelRuns).open(
                first,
                schedule,
                checkpoint,
                x0=point,
                tries=tries,
                resume=resume,
                seeded=rng is not None,
                objective=fingerprint(fun),
                asynchronous=evaluation.asynchronous,
                popsize=popsize,
            ) as runs,
            contextlib.closing(Progress(progress, runs)) as bar,
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


def _check_sizes_may_change(schedule: IPOP | BIPOP, evaluation: "_Evaluation") -> None:
    """Raise an error if something here needs generations of one size."""
    if evaluation.asynchronous:
        raise ValueError(
            "asynchronous: expected False with adapt='popsize', because generations consist of the "
            "values that have arrived, got True"
        )
    if not schedule.sizes_may_change:
        raise ValueError(
            "restarts: expected a number or IPOP with adapt='popsize', because BIPOP compares runs "
            f"by their population size, got {schedule!r}"
        )


def _attach_result(error: BaseException, runs: Runs) -> None:
    """Give an exception that ends the search the Result so far, so that no work is lost."""
    with contextlib.suppress(Exception):  # on a device that has failed there is no Result
        result = runs.result(Status.ERROR)
        attach(error, "result", result)
        if result.nfev:
            candidate = "" if getattr(error, "x", None) is None else ", `error.x` what failed"
            error.add_note(
                f"The exception ended the search after {checks.count(result.nfev, 'evaluation')}. "
                f"`error.result` is the Result so far (best value {result.fun:.6g}){candidate}."
            )


def _loop(
    runs: Runs,
    evaluation: "_Evaluation",
    callback: "Callable[..., bool | np.bool_ | None] | None",
    bar: Progress,
    interrupts: Interrupts,
) -> Status:
    """Ask, evaluate and tell in run after run; return why the last run ended."""

    def inject(x: Any, f: Any = None) -> None:
        evaluation.check_injection()
        runs.inject(x, f)

    more = (inject,) if callback is not None and _takes_two(callback) else ()
    while True:
        while not (reasons := runs.reasons()):
            x = runs.ask(evaluation.ask)
            interrupts.allow()
            outcome = runs.evaluate(evaluation.evaluate, x)
            interrupts.defer()
            is_complete = runs.tell(outcome)
            if is_complete:
                bar.update()
            if callback is not None and is_complete:
                interrupts.allow()
                try:
                    if _says_stop(call_user(callback, runs.result(Status.RUNNING), *more)):
                        return Status.CALLBACK
                except StopIteration:
                    return Status.CALLBACK
                finally:
                    interrupts.defer()
        if not runs.next_run(reasons[0]):
            return reasons[0]


def constraints_from(
    constraints: Any, point: Array, space: Space | None
) -> tuple[Kinds | None, tuple[Piece, ...]]:
    """Return the constraints; their functions are called once, at a point of the search."""
    if isinstance(constraints, tuple | list) and not constraints:
        return None, ()
    eps = float(array_namespace(point).finfo(point.dtype).eps)
    if space is not None:
        constraints = of_named_values(constraints, space)
    return read_constraints(constraints, read_only(point), eps)


def _takes_two(callback: Callable[..., Any]) -> bool:
    """Return whether a callback has two required arguments; the second one is `inject`."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):  # some functions in C have no signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(required) == 2


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
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        workers: Any,
        *,
        vectorized: bool,
        constraints: int,
        asynchronous: bool,
    ) -> None:
        if vectorized and workers is not None:
            raise ValueError(
                "workers: expected None with vectorized=True, which calls fun once for the whole "
                f"population, got {workers!r}"
            )
        if workers is not None:
            end_if_unguarded()  # before a checkpoint is opened, which the driver has locked
        self._fun, self._args, self._vectorized = fun, args, vectorized
        self._constraints = constraints
        self._own = not isinstance(workers, Evaluator)
        self._evaluator = Evaluator(workers) if self._own else workers
        self._memory: NDArray[Any] | None = None
        self.asynchronous = asynchronous or self._evaluator.asynchronous
        if self.asynchronous:
            self._evaluator.check_asynchronous()
        self._stream = Stream(fun, args, self._evaluator, constraints)

    @property
    def least_popsize(self) -> int:
        """The least size of a generation, if the search is asynchronous: one candidate per worker.

        In smaller generations, most values would come from candidates of earlier generations.
        """
        return self._evaluator.fixed_width if self.asynchronous else 0

    def check_injection(self) -> None:
        """Raise a ValueError if points from elsewhere cannot be evaluated; see `Evaluator`."""
        self._evaluator.check_injection()

    def __enter__(self) -> Self:
        return self

    def ask(self, opt: Optimizer, points: Array | None) -> Any:
        """Return the candidates, or the Population that workers build them from.

        If ``points`` are to be evaluated too, they are the last rows.
        """
        if not self._vectorized and self._evaluator.builds(8 * opt.popsize * opt.dim):
            population = opt.population(points)
            if population is not None:
                return population
        if not isinstance(opt.setup.mean, np.ndarray):
            x = opt.ask_vectors()
            xp = array_namespace(x)
            return x if points is None else xp.concat([x, points])
        return read_only(self._ask_in_place(opt, points))

    def _ask_in_place(self, opt: Optimizer, points: NDArray[Any] | None) -> NDArray[Any]:
        """Return the same for NumPy arrays, in the same memory for every generation."""
        popsize = opt.popsize
        if points is not None:
            self._memory = np.empty((popsize + points.shape[0], points.shape[1]), points.dtype)
            self._memory[popsize:] = points
            opt.ask_vectors(out=self._memory[:popsize])
            return self._memory
        if self._memory is None or self._memory.shape[0] < popsize:
            self._memory = opt.ask_vectors()
        else:
            opt.ask_vectors(out=self._memory[:popsize])
        return self._memory[:popsize]

    def evaluate(
        self, x: Any, known: Mapping[Any, Value] | None = None, report: Any = None
    ) -> Outcome:
        """Return the values of the candidates; see `Evaluator.evaluate` and `Stream.evaluate`."""
        if isinstance(x, Flight | Fleet):
            return self._stream.evaluate(x, known, report)
        if self._vectorized:
            return evaluate_vectorized(self._fun, self._args, x, self._constraints, known)
        evaluate = self._evaluator.evaluate
        return evaluate(self._fun, self._args, x, known, report, self._constraints)

    def __exit__(self, *exc_info: object) -> None:
        if self.asynchronous:
            self._evaluator.end_stream()
        if self._own:
            self._evaluator.close()
