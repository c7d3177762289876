"""Named variables: a Space takes the place of x0, and the objective gets a dict of values.

A Space is a change of variables. The search works with vectors of coordinates, as always; `decode`
makes the named values of a vector. Reals are their own coordinates, and logarithmic ones have their
logarithm. Integers are integers. A variable with a step has the number of steps from its lower
bound. A choice has the number of its option, from 0.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._constraints import Constraints
from fmnes._coordinates import Bounds

Vector = NDArray[np.float64]


class Coordinates(NamedTuple):
    """The coordinates of one element of a variable."""

    low: Vector
    high: Vector
    is_integer: bool
    middle: Vector  # where a search starts if x0 is left out; -1: equal chances of all options
    options: int = 0  # of a choice of more than two


# === Variables ===


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
        return math.floor((self.high - self.low) / (self.step or 1.0) * (1 + 1e-12))

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
        return (x if self.step is None else (x - self.low) / self.step)[..., None]

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
        last = (self.high - self.low) // self.step
        return np.asarray(np.minimum((x - self.low) / self.step, last)[..., None])

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
        for index, option in enumerate(self.options):
            if option == value and isinstance(option, bool) == isinstance(value, bool | np.bool_):
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


Variable = Real | Log | Int | Choice
KINDS: dict[str, type[Any]] = {"real": Real, "log": Log, "int": Int, "choice": Choice}


# === The space ===


class Space:
    """Named variables, which take the place of ``x0`` in `minimize` and `Optimizer`.

    The objective function gets a dict of Python numbers, options and NumPy arrays, and
    ``result.best`` is such a dict. ``sigma0`` may be a dict by name, too.

    Parameters
    ----------
    variables : dict of str to Real, Log, Int or Choice
        The variables by name.
    x0 : dict, optional
        Starting values by name. Variables that are not listed start in the middle of their range,
        at 0 without bounds, and a choice with equal chances of all options.
    into : callable, optional
        What makes the argument of the objective function from the values, which are given by name:
        dict by default, or a dataclass with these fields.

    Examples
    --------
    >>> import fmnes
    >>> space = fmnes.Space({"lr": fmnes.Log(1e-5, 1e-1), "layers": fmnes.Int(1, 8),
    ...                      "act": fmnes.Choice(["relu", "gelu", "tanh"])})
    >>> def loss(p):
    ...     return (p["layers"] - 3) ** 2 + (p["lr"] - 0.01) ** 2 + (p["act"] != "gelu")
    >>> result = fmnes.minimize(loss, space, maxfevals=600, rng=1)
    >>> result.best["layers"], result.best["act"]
    (3, 'gelu')
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        x0: Mapping[str, Any] | None = None,
        *,
        into: Callable[..., Any] = dict,
    ) -> None:
        if not isinstance(variables, Mapping) or not variables:
            raise TypeError(
                f"variables: expected a dict of names and variables, got {variables!r:.60}"
            )
        for name, variable in variables.items():
            if not isinstance(name, str):
                raise TypeError(f"variables: expected names that are strings, got {name!r}")
            if not isinstance(variable, Variable):
                raise TypeError(
                    f"variables[{name!r}]: expected fmnes.Real, Log, Int or Choice, got "
                    f"{variable!r:.60}"
                )
        self.variables = dict(variables)
        self.into = checks.function("into", into)
        self._parts = {name: one.coordinates() for name, one in self.variables.items()}
        ends = np.cumsum([self._count(name) for name in self.variables]).tolist()
        self._slices = dict(zip(self.variables, map(slice, [0, *ends], ends), strict=False))
        self.x0 = {} if x0 is None else dict(self._named("x0", x0))
        self.start()  # raises an error for a wrong x0

    def _count(self, name: str) -> int:
        return int(math.prod(self.variables[name].shape) * len(self._parts[name].low))

    def _named(self, argument: str, values: Any) -> Mapping[str, Any]:
        if not isinstance(values, Mapping):
            raise TypeError(f"{argument}: expected a dict by name, got {values!r:.60}")
        for name in values:
            if name not in self.variables:
                hint = checks.did_you_mean(str(name), self.variables)
                names = ", ".join(self.variables)
                raise ValueError(f"{argument}: expected names among {names}, got {name!r}{hint}")
        return values

    # === Vectors of coordinates ===

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return sum(map(self._count, self.variables))

    def _each(self, part: Callable[[Coordinates], Any]) -> Vector:
        """Return a part of all coordinates as one vector."""
        pieces = []
        for name, variable in self.variables.items():
            one = np.broadcast_to(part(self._parts[name]), self._parts[name].low.shape)
            pieces.append(np.tile(one, math.prod(variable.shape)))
        return np.concatenate(pieces)

    @property
    def bounds(self) -> Bounds:
        """The bounds of the coordinates."""
        return Bounds(self._each(lambda part: part.low), self._each(lambda part: part.high))

    @property
    def integrality(self) -> NDArray[np.bool_]:
        """Which coordinates are integers."""
        return self._each(lambda part: part.is_integer).astype(np.bool_)

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Coordinate and number of options of each choice of more than two options."""
        found = []
        for name, where in self._slices.items():
            if options := self._parts[name].options:
                found += [(column, options) for column in range(where.start, where.stop)]
        return tuple(found)

    def start(self) -> Vector:
        """Return the coordinates of x0."""
        return self.encode(self.x0, "x0")

    def encode(self, values: Any, argument: str = "x") -> Vector:
        """Return the coordinates of a point by name; variables left out are in their middle."""
        x = self._each(lambda part: part.middle)
        for name, value in self._named(argument, values).items():
            x[self._slices[name]] = self._encoded(f"{argument}[{name!r}]", name, value)
        return x

    def _encoded(self, argument: str, name: str, value: Any) -> Vector:
        variable = self.variables[name]
        values = np.asarray(value, object if isinstance(variable, Choice) else None)
        if not isinstance(variable, Choice):
            values = checks.numbers(argument, value, f"numbers of shape {variable.shape}")
            if not np.isfinite(values).all():
                raise ValueError(f"{argument}: expected finite numbers, got {value!r:.60}")
        if values.shape not in ((), variable.shape):
            raise ValueError(
                f"{argument}: expected shape {variable.shape}, got shape {values.shape}"
            )
        try:
            coordinates = variable.encode(np.broadcast_to(values, variable.shape))
        except ValueError as error:
            raise ValueError(f"{argument}: {error}") from None
        return coordinates.reshape(-1)

    def deviations(self, sigma0: Any) -> Vector:
        """Return sigma0, by name, for each coordinate; NaN where it is left out."""
        x = np.full(self.dim, math.nan)
        for name, value in self._named("sigma0", {} if sigma0 is None else sigma0).items():
            argument, shape = f"sigma0[{name!r}]", self.variables[name].shape
            sizes = checks.numbers(argument, value, f"a number or shape {shape}")
            if sizes.shape not in ((), shape) or not (np.isfinite(sizes) & (sizes > 0)).all():
                raise ValueError(
                    f"{argument}: expected finite numbers > 0, one or of shape {shape}, got "
                    f"{value!r:.60}"
                )
            try:
                sizes = self.variables[name].deviation(np.broadcast_to(sizes, shape))
            except ValueError as error:
                raise ValueError(f"{argument}: {error}") from None
            x[self._slices[name]] = sizes.reshape(-1)
        return x

    def decode(self, x: Any) -> Any:
        """Return the named values for a vector of coordinates, as `minimize` passes them to fun.

        An array of shape (n, d) gives a dict of arrays whose first axis has the length n.
        """
        x = checks.numbers("x", x, f"a vector of {self.dim} coordinates")
        if x.ndim not in (1, 2) or x.shape[-1] != self.dim:
            raise ValueError(f"x: expected shape ({self.dim},), got shape {x.shape}")
        values = {}
        for name, variable in self.variables.items():
            shape = (*x.shape[:-1], *variable.shape, len(self._parts[name].low))
            value = variable.decode(x[..., self._slices[name]].reshape(shape))
            values[name] = value if np.ndim(value) else np.asarray(value).item()
        return self.into(**values)

    # === Files ===

    def to_dict(self) -> dict[str, Any]:
        """Return the variables and x0 as values that JSON knows."""
        kinds = {cls: kind for kind, cls in KINDS.items()}
        described = {}
        for name, variable in self.variables.items():
            values = {field.name: getattr(variable, field.name) for field in fields(variable)}
            described[name] = {"type": kinds[type(variable)], **_json(values)}
        return {"variables": described, "x0": _json(self.x0)}

    @classmethod
    def from_dict(cls, content: Any) -> "Space":
        """Return the Space of `to_dict`; a dict of the variables alone will do.

        Its values are dicts: a file does not hold ``into``.
        """
        if isinstance(content, Mapping) and isinstance(content.get("variables"), Mapping):
            content, x0 = content["variables"], content.get("x0")
        else:
            x0 = None
        if not isinstance(content, Mapping):
            raise TypeError(f"space: expected a dict of variables, got {content!r:.60}")
        variables = {}
        for name, described in content.items():
            if not isinstance(described, Mapping) or described.get("type") not in KINDS:
                raise ValueError(
                    f"space[{name!r}]: expected a dict with a type of {', '.join(KINDS)}, got "
                    f"{described!r:.60}"
                )
            given = {key: _number(value) for key, value in described.items() if key != "type"}
            try:
                variables[name] = KINDS[described["type"]](**given)
            except (TypeError, ValueError) as error:
                raise ValueError(f"space[{name!r}]: {error}") from None
        return cls(variables, x0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"<Space {', '.join(self.variables)}: {self.dim} coordinates>"


def _json(value: Any) -> Any:
    """Return nested values as JSON knows them; infinite numbers become words."""
    if isinstance(value, Mapping):
        return {name: _json(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _json(value.tolist())
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    """Return the number for one of the words of `_json`, and other values as they are."""
    return float(value) if value in ("inf", "-inf") else value


def plain(values: Any) -> Any:
    """Return named values as JSON knows them."""
    return _json(values if isinstance(values, Mapping) else vars(values))


class OfSpace:
    """An objective function of named values, as a function of coordinates.

    A class, and not a closure, because worker processes need to unpickle it.
    """

    def __init__(self, fun: Callable[..., Any], space: Space) -> None:
        self._fun, self._space = fun, space

    def __call__(self, x: Any, *args: Any) -> Any:
        values = self._space.decode(x)
        try:
            return self._fun(values, *args)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            names = ", ".join(map(repr, self._space.variables))
            kind = type(values).__name__
            hint = f"With a Space, the function gets a {kind} with {names:.200}"
            error.add_note(checks.Hint(hint))
            raise


def of_named_values(constraints: Any, space: Space) -> Any:
    """Return constraints whose functions take named values, as functions of coordinates."""
    if isinstance(constraints, list | tuple):
        return [of_named_values(item, space) for item in constraints]
    if isinstance(constraints, Mapping) and callable(constraints.get("fun")):
        return {**constraints, "fun": OfSpace(constraints["fun"], space)}
    if callable(getattr(constraints, "fun", None)):  # SciPy's NonlinearConstraint
        wrapped = copy.copy(constraints)
        wrapped.fun = OfSpace(constraints.fun, space)
        return wrapped
    if isinstance(constraints, Constraints) and constraints.functions:
        functions = of_named_values(constraints.functions, space)
        return replace(constraints, functions=functions)
    if hasattr(constraints, "lb"):
        raise ValueError(
            "constraints: expected a number, a dict with a function, or NonlinearConstraint with a "
            f"Space, got {constraints!r:.60}"
        )
    return constraints
