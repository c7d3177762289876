"""Checks of single arguments, with the wording of their messages.

Each message names the argument, what was expected and what came. Arguments are checked before the
first evaluation, and nothing is repaired silently.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def integer(name: str, value: Any, *, least: int) -> int:
    """Return a whole number that is at least ``least``; 1e6 counts as whole."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole or (isinstance(value, float) and value.is_integer())):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name}: expected at least {least}, got {value!r}")
    return int(value)


def real(name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf) -> float:
    """Return a real number that is at least ``least`` and larger than ``above``."""
    expected = f"a number >= {least:g}" if least > -math.inf else "a number"
    if above > -math.inf:
        expected = f"a number > {above:g}"
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name}: expected {expected}, got {value!r}")
    if not (value >= least and (value > above or above == -math.inf)):  # NaN fails both
        raise ValueError(f"{name}: expected {expected}, got {value!r}")
    return float(value)


def finite(name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf) -> float:
    """Return a real number that is not infinite; see `real`."""
    number = real(name, value, least=least, above=above)
    if math.isinf(number):
        raise ValueError(f"{name}: expected a finite number, got {value!r}")
    return number


def boolean(name: str, value: Any) -> bool:
    """Return True or False; no other value counts as either."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Return one of several words."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def function(name: str, value: Any) -> Callable[..., Any]:
    """Return a callable."""
    if not callable(value):
        raise TypeError(f"{name}: expected a function, got {value!r}")
    called: Callable[..., Any] = value
    return called


def buffer(name: str, out: Any, shape: tuple[int, ...]) -> None:
    """Refuse anything but a writable NumPy array of this shape."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name}: expected a NumPy array, got {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got shape {out.shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name}: expected an array that can be written to, got a read-only one")
