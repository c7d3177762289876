"""Named variables: a Space takes the place of x0, and the objective gets a dict of values.

A Space is a change of variables. The search works with vectors of coordinates, as always; `decode`
makes the named values of a vector. Reals are their own coordinates, and logarithmic ones have their
logarithm. Integers are integers. A variable with a step has the number of steps from its lower
bound. A choice has the number of its option, from 0.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes.constraints.kinds import Constraints
from fmnes.variables.bounds import Bounds
from fmnes.variables.kinds import KINDS, Choice, Coordinates, Variable, Vector


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
        dict by default, or a dataclass with these fields. Wherever a dict of values is accepted, so
        is such an object.

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

    def by_name(self, values: Any) -> Any:
        """Return the values of an object of the class ``into`` as a dict; other objects unchanged.

        The class has to keep the values under their names, as a dataclass does.
        """
        is_made = isinstance(self.into, type) and isinstance(values, self.into)
        if not is_made or not all(hasattr(values, name) for name in self.variables):
            return values
        return {name: getattr(values, name) for name in self.variables}

    def _named(self, argument: str, values: Any) -> Mapping[str, Any]:
        values = self.by_name(values)
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

    def name_of(self, column: int) -> str:
        """Return the name of the variable that has a coordinate."""
        return next(name for name, where in self._slices.items() if column < where.stop)

    def start(self) -> Vector:
        """Return the coordinates of x0; a number beyond the last step is moved to it."""
        bounds = self.bounds
        return np.clip(self.encode(self.x0, "x0"), bounds.lb, bounds.ub)

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
        return self.into(**self.values(x))

    def values(self, x: Any) -> dict[str, Any]:
        """Return the same as a dict, whatever ``into`` is."""
        x = checks.numbers("x", x, f"a vector of {self.dim} coordinates")
        if x.ndim not in (1, 2) or x.shape[-1] != self.dim:
            raise ValueError(f"x: expected shape ({self.dim},), got shape {x.shape}")
        values = {}
        for name, variable in self.variables.items():
            shape = (*x.shape[:-1], *variable.shape, len(self._parts[name].low))
            value = variable.decode(x[..., self._slices[name]].reshape(shape))
            values[name] = value if np.ndim(value) else np.asarray(value).item()
        return values

    # === Files ===

    def to_dict(self) -> dict[str, Any]:
        """Return the variables and x0 as values that JSON knows."""
        kinds = {cls: kind for kind, cls in KINDS.items()}
        described = {}
        for name, variable in self.variables.items():
            values = {field.name: getattr(variable, field.name) for field in fields(variable)}
            described[name] = {"type": kinds[type(variable)], **_json(values)}
            if isinstance(variable, Choice):
                described[name]["options"] = list(map(_described, variable.options))
        return {"variables": described, "x0": _json(self.x0)}

    @classmethod
    def from_dict(cls, content: Any) -> Space:
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
            if isinstance(given.get("options"), list):
                given["options"] = [_option(option) for option in given["options"]]
            try:
                variables[name] = KINDS[described["type"]](**given)
            except (TypeError, ValueError) as error:
                raise ValueError(f"space[{name!r}]: {error}") from None
        return cls(variables, x0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"<Space {', '.join(self.variables)}: {checks.count(self.dim, 'coordinate')}>"


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


def _described(option: Any) -> Any:
    """Return an option as JSON knows it: an infinite number is not the same as its word."""
    word = _json(option)
    return word if isinstance(option, str) or not isinstance(word, str) else {"number": word}


def _option(described: Any) -> Any:
    """Return the option of `_described`."""
    is_number = isinstance(described, Mapping) and described.keys() == {"number"}
    return _number(described["number"]) if is_number else described


def plain(values: Mapping[str, Any]) -> Any:
    """Return named values as JSON knows them."""
    return _json(values)


class OfSpace:
    """An objective function of named values, as a function of coordinates.

    A class, and not a closure, because worker processes need to unpickle it.
    """

    def __init__(self, fun: Callable[..., Any], space: Space) -> None:
        self._fun, self._space = fun, space

    def __call__(self, x: Any, *args: Any) -> Any:
        """Return the value of the function for the named values of x."""
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
