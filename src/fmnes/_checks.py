"""Every check of what a user passes in, with the wording of its message.

Each message names the argument, what was expected and what came. Checks run before the first
evaluation; nothing is silently repaired.
"""

import inspect
import math
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from numpy.typing import NDArray

from fmnes.algorithms import METHODS, Algorithm
from fmnes.algorithms._shared import Array, Namespace


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
    """A row of THE TABLE with the settings to run it with."""

    name: str
    algorithm: Algorithm
    settings: Any


def method(value: Any) -> Method:
    """A name of THE TABLE, or a settings object such as ``CRFMNES()``."""
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


def start(x0: Any) -> tuple[Namespace, Array]:
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


def step_sizes(sigma0: Any, dim: int) -> NDArray[np.float64]:
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


def initial_shape(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
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


def popsize(value: Any, row: Method, dim: int) -> int:
    """The population size, the method's default where none is given."""
    default = row.algorithm.default_popsize(dim)
    if value is None:
        return default
    size = integer("popsize", value, least=2)
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


def integer(name: str, value: Any, *, least: int) -> int:
    """A whole number that is at least ``least``."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole or (isinstance(value, float) and value.is_integer())):  # 1e6 is welcome
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name}: expected at least {least}, got {value!r}")
    return int(value)


def number(name: str, value: Any, *, positive: bool = False) -> float | None:
    """A real number or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name}: expected a number or None, got {value!r}")
    if math.isnan(value) or (positive and value <= 0):
        raise ValueError(f"{name}: expected a number{' > 0' * positive}, got {value!r}")
    return float(value)


def callable_or_none(name: str, value: Any) -> Callable[..., Any] | None:
    """A function or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name}: expected a function, got {value!r}")
    return value  # type: ignore[no-any-return]  # callable() narrows Any to Any


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """One of several words."""
    if value not in options:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, options))}, got {value!r}")
    return str(value)


def buffer(name: str, out: Any, shape: tuple[int, ...]) -> None:
    """A NumPy array that can be written to."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name}: expected a NumPy array, got {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got shape {out.shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name}: expected an array that can be written to, got a read-only one")


def to_host(x: Any) -> Any:
    """An array of any library as a NumPy array; what is no array stays as it is."""
    if isinstance(x, np.ndarray) or not is_array_api_obj(x):
        return x
    if hasattr(x, "detach"):  # PyTorch: NumPy reads neither its devices nor its gradients
        return x.detach().cpu().numpy()
    return np.asarray(x)
