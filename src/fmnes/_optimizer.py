"""Optimizer: ask and tell around an engine."""

import copy
import functools
import inspect
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Never

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array, constant, to_host
from fmnes._history import DEFAULT_SIZE, History, read_size
from fmnes._population import Lineage, Population, Recipe
from fmnes._record import Feasible, Limits, Record, Windows
from fmnes._restarts import NextRun
from fmnes._result import Result, Run
from fmnes._start import Setup, Start, initial_sigma_and_shape, read_start
from fmnes._status import Status, message, succeeded
from fmnes._stopping import Budget, Stopping, reasons, windows
from fmnes.algorithms import METHODS, Algorithm, MethodName, MethodSettings
from fmnes.algorithms._records import Shape, copied
from fmnes.constraints.constrained import Constrained
from fmnes.constraints.kinds import Constraints, Kinds
from fmnes.draws import Address
from fmnes.engines import EngineSpec, Registration, registration
from fmnes.engines.asynchronous import AsynchronousEngine, Candidate
from fmnes.engines.contract import Reader, Writer
from fmnes.engines.generation import pieces
from fmnes.engines.injected import InjectedEngine
from fmnes.evaluate import to_constraints, to_values
from fmnes.points.injected import Injected, read_named_points, read_points
from fmnes.storage import npz
from fmnes.storage.move import moved
from fmnes.storage.validity import SEARCH
from fmnes.variables.bounds import BoundsLike
from fmnes.variables.discrete import Margin, to_user, told
from fmnes.variables.parts import read_parts, write_made, write_parts
from fmnes.variables.space import Space


class Kept(NamedTuple):
    """What an engine takes over from the one before it."""

    initial: Array | None = None  # the initial deviations; those of its state if None
    best: Array | None = None  # the best candidate so far, in search coordinates


class Optimizer:
    """Minimise a function by ask and tell: the optimizer proposes candidates, you evaluate them.

    Parameters
    ----------
    x0 : array_like of shape (d,), Result, Space, or (X, F)
        The starting point. Its array library decides where the search runs: a NumPy array or a
        list on the CPU, a PyTorch or JAX array on its own device and in its own precision. A
        Result continues with its mean, step size and shape. A `Space` has named variables: then
        `ask` returns dicts. Points X of shape (n, d) with known values F set mean, ``sigma0`` and
        shape; with named variables, ``(space, X, F)`` with a list of dicts X.
    sigma0 : float or array_like of shape (d,), optional
        Initial standard deviation, one number for all variables or one each; see `minimize`, also
        for the default.
    method : str or settings
        A name of `fmnes.METHODS`, or settings such as ``fmnes.CRFMNES(variant="paper")``.
    popsize : int, optional
        Number of candidates per generation. Each method has its own default; a larger population
        makes the search more robust.
    bounds : sequence of pairs, array of shape (d, 2), Bounds or scipy.optimize.Bounds, optional
        Bounds on the variables. All candidates and results lie inside. Variables with equal bounds
        are kept fixed.
    integrality : int or array_like of shape (d,), optional
        1 for each variable that takes integers only, 0 for the others; see `minimize`.
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
    constraints : int or Constraints, optional
        The number of inequalities, or the numbers of inequalities and equalities, whose values
        `tell` gets in addition to those of the objective; see `Constraints`.
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
        x0: ArrayLike | Result | Space | tuple[Any, ...],
        sigma0: ArrayLike | Mapping[str, Any] | None = None,
        *,
        method: MethodName | MethodSettings = "auto",
        popsize: int | None = None,
        bounds: BoundsLike | None = None,
        integrality: ArrayLike | None = None,
        rng: "int | np.random.Generator | None" = None,
        ftarget: float | None = None,
        maxfevals: int | None = None,
        maxiter: int | None = None,
        timeout: float | None = None,
        stopping: Stopping | None = None,
        constraints: int | Constraints | Kinds | None = None,
        history_size: float = DEFAULT_SIZE,
        **unknown: Never,
    ) -> None:
        checks.no_others(unknown, inspect.signature(Optimizer).parameters)
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
            constraints=constraints,
        )
        history = History(size=read_size(history_size))
        self._begin(start, history, run=0, sigma_factor=1.0, owned=True)

    @classmethod
    def started(cls, start: Start, history_size: float) -> "Optimizer":
        """Return the search of arguments that `read_start` has checked."""
        opt = cls.__new__(cls)
        opt._begin(start, History(size=read_size(history_size)), run=0, sigma_factor=1.0)
        return opt

    def restarted(
        self, next_run: NextRun, budget: Budget, run: int, history: History
    ) -> "Optimizer":
        """Return another run of a restart schedule: the same search with other draws."""
        other = Optimizer.__new__(Optimizer)
        start = Start(self.setup_here(), next_run.popsize, budget)
        other._begin(start, history, run=run, sigma_factor=next_run.sigma_factor, owned=True)
        other._injected = self._injected.of_next_run(next_run.popsize)
        return other

    def rescaled(self, sigma_factor: float, *, settings: Any = None) -> "Optimizer":
        """Return the same search before its first generation, with other steps or settings."""
        other = Optimizer.__new__(Optimizer)
        setup = self.setup_here()
        if settings is not None:
            setup = setup._replace(settings=settings)
        start = Start(setup, self._popsize, self.budget)
        history = self.record.history.snapshot()
        other._begin(start, history, run=self.run, sigma_factor=sigma_factor, owned=True)
        other.record.started = self.record.started
        return other

    def _begin(
        self,
        start: Start,
        history: History,
        *,
        run: int,
        sigma_factor: float,
        owned: bool = False,
    ) -> None:
        """Start run number ``run`` of a restart schedule; ``history`` is that of earlier runs.

        ``owned``: nobody else needs the mean of ``start`` if the search keeps a copy on the host.
        """
        self.setup, self._popsize, self.budget = start.setup, start.popsize, start.budget
        self.run, self._asked = run, False  # run 0 is the first of a restart schedule
        # The best point that the engine does not know, as the user sees it: of `tell_extra`, or of
        # a search with constraints.
        self._extra_x: Array | None = None
        self._injected = Injected.none(self.setup.mean, self._popsize)
        mean, xp = self.setup.mean, array_namespace(self.setup.mean)
        sigma, shape = initial_sigma_and_shape(self.setup, sigma_factor)
        sigma0 = constant(xp, sigma, mean)
        params = self._fresh_params()
        state = self._first_state(params, sigma0, shape)
        discrete = self.setup.discrete
        self._set_engine(params, state, 0, Kept(), owned=owned and shape.v is None)
        self._margin: Margin | None = None
        if discrete is not None:
            self._margin = discrete.start(mean, self._engine.initial)
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
        kinds = self.setup.constraints
        self._constrained = None
        if kinds is not None:
            self._constrained = Constrained.new(kinds, self.setup.multipliers)
        self.record = Record(limits, float(sigma0), self._windows(limits, params), history)

    def _windows(self, limits: Limits, params: Any) -> Windows:
        """Return how many generations the stopping rules look at."""
        discrete = self.setup.discrete is not None
        return windows(self.setup.stopping, limits, params.patience, discrete=discrete)

    def _spec(
        self, params: Any, state: Any, generation: int, kept: Kept, *, owned: bool = False
    ) -> EngineSpec:
        """Return what an engine needs for a state after ``generation`` generations."""
        return EngineSpec(
            algorithm=self._algorithm,
            params=params,
            state=state,
            address=self._address(generation),
            tolx=self.setup.stopping.tolx,
            initial=kept.initial,
            best=kept.best,
            owned=owned,
        )

    def _address(self, generation: int) -> Address:
        """Return the address of the draws of a generation."""
        return Address(self.setup.seed, draws.population_stream(self.run), generation)

    def _first_state(self, params: Any, sigma0: Array, shape: Shape) -> Any:
        mean, address = self.setup.mean, Address(self.setup.seed, draws.initial_stream(self.run))
        return self._algorithm.init(  # without a name for the draws, which nobody needs afterwards
            params, mean, sigma0, shape, draws.normals_like(mean, address, 0, 1)[0, :]
        )

    def _set_engine(
        self, params: Any, state: Any, generation: int, kept: Kept, *, owned: bool = False
    ) -> None:
        """Create the engine for a state after ``generation`` generations."""
        setup, row = self.setup, self._registration(state.mean)
        self._streams = row.streams_with(params)
        if self._streams:  # x0 is needed for a restart only
            xp = array_namespace(setup.mean)
            x0 = xp.asarray(setup.mean, device="cpu", copy=True)
            self.setup = setup._replace(mean=x0)
        spec = self._spec(params, state, generation, kept, owned=owned and self._streams)
        self._engine = row.engine(spec)
        self._told: Array | None = None  # the values of the last generation
        self._seconds = 0.0  # spent in this generation
        self._handed_out = time.monotonic()

    def _registration(self, mean: Array) -> Registration:
        """Return the engine that computes this search."""
        return registration(self.setup.method, mean)

    # === Ask and tell ===

    def ask(self, *, out: NDArray[Any] | None = None, rows: slice | None = None) -> Any:
        """Return the candidates of this generation as a new array of shape (popsize, d).

        Until `tell` is called, every call returns the same candidates. ``out`` is an array to fill
        instead of a new one (NumPy only). ``rows`` is a slice: only these candidates are built, so
        that a population that does not fit in memory can be evaluated in parts. A search in a
        `Space` returns a list of dicts.
        """
        space = self.setup.space
        if space is None:
            return self.ask_vectors(out=out, rows=rows)
        if out is not None:
            raise ValueError("out: expected None with a Space, whose candidates are dicts, got one")
        return [space.decode(x) for x in self.ask_vectors(rows=rows)]

    def ask_vectors(self, *, out: NDArray[Any] | None = None, rows: slice | None = None) -> Array:
        """Return the candidates as an array, also in a Space; see `ask`."""
        begun = time.monotonic()
        self._take_injected()
        first, last = (0, self._popsize) if rows is None else self._read_rows(rows)
        if out is not None:
            checks.buffer("out", out, (last - first, self._user_dim))
        x = self._candidates(first, last, out)
        self.hand_out()
        self._seconds += self._handed_out - begun
        return x

    def hand_out(self) -> None:
        """Let `tell` accept values of this generation, whoever builds its candidates."""
        self._take_injected()
        self._asked, self._handed_out = True, time.monotonic()

    def write_candidate(self, i: int, target: Any) -> None:
        """Write candidate i into arrays of your own, rounded to their dtypes.

        ``target`` is a PyTorch module, whose parameters with ``requires_grad`` are written, or a
        list or dict of tensors or NumPy arrays. Their sizes have to add up to the number of
        variables. On a GPU with ``CRFMNES(store_draws=False)`` no other memory is used. To undo,
        call `write_mean`.
        """
        begun = time.monotonic()
        checks.integer("i", i, least=0)
        if i >= self._popsize:
            raise ValueError(f"i: expected a candidate from 0 to {self._popsize - 1}, got {i}")
        self._take_injected()
        parts, engine = read_parts(target, self._user_dim), self._engine
        if isinstance(engine, Writer) and self._user_is_search:
            write_made(parts, self.like, functools.partial(engine.write, i))
        else:
            write_parts(parts, self._candidates(i, i + 1)[0, :])
        self.hand_out()
        self._seconds += self._handed_out - begun

    def write_mean(self, target: Any) -> None:
        """Write the mean of the distribution into arrays of your own, as `write_candidate` does."""
        mean = self._to_user(self._latent_mean)
        write_parts(read_parts(target, self._user_dim), mean)

    def population(self, extra: Array | None = None) -> Population | None:
        """Return the population as O(d) numbers, from which a worker builds single candidates.

        The rows of ``extra`` are points in the user's coordinates that follow the candidates.
        None for a method that builds all candidates at once, and for arrays on a device.
        """
        self._take_injected()
        if not self._algorithm.LINEAR or not isinstance(self.setup.mean, np.ndarray):
            return None
        if self._injected.active:
            return None
        setup = self.setup
        self.hand_out()
        recipe = Recipe(
            method=setup.method,
            settings=setup.settings,
            popsize=self._popsize,
            state=self._state,
            address=self._address(self.nit),
            box=setup.box,
            extra=extra,
            discrete=setup.discrete,
            margin=self._margin,
        )
        return Population(recipe, Lineage(run=self._engine, values=self._told))

    def tell(self, x_or_f: Any, f: Any = None, /, *, constraints: Any = None) -> None:
        """Pass the values of the candidates: ``tell(f)``, or ``tell(x, f)`` with the x of `ask`.

        +inf marks an infeasible candidate. NaN marks a failed evaluation; it is ranked like an
        infeasible candidate and counted in ``nfailed``. ``constraints``, an array of shape
        (popsize, m), has the values of the constraints; NaN there marks a failed evaluation too.
        Values of other points than those of `ask` go to `inject`.
        """
        begun = time.monotonic()
        if not self._asked:
            raise RuntimeError("tell: expected a call of ask() first, got none for this generation")
        values = x_or_f if f is None else f
        if not self._stays(values):
            values = self._injected.told(to_values(to_host(values), self._popsize, "f"))
        g = self._read_constraints(constraints)
        if f is not None:
            self._check_told(x_or_f)
        feasible, best_so_far = None, self.record.best_f
        if self._constrained is not None:
            values, feasible = self._tell_constrained(
                self._constrained, values, g, lambda i: self._candidates(i, i + 1)[0, ...]
            )
            best_so_far = -math.inf  # an engine would take the best merit for the best candidate
        values = self._injected.ranked(values)
        generation, self._margin = told(
            self._algorithm, self._engine, self.setup.discrete, self._margin, values, best_so_far
        )
        self._asked, self._told = False, values
        seconds = self._seconds + time.monotonic() - begun
        free = self._injected.free
        self.record.add(generation, begun - self._handed_out, seconds, feasible, free)
        self._seconds = 0.0
        if self._injected.active:
            self._set_engine(self._fresh_params(), self._state, self.nit, self._kept())
        self._injected = self._injected.finished()

    # === Points from elsewhere ===

    def inject(self, x: Any, f: ArrayLike | None = None) -> None:
        """Let points that somebody else proposes take part in the next generation.

        ``x`` has the shape (d,) or (n, d); in a `Space` it is a dict, or a list of dicts. The first
        rows of the next `ask` are these points; at most half of a generation, or half of its pairs
        if the method samples in pairs, and the others wait for later generations. The search moves
        towards a good one, but not further than a candidate of its own could move it. ``f`` has the
        values of points that are already evaluated: `tell` uses them and ignores what it gets for
        these rows (see `known`). Of many points with values, the best ``popsize`` take part, the
        best first, and the others are left out. Such a generation stores its draws, also with
        ``store_draws=False``; on a GPU, where they might not fit, that is an error.
        """
        if f is not None and self.setup.constraints is not None:
            raise TypeError(
                "f: expected None for a search with constraints, which needs their values too, "
                f"got {f!r:.60}"
            )
        if self._streams:
            raise ValueError(
                "x: expected no points for a search on a GPU with store_draws=False, because a "
                "generation with points from elsewhere stores its draws, of size popsize x d"
            )
        setup = self.setup
        if setup.space is not None:
            x = read_named_points(x, setup.space)
        points = read_points(x, f, self.like, setup.box, setup.discrete)
        self._injected = self._injected.added(*points)

    @property
    def known(self) -> dict[int, float]:
        """The candidates of this generation that need no evaluation, and their values."""
        self._take_injected()
        return self._injected.known

    def withdraw(self, candidates: int | Sequence[int]) -> None:
        """Take back candidates that nobody will evaluate; `tell` ignores their values.

        The search neither approaches nor avoids them: they rank in the middle of the others. Use it
        for candidates that are lost or not wanted for reasons which have nothing to do with x.
        Infeasible candidates should get the value +inf instead.
        """
        if not self._asked:
            raise RuntimeError("withdraw: expected a call of ask() first, got none")
        withdrawn = self._injected.withdrawn.copy()
        rows = np.atleast_1d(np.asarray(candidates, object)).tolist()
        if not rows:
            raise ValueError(f"candidates: expected at least one, got {candidates!r}")
        for candidate in rows:
            row = checks.integer("candidates", candidate, least=0)
            if row >= self._popsize:
                raise ValueError(
                    f"candidates: expected numbers from 0 to {self._popsize - 1}, got {row}"
                )
            withdrawn[row] = True
        if withdrawn.all():
            raise ValueError("candidates: expected at least one that is left, got all")
        self._injected = self._injected._replace(withdrawn=withdrawn)

    def _take_injected(self) -> None:
        """At the start of a generation, let waiting points take part in it."""
        if self._asked or self._injected.active or not len(self._injected.values):
            return
        self._injected = self._injected.begun(self.most_injected)
        self._set_injected_engine()

    @property
    def most_injected(self) -> int:
        """How many points from elsewhere take part in one generation."""
        rows = self._popsize // 2 if self._algorithm.ANTITHETIC else self._popsize
        return max(1, rows // 2)

    def _set_injected_engine(self) -> None:
        """Replace the engine for one generation by one that knows the injected points."""
        setup, state = self.setup, self._state
        if isinstance(setup.mean, np.ndarray):  # views of the engine that goes
            state = type(state)(*(np.array(field) for field in state))
        spec = self._spec(self._fresh_params(), state, self.nit, self._kept())
        points = self._injected.points[: self._injected.active, :]
        if setup.discrete is not None and self._margin is not None:
            points = setup.discrete.search_of(self._margin, state.mean, points)
        self._engine = InjectedEngine(spec, points)

    def _fresh_params(self) -> Any:
        return self._algorithm.params(self.dim, self._popsize, self.setup.settings)

    def _kept(self) -> Kept:
        """Return what a new engine takes over."""
        xp, best = array_namespace(self.setup.mean), self._engine.best
        best = None if best is None else xp.asarray(best, copy=True)
        return Kept(initial=self._engine.initial, best=best)

    def tell_extra(self, values: NDArray[np.float64], point: Callable[[int], Any]) -> None:
        """Pass the values of other points before the first generation is told.

        They count as evaluations, and the best of them, ``point(i)`` in the user's coordinates, is
        the result if no candidate is better. The distribution does not change. With m constraints,
        the values have 1 + m columns.
        """
        feasible = None
        if self._constrained is None:
            best = self.record.add_extra(values)
        else:
            f, g = values[:, 0], values[:, 1:]
            self._constrained, feasible, best = self._constrained.with_best_of(f, g)
            self.record.add_extra(np.where(np.isnan(g).any(axis=1), np.nan, f), feasible)
        if best is not None:
            x = point(best)
            self._extra_x = array_namespace(x).asarray(x, copy=True)

    def _stays(self, values: Any) -> bool:
        """Return whether the engine takes the values where they are, and nobody else needs them."""
        alone = self._constrained is None and self.setup.discrete is None
        alone = alone and self._injected.is_empty
        return alone and isinstance(self._engine, Reader) and self._engine.reads(values)

    def _read_constraints(self, constraints: Any) -> NDArray[np.float64]:
        kinds = self.setup.constraints
        if (kinds is None) != (constraints is None):
            expected = "no values"
            if kinds is not None:
                expected = f"values of {checks.count(kinds.number, 'constraint')}"
            hint = " (declare their number: Optimizer(..., constraints=m))" if kinds is None else ""
            came = "none" if constraints is None else f"{constraints!r:.60}"
            raise TypeError(f"constraints: expected {expected}, got {came}{hint}")
        if kinds is None:
            return np.empty((self._popsize, 0))
        return to_constraints(constraints, self._popsize, kinds.number)

    def _tell_constrained(
        self,
        constrained: Constrained,
        f: NDArray[np.float64],
        g: NDArray[np.float64],
        candidate: Callable[[int], Array],
    ) -> tuple[NDArray[np.float64], Feasible]:
        """Keep the best candidate; return the values to rank, and what the generation showed."""
        constrained, feasible, better = constrained.with_best_of(f, g)
        if better is not None:
            xp = array_namespace(self.setup.mean)
            self._extra_x = xp.asarray(candidate(better), copy=True)
        self._constrained, merit = constrained.after(self.dim, f, g)
        return merit, feasible

    # === Single candidates, for an asynchronous search ===

    def make_asynchronous(self) -> None:
        """Hand out single candidates from here on, and take values of candidates of any age."""
        engine = self._engine
        kept = Kept(initial=engine.initial, best=engine.best)
        spec = self._spec(engine.params, engine.state, self.nit, kept)
        self._engine = self._asynchronous = AsynchronousEngine(spec)

    def candidate(self, row: int) -> Candidate:
        """Return a candidate of the newest distribution, with latent numbers if it has any."""
        candidate = self._asynchronous.candidate(row)
        return candidate._replace(y=self._latent(candidate.y))

    def row(self, candidate: Candidate) -> Array:
        """Return a candidate in the user's coordinates."""
        return self._to_user(candidate.y)

    def tell_arrivals(self, candidates: Sequence[Candidate], values: NDArray[np.float64]) -> None:
        """Pass the values of popsize candidates, which may come from several generations.

        With m constraints, the values have 1 + m columns.
        """
        begun = time.monotonic()
        feasible, best_so_far = None, self.record.best_f
        if self._constrained is not None:
            f, g, best_so_far = values[:, 0], values[:, 1:], -math.inf
            values, feasible = self._tell_constrained(
                self._constrained, f, g, lambda i: self.row(candidates[i])
            )
        self._asynchronous.arrive(candidates)
        generation, self._margin = told(
            *(self._algorithm, self._asynchronous, self.setup.discrete, self._margin),
            *(values, best_so_far),
            is_latent=True,
        )
        now = time.monotonic()
        self.record.add(generation, begun - self._handed_out, now - begun, feasible)
        self._handed_out = now

    def _candidates(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Return candidates in the user's coordinates, as a new array or in ``out``."""
        if self._user_is_search:
            return self._engine.ask(first, last, out)
        if out is None:
            if not isinstance(self.setup.mean, np.ndarray):
                return self._to_user(self._latent(self._engine.ask(first, last)))
            out = np.empty((last - first, self._user_dim), self.setup.mean.dtype)
        for a, b in pieces(self._algorithm, first, last, self._user_dim):
            out[a - first : b - first] = self._to_user(self._latent(self._engine.ask(a, b)))
        return out

    def _latent(self, y: Array) -> Array:
        """Return coordinates of the search with the latent numbers of discrete variables."""
        if self.setup.discrete is None or self._margin is None:
            return y
        return self.setup.discrete.latent(self._margin, self._state.mean, y)

    @property
    def _latent_mean(self) -> Array:
        """The mean, with the latent numbers of discrete variables."""
        if self.setup.discrete is None or self._margin is None:
            return self._state.mean
        return self.setup.discrete.latent_mean(self._margin, self._state.mean)

    def _to_user(self, latent: Array) -> Array:
        """Return what `_latent` returned in the user's coordinates."""
        return to_user(self.setup.box, self.setup.discrete, latent)

    def _read_rows(self, rows: slice) -> tuple[int, int]:
        if not isinstance(rows, slice):
            raise TypeError(f"rows: expected a slice such as slice(0, 10), got {rows!r}")
        try:
            first, last, stride = rows.indices(self._popsize)
        except TypeError:
            raise TypeError(f"rows: expected a slice of whole numbers, got {rows!r}") from None
        if stride != 1 or last <= first:
            raise ValueError(f"rows: expected a slice of neighbouring candidates, got {rows!r}")
        return first, last

    def _check_told(self, x: Any) -> None:
        """Raise an error unless x is what `ask` returned: the values belong to these candidates."""
        if self.setup.space is not None:
            raise ValueError("x: expected tell(f) with a Space, got tell(x, f)")
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
                f"x: expected what ask() returned, of shape {shape} and unchanged, got {came} "
                "(pass points that were evaluated elsewhere to inject(x, f))"
            )

    @property
    def _user_is_search(self) -> bool:
        """Whether the user's coordinates are those of the search."""
        return self.setup.box is None and self.setup.discrete is None

    @property
    def _user_dim(self) -> int:
        """The number of the user's variables, including those with equal bounds."""
        setup = self.setup
        return int((setup.mean if setup.box is None else setup.box.free).shape[0])

    # === Stop and result ===

    def stop(self) -> dict[str, str]:
        """Return the reasons to end as {name: sentence}; empty while the search should continue."""
        return {str(status): status.sentence for status in self.reasons()}

    def reasons(self, budget: Budget | None = None) -> list[Status]:
        """Return the reasons to end, the most informative first; by default with its own budget."""
        return reasons(self.record, budget or self.budget, self.setup.stopping)

    @property
    def result(self) -> Result:
        """The result so far; later generations do not change it."""
        return self.result_with(next(iter(self.reasons()), Status.RUNNING))

    def result_with(self, status: Status) -> Result:
        """Return the result so far, with the given status."""
        record, state, constrained = self.record, self._state, self._constrained
        xp = array_namespace(state.mean)
        fun, mean = record.best_f, self._to_user(self._latent_mean)
        violation, more = 0.0, {}
        if constrained is not None:
            fun, violation = constrained.f, constrained.violation
            more = constrained.result_fields()
        best = self._engine.best if self._margin is None else self._margin.best
        if record.best_is_extra or (constrained is not None and fun < math.inf):
            x = self._extra_x
        else:
            x = self._to_user(best) if fun < math.inf else mean
        ftarget = self.budget.ftarget
        summary = self._algorithm.summary(self._params, state)
        return Result(
            x=xp.asarray(x, copy=True),
            fun=fun,
            nfev=self.nfev,
            nit=self.nit,
            success=succeeded(fun, status, ftarget, violation),
            status=status,
            message=message(fun, status, ftarget, violation, record.advice),
            mean=xp.asarray(mean, copy=True),
            sigma=float(summary.sigma),
            stds=self._deviations_to_user(state.mean, summary.deviations),
            history=record.history.snapshot(),
            restarts=(Run(self._popsize, record.sigma0, self.nfev, self.nit, fun, status),),
            nfailed=record.nfailed,
            first_error=None,
            shape=copied(array_namespace(mean), self._algorithm.shape(self._params, state)),
            space=self.setup.space,
            **more,
        )

    def _deviations_to_user(self, y: Array, deviations: Array) -> Array:
        """Return standard deviations at a point of the search as those of the user's variables."""
        box, xp = self.setup.box, array_namespace(y)
        if self._margin is not None:
            y, deviations = self._latent_mean, self._margin.scale * deviations
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
    def load(cls, path: str | os.PathLike[str], *, like: Array | None = None) -> "Optimizer":
        """Return the search that `save` wrote. Loading runs no code from the file.

        The search continues with arrays of the library that saved it, on the CPU; or, if ``like``
        is an array, with arrays of its library and on its device.
        """
        saved = npz.read(checks.path("path", path), SEARCH)
        return cls.from_saved(
            saved if like is None else moved(saved, checks.an_array("like", like))
        )

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
            "extra_x": self._extra_x,
            "constrained": self._constrained,
            "margin": self._margin,
            "injected": None if self._injected.is_empty else self._injected,
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
        self._extra_x, self._constrained = saved["extra_x"], saved["constrained"]
        self._injected = Injected.none(saved["state"].mean, self._popsize)
        params = self._algorithm.params(self.dim, self._popsize, self.setup.settings)
        self.record.set_windows(self._windows(self.record.limits, params))
        kept = Kept(initial=saved["initial"], best=saved["best"])
        self._set_engine(params, saved["state"], self.nit, kept, owned=True)
        self._margin = saved["margin"]
        if saved["injected"] is not None:
            self._injected = saved["injected"]
        if self._injected.active:
            self._set_injected_engine()

    # === Properties ===

    @property
    def dim(self) -> int:
        """The number of variables that are searched."""
        return int(self.setup.mean.shape[0])

    @property
    def like(self) -> Array:
        """A vector of the library and dtype of the search, on the device where it runs."""
        return self._engine.initial

    def setup_here(self) -> Setup:
        """Return the setup with x0 on the device of the search, where it may have no place."""
        if not self._streams:
            return self.setup
        xp, here, setup = array_namespace(self.like), device(self.like), self.setup
        parts = (None if x is None else xp.asarray(x, device=here) for x in setup.shape)
        mean = xp.asarray(setup.mean, device=here, copy=True)
        return setup._replace(mean=mean, shape=Shape(*parts))

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
