"""Optimizer: ask and tell around an engine."""

from __future__ import annotations

import functools
import inspect
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, to_host
from fmnes._driven import DrivenSearch
from fmnes._told import check_told, read_constraint_values, read_rows, read_withdrawn
from fmnes.algorithms import MethodName, MethodSettings
from fmnes.arguments.start import read_start
from fmnes.constraints.kinds import Constraints, Kinds
from fmnes.engines.contract import Reader, Writer
from fmnes.engines.generation import pieces
from fmnes.evaluate import to_values
from fmnes.points.injected import read_named_points, read_points
from fmnes.records.history import DEFAULT_SIZE, History, read_size
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.records.stopping import Stopping
from fmnes.storage import npz
from fmnes.storage.contents import SEARCH
from fmnes.storage.move import moved
from fmnes.variables.bounds import BoundsLike
from fmnes.variables.discrete import told
from fmnes.variables.parts import read_parts, write_made, write_parts
from fmnes.variables.space import Space


class Optimizer(DrivenSearch):
    """Minimize a function by ask and tell: the optimizer proposes candidates, you evaluate them.

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
        rng: int | np.random.Generator | None = None,
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
        first, last = (0, self._popsize) if rows is None else read_rows(rows, self._popsize)
        if out is not None:
            checks.buffer("out", out, (last - first, self._user_dim))
        x = self._candidates(first, last, out)
        self.hand_out()
        self._seconds += self._handed_out - begun
        return x

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
        if isinstance(engine, Writer) and self._coordinates.are_the_same:
            write_made(parts, self.like, functools.partial(engine.write, i))
        else:
            write_parts(parts, self._candidates(i, i + 1)[0, :])
        self.hand_out()
        self._seconds += self._handed_out - begun

    def write_mean(self, target: Any) -> None:
        """Write the mean of the distribution into arrays of your own, as `write_candidate` does."""
        mean = self._coordinates.to_user(self._coordinates.latent_mean(self._state.mean))
        write_parts(read_parts(target, self._user_dim), mean)

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
        from_elsewhere = None if self._injected.is_empty else self._injected
        if from_elsewhere is not None or not self._stays(values):
            values = to_values(to_host(values), self._popsize, "f")
        if from_elsewhere is not None:
            values = from_elsewhere.told(values)
        g = read_constraint_values(constraints, self.setup.constraints, self._popsize)
        if f is not None:
            self._check_told(x_or_f)
        feasible, best_so_far = None, self.record.best_f
        if self._constrained is not None:
            values, feasible = self._tell_constrained(
                self._constrained, values, g, self._candidates
            )
            best_so_far = -math.inf  # an engine would take the best merit for the best candidate
        if from_elsewhere is not None:
            values = from_elsewhere.ranked(values)
        generation, self._margin = told(
            self._algorithm, self._engine, self.setup.discrete, self._margin, values, best_so_far
        )
        self._asked, self._told = False, values
        seconds = self._seconds + time.monotonic() - begun
        free = 0 if from_elsewhere is None else from_elsewhere.free
        self.record.add(generation, begun - self._handed_out, seconds, feasible, free)
        self._seconds = 0.0
        if from_elsewhere is not None:
            if from_elsewhere.active:
                self._set_engine(self._fresh_params(), self._state, self.nit, self._kept())
            self._injected = from_elsewhere.finished()
        self._adapt_popsize()

    def _check_told(self, x: Any) -> None:
        """Raise an error unless x is what `ask` returned."""
        if self.setup.space is not None:
            raise ValueError("x: expected tell(f) with a Space, got tell(x, f)")
        parts = pieces(self._algorithm, 0, self._popsize, self._user_dim)
        check_told(x, (self._popsize, self._user_dim), parts, self._candidates)

    def _stays(self, values: Any) -> bool:
        """Return whether the engine takes the values where they are, and nobody else needs them."""
        if isinstance(values, np.ndarray):  # on the host; this check is quicker than the last one
            return False
        alone = self._constrained is None and self.setup.discrete is None
        return alone and isinstance(self._engine, Reader) and self._engine.reads(values)

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
        withdrawn = read_withdrawn(candidates, self._injected.withdrawn)
        self._injected = self._injected._replace(withdrawn=withdrawn)

    # === Stop and result ===

    def stop(self) -> dict[str, str]:
        """Return the reasons to end as {name: sentence}; empty while the search should continue."""
        return {str(status): status.sentence for status in self.reasons()}

    @property
    def result(self) -> Result:
        """The result so far; later generations do not change it."""
        return self.result_with(next(iter(self.reasons()), Status.RUNNING))

    # === Save and load ===

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the search to a file, from which `load` continues with identical results.

        If writing fails, a file that was there before stays as it was.
        """
        npz.write(checks.path_to_write("path", path), self.to_saved())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, like: Array | None = None) -> Optimizer:
        """Return the search that `save` wrote. Loading runs no code from the file.

        The search continues with arrays of the library that saved it, on the CPU; or, if ``like``
        is an array, with arrays of its library and on its device.
        """
        saved = npz.read(checks.path("path", path), SEARCH)
        return cls.from_saved(
            saved if like is None else moved(saved, checks.an_array("like", like))
        )

    def __repr__(self) -> str:
        return (
            f"<Optimizer {self.setup.method}, {self.dim} variables, popsize "
            f"{self._popsize}, generation {self.nit}, best {self.record.best_f:.6g}>"
        )
