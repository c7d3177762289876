"""Optimizer: ask and tell around an engine."""

import copy
import inspect
import math
import os
import time
from typing import Any, Never

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array, constant, to_host
from fmnes._coordinates import BoundsLike
from fmnes._history import DEFAULT_SIZE, History, read_size
from fmnes._population import Lineage, Population, Recipe
from fmnes._record import Limits, Record
from fmnes._restarts import NextRun
from fmnes._result import Result, Run, Status, message, succeeded
from fmnes._start import Start, initial_sigma_and_shape, read_start
from fmnes._stopping import Budget, Stopping, reasons, windows
from fmnes.algorithms import METHODS, Algorithm, MethodName, MethodSettings
from fmnes.algorithms._records import copied
from fmnes.draws import Address
from fmnes.engines import EngineSpec, registration
from fmnes.engines.generation import pieces
from fmnes.evaluate import to_values
from fmnes.storage import npz
from fmnes.storage.validity import SEARCH


class Optimizer:
    """Minimise a function by ask and tell: the optimizer proposes candidates, you evaluate them.

    Parameters
    ----------
    x0 : array_like of shape (d,), or Result
        The starting point. Its array library decides where the search runs: a NumPy array or a
        list on the CPU, a PyTorch or JAX array on its own device and in its own precision. A
        Result continues with its mean, step size and shape.
    sigma0 : float or array_like of shape (d,), optional
        Initial standard deviation, one number for all variables or one each; see `minimize`. By
        default a sixth of the range between the bounds, or the step size of x0 if that is a Result.
    method : str or settings
        A name of `fmnes.METHODS`, or settings such as ``fmnes.CRFMNES(variant="paper")``.
    popsize : int, optional
        Number of candidates per generation. Each method has its own default; a larger population
        makes the search more robust.
    bounds : sequence of pairs, array of shape (d, 2), Bounds or scipy.optimize.Bounds, optional
        Bounds on the variables. All candidates and results lie inside. Variables with equal bounds
        are kept fixed.
    rng : None, int or numpy.random.Generator, optional
        Source of the random seed. All random numbers of the search derive from this one seed.
        Without a seed, every search gives a different result.
    ftarget : float, optional
        The search ends when it finds a value that is at most ``ftarget``.
    maxfevals, maxiter : int, optional
        Largest number of evaluations and of generations.
    timeout : float, optional
        Largest number of seconds.
    stopping : Stopping, optional
        The tolerances that end a search which has converged or makes no progress.
    history_size : int
        The number of generations after which the history is thinned out (see `History`); math.inf
        keeps a row for every generation.
    **unknown
        Any other name is a TypeError, which suggests the name that may be meant.

    Examples
    --------
    >>> import fmnes
    >>> opt = fmnes.Optimizer([3.0] * 10, 2.0, rng=1, ftarget=1e-10)
    >>> while not opt.stop():
    ...     x = opt.ask()                  # (popsize, d)
    ...     opt.tell((x**2).sum(axis=1))   # (popsize,)
    >>> opt.stop()
    {'ftarget': 'The best value reached the target ftarget.'}
    """

    def __init__(
        self,
        x0: ArrayLike | Result,
        sigma0: ArrayLike | None = None,
        *,
        method: MethodName | MethodSettings = "cr-fm-nes",
        popsize: int | None = None,
        bounds: BoundsLike | None = None,
        rng: "int | np.random.Generator | None" = None,
        ftarget: float | None = None,
        maxfevals: int | None = None,
        maxiter: int | None = None,
        timeout: float | None = None,
        stopping: Stopping | None = None,
        history_size: float = DEFAULT_SIZE,
        **unknown: Never,
    ) -> None:
        checks.no_others(unknown, inspect.signature(Optimizer).parameters)
        start = read_start(
            x0, sigma0, method, popsize, bounds, rng, ftarget, maxfevals, maxiter, timeout, stopping
        )
        self._begin(start, History(size=read_size(history_size)), run=0, sigma_factor=1.0)

    def restarted(self, next_run: NextRun, budget: Budget) -> "Optimizer":
        """Return the next run of a restart schedule: the same search with other draws."""
        other = Optimizer.__new__(Optimizer)
        start = Start(self.setup, next_run.popsize, budget)
        history, sigma_factor = self.record.history.snapshot(), next_run.sigma_factor
        other._begin(start, history, run=self.run + 1, sigma_factor=sigma_factor)
        return other

    def _begin(self, start: Start, history: History, *, run: int, sigma_factor: float) -> None:
        """Start run number ``run`` of a restart schedule; ``history`` is that of earlier runs."""
        self.setup, self._popsize, self.budget = start
        self.run, self._asked = run, False  # run 0 is the first of a restart schedule
        mean, xp = self.setup.mean, array_namespace(self.setup.mean)
        sigma, shape = initial_sigma_and_shape(self.setup, sigma_factor)
        sigma0 = constant(xp, sigma, mean)
        z = draws.normals(self.setup.seed, draws.initial_stream(run), 0, 0, 1, self.dim)[0]
        params = self._algorithm.params(self.dim, self._popsize, self.setup.settings)
        state = self._algorithm.init(params, mean, sigma0, shape, constant(xp, z, mean))
        self._set_engine(params, state)
        info = xp.finfo(mean.dtype)
        limits = Limits(
            dim=self.dim,
            popsize=self._popsize,
            deviation0=float(xp.max(self._engine.initial)),
            # D and v keep their relative precision; a full matrix loses what eps hides.
            axis_ratio=1e15 if self._algorithm.LINEAR else 0.1 / math.sqrt(float(info.eps)),
            tiny=float(info.smallest_normal),
            huge=float(info.max),
        )
        recent = windows(self.setup.stopping, limits)
        self.record = Record(limits, float(sigma0), recent, history)

    def _set_engine(
        self,
        params: Any,
        state: Any,
        generation: int = 0,
        initial: Array | None = None,
        best: Array | None = None,
    ) -> None:
        """Create the engine for a state after ``generation`` generations."""
        setup = self.setup
        address = Address(setup.seed, draws.population_stream(self.run), generation)
        spec = EngineSpec(
            self._algorithm, params, state, address, setup.stopping.tolx, initial, best
        )
        self._engine = registration(setup.method, state.mean).engine(spec)
        self._told: NDArray[np.float64] | None = None  # the values of the last generation
        self._seconds = 0.0  # spent in this generation
        self._handed_out = time.monotonic()

    # === Ask and tell ===

    def ask(self, *, out: NDArray[Any] | None = None, rows: slice | None = None) -> Array:
        """Return the candidates of this generation as a new array of shape (popsize, d).

        Until `tell` is called, every call returns the same candidates. ``out`` is an array to fill
        instead of a new one (NumPy only). ``rows`` is a slice: only these candidates are built, so
        that a population that does not fit in memory can be evaluated in parts.
        """
        begun = time.monotonic()
        first, last = (0, self._popsize) if rows is None else self._read_rows(rows)
        if out is not None:
            checks.buffer("out", out, (last - first, self._user_dim))
        x = self._candidates(first, last, out)
        self._asked, self._handed_out = True, time.monotonic()
        self._seconds += self._handed_out - begun
        return x

    def population(self) -> Population | None:
        """Return the population as O(d) numbers, from which a worker builds single candidates.

        None for a method that builds all candidates at once, and for arrays on a device.
        """
        if not self._algorithm.LINEAR or not isinstance(self.setup.mean, np.ndarray):
            return None
        setup, stream = self.setup, draws.population_stream(self.run)
        address = Address(setup.seed, stream, self.nit)
        self._asked, self._handed_out = True, time.monotonic()
        recipe = Recipe(
            setup.method, setup.settings, self._popsize, self._state, address, setup.box
        )
        return Population(recipe, Lineage(run=self._engine, values=self._told))

    def tell(self, x_or_f: Any, f: Any = None, /) -> None:
        """Pass the values of the candidates: ``tell(f)``, or ``tell(x, f)`` with the x of `ask`.

        +inf marks an infeasible candidate. NaN marks a failed evaluation; it is ranked like an
        infeasible candidate and counted in ``nfailed``.
        """
        begun = time.monotonic()
        if not self._asked:
            raise RuntimeError("tell: expected a call of ask() first, got none for this generation")
        values = to_values(to_host(x_or_f if f is None else f), self._popsize, "f")
        if f is not None:
            self._check_told(x_or_f)
        generation = self._engine.tell(values, self.record.best_f)
        self._asked, self._told = False, values
        seconds = self._seconds + time.monotonic() - begun
        self.record.add(generation, begun - self._handed_out, seconds)
        self._seconds = 0.0

    def _candidates(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Return candidates in the user's coordinates, as a new array or in ``out``."""
        box = self.setup.box
        if box is None:
            return self._engine.ask(first, last, out)
        xp = array_namespace(self.setup.mean)
        if out is None:
            if not isinstance(self.setup.mean, np.ndarray):
                return box.to_user(xp, self._engine.ask(first, last))
            out = np.empty((last - first, self._user_dim), self.setup.mean.dtype)
        for a, b in pieces(self._algorithm, first, last, self._user_dim):
            out[a - first : b - first] = box.to_user(xp, self._engine.ask(a, b))
        return out

    def _read_rows(self, rows: slice) -> tuple[int, int]:
        if not isinstance(rows, slice):
            raise TypeError(f"rows: expected a slice such as slice(0, 10), got {rows!r}")
        first, last, stride = rows.indices(self._popsize)
        if stride != 1 or last <= first:
            raise ValueError(f"rows: expected a slice of neighbouring candidates, got {rows!r}")
        return first, last

    def _check_told(self, x: Any) -> None:
        """Raise an error unless x is what `ask` returned: the values belong to these candidates."""
        told = np.asarray(to_host(x))
        shape = (self._popsize, self._user_dim)
        came = None if told.shape == shape else f"shape {told.shape}"
        if came is None and not all(
            np.array_equal(told[a:b], to_host(self._candidates(a, b)))
            for a, b in pieces(self._algorithm, 0, self._popsize, self._user_dim)
        ):
            came = "other values"
        if came is not None:
            raise ValueError(
                f"x: expected the array of shape {shape} that ask() returned, unchanged, got {came}"
            )

    @property
    def _user_dim(self) -> int:
        """The number of the user's variables, including those with equal bounds."""
        setup = self.setup
        return int((setup.mean if setup.box is None else setup.box.free).shape[0])

    # === Stop and result ===

    def stop(self) -> dict[str, str]:
        """Return the reasons to end as {name: sentence}; empty while the search should continue."""
        return {str(status): status.sentence for status in self.reasons()}

    def reasons(self) -> list[Status]:
        """Return the reasons to end, the most informative first."""
        return reasons(self.record, self.budget, self.setup.stopping)

    @property
    def result(self) -> Result:
        """The result so far; later generations do not change it."""
        return self.result_with(next(iter(self.reasons()), Status.RUNNING))

    def result_with(self, status: Status) -> Result:
        """Return the result so far, with the given status."""
        record, state = self.record, self._state
        fun, mean = record.best_f, self._to_user(state.mean)
        summary = self._algorithm.summary(self._params, state)
        return Result(
            x=self._to_user(self._engine.best if fun < math.inf else state.mean),
            fun=fun,
            nfev=self.nfev,
            nit=self.nit,
            success=succeeded(fun, status, self.budget.ftarget),
            status=status,
            message=message(fun, status, self.budget.ftarget),
            mean=mean,
            sigma=float(summary.sigma),
            stds=self._deviations_to_user(state.mean, summary.deviations),
            history=record.history.snapshot(),
            restarts=(Run(self._popsize, record.sigma0, self.nfev, self.nit, fun, status),),
            nfailed=record.nfailed,
            first_error=None,
            shape=copied(array_namespace(mean), self._algorithm.shape(self._params, state)),
        )

    def _to_user(self, y: Array) -> Array:
        """Return a point in search coordinates as a new array in the user's coordinates."""
        box, xp = self.setup.box, array_namespace(y)
        return xp.asarray(y, copy=True) if box is None else box.to_user(xp, y)

    def _deviations_to_user(self, y: Array, deviations: Array) -> Array:
        """Return standard deviations at a point of the search as those of the user's variables."""
        box, xp = self.setup.box, array_namespace(y)
        if box is None:
            return xp.asarray(deviations, copy=True)
        return box.deviations_to_user(xp, y, deviations)

    # === Save and load ===

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the search to a file, from which `load` continues with identical results.

        If writing fails, a file that was there before stays as it was.
        """
        npz.write(checks.path("path", path), self.to_saved())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Optimizer":
        """Return the search that `save` wrote. Loading runs no code from the file."""
        return cls.from_saved(npz.read(checks.path("path", path), SEARCH))

    def to_saved(self) -> dict[str, Any]:
        """Return what a file holds of the search. Draws are not stored but computed again."""
        return {
            "setup": self.setup,
            "budget": self.budget,
            "popsize": self._popsize,
            "run": self.run,
            "state": self._state,
            "initial": self._engine.initial,
            "best": self._engine.best,
            "tally": self.record,
            "asked": self._asked,
        }

    @classmethod
    def from_saved(
        cls,
        saved: dict[str, Any],
        *,
        budget: Budget | None = None,
        stopping: Stopping | None = None,
    ) -> "Optimizer":
        """Return the search of `to_saved`, with another budget or other tolerances if given."""
        saved = {**saved, "budget": saved["budget"] if budget is None else budget}
        if stopping is not None and stopping != saved["setup"].stopping:
            saved["setup"] = saved["setup"]._replace(stopping=stopping)
            saved["tally"].forget_convergence()
        opt = cls.__new__(cls)
        opt.__setstate__(saved)
        return opt

    __getstate__ = to_saved

    def __copy__(self) -> "Optimizer":
        """Return a search of its own: a shallow copy would share counters and arrays."""
        return copy.deepcopy(self)

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.setup, self.budget = saved["setup"], saved["budget"]
        self._popsize, self.run = saved["popsize"], saved["run"]
        self.record, self._asked = saved["tally"], saved["asked"]
        self.record.set_windows(windows(self.setup.stopping, self.record.limits))
        params = self._algorithm.params(self.dim, self._popsize, self.setup.settings)
        self._set_engine(params, saved["state"], self.nit, saved["initial"], saved["best"])

    # === Properties ===

    @property
    def dim(self) -> int:
        """The number of variables that are searched."""
        return int(self.setup.mean.shape[0])

    @property
    def popsize(self) -> int:
        """The number of candidates per generation."""
        return self._popsize

    @property
    def nfev(self) -> int:
        """The number of evaluations so far."""
        return self.record.nfev

    @property
    def nit(self) -> int:
        """The number of generations so far."""
        return self.record.generation

    @property
    def _params(self) -> Any:
        return self._engine.params

    @property
    def _state(self) -> Any:
        return self._engine.state

    @property
    def _algorithm(self) -> Algorithm:
        return METHODS[self.setup.method]

    def __repr__(self) -> str:
        return (
            f"<Optimizer {self.setup.method}, {self.dim} variables, popsize "
            f"{self._popsize}, generation {self.nit}, best {self.record.best_f:.6g}>"
        )
