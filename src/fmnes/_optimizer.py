"""Optimizer: the ask/tell shell around (params, state)."""

import math
import os
import time
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array, constant, to_host
from fmnes._population import Population
from fmnes._record import Tally
from fmnes._result import Result, Run, Status
from fmnes._start import Setup, read_method, read_popsize, set_up
from fmnes._stopping import Budget, Limits, Stopping
from fmnes.algorithms import METHODS, Algorithm
from fmnes.algorithms._shared import copied
from fmnes.draws import Address
from fmnes.engines import EngineSpec, registration
from fmnes.engines.summary import pieces
from fmnes.evaluate import to_values
from fmnes.storage import npz

_SAVED = ("setup", "budget", "popsize", "run", "state", "initial", "best", "tally", "asked")


class Optimizer:
    """A search by ask and tell: you evaluate, it proposes. It minimises.

    Parameters
    ----------
    x0 : array_like of shape (d,), or Result
        Where to start. Its array library decides where everything lives: a NumPy array (or list)
        on the CPU, a PyTorch or JAX array on its own device and in its own precision. A previous
        Result starts where that one ended: its mean, sigma and shape.
    sigma0 : float or array_like of shape (d,)
        Initial standard deviation, one for all variables or one each: about a third of the
        distance within which you expect the optimum. May be left out if x0 is a Result.
    method : str or settings
        A name of `fmnes.METHODS`, or settings such as ``fmnes.CRFMNES(variant="paper")``.
    popsize : int, optional
        Candidates per generation. Each method has its own default; more is more robust.
    bounds : sequence of pairs, array of shape (d, 2), Bounds or scipy.optimize.Bounds, optional
        What is proposed and returned always lies inside. Variables with equal bounds are left
        out of the search.
    rng : None, int or numpy.random.Generator
        One seed is drawn from it, and everything follows from that seed.
    ftarget, maxfevals, maxiter, timeout : optional
        A value that is good enough; limits on evaluations, generations and seconds.
    stopping : Stopping, optional
        The tolerances that end a converged or hopeless search.

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
        method: Any = "cr-fm-nes",
        popsize: int | None = None,
        bounds: Any = None,
        rng: "int | np.random.Generator | None" = None,
        ftarget: float | None = None,
        maxfevals: int | None = None,
        maxiter: int | None = None,
        timeout: float | None = None,
        stopping: Stopping | None = None,
    ) -> None:
        row = read_method(method)
        setup = set_up(row, x0, sigma0, bounds, rng, stopping)
        size = read_popsize(popsize, row, setup.mean.shape[0])
        budget = Budget(
            None if ftarget is None else checks.real("ftarget", ftarget),
            None if maxfevals is None else checks.integer("maxfevals", maxfevals, least=size),
            None if maxiter is None else checks.integer("maxiter", maxiter, least=1),
            None if timeout is None else checks.real("timeout", timeout, above=0),
        )
        self._begin(setup, budget, size, run=0, sigma_factor=1.0)

    def _begin(
        self, setup: Setup, budget: Budget, popsize: int, *, run: int, sigma_factor: float
    ) -> None:
        """Start run number ``run`` of a schedule."""
        self.setup, self.budget = setup, budget
        self._popsize, self._run = popsize, run
        mean, shape = setup.mean, setup.shape
        dim = mean.shape[0]
        xp = array_namespace(mean)
        sigma0 = sigma_factor * float(setup.deviations[0])
        if setup.deviations.strides != (0,):  # not one number for all
            log = np.log(setup.deviations)
            sigma0 *= math.exp(np.mean(log - log[0]))
            scale = constant(xp, sigma_factor * setup.deviations / sigma0, mean)
            if shape.C is not None:
                shape = shape._replace(C=scale[:, None] * shape.C * scale[None, :])
            shape = shape._replace(D=scale * shape.D)
        params = self._algorithm.params(dim, popsize, setup.settings)
        state = self._algorithm.init(
            params, mean, constant(xp, sigma0, mean), shape, self._initial_draw()
        )
        self._drive(params, state)
        info = xp.finfo(mean.dtype)
        limits = Limits(
            dim=dim,
            popsize=popsize,
            deviation0=float(xp.max(self._engine.initial)),
            # D and v keep full relative precision each; a full matrix loses what eps hides.
            axis_ratio=1e15 if self._algorithm.LINEAR else 0.1 / math.sqrt(float(info.eps)),
            tiny=float(info.smallest_normal),
            huge=float(info.max),
        )
        self.tally = Tally(limits, sigma0=float(constant(xp, sigma0, mean)))
        self._asked = False

    def _initial_draw(self) -> Array:
        """The draw that the first v comes from."""
        mean, stream = self.setup.mean, draws.initial_stream(self._run)
        z = draws.normals(self.setup.seed, stream, 0, 0, 1, mean.shape[0])[0]
        return constant(array_namespace(mean), z, mean)

    def _drive(
        self,
        params: Any,
        state: Any,
        generation: int = 0,
        initial: Array | None = None,
        best: Array | None = None,
    ) -> None:
        """Set up what runs the method, for a state after so many generations."""
        setup = self.setup
        address = Address(setup.seed, draws.population_stream(self._run), generation)
        spec = EngineSpec(
            self._algorithm, params, state, address, setup.stopping.tolx, initial, best
        )
        self._engine = registration(setup.method, state.mean).engine(spec)
        self._told: NDArray[np.float64] | None = None  # the last values
        self._seconds = 0.0  # spent in this generation
        self._handed_out = time.monotonic()

    def restarted(
        self, budget: Budget, popsize: int, *, run: int, sigma_factor: float
    ) -> "Optimizer":
        """The same search again, with other draws and another population size."""
        other = Optimizer.__new__(Optimizer)
        other._begin(self.setup, budget, popsize, run=run, sigma_factor=sigma_factor)
        return other

    # === Ask and tell ===

    def ask(self, *, out: NDArray[Any] | None = None, rows: slice | None = None) -> Array:
        """The candidates of this generation, rows of shape (popsize, d), as a fresh array.

        Until `tell` it is the same population, however often you ask. ``out`` fills a buffer of
        yours instead (NumPy). ``rows`` builds only some candidates, so that a population that
        does not fit in memory can be evaluated in pieces.
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
        """What `ask` gives, in a form of O(d) numbers that builds single candidates elsewhere.

        None where candidates have to be built all at once, or where they live on a device.
        """
        if not self._algorithm.LINEAR or not isinstance(self.setup.mean, np.ndarray):
            return None
        setup, stream = self.setup, draws.population_stream(self._run)
        address = Address(setup.seed, stream, self.tally.generation)
        self._asked, self._handed_out = True, time.monotonic()
        population = Population(
            setup.method, setup.settings, self._popsize, self._state, address, setup.box
        )
        population.search, population.told = self._engine, self._told
        return population

    def tell(self, x_or_f: Any, f: Any = None, /) -> None:
        """Take in the values of the candidates: ``tell(f)``, or ``tell(x, f)`` with ask's x.

        +inf marks an infeasible candidate; NaN counts as infeasible too, and in ``nfailed``.
        """
        begun = time.monotonic()
        if not self._asked:
            raise RuntimeError("tell: expected a call of ask() first, got none for this generation")
        values = to_values(to_host(x_or_f if f is None else f), self._popsize, "f")
        if f is not None:
            self._check_told(x_or_f)
        generation = self._engine.tell(values, self.tally.best_f)
        self._asked, self._told = False, values
        seconds = self._seconds + time.monotonic() - begun
        self.tally.record(generation, begun - self._handed_out, seconds)
        self._seconds = 0.0

    # === The population ===

    def _candidates(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Candidates in the user's coordinates, as a fresh array or in ``out``."""
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

    def _to_user(self, y: Array) -> Array:
        """A point in search coordinates as the user's own, in a fresh array."""
        box, xp = self.setup.box, array_namespace(y)
        return xp.asarray(y, copy=True) if box is None else box.to_user(xp, y)

    def _check_told(self, x: Any) -> None:
        """tell(x, f) takes the x of ask and nothing else: f is the value of what was proposed."""
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
        """Number of the user's variables, those with equal bounds included."""
        setup = self.setup
        return int((setup.mean if setup.box is None else setup.box.free).shape[0])

    # === Where the search stands ===

    def stop(self) -> dict[str, str]:
        """The reasons to end, name to sentence; empty while the search should go on."""
        return {str(status): status.sentence for status in self._held()}

    def _held(self) -> list[Status]:
        return self.tally.held(self.budget, self.setup.stopping)

    @property
    def result(self) -> Result:
        """Where the search stands, at any time; later generations do not change it."""
        held = self._held()
        return self.end(held[0] if held else Status.RUNNING)

    def end(self, status: Status) -> Result:
        """The Result, given how the search ended."""
        tally, state = self.tally, self._state
        mean = self._to_user(state.mean)
        found = tally.best_f < math.inf
        converged = status in (Status.TOLX, Status.TOLFUN) and self.budget.ftarget is None
        run = Run(self._popsize, tally.sigma0, tally.nfev, tally.generation, tally.best_f, status)
        shape = self._algorithm.shape(self._params, state)
        return Result(
            x=self._to_user(self._engine.best if found else state.mean),
            fun=tally.best_f,
            nfev=tally.nfev,
            nit=tally.generation,
            success=found and (status == Status.FTARGET or converged),
            status=status,
            message=status.sentence,
            mean=mean,
            sigma=float(self._algorithm.report(self._params, state).sigma),
            history=tally.history.snapshot(),
            restarts=(run,),
            nfailed=tally.nfailed,
            first_error=None,
            shape=copied(array_namespace(mean), shape),
        )

    # === On disk ===

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the search to a file, all or nothing; `load` goes on from there to the bit."""
        npz.write(path, self.to_saved())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Optimizer":
        """A search that `save` wrote. The file holds no code: loading it is safe."""
        saved = npz.read(path, _SAVED)
        npz.check_search(saved)
        return cls.from_saved(saved)

    def to_saved(self) -> dict[str, Any]:
        """What a file holds of a search; the draws of a pending population are made again."""
        return {
            "setup": self.setup,
            "budget": self.budget,
            "popsize": self._popsize,
            "run": self._run,
            "state": self._state,
            "initial": self._engine.initial,
            "best": self._engine.best,
            "tally": self.tally,
            "asked": self._asked,
        }

    @classmethod
    def from_saved(cls, saved: dict[str, Any], stopping: Stopping | None = None) -> "Optimizer":
        """The inverse of `to_saved`; with other tolerances, if any are given."""
        if stopping is not None and stopping != saved["setup"].stopping:
            saved["setup"] = saved["setup"]._replace(stopping=stopping)
            saved["tally"].forget_convergence()
        opt = cls.__new__(cls)
        opt.__setstate__(saved)
        return opt

    __getstate__ = to_saved

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.setup, self.budget = saved["setup"], saved["budget"]
        self._popsize, self._run = saved["popsize"], saved["run"]
        self.tally, self._asked = saved["tally"], saved["asked"]
        params = self._algorithm.params(self.dim, self._popsize, self.setup.settings)
        self._drive(params, saved["state"], self.nit, saved["initial"], saved["best"])

    @property
    def dim(self) -> int:
        """The number of variables that are searched."""
        return int(self.setup.mean.shape[0])

    @property
    def popsize(self) -> int:
        """Candidates per generation."""
        return self._popsize

    @property
    def nfev(self) -> int:
        """Evaluations told so far."""
        return self.tally.nfev

    @property
    def nit(self) -> int:
        """Generations told so far."""
        return self.tally.generation

    @property
    def run(self) -> int:
        """The number of this run in its restart schedule."""
        return self._run

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
            f"{self._popsize}, generation {self.nit}, best {self.tally.best_f:.6g}>"
        )
