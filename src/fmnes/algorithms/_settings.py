"""Checks of the settings that a user gives to a method."""

from collections.abc import Callable
from typing import Any

import numpy as np


def check_fields(settings: Any, **checks: Callable[[str, Any], Any]) -> None:
    """Replace fields of a frozen settings record by what their checks in `fmnes._checks` return.

    A checkpoint stores a NumPy number as an array without dimensions: both become Python numbers.
    The arrays D, v and C are checked when a search starts, because only then is d known.
    """
    for name, check in checks.items():
        value = getattr(settings, name)
        if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
            value = value.item()
        object.__setattr__(settings, name, check(name, value))
