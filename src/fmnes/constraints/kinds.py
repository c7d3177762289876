"""What is declared of constraints, and how candidates that violate them are compared.

Every form becomes numbers of one kind: g(x) <= 0 for an inequality, h(x) = 0 for an equality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks

Floats = NDArray[np.float64]


_FORMS = (
    "a NonlinearConstraint, LinearConstraint or Bounds of SciPy, a dict such as {'type': 'ineq', "
    "'fun': function}, a sequence of them, a number of inequalities, or fmnes.Constraints(...)"
)


@dataclass(frozen=True)
class Constraints:
    """Constraints of a search: functions, or numbers that the objective returns as ``(f, g)``.

    Parameters
    ----------
    functions : constraint or sequence of constraints, optional
        `scipy.optimize.NonlinearConstraint`, `LinearConstraint`, `Bounds`, or a dict such as
        ``{"type": "ineq", "fun": function}``. Each candidate's constraints are computed where the
        objective is.
    inequalities, equalities : int
        Without functions: the objective returns ``(f, g)``, and ``g`` holds first the inequalities,
        which are satisfied if they are <= 0, and then the equalities, which have to be 0.
    tolerance : float or array_like of shape (m,), optional
        A candidate is feasible if it violates no constraint by more than this. By default the
        square root of the precision of ``x0``: 1.5e-8 for float64.

    Examples
    --------
    >>> import fmnes
    >>> def fun(x):
    ...     return (x**2).sum(), [1 - x[0], x[1] - x[2]]  # x[0] >= 1, x[1] <= x[2]
    >>> result = fmnes.minimize(
    ...     fun, [3.0] * 5, 1.0, constraints=fmnes.Constraints(inequalities=2), rng=1
    ... )
    >>> result.success, result.constr_violation, abs(result.fun - 1) < 1e-6
    (True, 0.0, True)
    """

    functions: Any = ()
    inequalities: int = 0
    equalities: int = 0
    tolerance: ArrayLike | None = None

    def __post_init__(self) -> None:
        for name in ("inequalities", "equalities"):
            checks.integer(name, getattr(self, name), least=0)
        for item in as_sequence(self.functions):
            check_form("functions", item)
        if self.tolerance is not None:
            read_tolerance(self.tolerance)
        declared = self.inequalities + self.equalities
        if bool(declared) == bool(as_sequence(self.functions)):
            raise ValueError(
                "Constraints: expected either functions or a number of inequalities and equalities "
                f"that the objective returns, got {self!r}"
            )


class Kinds(NamedTuple):
    """What is known of the constraints of a search before they have values."""

    equality: NDArray[np.bool_]  # (m,): which of them are equalities; the others are g <= 0
    tolerance: Floats  # (m,)

    @property
    def number(self) -> int:
        """The number of constraints."""
        return len(self.equality)


def read_kinds(value: Any, dtype_eps: float) -> Kinds | None:
    """Return what `Optimizer` is told about constraints: their number, kinds and tolerances."""
    if value is None:
        return None
    if isinstance(value, Kinds):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = Constraints(inequalities=checks.integer("constraints", value, least=1))
    if not isinstance(value, Constraints) or as_sequence(value.functions):
        raise TypeError(
            "constraints: expected a number of inequalities or fmnes.Constraints(inequalities=..., "
            f"equalities=...) for ask and tell, got {value!r:.80}"
        )
    equality = np.repeat([False, True], [value.inequalities, value.equalities])
    return Kinds(equality, tolerances(value.tolerance, len(equality), dtype_eps))


def as_sequence(value: Any) -> Sequence[Any]:
    """Return constraints as a sequence: a single one as a tuple."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    return (value,)


def check_form(name: str, item: Any) -> None:
    """Raise an error unless a constraint has one of the forms that we can read."""
    if not isinstance(item, dict) and not (hasattr(item, "lb") and hasattr(item, "ub")):
        raise TypeError(f"{name}: expected {_FORMS}, got {type(item).__name__}: {item!r:.60}")


def tolerances(value: Any, count: int, dtype_eps: float) -> Floats:
    """Return the tolerance of each constraint; the root of ``dtype_eps`` if none is given."""
    if value is None:
        return np.full(count, float(np.sqrt(dtype_eps)))
    numbers = read_tolerance(value)
    if numbers.shape not in ((), (count,)):
        raise ValueError(f"tolerance: expected one number or {count}, got shape {numbers.shape}")
    return np.broadcast_to(numbers, (count,)).astype(np.float64)


def read_tolerance(value: Any) -> Floats:
    """Return tolerances, whose number may not be known yet."""
    numbers = checks.numbers("tolerance", value, "a number or a vector")
    if numbers.ndim > 1 or not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise ValueError(f"tolerance: expected a number or a vector, >= 0, got {value!r:.60}")
    return numbers


def violation(kinds: Kinds, g: Floats) -> Floats:
    """Return by how much candidates violate their worst constraint; 0 within the tolerance.

    ``g`` has the shape (..., m). The violation is infinite for a candidate without usable values.
    """
    excess = np.where(kinds.equality, np.abs(g), g)
    worst = np.max(np.maximum(excess, 0.0), axis=-1)
    feasible = (excess <= kinds.tolerance).all(axis=-1)
    return np.where(usable(g), np.where(feasible, 0.0, worst), np.inf)


def usable(g: Floats) -> NDArray[np.bool_]:
    """Return which candidates have constraints, shape (..., m), that are numbers and finite."""
    return np.asarray(np.isfinite(g).all(axis=-1))


def index_of_best(f: Floats, violated: Floats) -> int | None:
    """Return the index of the best candidate that has values; None if there is none."""
    some = np.flatnonzero((f < np.inf) & (violated < np.inf))  # NaN fails both
    if not some.size:
        return None
    order = np.lexsort((f[some], violated[some]))
    return int(some[order[0]])
