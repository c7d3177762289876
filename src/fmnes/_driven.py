"""What the loops of the library call of a search, and users do not."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes._arrays import Array, to_host
from fmnes._population import Lineage, Population, Recipe
from fmnes._search import BaseSearch, Kept
from fmnes.algorithms._records import copied_shape
from fmnes.constraints.constrained import Constrained
from fmnes.constraints.kinds import usable
from fmnes.engines.asynchronous import AsynchronousEngine, Candidate
from fmnes.engines.generation import pieces
from fmnes.records.parts import Run
from fmnes.records.record import Feasible
from fmnes.records.result import Result
from fmnes.records.status import Status, message, succeeded
from fmnes.records.stopping import Budget, reasons
from fmnes.variables.discrete import told


class DrivenSearch(BaseSearch):
    """A search as `minimize` drives it: in place, on workers, asynchronously."""

    def hand_out(self) -> None:
        """Let `tell` accept values of this generation, whoever builds its candidates."""
        self._take_injected()
        self._asked, self._handed_out = True, time.monotonic()

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
            self.record.add_extra(np.where(usable(g), f, np.nan), feasible)
        if best is not None:
            x = point(best)
            self._extra_x = array_namespace(x).asarray(x, copy=True)

    def _tell_constrained(
        self,
        constrained: Constrained,
        f: NDArray[np.float64],
        g: NDArray[np.float64],
        candidates: Callable[[int, int], Array],
    ) -> tuple[NDArray[np.float64], Feasible]:
        """Keep the best candidate; return the values to rank, and what the generation showed.

        ``candidates(a, b)`` returns candidates a to b - 1 in the user's coordinates.
        """
        constrained, feasible, better = constrained.with_best_of(f, g)
        if better is not None:
            x = candidates(better, better + 1)[0, ...]
            self._extra_x = array_namespace(x).asarray(x, copy=True)
        unchanged = None
        if self.setup.discrete is not None:
            rows = pieces(self._algorithm, 0, len(f), self._user_dim)
            unchanged = np.concatenate([self.unchanged(candidates(a, b)) for a, b in rows])
        self._constrained, merit = constrained.after(self.dim, f, g, unchanged)
        return merit, feasible

    def unchanged(self, x: Array) -> NDArray[np.bool_]:
        """Return which points of the user have the same integers and choices as the mean."""
        discrete, box = self.setup.discrete, self.setup.box
        if discrete is None:
            return np.ones(x.shape[0], bool)
        y = x if box is None else box.to_search(array_namespace(x), x)
        mean = self._coordinates.latent_mean(self._state.mean)
        same: NDArray[np.bool_] = to_host(discrete.unchanged(y, mean))
        return same

    def reasons(self, budget: Budget | None = None) -> list[Status]:
        """Return the reasons to end, the most informative first; by default with its own budget."""
        return reasons(self.record, budget or self.budget, self.setup.stopping)

    def result_with(self, status: Status) -> Result:
        """Return the result so far, with the given status."""
        record, state, constrained = self.record, self._state, self._constrained
        xp = array_namespace(state.mean)
        fun, mean = (
            record.best_f,
            self._coordinates.to_user(self._coordinates.latent_mean(self._state.mean)),
        )
        violation, more = 0.0, {}
        if constrained is not None:
            fun, violation = constrained.f, constrained.violation
            more = constrained.result_fields()
        best = self._engine.best if self._margin is None else self._margin.best
        if record.best_is_extra or (constrained is not None and fun < math.inf):
            x = self._extra_x
        else:
            x = self._coordinates.to_user(best) if fun < math.inf else mean
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
            stds=self._coordinates.deviations_to_user(state.mean, summary.deviations),
            history=record.history.snapshot(),
            restarts=(Run(record.limits.popsize, record.sigma0, self.nfev, self.nit, fun, status),),
            nfailed=record.nfailed,
            first_error=None,
            shape=copied_shape(array_namespace(mean), self._algorithm.shape(self._params, state)),
            space=self.setup.space,
            **more,
        )

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
        return self._coordinates.to_user(candidate.y)

    def tell_arrivals(self, candidates: Sequence[Candidate], values: NDArray[np.float64]) -> None:
        """Pass the values of popsize candidates, which may come from several generations.

        With m constraints, the values have 1 + m columns.
        """
        begun = time.monotonic()
        feasible, best_so_far = None, self.record.best_f
        self._asynchronous.arrive(candidates)
        if self._constrained is not None:
            f, g, best_so_far = values[:, 0], values[:, 1:], -math.inf
            values, feasible = self._tell_constrained(
                self._constrained,
                f,
                g,
                lambda a, b: self._coordinates.to_user(self._asynchronous.ask(a, b)),
            )
        generation, self._margin = told(
            self._algorithm,
            self._asynchronous,
            self.setup.discrete,
            self._margin,
            values,
            best_so_far,
            is_latent=True,
        )
        now = time.monotonic()
        self.record.add(generation, begun - self._handed_out, now - begun, feasible)
        self._handed_out = now
