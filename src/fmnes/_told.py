"""Checks of what a search is told about its candidates."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, to_host
from fmnes.constraints.kinds import Kinds
from fmnes.evaluate import to_constraints


def read_rows(rows: Any, popsize: int) -> tuple[int, int]:
    """Return the first candidate of a slice, and the one after its last."""
    if not isinstance(rows, slice):
        raise TypeError(f"rows: expected a slice such as slice(0, 10), got {rows!r}")
    try:
        first, last, stride = rows.indices(popsize)
    except TypeError:
        raise TypeError(f"rows: expected a slice of whole numbers, got {rows!r}") from None
    if stride != 1 or last <= first:
        raise ValueError(f"rows: expected a slice of neighbouring candidates, got {rows!r}")
    return first, last


def read_constraint_values(
    constraints: Any, kinds: Kinds | None, popsize: int
) -> NDArray[np.float64]:
    """Return the values of the constraints, a row for each candidate."""
    if (kinds is None) != (constraints is None):
        expected = "no values"
        if kinds is not None:
            expected = f"values of {checks.count(kinds.number, 'constraint')}"
        hint = " (declare their number: Optimizer(..., constraints=m))" if kinds is None else ""
        came = "none" if constraints is None else type(constraints).__name__
        raise TypeError(f"constraints: expected {expected}, got {came}{hint}")
    if kinds is None:
        return np.empty((popsize, 0))
    return to_constraints(constraints, popsize, kinds.number)


def check_told(
    x: Any,
    shape: tuple[int, int],
    pieces: Iterable[tuple[int, int]],
    candidates: Callable[[int, int], Array],
) -> None:
    """Raise an error unless x is what `ask` returned: the values belong to these candidates.

    ``shape`` is the one of x, and ``candidates(a, b)`` the rows of a piece.
    """
    told = np.asarray(to_host(x))
    came = None if told.shape == shape else f"shape {told.shape}"
    if came is None and not all(
        np.array_equal(told[a:b], to_host(candidates(a, b))) for a, b in pieces
    ):
        came = "other values"
    if came is not None:
        raise ValueError(
            f"x: expected what ask() returned, of shape {shape} and unchanged, got {came} "
            "(pass points that were evaluated elsewhere to inject(x, f))"
        )


def read_withdrawn(candidates: Any, withdrawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which candidates nobody will evaluate: these, and those that were withdrawn before."""
    withdrawn, popsize = withdrawn.copy(), len(withdrawn)
    rows = np.atleast_1d(np.asarray(candidates, object)).tolist()
    if not rows:
        raise ValueError(f"candidates: expected at least one, got {candidates!r}")
    for candidate in rows:
        row = checks.integer("candidates", candidate, least=0)
        if row >= popsize:
            raise ValueError(f"candidates: expected numbers from 0 to {popsize - 1}, got {row}")
        withdrawn[row] = True
    if withdrawn.all():
        raise ValueError("candidates: expected at least one that is left, got all")
    return withdrawn
