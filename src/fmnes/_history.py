"""The history of a search: one row of numbers per generation."""

import csv
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS: dict[str, type] = {
    "generation": np.int64,
    "nfev": np.int64,  # evaluations so far
    "best": np.float64,  # best value so far
    "generation_best": np.float64,
    "median": np.float64,  # of the generation; inf if half of it is infeasible
    "sigma": np.float64,
    "deviation_min": np.float64,  # smallest and largest standard deviation of a coordinate
    "deviation_max": np.float64,
    "condition": np.float64,  # of the covariance; for D(I + vv^T)D an upper bound
    "norm_v": np.float64,  # NaN for a method that has no v
    "phase": np.int8,  # of PHASES; 0 for a method without phases
    "seconds_objective": np.float64,
    "seconds_optimizer": np.float64,
}
# What users see. The papers say movement, stagnation and convergence; but a search that "stagnates"
# in this sense is healthy: it adapts its shape while the mean moves little.
PHASES = {1: "moving", 2: "adapting", 3: "converging"}
_DTYPE = np.dtype(list(COLUMNS.items()))


class History:
    """The history of a search, with one row per generation.

    ``history["sigma"]`` returns a column and ``len(history)`` the number of generations. The
    columns are generation, nfev (evaluations so far), best (the best value so far),
    generation_best, median, sigma, deviation_min and deviation_max (the smallest and largest
    standard deviation of a variable), condition (of the covariance matrix), norm_v, phase,
    seconds_objective and seconds_optimizer.

    Examples
    --------
    >>> import fmnes
    >>> result = fmnes.minimize(lambda x: (x**2).sum(), [1.0, 2.0], 0.5, maxiter=3, rng=1)
    >>> len(result.history)
    3
    >>> result.history["nfev"].tolist()
    [6, 12, 18]
    """

    def __init__(self, rows: NDArray[Any] | None = None) -> None:
        self._rows = np.empty(64, _DTYPE) if rows is None else np.asarray(rows, _DTYPE)
        self._length = 0 if rows is None else len(rows)

    def append(self, row: tuple[Any, ...]) -> None:
        """Add one generation. The buffer doubles when it is full: O(1) on average."""
        if self._length == len(self._rows):
            self._grow(1)
        self._rows[self._length] = row
        self._length += 1

    def extend(self, rows: NDArray[Any]) -> None:
        """Add several generations."""
        if self._length + len(rows) > len(self._rows):
            self._grow(len(rows))
        self._rows[self._length : self._length + len(rows)] = rows
        self._length += len(rows)

    def _grow(self, count: int) -> None:
        grown = np.empty(max(64, 2 * self._length, self._length + count), _DTYPE)
        grown[: self._length] = self._rows[: self._length]
        self._rows = grown

    def snapshot(self) -> "History":
        """Return a History of the rows so far without a copy; later rows do not change it."""
        return History(self._rows[: self._length])

    def to_array(self, first: int = 0) -> NDArray[Any]:
        """Return the rows from ``first`` on as a structured array, one field per column."""
        return self._rows[first : self._length].copy()

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a CSV file with a header line."""
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(self._rows[: self._length].tolist())

    def last(self, column: str, count: int) -> NDArray[Any]:
        """Return a view of the last ``count`` entries of a column."""
        return self._rows[column][max(0, self._length - count) : self._length]

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in COLUMNS:
            raise KeyError(f"column: expected one of {', '.join(COLUMNS)}, got {column!r}")
        return self._rows[column][: self._length].copy()

    def __len__(self) -> int:
        return self._length
