"""minimize(): check the arguments, put the parts of a search together, return its Result."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, Never, Protocol

import numpy as np
from numpy.typing import ArrayLike

from fmnes import _checks as checks
from fmnes._loop import searched
from fmnes._optimizer import Optimizer
from fmnes._progress import Progress
from fmnes._signals import Interrupts
from fmnes.algorithms import MethodName, MethodSettings
from fmnes.arguments.start import read_point, read_start
from fmnes.evaluate import Evaluator
from fmnes.evaluate.cluster import Cluster
from fmnes.points.data import read_points_of
from fmnes.records.history import DEFAULT_SIZE
from fmnes.records.result import Result
from fmnes.records.stopping import Stopping
from fmnes.runs.evaluation import Evaluation, constraints_from, objective_of
from fmnes.runs.first_generation import tries_steps
from fmnes.runs.parallel import ParallelRuns
from fmnes.runs.restarts import BIPOP, IPOP, read_restarts
from fmnes.runs.sequential import Runs
from fmnes.storage.checkpoint import Checkpoint
from fmnes.storage.fingerprint import fingerprint
from fmnes.variables.bounds import BoundsLike
from fmnes.variables.space import Space


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
    rng: int | np.random.Generator | None = None,
    callback: Callable[..., bool | np.bool_ | None] | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    resume: Literal["auto", "must", "never"] = "auto",
    history_size: float = DEFAULT_SIZE,
    **unknown: Never,
) -> Result:
    """Minimize a function of many variables, using only its values.

    Parameters
    ----------
    fun : callable
        The objective function ``fun(x, *args) -> float``. ``x`` is a read-only array of shape (d,).
        Return +inf for an infeasible point. NaN marks a failed evaluation and is ranked like an
        infeasible point.
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
        objective = objective_of(fun, start.setup.space, pieces, vectorized=vectorized)
        schedule = read_restarts(restarts)
        evaluation = Evaluation(
            objective,
            args,
            workers,
            vectorized=vectorized,
            constraints=0 if kinds is None else kinds.number,
            asynchronous=asynchronous,
        )
        _check_schedule(
            schedule, evaluation.asynchronous, sizes_vary=start.setup.settings.adapts_popsize
        )
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
            return searched(runs, evaluation, callback, bar, interrupts)


def _check_schedule(schedule: IPOP | BIPOP, asynchronous: bool, *, sizes_vary: bool) -> None:
    """Raise an error if a schedule does not fit the way in which values come, or the method.

    ``sizes_vary``: the method changes the size of its generations.
    """
    if sizes_vary and asynchronous:
        raise ValueError(
            "asynchronous: expected False with adapt='popsize', because generations consist of the "
            "values that have arrived, got True"
        )
    if sizes_vary and not schedule.sizes_may_change:
        raise ValueError(
            "restarts: expected a number or IPOP with adapt='popsize', because BIPOP compares runs "
            f"by their population size, got {schedule!r}"
        )
    if schedule.parallel > 1 and not asynchronous:
        raise ValueError(f"restarts: expected asynchronous=True with {schedule}, got False")
