"""Check and convert the arguments that start a search."""

import inspect
import math
import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array, constant, to_host
from fmnes.algorithms import METHODS, Algorithm, MethodName, MethodSettings
from fmnes.algorithms._records import Shape, copied_shape
from fmnes.arguments.shape import check_deviations, initial_shape
from fmnes.arguments.x0 import (
    best_known,
    default_deviations,
    deviations_of,
    read_deviations,
    read_mean,
    space_of,
    start_of,
)
from fmnes.constraints.kinds import Kinds, read_kinds
from fmnes.points.data import Points, read_data, read_points_of
from fmnes.records.result import Result
from fmnes.records.stopping import Budget, Stopping
from fmnes.variables.bounds import Box, Sides, read_bounds, representable
from fmnes.variables.discrete import Discrete, to_user
from fmnes.variables.integrality import (
    between_integers,
    integer_sides,
    map_variables,
    read_integrality,
)
from fmnes.variables.space import Space

MOST_CANDIDATES = 2**24  # limit of popsize: more would exhaust the memory before the first search


class PopsizeWarning(UserWarning):
    """The population size is so small for this dimension that the search may make no progress.

    Examples
    --------
    >>> import warnings
    >>> import fmnes
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", fmnes.PopsizeWarning)
    ...     opt = fmnes.Optimizer([0.0] * 1000, 1.0, popsize=6)
    >>> opt.popsize
    6
    """


class Method(NamedTuple):
    """A method: its name, its module and its settings."""

    name: MethodName
    algorithm: Algorithm
    settings: MethodSettings


def read_method(value: Any) -> Method:
    """Return the method for a name or for settings such as ``CRFMNES()``."""
    if isinstance(value, str):
        if value not in METHODS:
            hint = checks.method_hint(value, METHODS)
            raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {value!r}{hint}")
        return Method(value, METHODS[value], METHODS[value].Settings())
    for name, algorithm in METHODS.items():
        if isinstance(value, algorithm.Settings):
            return Method(name, algorithm, value)
    hint = " (an instance, not the class: add parentheses)" if isinstance(value, type) else ""
    raise TypeError(
        f"method: expected a name such as 'cr-fm-nes' or settings such as CRFMNES(){hint}, "
        f"got {value!r}"
    )


def read_method_of_fixed_size(value: Any, where: str) -> Method:
    """Return the method; ValueError if its generations change in size."""
    row = read_method(value)
    if row.settings.adapts_popsize:
        raise ValueError(
            f"method: expected generations of one size {where}, got adapt='popsize', which changes "
            "their size"
        )
    return row


class Setup(NamedTuple):
    """What a search starts from, checked; the same for every run of a restart schedule."""

    method: MethodName
    settings: MethodSettings
    mean: Array  # in search coordinates, as are the deviations and the shape
    deviations: NDArray[np.float64]  # the initial standard deviation of each variable
    shape: Shape
    box: Box | None
    seed: int
    stopping: Stopping
    constraints: Kinds | None = None
    discrete: Discrete | None = None  # None if all variables are real
    space: Space | None = None  # the names of the variables
    multipliers: NDArray[np.float64] | None = None  # of the constraints, from an earlier search


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
    setup, size = _set_up(row, x0, sigma0, popsize, bounds, integrality, rng, stopping)
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


def read_popsize(value: Any, row: Method, dim: int) -> int:
    """Return the population size; the method's default if ``value`` is None."""
    default = row.algorithm.default_popsize(dim)
    if value is None:
        return default
    size = checks.integer("popsize", value, least=2)
    if size > MOST_CANDIDATES:
        raise ValueError(f"popsize: expected at most {MOST_CANDIDATES}, got {size}")
    if row.algorithm.ANTITHETIC and size % 2:
        raise ValueError(
            f"popsize: expected an even number for {row.name}, which samples in pairs, got {size}"
        )
    if dim >= 40 and size < default / 2:
        warnings.warn(
            f"popsize={size} is far below the default {default} for {dim} variables: the ranking "
            "of so few candidates says little about the direction of descent, and the search may "
            "make no progress for thousands of generations",
            PopsizeWarning,
            stacklevel=_callers_level(),
        )
    return size


def _callers_level() -> int:
    """Return the stacklevel with which a warning of the calling function names the user's line."""
    package = os.path.dirname(os.path.dirname(__file__))
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


def initial_sigma_and_shape(setup: Setup, sigma_factor: float) -> tuple[float, Shape]:
    """Return the step size and the shape that a run starts with.

    If the initial standard deviations differ, the step size is their geometric mean, and the rest
    of them goes into the shape.
    """
    shape, deviations, mean = setup.shape, setup.deviations, setup.mean
    sigma0 = sigma_factor * float(deviations[0])
    if (checks.distinct(deviations) == deviations[0]).all():
        return sigma0, shape
    log = np.log(deviations)
    sigma0 *= math.exp(np.mean(log - log[0]))
    scale = constant(array_namespace(mean), sigma_factor * deviations / sigma0, mean)
    if shape.C is not None:
        shape = shape._replace(C=scale[:, None] * shape.C * scale[None, :])
    return sigma0, shape._replace(D=scale * shape.D)


def _set_up(
    row: Method,
    x0: Any,
    sigma0: Any,
    popsize: Any,
    bounds: Any,
    integrality: Any,
    rng: Any,
    stopping: Any,
) -> tuple[Setup, int]:
    """Check what a search starts from, and convert it to search coordinates.

    Returns the population size, too, which the initial deviations may depend on.
    """
    shape, space = None, space_of(x0)
    if isinstance(x0, Result):
        sigma0 = x0.sigma if sigma0 is None else sigma0
        shape = x0.shape
    start = start_of(x0)
    data = read_data(x0, full=not row.algorithm.LINEAR) if isinstance(x0, Points) else None
    if data is not None:
        start = data.mean
    xp, mean = read_mean(start)
    dim, info = mean.shape[0], xp.finfo(mean.dtype)
    asked = None if bounds is None else representable(read_bounds(bounds, dim), info)
    is_integer = read_integrality(integrality, dim)
    sides = integer_sides(asked, is_integer, info) if is_integer.any() else asked
    free = dim if sides is None else int((sides.low < sides.high).sum())
    size = read_popsize(popsize, row, max(free, 1))
    by_name = sigma0 if space is None else space.by_name(sigma0)
    if space is not None and isinstance(by_name, Mapping):
        given = space.deviations(by_name)
    else:
        given = np.full(dim, np.nan) if sigma0 is None else read_deviations(sigma0, dim)
    choices = () if space is None else space.choices
    if data is not None and sigma0 is None:
        given = deviations_of(data, sides)
        if data.correlation is not None and "C" not in row.settings.given_shape:
            searched = np.arange(dim) if sides is None else np.flatnonzero(sides.low < sides.high)
            correlation = data.correlation[np.ix_(searched, searched)]
            shape = Shape(np.ones(len(searched)), None, correlation)
    deviations = given
    if np.isnan(checks.distinct(given)).any():
        start = np.asarray(to_host(mean), np.float64)
        left_out = default_deviations(start, sides, is_integer, size, max(free, 1))
        deviations = np.where(np.isnan(given), left_out, given)
    checks.in_scale("sigma0", checks.distinct(deviations), info, least=float(info.smallest_normal))
    if asked is not None and sides is not None:
        _check_inside(mean, asked, info)
        mean = between_integers(xp, mean, sides, is_integer)
    box, discrete = map_variables(xp, mean, sides, is_integer, deviations, choices)
    if box is not None:
        deviations = deviations[np.asarray(to_host(box.free))]
        mean = box.to_search(xp, mean)
    if shape is None:
        shape = initial_shape(xp, mean, row.settings)
    elif shape.D.shape != mean.shape:
        raise ValueError(
            f"x0: expected a Result with {mean.shape[0]} free variables, got {shape.D.shape[0]}"
        )
    else:
        shape = copied_shape(xp, shape)
    check_deviations(xp, mean, deviations, shape)
    if stopping is not None and not isinstance(stopping, Stopping):
        raise TypeError(f"stopping: expected fmnes.Stopping(...), got {stopping!r}")
    setup = Setup(
        method=row.name,
        settings=row.settings if discrete is None else row.settings.with_fixed_rates(),
        mean=mean,
        deviations=deviations,
        shape=shape,
        box=box,
        seed=draws.draw_seed(rng),
        stopping=Stopping() if stopping is None else stopping,
        discrete=discrete,
        space=space,
    )
    return setup, size


def _check_inside(x0: Array, sides: Sides, info: Any) -> None:
    """Raise an error unless x0 lies inside the bounds."""
    low, high = sides
    host = np.asarray(to_host(x0), np.float64)
    outside = np.flatnonzero((host < low) | (host > high))
    if outside.size:
        j = int(outside[0])
        is_32 = info.bits == 32
        hint = " (bounds are rounded inward to numbers of 32 bits, as x0 has)" if is_32 else ""
        if low[j] == high[j] or len(low) == 2:
            hint = (
                "; bounds are pairs (low, high), one for each variable: for lower and upper bounds "
                "write fmnes.Bounds(lower, upper)"
            )
        raise ValueError(
            f"x0: expected a point inside the bounds, got x0[{j}] = {float(host[j])!r} outside "
            f"[{float(low[j])!r}, {float(high[j])!r}]{hint}"
        )
