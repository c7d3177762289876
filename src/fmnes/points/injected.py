"""Points from elsewhere that wait for their generation, and candidates that were withdrawn."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, beside, constant, place, to_host
from fmnes.variables.bounds import Box
from fmnes.variables.discrete import Discrete
from fmnes.variables.space import Space

Floats = NDArray[np.float64]

_ROUNDING = 1e-6  # how far steps of a real variable may be from integers, relative to their number


class Injected(NamedTuple):
    """The points from elsewhere of a search; the first ``active`` ones are in this generation."""

    points: Array  # (n, d), in search coordinates; integers as they are
    values: Floats  # (n,); NaN for a point without a known value
    active: int
    withdrawn: NDArray[np.bool_]  # (popsize,)

    @classmethod
    def none(cls, mean: Array, popsize: int) -> "Injected":
        """Return no points."""
        xp, dim = array_namespace(mean), mean.shape[0]
        empty = xp.empty((0, dim), dtype=mean.dtype, device=place(mean, (0, dim)))
        return cls(empty, np.empty(0), 0, np.zeros(popsize, bool))

    @property
    def is_empty(self) -> bool:
        """Whether no point waits or takes part, and no candidate is withdrawn."""
        return not len(self.values) and not np.count_nonzero(self.withdrawn)  # quicker than any()

    def added(self, points: Array, values: Floats) -> "Injected":
        """Return the queue with further points.

        First the points without a value, which have to be evaluated, as they came; then those with
        values, the best first. There are at most as many of the latter as a generation has
        candidates: a thousand old values must not hold up the search for hundreds of generations.
        """
        xp = array_namespace(points)
        points = xp.concat([self.points, points], axis=0)
        values = np.concatenate([self.values, values])
        waiting = np.arange(self.active, len(values))
        new, known = waiting[np.isnan(values[waiting])], waiting[~np.isnan(values[waiting])]
        best = known[np.argsort(values[known], kind="stable")][: len(self.withdrawn)]
        order = np.concatenate([np.arange(self.active), new, best])
        return self._replace(points=_rows(points, order), values=values[order])

    def of_next_run(self, popsize: int) -> "Injected":
        """Return the points that still wait, for a run with another population size."""
        none = Injected(self.points[:0, :], np.empty(0), 0, np.zeros(popsize, bool))
        return none.added(self.points[self.active :, :], self.values[self.active :])

    def begun(self, most: int) -> "Injected":
        """Return the queue at the start of a generation, which takes at most ``most`` points."""
        return self._replace(active=min(most, len(self.values)))

    def finished(self) -> "Injected":
        """Return what is left after the generation."""
        n = self.active
        rest, none = self.points[n:, :], np.zeros_like(self.withdrawn)
        return Injected(rest, self.values[n:], 0, none)

    @property
    def known(self) -> dict[int, float]:
        """The candidates of this generation whose values are known."""
        values = self.values[: self.active]
        return {i: float(f) for i, f in enumerate(values) if not np.isnan(f)}

    @property
    def free(self) -> int:
        """How many candidates of this generation nobody evaluates."""
        rows = np.flatnonzero(self.withdrawn).tolist()
        return len({*rows, *self.known})

    def told(self, f: Floats) -> Floats:
        """Return the values of a generation with those that were known, NaN for withdrawn ones."""
        f = f.copy()
        for row, value in self.known.items():
            f[row] = value
        f[self.withdrawn] = np.nan
        return f

    def ranked(self, values: Floats) -> Floats:
        """Return values in which withdrawn candidates are in the middle of the others."""
        if not np.count_nonzero(self.withdrawn):
            return values
        others = np.where(np.isnan(values), np.inf, values)[~self.withdrawn]
        with np.errstate(invalid="ignore"):
            middle = np.nextafter(np.sort(others)[len(others) // 2], np.inf)  # never the best
        return np.where(self.withdrawn, middle, values)


def _rows(points: Array, order: NDArray[np.intp]) -> Array:
    """Return rows of an array of any library."""
    xp = array_namespace(points)
    return xp.take(points, beside(xp, order, points, xp.int32), axis=0)


def read_named_points(x: Any, space: Space, argument: str = "x") -> list[Floats]:
    """Return the coordinates of points that are given by name: one, or a list of them."""
    rows, x = [], space.by_name(x)
    for given in x if isinstance(x, list | tuple) else [x]:
        row = space.by_name(given)
        rows.append(space.encode(row, argument))
        if missing := space.variables.keys() - row.keys():  # `encode` starts them in the middle
            names = ", ".join(sorted(missing))
            raise ValueError(f"{argument}: expected a value of every variable, got none of {names}")
        _check_steps(rows[-1], row, space, argument)
    return rows


def _check_steps(x: Floats, row: Mapping[str, Any], space: Space, argument: str) -> None:
    """Raise an error for a value between two steps of its variable."""
    between = space.integrality & (np.abs(np.round(x) - x) > _ROUNDING * (1 + np.abs(x)))
    if between.any():
        name = space.name_of(int(np.argmax(between)))
        raise ValueError(
            f"{argument}[{name!r}]: expected values of {space.variables[name]!r}, got "
            f"{row[name]!r:.60}"
        )


def read_points(
    x: Any, f: Any, mean: Array, box: Box | None, discrete: Discrete | None
) -> tuple[Array, Floats]:
    """Return points of the user in search coordinates, and their values."""
    xp = array_namespace(mean)
    host = checks.numbers("x", x, "a point or an array of points")
    dim = int((mean if box is None else box.free).shape[0])
    rows = host[None, :] if host.ndim == 1 else host
    if rows.ndim != 2 or rows.shape[1] != dim or not rows.shape[0]:
        raise ValueError(f"x: expected shape ({dim},) or (n, {dim}), got shape {host.shape}")
    checks.all_finite("x", host)
    n = rows.shape[0]
    values = np.full(n, np.nan) if f is None else np.atleast_1d(checks.numbers("f", f, "numbers"))
    if values.shape != (n,):
        raise ValueError(f"f: expected {n} values, one for each point, got shape {values.shape}")
    points = constant(xp, rows, mean)
    if box is not None:
        _check_rows(points, [box.contains(xp, row) for row in points], "inside the bounds")
        points = box.to_search(xp, points)
    if discrete is not None:
        rounded = discrete.rounded(points)  # real variables stay as they are
        fits = xp.all(xp.abs(rounded - points) <= _ROUNDING * (1 + xp.abs(points)), axis=1)
        _check_rows(points, fits, "with an integer inside the bounds for each integer variable")
        points = rounded
    return points, values


def _check_rows(points: Array, fits: Iterable[Any], expected: str) -> None:
    """Raise an error that shows the first point which does not fit."""
    for i, fit in enumerate(fits):
        if not fit:
            row = np.array2string(np.asarray(to_host(points[i, ...])), threshold=6)
            raise ValueError(f"x: expected points {expected}, got x[{i}] = {row}")
