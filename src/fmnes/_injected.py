"""Points from elsewhere that wait for their generation, and candidates that were withdrawn."""

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, to_host
from fmnes._coordinates import Box

Floats = NDArray[np.float64]


class Injected(NamedTuple):
    """The points from elsewhere of a search; the first ``active`` ones are in this generation."""

    points: Array  # (n, d), in search coordinates; integers as they are
    values: Floats  # (n,); NaN for a point without a known value
    active: int
    withdrawn: NDArray[np.bool_]  # (popsize,)

    @classmethod
    def none(cls, mean: Array, popsize: int) -> "Injected":
        """Return no points."""
        empty = array_namespace(mean).zeros_like(mean)[None, :][:0, :]
        return cls(empty, np.empty(0), 0, np.zeros(popsize, bool))

    @property
    def is_empty(self) -> bool:
        """Whether no point waits or takes part, and no candidate is withdrawn."""
        return not len(self.values) and not self.withdrawn.any()

    def added(self, points: Array, values: Floats) -> "Injected":
        """Return the queue with further points at its end."""
        joined = array_namespace(points).concat([self.points, points], axis=0)
        return self._replace(points=joined, values=np.concatenate([self.values, values]))

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

    def told(self, f: Floats) -> Floats:
        """Return the values of a generation with those that were known, NaN for withdrawn ones."""
        f = f.copy()
        for row, value in self.known.items():
            f[row] = value
        f[self.withdrawn] = np.nan
        return f

    def ranked(self, values: Floats) -> Floats:
        """Return values in which withdrawn candidates are in the middle of the others."""
        if not self.withdrawn.any():
            return values
        others = np.where(np.isnan(values), np.inf, values)[~self.withdrawn]
        with np.errstate(invalid="ignore"):
            middle = np.nextafter(np.sort(others)[len(others) // 2], np.inf)  # never the best
        return np.where(self.withdrawn, middle, values)


def read_points(x: Any, f: Any, mean: Array, box: Box | None) -> tuple[Array, Floats]:
    """Return points of the user in search coordinates, and their values."""
    xp = array_namespace(mean)
    host = checks.numbers("x", x, "a point or an array of points")
    dim = int((mean if box is None else box.free).shape[0])
    rows = host[None, :] if host.ndim == 1 else host
    if rows.ndim != 2 or rows.shape[1] != dim or not rows.shape[0]:
        raise ValueError(f"x: expected shape ({dim},) or (n, {dim}), got shape {host.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("x: expected finite numbers, got others")
    n = rows.shape[0]
    values = np.full(n, np.nan) if f is None else np.atleast_1d(checks.numbers("f", f, "numbers"))
    if values.shape != (n,):
        raise ValueError(f"f: expected {n} values, one for each point, got shape {values.shape}")
    points = xp.asarray(rows, dtype=mean.dtype)
    if hasattr(mean, "device"):
        points = xp.asarray(points, device=mean.device)
    if box is None:
        return points, values
    outside = [i for i in range(n) if not box.contains(xp, points[i, ...])]
    if outside:
        raise ValueError(
            f"x: expected points inside the bounds, got x[{outside[0]}] = "
            f"{np.array2string(np.asarray(to_host(points[outside[0], ...])), threshold=6)}"
        )
    return box.to_search(xp, points), values
