"""Constraints with values: how they are declared, read from SciPy's objects, and compared.

Every form becomes numbers of one kind: g(x) <= 0 for an inequality, h(x) = 0 for an equality.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import to_host
from fmnes.constraints.kinds import (
    Constraints,
    Floats,
    Kinds,
    as_sequence,
    check_form,
    read_kinds,
    tolerances,
)


class Piece(NamedTuple):
    """One constraint ``lower <= fun(x, *args) <= upper`` of the user."""

    name: str  # for error messages
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    lower: Floats  # (k,)
    upper: Floats

    @property
    def equality(self) -> NDArray[np.bool_]:
        """Which of the numbers that `normal` returns have to be 0."""
        sides = [np.ones(n, bool) if i == 0 else np.zeros(n, bool) for i, n in self._sizes()]
        return np.concatenate(sides)

    def _sizes(self) -> list[tuple[int, int]]:
        return [(i, int(mask.sum())) for i, mask in enumerate(self._masks)]

    @property
    def _masks(self) -> tuple[NDArray[np.bool_], ...]:
        """Which components are equalities, have a lower bound, have an upper bound."""
        equal = self.lower == self.upper
        return equal, ~equal & np.isfinite(self.lower), ~equal & np.isfinite(self.upper)

    def normal(self, x: Any) -> Floats:
        """Return the values at x: equalities, then lower sides, then upper sides."""
        c = _computed(self.name, self.fun, x, self.args)
        if c.shape != self.lower.shape:
            raise TypeError(
                f"{self.name}: expected {len(self.lower)} numbers, as at x0, got shape {c.shape}"
            )
        equal, low, high = self._masks
        return np.concatenate(
            [(c - self.lower)[equal], (self.lower - c)[low], (c - self.upper)[high]]
        )


class ConstrainedObjective:
    """Returns ``(f, g)``: the objective and the values of constraint functions.

    A class, and not a closure, because worker processes need to unpickle it.
    """

    def __init__(self, fun: Callable[..., Any], pieces: Sequence[Piece]) -> None:
        self.fun, self._pieces = fun, tuple(pieces)

    def __call__(self, x: Any, *args: Any) -> tuple[Any, Floats]:
        """Return ``(f, g)`` of one candidate."""
        return self.fun(x, *args), self.values(x)

    def values(self, x: Any) -> Floats:
        """Return the values of all constraints for one candidate."""
        return np.concatenate([piece.normal(x) for piece in self._pieces])

    def of_population(self, x: Any, *args: Any) -> tuple[Any, Floats]:
        """Return ``(F, G)`` of a population: a vectorised objective, constraints row by row."""
        return self.fun(x, *args), np.stack([self.values(x[i, ...]) for i in range(x.shape[0])])


# === Reading ===


def read_constraints(
    value: Any, x0: NDArray[Any], dtype_eps: float
) -> tuple[Kinds | None, tuple[Piece, ...]]:
    """Return the kinds of the constraints of `minimize`, and their functions if it has any.

    Each function is called once at x0 to learn how many numbers it returns.
    """
    tolerance = None
    if isinstance(value, Constraints):
        if not as_sequence(value.functions):
            return read_kinds(value, dtype_eps), ()
        value, tolerance = value.functions, value.tolerance
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return read_kinds(value, dtype_eps), ()
    items = as_sequence(value)
    if not items:
        return None, ()
    several = len(items) > 1
    pieces = tuple(
        _piece(item, f"constraints[{k}]" if several else "constraints", x0)
        for k, item in enumerate(items)
    )
    equality = np.concatenate([piece.equality for piece in pieces])
    if not len(equality):
        return None, ()  # all bounds are infinite
    return Kinds(equality, tolerances(tolerance, len(equality), dtype_eps)), pieces


class _Form(NamedTuple):
    """A constraint as the user writes it: low <= fun(x, *args) <= high."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    low: Any
    high: Any


def _piece(item: Any, name: str, x0: NDArray[Any]) -> Piece:
    """Return a constraint of the user in our form; its function is called once at x0."""
    check_form(name, item)
    form = _of_dict(item, name) if isinstance(item, dict) else _of_scipy(item, name, len(x0))
    c = _computed(name, form.fun, x0, form.args)
    if not c.size:
        raise ValueError(f"{name}: expected at least one number, got none at x0")
    lower = _side(f"{name}.lb", form.low, c.shape)
    upper = _side(f"{name}.ub", form.high, c.shape)
    bad = np.flatnonzero(~(lower <= upper) | (lower == np.inf) | (upper == -np.inf))
    if bad.size:
        j = int(bad[0])
        raise ValueError(
            f"{name}: expected lb <= ub, got lb = {lower[j]} and ub = {upper[j]} for number {j}"
        )
    return Piece(name, form.fun, form.args, lower, upper)


def _of_dict(item: dict[str, Any], name: str) -> _Form:
    """Read SciPy's dict form: fun(x) >= 0 or fun(x) == 0."""
    if "type" not in item or "fun" not in item:
        raise ValueError(f"{name}: expected a dict with 'type' and 'fun', got {item!r:.60}")
    kind = checks.choice(f"{name}['type']", item["type"], ("ineq", "eq"))
    fun = checks.function(f"{name}['fun']", item["fun"])
    args = checks.arguments(f"{name}['args']", item.get("args", ()))
    return _Form(fun, args, 0.0, np.inf if kind == "ineq" else 0.0)


def _of_scipy(item: Any, name: str, dim: int) -> _Form:
    """Read SciPy's objects: a NonlinearConstraint, a LinearConstraint or Bounds."""
    if np.any(getattr(item, "keep_feasible", False)):
        raise ValueError(
            f"{name}: expected keep_feasible=False, because candidates may violate constraints "
            "during the search, got True; use `bounds`, or let fun return inf"
        )
    fun: Callable[..., Any] = _identity
    if hasattr(item, "A"):
        fun = _Product(item.A, f"{name}.A", dim)
    elif hasattr(item, "fun"):
        fun = checks.function(f"{name}.fun", item.fun)
    return _Form(fun, (), item.lb, item.ub)


def _side(name: str, limit: Any, shape: tuple[int, ...]) -> Floats:
    """Return one side of a constraint that has numbers of this shape at x0."""
    numbers = checks.numbers(name, limit, "a number or a vector")
    if numbers.shape not in ((), (1,), shape):
        raise ValueError(
            f"{name}: expected a number or a vector of shape {shape}, as the constraint has at x0, "
            f"got shape {numbers.shape}"
        )
    return np.broadcast_to(numbers, shape).astype(np.float64)


class _Product:
    """The function x -> A x of a LinearConstraint; A may be sparse."""

    def __init__(self, A: Any, name: str, dim: int) -> None:
        self._A = A.tocsr() if hasattr(A, "tocsr") else np.atleast_2d(np.asarray(A))
        if self._A.ndim != 2 or self._A.shape[1] != dim:
            raise ValueError(
                f"{name}: expected {dim} columns, one for each variable, got shape {self._A.shape}"
            )
        numbers = np.asarray(self._A.data if hasattr(self._A, "tocsr") else self._A)
        if not np.isfinite(numbers).all():
            bad = numbers[~np.isfinite(numbers)][0]
            raise ValueError(f"{name}: expected finite numbers, got {bad}")

    def __call__(self, x: Any) -> Any:
        return self._A @ np.asarray(to_host(x))


def _identity(x: Any) -> Any:
    return x


def _computed(name: str, fun: Callable[..., Any], x: Any, args: tuple[Any, ...]) -> Floats:
    """Return the numbers of a constraint at x; an exception gets a note with its name."""
    try:
        return _vector(fun(x, *args), name)
    except Exception as error:
        error.add_note(checks.Hint(f"The exception comes from {name}"))
        raise


def _vector(raw: Any, name: str) -> Floats:
    """Return what a constraint function returned as a vector of float64."""
    try:
        c = np.asarray(to_host(raw))
    except ValueError as error:
        raise TypeError(f"{name}: expected a vector of real numbers, got {error}") from None
    if c.dtype.kind == "b":
        raise TypeError(
            f"{name}: expected numbers that say by how much a candidate violates the constraint, "
            "got True or False; for what can only be tested, let the objective return inf"
        )
    if c.ndim > 1 or c.dtype.kind not in "iuf":
        raise TypeError(
            f"{name}: expected a number or a vector of real numbers, got {type(raw).__name__} of "
            f"shape {c.shape} and dtype {c.dtype}"
        )
    return np.atleast_1d(c).astype(np.float64)


# === Comparing ===
