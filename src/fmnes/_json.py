"""Arrays and numbers as JSON, exact to the last bit.

JSON has no numbers that are not finite: they become the words "inf", "-inf" and "nan".
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes._arrays import to_host


def to_json(value: Any) -> Any:
    """Return a number or an array as JSON values."""
    array = np.asarray(to_host(value))
    plain = array.tolist()
    return plain if array.dtype.kind != "f" or np.isfinite(array).all() else with_words(plain)


def with_words(value: Any) -> Any:
    """Return what JSON can hold of lists, dicts, texts and numbers."""
    if isinstance(value, dict):
        return {name: with_words(item) for name, item in value.items()}
    if isinstance(value, list):
        return [with_words(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def from_json(value: Any, dtype: Any, ndim: int = 1) -> NDArray[Any]:
    """Return the array that `to_json` was given."""
    array = np.array(value, dtype)
    if array.ndim != ndim:
        raise ValueError(f"expected an array of {ndim} dimensions, got {array.ndim}")
    return array
