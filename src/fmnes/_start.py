"""Everything a caller passes in to start a search, checked and converted once."""

import dataclasses
import inspect
import os
import warnings
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array, Namespace, constant, to_host
from fmnes._coordinates import Box, read_bounds
from fmnes._result import Result
from fmnes._stopping import Stopping
from fmnes.algorithms import METHODS, Algorithm
from fmnes.algorithms._shared import Shape, copied


class PopsizeWarning(UserWarning):
    """The population size is so small for the dimension that the search may not move.

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
    """A method by its name, its module, and the settings to run it with."""

    name: str
    algorithm: Algorithm
    settings: Any


def read_method(value: Any) -> Method:
    """The method that a name, or a settings object such as ``CRFMNES()``, stands for."""
    if isinstance(value, str):
        if value not in METHODS:
            raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {value!r}")
        return Method(value, METHODS[value], METHODS[value].Settings())
    for name, algorithm in METHODS.items():
        if isinstance(value, algorithm.Settings):
            return Method(name, algorithm, value)
    hint = " (an instance, not the class: add parentheses)" if isinstance(value, type) else ""
    raise TypeError(
        f"method: expected a name such as 'cr-fm-nes' or settings such as CRFMNES(){hint}, "
        f"got {value!r}"
    )


def read_popsize(value: Any, row: Method, dim: int) -> int:
    """The population size, the method's default where none is given."""
    default = row.algorithm.default_popsize(dim)
    if value is None:
        return default
    size = checks.integer("popsize", value, least=2)
    if row.algorithm.ANTITHETIC and size % 2:
        raise ValueError(
            f"popsize: expected an even number for {row.name}, which samples in pairs, got {size}"
        )
    if dim >= 40 and size < default / 2:
        warnings.warn(
            f"popsize={size} is far below the default {default} for {dim} variables: with so few "
            "candidates the ranking says little about the direction to go, and the search may "
            "make no progress for thousands of generations",
            PopsizeWarning,
            stacklevel=_callers_level(),
        )
    return size


def _callers_level() -> int:
    """The stacklevel with which a warning of the calling function points at the user's line."""
    package, frame, level = os.path.dirname(__file__), inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


class Setup(NamedTuple):
    """What a search starts from, checked: the same for every run of a restart schedule."""

    method: str
    settings: Any
    mean: Array  # in search coordinates, as are the deviations and the shape
    deviations: NDArray[np.float64]
    shape: Shape
    box: Box | None
    seed: int
    stopping: Stopping


def set_up(
    row: Method, x0: Any, sigma0: Any, bounds: Any, rng: Any, stopping: Stopping | None
) -> Setup:
    """Check what a search starts from, and move it into search coordinates."""
    shape = None
    if isinstance(x0, Result):
        sigma0 = x0.sigma if sigma0 is None else sigma0
        shape, x0 = x0.shape, x0.mean
    elif sigma0 is None:
        raise TypeError("sigma0: expected a number or a vector, got none")
    xp, mean = _mean(x0)
    deviations = _deviations(sigma0, mean.shape[0])
    box = None if bounds is None else _box(xp, mean, bounds, deviations)
    if box is not None:
        deviations = deviations[np.asarray(to_host(box.free))]
        mean = box.to_search(xp, mean)
    if shape is None:
        shape = _initial_shape(xp, mean, row.settings)
    elif shape.D.shape != mean.shape:
        raise ValueError(
            f"x0: expected a Result with {mean.shape[0]} free variables, got {shape.D.shape[0]}"
        )
    else:
        shape = copied(xp, shape)
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


def _initial_shape(xp: Namespace, mean: Array, settings: Any) -> Shape:
    """D, v and C of the method's settings, checked; ones, and nothing, where not given."""
    dim = mean.shape[0]
    shapes = {"D": (dim,), "v": (dim,), "C": (dim, dim)}
    given = {
        field.name: constant(
            xp,
            _shape_part(field.name, getattr(settings, field.name), shapes[field.name]),
            mean,
        )
        for field in dataclasses.fields(settings)
        if field.name in shapes and getattr(settings, field.name) is not None
    }
    ones = xp.broadcast_to(constant(xp, 1.0, mean), mean.shape)  # a number, whatever the length
    return Shape(**{"D": ones, **given})


def _box(xp: Namespace, x0: Array, bounds: Any, deviations: NDArray[np.float64]) -> Box:
    """The bounds, with x0 inside them."""
    low, high = read_bounds(bounds, x0.shape[0])
    host = np.asarray(to_host(x0), np.float64)
    outside = np.flatnonzero((host < low) | (host > high))
    if outside.size:
        j = int(outside[0])
        raise ValueError(
            f"x0: expected a point inside the bounds, got x0[{j}] = {host[j]:g} "
            f"outside [{low[j]:g}, {high[j]:g}]"
        )
    return Box.build(xp, x0, low, high, deviations)


def _mean(x0: Any) -> tuple[Namespace, Array]:
    """x0 as a floating-point vector of its own array library; lists and integers become float64."""
    if not is_array_api_obj(x0):
        try:
            x0 = np.asarray(x0, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"x0: expected a vector of real numbers, got {type(x0).__name__} ({error})"
            ) from None
    if hasattr(x0, "detach"):  # PyTorch: a search must not be part of anybody's gradients
        x0 = x0.detach()
    xp = array_namespace(x0)
    if x0.ndim != 1 or x0.shape[0] == 0:
        raise ValueError(f"x0: expected a vector of shape (d,) with d >= 1, got shape {x0.shape}")
    if xp.isdtype(x0.dtype, ("bool", "integral")):
        x0 = xp.astype(x0, xp.float64)
    elif not xp.isdtype(x0.dtype, "real floating") or xp.finfo(x0.dtype).bits < 32:
        raise TypeError(f"x0: expected real numbers of 32 or 64 bits, got dtype {x0.dtype}")
    if not bool(xp.all(xp.isfinite(x0))):
        bad = int(xp.argmax(xp.astype(~xp.isfinite(x0), xp.int8)))
        raise ValueError(f"x0: expected finite numbers, got x0[{bad}] = {float(x0[bad])}")
    return xp, xp.asarray(x0, copy=True)


def _deviations(sigma0: Any, dim: int) -> NDArray[np.float64]:
    """sigma0 as one positive number per variable."""
    try:
        sizes = np.array(to_host(sigma0), dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"sigma0: expected a number or a vector, got {sigma0!r}") from None
    if sizes.shape not in ((), (dim,)):
        raise ValueError(
            f"sigma0: expected a number or a vector of shape ({dim},), got shape {sizes.shape}"
        )
    sizes = np.broadcast_to(sizes, (dim,))
    good = np.isfinite(sizes) & (sizes > 0)
    if not good.all():
        bad = int(np.argmin(good))
        where = "sigma0" if np.ndim(sigma0) == 0 else f"sigma0[{bad}]"
        raise ValueError(f"sigma0: expected finite numbers > 0, got {where} = {sizes[bad]}")
    return sizes


def _shape_part(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """An initial D, v or C of a method's settings."""
    try:
        array = np.array(to_host(value), dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: expected an array of real numbers of shape {shape}, got {value!r}"
        ) from None
    if array.shape != shape:
        raise ValueError(f"{name}: expected an array of shape {shape}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got some that are not")
    if name == "D" and not (array > 0).all():
        raise ValueError(f"D: expected numbers > 0, got {array.min()}")
    if name == "v" and not array.any():
        raise ValueError("v: expected a vector that is not zero, got zeros")
    if name == "C":
        if not np.allclose(array, array.T, rtol=1e-12, atol=0):
            raise ValueError("C: expected a symmetric matrix, got one that is not")
        smallest = float(np.linalg.eigvalsh(array)[0])
        if smallest <= 0:
            raise ValueError(f"C: expected a positive definite matrix, got eigenvalue {smallest}")
    return array
