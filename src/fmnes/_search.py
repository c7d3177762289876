"""What a search holds, its engine, and its form in a file."""

import copy
import logging
import math
import time
from typing import Any, NamedTuple, Self

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from fmnes import draws
from fmnes._arrays import Array, constant
from fmnes._coordinates import CoordinateMap
from fmnes.algorithms import METHODS, Algorithm
from fmnes.algorithms._records import Shape
from fmnes.arguments.method import MOST_CANDIDATES
from fmnes.arguments.setup import Setup, initial_sigma_and_shape
from fmnes.arguments.start import Start
from fmnes.constraints.constrained import Constrained
from fmnes.draws import Address
from fmnes.engines import EngineSpec, Registration, registration
from fmnes.engines.generation import pieces
from fmnes.engines.injected import InjectedEngine
from fmnes.points.injected import Injected
from fmnes.records.history import History, read_size
from fmnes.records.record import Limits, Record, Windows
from fmnes.records.stopping import Budget, Stopping, windows
from fmnes.runs.restarts import NextRun
from fmnes.variables.discrete import Margin

logger = logging.getLogger("fmnes")


class Kept(NamedTuple):
    """What an engine takes over from the one before it."""

    initial: Array | None = None  # the initial deviations; those of its state if None
    best: Array | None = None  # the best candidate so far, in search coordinates


class BaseSearch:
    """One run: its state, the engine that computes its generations, and what they showed.

    `Optimizer` adds what a user calls.
    """

    # === How it starts ===

    @classmethod
    def started(cls, start: Start, history_size: float) -> Self:
        """Return the search of arguments that `read_start` has checked."""
        opt = cls.__new__(cls)
        opt._begin(start, History(size=read_size(history_size)), run=0, sigma_factor=1.0)
        return opt

    def restarted(self, next_run: NextRun, budget: Budget, run: int, history: History) -> Self:
        """Return another run of a restart schedule: the same search with other draws."""
        other = type(self).__new__(type(self))
        setup = self.setup_here()
        if setup.discrete is None and setup.constraints is None:
            setup = setup._replace(settings=setup.settings.for_restart())
        start = Start(setup, next_run.popsize, budget)
        other._begin(start, history, run=run, sigma_factor=next_run.sigma_factor, owned=True)
        other._injected = self._injected.of_next_run(next_run.popsize)
        return other

    def rescaled(self, sigma_factor: float, *, settings: Any = None) -> Self:
        """Return the same search before its first generation, with other steps or settings."""
        other = type(self).__new__(type(self))
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

    def _first_state(self, params: Any, sigma0: Array, shape: Shape) -> Any:
        mean, address = self.setup.mean, Address(self.setup.seed, draws.initial_stream(self.run))
        return self._algorithm.init(  # without a name for the draws, which nobody needs afterwards
            params, mean, sigma0, shape, draws.normals_like(mean, address, 0, 1)[0, :]
        )

    # === Its engine ===

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

    def _fresh_params(self) -> Any:
        return self._algorithm.params(self.dim, self._popsize, self.setup.settings)

    def _kept(self) -> Kept:
        """Return what a new engine takes over."""
        xp, best = array_namespace(self.setup.mean), self._engine.best
        best = None if best is None else xp.asarray(best, copy=True)
        return Kept(initial=self._engine.initial, best=best)

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
        setup, state = self.setup, self._own(self._state)
        spec = self._spec(self._fresh_params(), state, self.nit, self._kept())
        points = self._injected.points[: self._injected.active, :]
        if setup.discrete is not None and self._margin is not None:
            points = setup.discrete.search_of(self._margin, state.mean, points)
        self._engine = InjectedEngine(spec, points)

    def _own(self, state: Any) -> Any:
        """Return a state without views of the engine, which another one replaces."""
        if not isinstance(self.setup.mean, np.ndarray):
            return state
        return type(state)(*(np.array(field) for field in state))

    def _adapt_popsize(self) -> None:
        """After a generation, change the size of the next one if the method asks for that."""
        if not self.setup.settings.adapts_popsize:
            return
        first = self.record.limits.popsize
        popsize, state = self._algorithm.next_popsize(self._params, self._state, first)
        if popsize == self._popsize or popsize > MOST_CANDIDATES:
            return
        logger.info("popsize %d from generation %d on", popsize, self.nit + 1)
        kept, state = self._kept(), self._own(state)
        self._popsize = self.record.popsize = popsize
        self._injected = self._injected.of_next_run(popsize)
        self._set_engine(self._fresh_params(), state, self.nit, kept)

    # === Its candidates ===

    def _candidates(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Return candidates in the user's coordinates, as a new array or in ``out``."""
        if self._coordinates.are_the_same:
            return self._engine.ask(first, last, out)
        if out is None:
            if not isinstance(self.setup.mean, np.ndarray):
                return self._coordinates.to_user(self._latent(self._engine.ask(first, last)))
            out = np.empty((last - first, self._user_dim), self.setup.mean.dtype)
        for a, b in pieces(self._algorithm, first, last, self._user_dim):
            out[a - first : b - first] = self._coordinates.to_user(
                self._latent(self._engine.ask(a, b))
            )
        return out

    def _latent(self, y: Array) -> Array:
        """Return coordinates of the search with the latent numbers of discrete variables."""
        return self._coordinates.latent(self._state.mean, y)

    @property
    def _coordinates(self) -> CoordinateMap:
        return CoordinateMap(self.setup.box, self.setup.discrete, self._margin)

    @property
    def _user_dim(self) -> int:
        """The number of the user's variables, including those with equal bounds."""
        setup = self.setup
        return int((setup.mean if setup.box is None else setup.box.free).shape[0])

    # === In a file ===

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
    ) -> Self:
        """Return the search of `to_saved`, with another budget or other tolerances if given."""
        saved = {**saved, "budget": saved["budget"] if budget is None else budget}
        if stopping is not None and stopping != saved["setup"].stopping:
            saved["setup"] = saved["setup"]._replace(stopping=stopping)
            saved["tally"].forget_convergence()
        opt = cls.__new__(cls)
        opt.__setstate__(saved)
        return opt

    __getstate__ = to_saved

    def __copy__(self) -> Self:
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
        """The number of candidates of this generation."""
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
