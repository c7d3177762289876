"""Check and convert the arguments that start a search."""

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array
from fmnes.arguments.method import read_method
from fmnes.arguments.setup import Setup, set_up
from fmnes.arguments.x0 import best_known, read_mean, space_of
from fmnes.constraints.kinds import Kinds, read_kinds
from fmnes.points.data import Points, read_points_of
from fmnes.records.result import Result
from fmnes.records.stopping import Budget
from fmnes.variables.discrete import to_user


class Start(NamedTuple):
    """The arguments of a search, checked and converted."""

    setup: Setup
    popsize: int
    budget: Budget

    def enlarged(self, least: int) -> "Start":
        """The same with a population of at least this size, if the budget suffices for it."""
        popsize, maxfevals = least + least % 2, self.budget.maxfevals
        if self.popsize >= least or (maxfevals is not None and maxfevals <= popsize):
            return self
        return self._replace(popsize=popsize)

    def constrained(self, constraints: Any, x0: Any) -> "Start":
        """The same with constraints; a Result x0 may know their multipliers."""
        mean = self.setup.mean
        eps = float(array_namespace(mean).finfo(mean.dtype).eps)
        if (kinds := read_kinds(constraints, eps)) is None:
            return self
        setup = self.setup._replace(
            constraints=kinds,
            settings=self.setup.settings.with_constraints(),
            multipliers=_known_multipliers(x0, kinds),
        )
        return self._replace(setup=setup)


def read_start(
    x0: Any,
    sigma0: Any = None,
    method: Any = "auto",
    popsize: Any = None,
    bounds: Any = None,
    integrality: Any = None,
    rng: Any = None,
    ftarget: Any = None,
    maxfevals: Any = None,
    maxiter: Any = None,
    timeout: Any = None,
    stopping: Any = None,
    constraints: Any = None,
    *,
    with_x0: bool = False,
) -> Start:
    """Check the arguments of `Optimizer` and return them converted; nothing is started.

    ``with_x0``: the budget has to suffice for the first generation and one evaluation of x0.
    """
    row, x0 = read_method(method), read_points_of(x0)
    space = space_of(x0)
    if space is not None:
        for name, value in (("bounds", bounds), ("integrality", integrality)):
            if value is not None:
                raise ValueError(
                    f"{name}: expected None with a Space, which has them, got {value!r}"
                )
        bounds, integrality = space.bounds, space.integrality
    setup, size = set_up(row, x0, sigma0, popsize, bounds, integrality, rng, stopping)
    budget = Budget(
        None if ftarget is None else checks.real("ftarget", ftarget),
        None if maxfevals is None else _read_maxfevals(maxfevals, size, with_x0),
        None if maxiter is None else checks.integer("maxiter", maxiter, least=1),
        None if timeout is None else checks.real("timeout", timeout, above=0),
    )
    return Start(setup, size, budget).constrained(constraints, x0)


def _known_multipliers(x0: Any, kinds: Kinds) -> NDArray[np.float64] | None:
    """Return the multipliers of a Result that has as many constraints; None if there are none."""
    if not isinstance(x0, Result) or x0.multipliers is None:
        return None
    known = np.asarray(x0.multipliers, np.float64)
    if len(known) != kinds.number or not np.isfinite(known).all():
        return None
    return np.asarray(np.where(kinds.equality, known, np.maximum(known, 0.0)), np.float64)


def _read_maxfevals(value: Any, popsize: int, with_x0: bool) -> int:
    """Return the budget of evaluations, which has to suffice for one generation."""
    maxfevals = checks.integer("maxfevals", value, least=1)
    least, x0 = (popsize + 1, "x0 is evaluated, ") if with_x0 else (popsize, "")
    if maxfevals < least:
        raise ValueError(
            f"maxfevals: expected at least {least}, got {maxfevals}: {x0}one generation has "
            f"popsize = {popsize} candidates, and a search takes about 100 evaluations for each "
            "variable"
        )
    return maxfevals


def read_point(x0: Any, setup: Setup) -> Array:
    """Return the point that a search must improve on: x0, or the best candidate of a Result.

    A Result may be of a search with other bounds. If its best candidate lies outside the bounds of
    this one, the mean takes its place.
    """
    xp, point = read_mean(best_known(x0))
    box, discrete = setup.box, setup.discrete
    found = isinstance(x0, Result | Points)
    if found and box is not None and not box.contains(xp, point):
        return to_user(box, discrete, setup.mean)
    if discrete is None:
        return point
    latent = point if box is None else box.to_search(xp, point)
    if found and not discrete.contains(latent):
        latent = setup.mean
    return to_user(box, discrete, latent)
