"""What a search starts from, in search coordinates."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array, Namespace, constant, to_host
from fmnes.algorithms import MethodName, MethodSettings
from fmnes.algorithms._records import Shape, copied_shape
from fmnes.arguments.method import Method, read_popsize
from fmnes.arguments.shape import check_deviations, initial_shape
from fmnes.arguments.x0 import (
    default_deviations,
    deviations_of,
    read_deviations,
    read_mean,
    space_of,
    start_of,
)
from fmnes.constraints.kinds import Kinds
from fmnes.points.data import Data, Points, read_data
from fmnes.records.result import Result
from fmnes.records.stopping import Stopping, read_stopping
from fmnes.variables.bounds import Box, Sides, read_bounds, representable
from fmnes.variables.discrete import Discrete
from fmnes.variables.integrality import (
    between_integers,
    integer_sides,
    map_variables,
    read_integrality,
)
from fmnes.variables.space import Space


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


def set_up(
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
    data = read_data(x0, full=not row.algorithm.LINEAR) if isinstance(x0, Points) else None
    xp, mean = read_mean(start_of(x0) if data is None else data.mean)
    dim, info = mean.shape[0], xp.finfo(mean.dtype)
    asked = None if bounds is None else representable(read_bounds(bounds, dim), info)
    is_integer = read_integrality(integrality, dim)
    sides = integer_sides(asked, is_integer, info) if is_integer.any() else asked
    free = dim if sides is None else int((sides.low < sides.high).sum())
    size = read_popsize(popsize, row, max(free, 1))
    deviations = _given_deviations(x0, sigma0, data, sides, dim)
    if np.isnan(checks.distinct(deviations)).any():
        start = np.asarray(to_host(mean), np.float64)
        left_out = default_deviations(start, sides, is_integer, size, max(free, 1))
        deviations = np.where(np.isnan(deviations), left_out, deviations)
    checks.in_scale("sigma0", checks.distinct(deviations), info, least=float(info.smallest_normal))
    if asked is not None and sides is not None:
        _check_inside(mean, asked, info)
        mean = between_integers(xp, mean, sides, is_integer)
    space = space_of(x0)
    choices = () if space is None else space.choices
    box, discrete = map_variables(xp, mean, sides, is_integer, deviations, choices)
    if box is not None:
        deviations = deviations[np.asarray(to_host(box.free))]
        mean = box.to_search(xp, mean)
    known = data if sigma0 is None else None
    shape = _first_shape(x0, xp, mean, row.settings, known, sides)
    check_deviations(xp, mean, deviations, shape)
    setup = Setup(
        method=row.name,
        settings=row.settings if discrete is None else row.settings.with_fixed_rates(),
        mean=mean,
        deviations=deviations,
        shape=shape,
        box=box,
        seed=draws.draw_seed(rng),
        stopping=read_stopping(stopping),
        discrete=discrete,
        space=space,
    )
    return setup, size


def _given_deviations(
    x0: Any, sigma0: Any, data: Data | None, sides: Sides | None, dim: int
) -> NDArray[np.float64]:
    """Return the initial deviations that the caller gives; NaN for the other variables."""
    if sigma0 is None and data is not None:
        return deviations_of(data, sides)
    if sigma0 is None and isinstance(x0, Result):
        sigma0 = x0.sigma
    if (space := space_of(x0)) is not None:
        sigma0 = space.by_name(sigma0)
        if isinstance(sigma0, Mapping):
            return space.deviations(sigma0)
    return np.full(dim, np.nan) if sigma0 is None else read_deviations(sigma0, dim)


def _first_shape(
    x0: Any,
    xp: Namespace,
    mean: Array,
    settings: MethodSettings,
    data: Data | None,
    sides: Sides | None,
) -> Shape:
    """Return the shape of a Result, the correlation of data, or the shape of the settings."""
    if isinstance(x0, Result):
        if x0.shape.D.shape != mean.shape:
            raise ValueError(
                f"x0: expected a Result with {mean.shape[0]} free variables, got "
                f"{x0.shape.D.shape[0]}"
            )
        return copied_shape(xp, x0.shape)
    if data is None or data.correlation is None or "C" in settings.given_shape:
        return initial_shape(xp, mean, settings)
    correlation = data.correlation
    if sides is not None:
        searched = np.flatnonzero(sides.low < sides.high)
        correlation = correlation[np.ix_(searched, searched)]
    return copied_shape(xp, Shape(np.ones(len(correlation)), None, correlation))


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
