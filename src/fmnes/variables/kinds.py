"""The kinds of variables of a `Space`: real, logarithmic and integer numbers, and choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks

Vector = NDArray[np.float64]

_ROUNDING = 1e-12  # of a number of steps, relative


class Coordinates(NamedTuple):
    """The coordinates of one element of a variable."""

    low: Vector
    high: Vector
    is_integer: bool
    middle: Vector  # where a search starts if x0 is left out; -1: equal chances of all options
    options: int = 0  # of a choice of more than two


def _check_shape(variable: Any) -> None:
    shape = variable.shape
    if isinstance(shape, int | np.integer) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, tuple | list):
        raise TypeError(f"shape: expected a tuple of whole numbers, got {shape!r}")
    shape = tuple(checks.integer("shape", size, least=1) for size in shape)
    object.__setattr__(variable, "shape", shape)


def _check_order(variable: Any) -> None:
    if not variable.low < variable.high:
        raise ValueError(
            f"{type(variable).__name__}: expected low < high, got {variable.low} and "
            f"{variable.high}; leave a fixed value out of the Space"
        )


@dataclass(frozen=True)
class Real:
    """A real variable, with or without bounds.

    Parameters
    ----------
    low, high : float, optional
        Bounds. No bounds by default.
    shape : int or tuple of int
        The shape of an array of such variables. () for a single number.
    step : float, optional
        The distance of two values: ``low``, ``low + step``, ... It needs both bounds.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.Real(0, 1, step=0.25)
    Real(low=0.0, high=1.0, shape=(), step=0.25)
    """

    low: float = -math.inf
    high: float = math.inf
    shape: Any = ()
    step: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, checks.real(name, getattr(self, name)))
        _check_order(self)
        _check_shape(self)
        if self.step is None:
            return
        object.__setattr__(self, "step", checks.finite("step", self.step, above=0))
        if not math.isfinite(self.high - self.low) or self._steps < 1:
            raise ValueError(
                f"step: expected two finite bounds that are a step or more apart, got {self.step} "
                f"between {self.low} and {self.high}"
            )

    @property
    def _steps(self) -> int:
        return math.floor((self.high - self.low) / (self.step or 1.0) * (1 + _ROUNDING))

    def coordinates(self) -> Coordinates:
        """Return the coordinates of one element."""
        if self.step is not None:
            return Coordinates(
                np.zeros(1), np.full(1, self._steps), True, np.full(1, self._steps / 2)
            )
        low, high = self.low, self.high
        inside = [side for side in (low + 1, high - 1) if math.isfinite(side)]
        middle = (low + high) / 2 if math.isfinite(high - low) else (inside or [0.0])[0]
        return Coordinates(np.full(1, low), np.full(1, high), False, np.full(1, middle))

    def encode(self, values: NDArray[Any]) -> Vector:
        """Return the coordinates of values; a last axis has those of one element."""
        x = _inside(self, np.asarray(values, np.float64))
        return (x if self.step is None else _steps(x - self.low, self.step))[..., None]

    def decode(self, coordinates: Vector) -> NDArray[Any]:
        """Return the values for coordinates, without their last axis."""
        x = coordinates[..., 0]
        return x if self.step is None else np.minimum(self.low + x * self.step, self.high)

    def deviation(self, sigma0: Vector) -> Vector:
        """Return standard deviations of values as those of coordinates."""
        return sigma0 if self.step is None else sigma0 / self.step


@dataclass(frozen=True)
class Log:
    """A positive variable that is searched on a logarithmic scale.

    Its ``sigma0`` is a standard deviation of the natural logarithm: 0.7 is a factor of two.

    Parameters
    ----------
    low, high : float
        Bounds, both positive.
    shape : int or tuple of int
        The shape of an array of such variables. () for a single number.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.Log(1e-5, 1e-1)
    Log(low=1e-05, high=0.1, shape=())
    """

    low: float
    high: float
    shape: Any = ()

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, checks.finite(name, getattr(self, name), above=0))
        _check_order(self)
        _check_shape(self)

    def coordinates(self) -> Coordinates:
        """Return the coordinates of one element."""
        low, high = np.log([self.low]), np.log([self.high])
        return Coordinates(low, high, False, (low + high) / 2)

    def encode(self, values: NDArray[Any]) -> Vector:
        """Return the coordinates of values."""
        low, high = np.log([self.low, self.high])
        x = np.log(_inside(self, np.asarray(values, np.float64)))[..., None]
        return np.asarray(np.clip(x, low, high))

    def decode(self, coordinates: Vector) -> NDArray[Any]:
        """Return the values for coordinates."""
        return np.clip(np.exp(coordinates[..., 0]), self.low, self.high)

    def deviation(self, sigma0: Vector) -> Vector:
        """Return standard deviations: those of the logarithm are given."""
        return sigma0


@dataclass(frozen=True)
class Int:
    """An integer variable.

    Parameters
    ----------
    low, high : int
        The smallest and the largest value.
    shape : int or tuple of int
        The shape of an array of such variables. () for a single number.
    step : int
        The distance of two values: ``low``, ``low + step``, ...

    Examples
    --------
    >>> import fmnes
    >>> fmnes.Int(16, 128, step=16)
    Int(low=16, high=128, shape=(), step=16)
    """

    low: int
    high: int
    shape: Any = ()
    step: int = 1

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = checks.integer(name, getattr(self, name), least=-(2**53))
            object.__setattr__(self, name, value)
        object.__setattr__(self, "step", checks.integer("step", self.step, least=1))
        _check_order(self)
        _check_shape(self)
        if self.high > 2**53:
            raise ValueError(f"high: expected at most 2**53, got {self.high}")
        if self.high - self.low < self.step:
            raise ValueError(
                f"step: expected at most {self.high - self.low}, the range, got {self.step}"
            )

    def coordinates(self) -> Coordinates:
        """Return the coordinates of one element."""
        last = (self.high - self.low) // self.step
        return Coordinates(np.zeros(1), np.full(1, float(last)), True, np.full(1, last / 2))

    def encode(self, values: NDArray[Any]) -> Vector:
        """Return the coordinates of values; numbers between two integers are allowed."""
        x = _inside(self, np.asarray(values, np.float64))
        return _steps(x - self.low, self.step)[..., None]

    def decode(self, coordinates: Vector) -> NDArray[Any]:
        """Return the values for coordinates, as integers."""
        steps = np.round(coordinates[..., 0]).astype(np.int64)
        return np.asarray(self.low + self.step * steps)

    def deviation(self, sigma0: Vector) -> Vector:
        """Return standard deviations of values as those of coordinates."""
        return sigma0 / self.step


@dataclass(frozen=True)
class Choice:
    """One of several options without an order.

    Parameters
    ----------
    options : sequence or vector of str, int, float, bool or None
        At least two different options; 1 and 1.0 are the same. For other objects, give names, and
        look the objects up in the objective function.
    shape : int or tuple of int
        The shape of an array of such choices. () for a single one.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.Choice(["relu", "gelu"])
    Choice(options=('relu', 'gelu'), shape=())
    """

    options: Sequence[Any] | NDArray[Any]
    shape: Any = ()

    def __post_init__(self) -> None:
        given: Any = self.options
        if isinstance(given, np.ndarray) and given.ndim == 1:
            given = given.tolist()
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TypeError(f"options: expected a list of options, got {given!r:.60}")
        object.__setattr__(self, "options", tuple(map(_option, given)))
        keys = {(isinstance(option, bool), option) for option in self.options}  # 1 is 1.0
        if len(keys) < max(2, len(self.options)):
            raise ValueError(f"options: expected two or more different ones, got {self.options!r}")
        _check_shape(self)

    @property
    def _is_binary(self) -> bool:
        return len(self.options) == 2

    def coordinates(self) -> Coordinates:
        """Return the coordinates of one element: all options have equal chances at the start."""
        if self._is_binary:
            return Coordinates(np.zeros(1), np.ones(1), True, np.full(1, 0.5))
        last = np.full(1, len(self.options) - 1.0)
        return Coordinates(-np.ones(1), last, False, -np.ones(1), len(self.options))

    def encode(self, values: NDArray[Any]) -> Vector:
        """Return the coordinates of options."""
        index = np.vectorize(self._index, otypes=[np.int64])(values)
        return np.asarray(index[..., None], np.float64)

    def _index(self, value: Any) -> int:
        number = float(value) if isinstance(value, str) and value in ("inf", "-inf") else value
        for meant in (value, number):  # JSON has words for infinite numbers
            is_bool = isinstance(meant, bool | np.bool_)
            for index, option in enumerate(self.options):
                if option == meant and isinstance(option, bool) == is_bool:
                    return index
        raise ValueError(f"expected one of {', '.join(map(repr, self.options))}, got {value!r}")

    def decode(self, coordinates: Vector) -> NDArray[Any]:
        """Return the options for coordinates, as objects."""
        options = np.empty(len(self.options), object)
        options[:] = self.options
        index = np.maximum(np.round(coordinates[..., 0]), 0).astype(np.int64)
        chosen: NDArray[Any] = options[index]
        return chosen

    def deviation(self, sigma0: Vector) -> Vector:
        """Raise an error: choices have no distances."""
        raise ValueError("expected none for a Choice, whose options have no distances, got one")


def _option(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(
            "options: expected strings, numbers, booleans or None, got "
            f"{value!r:.60} of type {type(value).__name__}; give names, and look the objects up in "
            "the objective function"
        )
    if value != value:  # NaN, which is not even equal to itself
        raise ValueError("options: expected numbers that can be compared, got nan")
    return value


def _inside(variable: Any, values: Vector) -> Vector:
    if not ((variable.low <= values) & (values <= variable.high)).all():
        raise ValueError(
            f"expected numbers between {variable.low} and {variable.high}, got {values!s:.60}"
        )
    return values


def _steps(distance: Vector, step: float) -> Vector:
    """Return distances in steps: whole numbers are exact, in spite of rounding errors."""
    steps = distance / step
    whole = np.round(steps)
    return np.where(np.abs(steps - whole) <= _ROUNDING * np.maximum(whole, 1), whole, steps)


Variable = Real | Log | Int | Choice


KINDS: dict[str, type[Any]] = {"real": Real, "log": Log, "int": Int, "choice": Choice}
