"""Optimizer: the ask/tell shell around (params, state)."""

import math
import os
import time
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes import _random as random
from fmnes._result import Result, Run, Status
from fmnes._setup import Setup, set_up
from fmnes._stopping import Budget, Stopping
from fmnes._tally import Tally
from fmnes.algorithms import METHODS, Algorithm
from fmnes.algorithms._shared import Array, constant, copied, is_feasible
from fmnes.evaluate import to_values

_SAVED = ("setup", "budget", "_popsize", "_run", "_state", "_tally", "_asked")


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
        row = checks.method(method)
        setup = set_up(row, x0, sigma0, bounds, rng, stopping)
        size = checks.popsize(popsize, row, setup.mean.shape[0])
        budget = Budget(
            checks.number("ftarget", ftarget),
            None if maxfevals is None else checks.integer("maxfevals", maxfevals, least=size),
            None if maxiter is None else checks.integer("maxiter", maxiter, least=1),
            checks.number("timeout", timeout, positive=True),
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
        deviations = sigma_factor * setup.deviations
        log = np.log(deviations)
        sigma0 = float(deviations[0]) * math.exp(np.mean(log - log[0]))  # equal ones: exactly that
        scale = constant(xp, deviations / sigma0, mean)
        if shape.C is not None:
            shape = shape._replace(C=scale[:, None] * shape.C * scale[None, :])
        shape = shape._replace(D=scale * shape.D)
        z = random.normals(setup.seed, random.initial_stream(run), 0, 0, 1, dim)[0]
        self._params = self._algorithm.params(dim, popsize, setup.settings)
        self._state = self._algorithm.init(
            self._params, mean, constant(xp, sigma0, mean), shape, constant(xp, z, mean)
        )
        at_first = self._algorithm.report(self._params, self._state)
        self._tally = Tally(dim, popsize, self._algorithm.LINEAR, at_first)
        self._asked = False
        self._z: Array | None = None
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
        x = self._to_user(self._population(rows))
        self._asked = True
        if out is not None:
            if out.shape != x.shape:
                raise ValueError(f"out: expected shape {tuple(x.shape)}, got shape {out.shape}")
            out[...] = x
            x = out
        self._handed_out = time.monotonic()
        self._seconds += self._handed_out - begun
        return x

    def tell(self, x_or_f: Any, f: Any = None, /) -> None:
        """Take in the values of the candidates: ``tell(f)``, or ``tell(x, f)`` with ask's x.

        +inf marks an infeasible candidate; NaN counts as infeasible too, and in ``nfailed``.
        """
        begun = time.monotonic()
        if not self._asked:
            raise RuntimeError("tell: expected a call of ask() first, got none for this generation")
        values = to_values(checks.to_host(x_or_f if f is None else f), self._popsize, "f")
        if f is not None:
            self._check_told(x_or_f)
        self._update(values)
        self._asked, self._z = False, None
        report = self._algorithm.report(self._params, self._state)
        self._tally.record(
            values,
            report,
            self._state.mean,
            self.setup.stopping,
            (begun - self._handed_out, self._seconds + time.monotonic() - begun),
        )
        self._seconds = 0.0

    def _update(self, values: NDArray[np.float64]) -> None:
        """One generation of the method."""
        z = self._draws()
        xp = array_namespace(z)
        f = constant(xp, values if z.dtype == xp.float64 else _dense_ranks(values), z)
        state = self._algorithm.tell(self._params, self._state, z, f)
        best = int(np.argmin(np.where(is_feasible(np, values), values, np.inf)))
        found = None
        if values[best] < self._tally.best_f:
            found = self._to_user(self._population(slice(best, best + 1)))[0, :]
        self._tally.take(values, found)
        self._state = state
        every = getattr(self._params, "refresh_every", 0)  # full-matrix methods only
        if every and self._tally.generation % every == 0:
            self._state = self._algorithm.refresh(self._params, state)  # type: ignore[attr-defined]

    # === The population ===

    def _draws(self) -> Array:
        """The draws z of this generation, kept from ask to tell."""
        if self._z is None:
            self._z = self._normals(0, self._popsize // (2 if self._algorithm.ANTITHETIC else 1))
        return self._z

    def _normals(self, first: int, last: int) -> Array:
        mean, stream = self._state.mean, random.population_stream(self._run)
        generation, dim = self._tally.generation, mean.shape[0]
        z = random.normals(self.setup.seed, stream, generation, first, last, dim)
        return constant(array_namespace(mean), z, mean)

    def _population(self, rows: slice | None) -> Array:
        """Candidates in search coordinates."""
        if rows is None:
            return self._algorithm.ask(self._params, self._state, self._draws())
        if not isinstance(rows, slice):
            raise TypeError(f"rows: expected a slice such as slice(0, 10), got {rows!r}")
        first, last, stride = rows.indices(self._popsize)
        if stride != 1 or last <= first:
            raise ValueError(f"rows: expected a slice of neighbouring candidates, got {rows!r}")
        if not self._algorithm.LINEAR:  # bits of a matrix product depend on the number of rows
            return self._population(None)[first:last, :]
        half = self._popsize // 2 if self._algorithm.ANTITHETIC else self._popsize
        parts = []
        for low, sign in ((0, 1.0), (half, -1.0)):  # candidate half + i mirrors candidate i
            a, b = max(first, low), min(last, low + half)
            if a < b:
                z = (
                    self._normals(a - low, b - low)
                    if self._z is None
                    else self._z[a - low : b - low, :]
                )
                step = self._algorithm.transform(self._params, self._state, z)
                parts.append(self._state.mean + sign * step)
        return array_namespace(parts[0]).concat(parts, axis=0)

    def _to_user(self, y: Array) -> Array:
        """Search coordinates to the user's."""
        box = self.setup.box
        return y if box is None else box.to_user(array_namespace(y), y)

    def _check_told(self, x: Any) -> None:
        """tell(x, f) takes the x of ask and nothing else: f is the value of what was proposed."""
        own = checks.to_host(self._to_user(self._population(None)))
        told = np.asarray(checks.to_host(x))
        if told.shape != own.shape or not np.array_equal(told, own):
            came = "other values" if told.shape == own.shape else f"shape {told.shape}"
            raise ValueError(
                f"x: expected the array of shape {own.shape} that ask() returned, unchanged, "
                f"got {came}"
            )

    # === Where the search stands ===

    def stop(self) -> dict[str, str]:
        """The reasons to end, name to sentence; empty while the search should go on."""
        return {str(status): status.sentence for status in self._tally.held(self.budget)}

    @property
    def result(self) -> Result:
        """Where the search stands, at any time; later generations do not change it."""
        held = self.stop()
        return self.end(Status(next(iter(held))) if held else Status.RUNNING)

    def end(self, status: Status) -> Result:
        """The Result, given how the search ended."""
        xp = array_namespace(self._state.mean)
        tally = self._tally
        mean = xp.asarray(self._to_user(self._state.mean), copy=True)
        found = tally.best_x is not None
        converged = status in (Status.TOLX, Status.TOLFUN) and self.budget.ftarget is None
        sigma = float(self._algorithm.report(self._params, self._state).sigma)
        run = Run(self._popsize, tally.sigma0, tally.nfev, tally.generation, tally.best_f, status)
        return Result(
            x=xp.asarray(tally.best_x if found else mean, copy=True),
            fun=tally.best_f,
            nfev=tally.nfev,
            nit=tally.generation,
            success=found and (status == Status.FTARGET or converged),
            status=status,
            message=status.sentence,
            mean=mean,
            sigma=sigma,
            history=tally.history.snapshot(),
            restarts=(run,),
            nfailed=tally.nfailed,
            first_error=None,
            shape=copied(xp, self._algorithm.shape(self._params, self._state)),
        )

    def headline(self) -> str:
        """Where the search stands, in a few words for a progress display."""
        row = self._tally.history.last("sigma", 1)
        return f"best {self._tally.best_f:.6g}, sigma {row[-1]:.3g}" if len(row) else "starting"

    # === On disk ===

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the search to a file, all or nothing; `load` goes on from there to the bit."""
        from fmnes import _checkpoint

        _checkpoint.write(path, self.to_saved())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Optimizer":
        """A search that `save` wrote. The file holds no code: loading it is safe."""
        from fmnes import _checkpoint

        return cls.from_saved(_checkpoint.read(path, _SAVED))

    def to_saved(self) -> dict[str, Any]:
        """What a file holds of a search; the draws of a pending population are made again."""
        return {name: getattr(self, name) for name in _SAVED}

    @classmethod
    def from_saved(cls, saved: dict[str, Any]) -> "Optimizer":
        """The inverse of `to_saved`."""
        opt = cls.__new__(cls)
        opt.__dict__.update({name: saved[name] for name in _SAVED})
        opt._params = opt._algorithm.params(
            opt.setup.mean.shape[0], opt._popsize, opt.setup.settings
        )
        opt._z, opt._seconds, opt._handed_out = None, 0.0, time.monotonic()
        return opt

    @property
    def popsize(self) -> int:
        """Candidates per generation."""
        return self._popsize

    @property
    def nfev(self) -> int:
        """Evaluations told so far."""
        return self._tally.nfev

    @property
    def nit(self) -> int:
        """Generations told so far."""
        return self._tally.generation

    @property
    def _algorithm(self) -> Algorithm:
        return METHODS[self.setup.method]

    def __repr__(self) -> str:
        return (
            f"<Optimizer {self.setup.method}, {self.setup.mean.shape[0]} variables, popsize "
            f"{self._popsize}, generation {self.nit}, best {self._tally.best_f:.6g}>"
        )


def _dense_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values' ranks, equal for equal values: what a narrower dtype holds without loss."""
    ranks = np.unique(values, return_inverse=True)[1].astype(np.float64)
    return np.where(np.isfinite(values) | (values == -np.inf), ranks, np.inf)
