"""Return values of an objective, converted to floats; NaN and infinities are valid values."""

import math
import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_value(raw: Any, candidate: int, name: str = "fun") -> float:
    """The value that the objective returned for one candidate, as a float.

    Accepts real numbers of any library, and arrays of any shape with exactly one element. Anything
    else raises TypeError: None, str and complex cannot be ranked.
    """
    if isinstance(raw, float):  # also numpy.float64; the common case has to be quick
        return float(raw)
    number = raw
    if hasattr(number, "shape"):  # arrays of any library, and NumPy scalars
        if math.prod(number.shape) != 1:
            raise TypeError(_wanted(name, candidate, f"an array of shape {tuple(number.shape)}"))
        if hasattr(number, "item"):
            number = number.item()
    if not hasattr(type(number), "__float__"):  # str, complex and None
        hint = " (is a `return` missing?)" if raw is None else ""
        got = f"{type(raw).__name__}: {reprlib.repr(raw)}{hint}"
        raise TypeError(_wanted(name, candidate, got))
    try:
        return float(number)
    except OverflowError:
        got = f"{type(raw).__name__} beyond the range of float"
        raise TypeError(_wanted(name, candidate, got)) from None


def to_values(raw: Any, popsize: int, name: str = "fun") -> NDArray[np.float64]:
    """The values of a whole population, as a new array; errors name the argument ``name``."""
    if type(raw) is np.ndarray and raw.dtype == np.float64 and raw.shape == (popsize,):
        return raw.copy()  # the objective may reuse its array
    expected = f"{name}: expected an array of {popsize} real numbers, shape ({popsize},)"
    try:
        values = np.asarray(raw)
    except ValueError as error:  # rows of different lengths
        raise TypeError(f"{expected}, got {type(raw).__name__} ({error})") from None
    if values.shape != (popsize,):
        raise TypeError(f"{expected}, got {type(raw).__name__} of shape {values.shape}")
    if values.dtype.kind == "O":  # a list with None, Fraction and the like
        return np.array([to_value(value, i, name) for i, value in enumerate(values)])
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{expected}, got {type(raw).__name__} of dtype {values.dtype}")
    return np.array(values, dtype=np.float64)


def _wanted(name: str, candidate: int, got: str) -> str:
    return f"{name}: expected a real number for candidate {candidate}, got {got}"
