"""The history of a search: rows of numbers, one per generation until it is thinned out."""

from __future__ import annotations

import csv
import math
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._html import table

if TYPE_CHECKING:
    import pandas as pd


class Row(NamedTuple):
    """One row of a history."""

    generation: int
    nfev: int  # evaluations so far
    best: float  # best value so far
    generation_best: float
    median: float  # of the generation; inf if half of it is infeasible
    sigma: float
    deviation_min: float  # smallest and largest standard deviation of a coordinate
    deviation_max: float
    condition: float  # of the covariance; for D(I + vv^T)D an upper bound
    norm_v: float  # NaN for a method that has no v
    phase: int  # of PHASES; 0 for a method without phases
    seconds_objective: float  # since the row before
    seconds_optimizer: float


COLUMNS: dict[str, type] = {
    **{
        name: {int: np.int64, float: np.float64}[kind] for name, kind in get_type_hints(Row).items()
    },
    "phase": np.int8,
}
# What users see. The papers say movement, stagnation and convergence; but a search that "stagnates"
# in this sense is healthy: it adapts its shape while the mean moves little.
PHASES = {1: "moving", 2: "adapting", 3: "converging"}
DEFAULT_SIZE = 10_000
_DTYPE = np.dtype(list(COLUMNS.items()))
_SHOWN = 5  # rows at the beginning and at the end that a notebook shows


def read_size(value: Any) -> int:
    """Return the argument ``history_size``; a number that is never reached for math.inf."""
    is_inf = isinstance(value, float) and value == math.inf
    return sys.maxsize if is_inf else checks.integer("history_size", value, least=1)


def _read_rows(rows: Any) -> NDArray[Any]:
    """Return rows of `to_array` as they are stored."""
    if not isinstance(rows, np.ndarray) or rows.ndim != 1 or rows.dtype.names != _DTYPE.names:
        raise TypeError(f"rows: expected an array of History.to_array(), got {rows!r:.60}")
    return np.asarray(rows, _DTYPE)


class History:
    """The history of a search, with one row per generation; a long history is thinned out.

    ``history["sigma"]`` returns a column, ``len(history)`` the number of rows, and a loop over a
    history yields its rows as named tuples. The columns are generation, nfev (evaluations so far),
    best (the best value so far), generation_best, median, sigma, deviation_min and deviation_max
    (the smallest and largest standard deviation of a variable), condition (of the covariance
    matrix), norm_v, phase, and seconds_objective and seconds_optimizer (since the row before).

    Each of the first ``size`` generations has a row. After that every second generation has one
    until generation 2 ``size``, every fourth until 4 ``size``, and so on, so that each doubling
    adds ``size / 2`` rows: 60,000 rows (6 MB) after ten million generations with the default of
    10,000. The last generation and the one that found the best value always have a row. Which
    generations have one does not depend on interruptions.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [1.0, 2.0], 0.5, maxiter=3, rng=1)
    >>> len(result.history)
    3
    >>> result.history["nfev"].tolist()
    [8, 14, 20]
    >>> [row.generation for row in result.history]
    [1, 2, 3]
    """

    def __init__(self, rows: NDArray[Any] | None = None, size: int = DEFAULT_SIZE) -> None:
        self._rows = np.empty(64, _DTYPE) if rows is None else _read_rows(rows)
        self._length = 0 if rows is None else len(self._rows)
        self.size = checks.integer("size", size, least=1)
        self._last: tuple[Any, ...] | None = self._rows[-1].item() if self._length else None
        # Rows that are not in _rows, because they go when others follow.
        self._passing: Row | None = None  # the last row
        self._best: Row | None = None

    # === Rows ===

    def append(self, row: tuple[Any, ...]) -> None:
        """Add one generation. The buffer doubles when it is full: O(1) on average.

        ``row`` has the numbers of a `Row` in their order. A plain tuple, because to make a `Row`
        would take 3 % of a generation of ten variables.
        """
        if row[0] > self.size:  # its generation
            row = self._thinned(Row._make(row))
        self._last = row
        if self._passing is None:
            if self._length == len(self._rows):
                self._grow()
            self._rows[self._length] = row
            self._length += 1

    def _thinned(self, row: Row) -> Row:
        """Note whether a row stays when later ones follow, and return it with its seconds."""
        doublings = ((row.generation - 1) // self.size).bit_length()
        is_kept = row.generation % (1 << doublings) == 0
        passing = self._passing
        if passing is not None:  # a row that goes leaves its seconds to the next one
            row = row._replace(
                seconds_objective=row.seconds_objective + passing.seconds_objective,
                seconds_optimizer=row.seconds_optimizer + passing.seconds_optimizer,
            )
        _, _, best_before = self.totals
        if row.best < best_before:
            self._best = None if is_kept else row
        self._passing = None if is_kept else row
        return row

    def _grow(self) -> None:
        grown = np.empty(max(64, 2 * self._length), _DTYPE)
        grown[: self._length] = self._rows[: self._length]
        self._rows = grown

    def snapshot(self) -> History:
        """Return a History of the rows so far without a copy; later rows do not change it."""
        other = History.__new__(History)
        other.__dict__.update(self.__dict__, _rows=self._rows[: self._length])
        return other

    __copy__ = snapshot

    @property
    def totals(self) -> tuple[int, int, float]:
        """Generations and evaluations so far, and the best value: the first fields of `last`."""
        return (0, 0, math.inf) if self._last is None else self._last[:3]

    @property
    def last(self) -> Row:
        """The last row."""
        if self._last is None:
            raise IndexError("history: expected at least one row, got none")
        return Row._make(self._last)

    def kept(self, first: int = 0) -> NDArray[Any]:
        """Return the rows from ``first`` on that stay in the history when others follow."""
        return self._rows[first : self._length].copy()

    def to_array(self, first: int = 0) -> NDArray[Any]:
        """Return the rows from ``first`` on as a structured array, one field per column."""
        first = checks.integer("first", first, least=0)
        rows, extra = self.kept(), np.array(self._extra(), _DTYPE)
        if len(extra):
            rows = np.insert(rows, np.searchsorted(rows["generation"], extra["generation"]), extra)
        if self._best is not None:
            after = np.searchsorted(rows["generation"], self._best.generation) + 1
            for name in ("seconds_objective", "seconds_optimizer"):  # since the row before the best
                rows[name][after : after + 1] -= getattr(self._best, name)
        return rows[first:]

    def _extra(self) -> list[Row]:
        """Return the rows that are not in _rows, in order."""
        best, last = self._best, self._passing
        is_same = best is not None and last is not None and best.generation == last.generation
        return [row for row in (None if is_same else best, last) if row is not None]

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in COLUMNS:
            raise KeyError(
                f"column: expected one of {', '.join(COLUMNS)}, got {column!r} (history.last is "
                "the newest row, and a loop over a history yields the rows)"
            )
        return self.to_array()[column].copy()

    def __len__(self) -> int:
        return self._length + len(self._extra())

    def __iter__(self) -> Iterator[Row]:
        return map(Row._make, self.to_array().tolist())

    # === Files and notebooks ===

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a CSV file with a header line."""
        with open(checks.path_to_write("path", path), "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(self.to_array().tolist())

    def to_dataframe(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_dataframe needs pandas: pip install pandas") from None
        return pd.DataFrame(self.to_array())

    def to_saved(self) -> dict[str, Any]:
        """Return what a file holds of the history."""
        best, last = (
            np.array([] if row is None else [row], _DTYPE) for row in (self._best, self._passing)
        )
        return {"rows": self.kept(), "best": best, "last": last, "size": self.size}

    @classmethod
    def from_columns(cls, columns: dict[str, NDArray[Any]]) -> History:
        """Return a history of these columns, of one length."""
        rows = np.empty(len(columns["generation"]), _DTYPE)
        for name, column in columns.items():
            if column.shape != rows.shape:
                raise ValueError(f"{name}: expected {len(rows)} rows, got {len(column)}")
            rows[name] = column
        return cls(rows)

    @classmethod
    def from_saved(cls, saved: dict[str, Any]) -> History:
        """Return the history of `to_saved`; ValueError if it is of another kind."""
        for name in ("rows", "best", "last"):
            if saved[name].dtype != _DTYPE or saved[name].ndim != 1:
                raise ValueError(f"history: expected rows of numbers, got {saved[name].dtype}")
        history = cls(saved["rows"], read_size(saved["size"]))
        for row in map(Row._make, saved["best"].tolist()):
            history._best = row
        for row in map(Row._make, saved["last"].tolist()):
            history._last = history._passing = row
        return history

    def __repr__(self) -> str:
        generations, nfev, best = self.totals
        length = f"{checks.count(generations, 'generation')} in {checks.count(len(self), 'row')}"
        return f"<History of {length}: best {best:.6g} after {checks.count(nfev, 'evaluation')}>"

    def _repr_html_(self) -> str:
        rows = self.to_array()
        is_long = len(rows) > 2 * _SHOWN + 1
        head, tail = (rows[:_SHOWN], rows[-_SHOWN:]) if is_long else (rows, rows[:0])
        gap = [["…"] * len(COLUMNS)] if is_long else []
        lines = [*_texts(head), *gap, *_texts(tail)]
        return table(repr(self).strip("<>"), lines, COLUMNS)


def _texts(rows: NDArray[Any]) -> list[list[str]]:
    """Return the numbers of rows as texts; whole numbers with all digits."""
    return [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row]
        for row in rows.tolist()
    ]
