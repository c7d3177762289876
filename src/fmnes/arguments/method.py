"""The method of a search, and the size of its generations."""

import inspect
import os
import warnings
from typing import Any, NamedTuple

from fmnes import _checks as checks
from fmnes.algorithms import METHODS, Algorithm, MethodName, MethodSettings

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
        f"method: expected a name such as 'auto' or settings such as Auto(){hint}, got {value!r}"
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
