"""Check and convert the arguments that start a search."""

import inspect
import math
import os
import warnings
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array, Namespace, constant, to_host
from fmnes._coordinates import Box, Sides, read_bounds, representable
from fmnes._result import Result
from fmnes._shape import check_deviations, initial_shape
from fmnes._stopping import Budget, Stopping
from fmnes.algorithms import METHODS, Algorithm, MethodName
from fmnes.algorithms._records import Shape, copied

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
    settings: Any


def read_method(value: Any) -> Method:
    """Return the method for a name or for settings such as ``CRFMNES()``."""
    if isinstance(value, str):
        if value not in METHODS:
            hint = checks.did_you_mean(value, METHODS)
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


class Setup(NamedTuple):
    """What a search starts from, checked; the same for every run of a restart schedule."""

    method: MethodName
    settings: Any
    mean: Array  # in search coordinates, as are the deviations and the shape
    deviations: NDArray[np.float64]  # the initial standard deviation of each variable
    shape: Shape
    box: Box | None
    seed: int
    stopping: Stopping


class Start(NamedTuple):
    """The arguments of a search, checked and converted."""

    setup: Setup
    popsize: int
    budget: Budget


def read_start(
    x0: Any,
    sigma0: Any = None,
    method: Any = "cr-fm-nes",
    popsize: Any = None,
    bounds: Any = None,
    rng: Any = None,
    ftarget: Any = None,
    maxfevals: Any = None,
    maxiter: Any = None,
    timeout: Any = None,
    stopping: Any = None,
) -> Start:
    """Check the arguments of `Optimizer` and return them converted; nothing is started."""
    row = read_method(method)
    setup = _set_up(row, x0, sigma0, bounds, rng, stopping)
    size = _read_popsize(popsize, row, setup.mean.shape[0])
    budget = Budget(
        None if ftarget is None else checks.real("ftarget", ftarget),
        None if maxfevals is None else _read_maxfevals(maxfevals, size),
        None if maxiter is None else checks.integer("maxiter", maxiter, least=1),
        None if timeout is None else checks.real("timeout", timeout, above=0),
    )
    return Start(setup, size, budget)


def _read_maxfevals(value: Any, popsize: int) -> int:
    """Return the budget of evaluations, which has to suffice for one generation."""
    maxfevals = checks.integer("maxfevals", value, least=1)
    if maxfevals < popsize:
        raise ValueError(
            f"maxfevals: expected at least {popsize}, got {maxfevals}: one generation has popsize "
            f"= {popsize} candidates, and a search takes about 100 evaluations for each variable"
        )
    return maxfevals


def _read_popsize(value: Any, row: Method, dim: int) -> int:
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
    package, frame, level = os.path.dirname(__file__), inspect.currentframe(), 0
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
    if (deviations == deviations[0]).all():
        return sigma0, shape
    log = np.log(deviations)
    sigma0 *= math.exp(np.mean(log - log[0]))
    scale = constant(array_namespace(mean), sigma_factor * deviations / sigma0, mean)
    if shape.C is not None:
        shape = shape._replace(C=scale[:, None] * shape.C * scale[None, :])
    return sigma0, shape._replace(D=scale * shape.D)


def _set_up(row: Method, x0: Any, sigma0: Any, bounds: Any, rng: Any, stopping: Any) -> Setup:
    """Check what a search starts from, and convert it to search coordinates."""
    shape = None
    if isinstance(x0, Result):
        sigma0 = x0.sigma if sigma0 is None else sigma0
        shape, x0 = x0.shape, x0.mean
    xp, mean = _mean(x0)
    dim, info = mean.shape[0], xp.finfo(mean.dtype)
    sides = None if bounds is None else representable(read_bounds(bounds, dim), info)
    deviations = _deviations(sigma0, sides, dim)
    checks.in_scale("sigma0", deviations, info, least=float(info.smallest_normal))
    box = None if sides is None else _box(xp, mean, sides, deviations)
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
        shape = copied(xp, shape)
    check_deviations(xp, mean, deviations, shape)
    if stopping is not None and not isinstance(stopping, Stopping):
        raise TypeError(f"stopping: expected fmnes.Stopping(...), got {stopping!r}")
    return Setup(
        method=row.name,
        settings=row.settings,
        mean=mean,
        deviations=deviations,
        shape=shape,
        box=box,
        seed=draws.draw_seed(rng),
        stopping=Stopping() if stopping is None else stopping,
    )


def _box(xp: Namespace, x0: Array, sides: Sides, deviations: NDArray[np.float64]) -> Box:
    """Return the map of the bounds, once x0 is known to lie inside them."""
    low, high = sides
    host = np.asarray(to_host(x0), np.float64)
    outside = np.flatnonzero((host < low) | (host > high))
    if outside.size:
        j = int(outside[0])
        is_32 = xp.finfo(x0.dtype).bits == 32
        hint = " (bounds are rounded inward to numbers of 32 bits, as x0 has)" if is_32 else ""
        raise ValueError(
            f"x0: expected a point inside the bounds, got x0[{j}] = {float(host[j])!r} outside "
            f"[{float(low[j])!r}, {float(high[j])!r}]{hint}"
        )
    return Box.build(xp, x0, sides, deviations)


def _mean(x0: Any) -> tuple[Namespace, Array]:
    """Return x0 as a new floating-point vector, with its array library.

    Lists and integers become float64.
    """
    if not is_array_api_obj(x0):
        x0 = checks.numbers("x0", x0, "a vector of real numbers")
    if is_torch_array(x0):  # the search must not become part of a gradient
        x0 = x0.detach()
    xp = array_namespace(x0)
    if x0.ndim != 1 or x0.shape[0] == 0:
        hint = " (pass x0.ravel(), and reshape x in the function)" if x0.ndim > 1 else ""
        raise ValueError(
            f"x0: expected a vector of shape (d,) with d >= 1, got shape {x0.shape}{hint}"
        )
    if xp.isdtype(x0.dtype, ("bool", "integral")):
        x0 = xp.astype(x0, xp.float64)
    elif not xp.isdtype(x0.dtype, "real floating") or xp.finfo(x0.dtype).bits < 32:
        raise TypeError(f"x0: expected real numbers of 32 or 64 bits, got dtype {x0.dtype}")
    if not bool(xp.all(xp.isfinite(x0))):
        bad = int(xp.argmax(xp.astype(~xp.isfinite(x0), xp.int8)))
        raise ValueError(f"x0: expected finite numbers, got x0[{bad}] = {float(x0[bad])}")
    largest = float(xp.max(xp.abs(x0)))
    checks.in_scale("x0", np.array([largest]), xp.finfo(x0.dtype))
    return xp, xp.asarray(x0, copy=True)


def _deviations(sigma0: Any, sides: Sides | None, dim: int) -> NDArray[np.float64]:
    """Return sigma0 as one positive number per variable; if it is None, one that fits the bounds.

    With a sixth of the range, both bounds are three standard deviations from the middle.
    """
    if sigma0 is None:
        low, high = (np.full(dim, -np.inf), np.full(dim, np.inf)) if sides is None else sides
        missing = np.flatnonzero(~np.isfinite(low) | ~np.isfinite(high))
        if missing.size:
            came = "no bounds" if sides is None else f"bounds[{missing[0]}] with an open side"
            raise TypeError(
                "sigma0: expected a number or a vector (about a third of the distance from x0 to "
                f"the optimum), or two finite bounds for every variable, got None and {came}"
            )
        return np.where(low < high, (high - low) / 6, 1.0)
    sizes = checks.numbers("sigma0", sigma0, "a number or a vector")
    if sizes.shape not in ((), (dim,)):
        raise ValueError(
            f"sigma0: expected a number or a vector of shape ({dim},), got shape {sizes.shape}"
        )
    one_number, sizes = sizes.ndim == 0, np.broadcast_to(sizes, (dim,))
    good = np.isfinite(sizes) & (sizes > 0)
    if not good.all():
        bad = int(np.argmin(good))
        where = "sigma0" if one_number else f"sigma0[{bad}]"
        raise ValueError(
            "sigma0: expected finite numbers > 0 (about a third of the distance from x0 to the "
            f"optimum), got {where} = {sizes[bad]}"
        )
    return sizes
