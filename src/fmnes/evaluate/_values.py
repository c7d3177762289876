"""Return values of an objective, converted to floats; NaN and infinities are valid values.

An objective with constraints returns (f, g): its value is a row of numbers f, g_1, ..., g_m.
"""

import math
import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes._arrays import to_host
from fmnes._checks import count


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
        number = to_host(number)
        if hasattr(number, "item"):
            number = number.item()
    if not hasattr(type(number), "__float__"):  # str, complex and None
        hint = " (is a `return` missing?)" if raw is None else _hint_of_pair(raw)
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
        values = _gathered(raw)
    except (RuntimeError, TypeError, ValueError) as error:  # rows of different lengths, for example
        came = f"{type(raw).__name__} ({error}){_hint_of_pair(raw)}"
        raise TypeError(f"{expected}, got {came}") from None
    if values.shape != (popsize,):
        came = f"{type(raw).__name__} of shape {values.shape}{_hint_of_pair(raw)}"
        raise TypeError(f"{expected}, got {came}")
    if values.dtype.kind == "O":  # a list with None, Fraction and the like
        return np.array([to_value(value, i, name) for i, value in enumerate(values)])
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{expected}, got {type(raw).__name__} of dtype {values.dtype}")
    return np.array(values, dtype=np.float64)


def _gathered(raw: Any) -> NDArray[Any]:
    """The numbers of an array or of a list as one array.

    A list may hold tensors that NumPy does not read: those on a GPU, or with gradients.
    """
    if not isinstance(raw, list | tuple) or all(isinstance(value, float) for value in raw):
        return np.asarray(raw)
    return np.asarray([to_host(value) for value in raw])


def to_row(raw: Any, candidate: int, constraints: int) -> NDArray[np.float64]:
    """The numbers f, g_1, ..., g_m of one candidate whose objective returned ``(f, g)``."""
    numbers = count(constraints, "constraint")
    expected = f"fun: expected (f, g) with {numbers} for candidate {candidate}"
    if not isinstance(raw, tuple | list) or len(raw) != 2:
        raise TypeError(f"{expected}, got {type(raw).__name__}: {reprlib.repr(raw)}")
    row = np.empty(1 + constraints)
    row[0] = to_value(raw[0], candidate)
    row[1:] = _numbers(raw[1], (constraints,), expected)
    return row


def to_rows(raw: Any, popsize: int, constraints: int) -> NDArray[np.float64]:
    """The numbers of a whole population from ``(F, G)``, shape (popsize, 1 + m)."""
    expected = f"fun: expected (F, G) of shapes ({popsize},) and ({popsize}, {constraints})"
    if not isinstance(raw, tuple | list) or len(raw) != 2:
        raise TypeError(f"{expected}, got {type(raw).__name__}: {reprlib.repr(raw)}")
    f = to_values(to_host(raw[0]), popsize)
    return np.column_stack([f, _numbers(raw[1], (popsize, constraints), expected)])


def to_constraints(raw: Any, popsize: int, constraints: int) -> NDArray[np.float64]:
    """The constraint values that `Optimizer.tell` got, as a new array."""
    shape = popsize, constraints
    return _numbers(raw, shape, f"constraints: expected an array of real numbers, shape {shape}")


def _numbers(raw: Any, shape: tuple[int, ...], expected: str) -> NDArray[np.float64]:
    """An array of a shape; a last axis of length 1 may be missing."""
    try:
        g = np.array(to_host(raw))
        has_none = g.dtype.kind == "O" and None in g.ravel().tolist()  # NumPy makes NaN of it
        g = g.astype(np.float64) if g.dtype.kind in "iufO" and not has_none else g
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{expected}, got {type(raw).__name__} ({error})") from None
    if has_none:
        raise TypeError(f"{expected}, got None among them (is a `return` missing?)")
    if g.dtype != np.float64:
        hint = " (by how much is a constraint violated?)" if g.dtype == np.bool_ else ""
        raise TypeError(f"{expected}, got {type(raw).__name__} of dtype {g.dtype}{hint}")
    if shape[-1] == 1 and g.shape == shape[:-1]:
        g = g[..., None]
    if g.shape != shape:
        raise TypeError(f"{expected}, got constraints of shape {g.shape}")
    return g


def _hint_of_pair(raw: Any) -> str:
    """Return what to do about a pair of the objective's value and its constraints."""
    is_pair = isinstance(raw, tuple) and len(raw) == 2
    return " (to return (f, g) with m constraints, give constraints=m)" if is_pair else ""


def _wanted(name: str, candidate: int, got: str) -> str:
    return f"{name}: expected a real number for candidate {candidate}, got {got}"
