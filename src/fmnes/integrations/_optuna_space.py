"""Parameters of Optuna and the unit cube that is searched: every range becomes [0, 1]."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)


class Cube:
    """The map between a point of the unit cube and the values of numerical parameters.

    A parameter with ``log`` is uniform in its logarithm. One with a step has half a step more on
    either side, so that rounding gives every value the same share of [0, 1].
    """

    def __init__(self, space: Mapping[str, BaseDistribution]) -> None:
        self.space = dict(space)
        columns = np.array([_numbers(d) for d in self.space.values()]).T
        self._low, self._high, self._log, self._step, self._a, self._b = columns
        self._logs = np.flatnonzero(self._log)
        self._steps = np.flatnonzero(self._step)
        self._ints = [
            j for j, d in enumerate(self.space.values()) if isinstance(d, IntDistribution)
        ]

    def to_params(self, u: NDArray[np.float64]) -> dict[str, Any]:
        """The values of a point of the cube."""
        x = self._a + u * (self._b - self._a)
        x[self._logs] = np.exp(x[self._logs])
        low, step = self._low[self._steps], self._step[self._steps]
        x[self._steps] = low + step * np.round((x[self._steps] - low) / step)
        values: list[Any] = np.clip(x, self._low, self._high).tolist()
        for j in self._ints:
            values[j] = int(values[j])
        return dict(zip(self.space, values, strict=True))

    def to_cube(self, params: Mapping[str, Any]) -> NDArray[np.float64]:
        """The point of the cube of some parameters; the middle for those that are not given."""
        u = np.full(len(self.space), 0.5)
        for j, (name, distribution) in enumerate(self.space.items()):
            if name in params:
                value = params[name]
                if not (isinstance(value, int | float) and self._low[j] <= value <= self._high[j]):
                    raise ValueError(f"x0[{name!r}]: expected one of {distribution}, got {value!r}")
                x = math.log(value) if self._log[j] else value
                u[j] = (x - self._a[j]) / (self._b[j] - self._a[j])
        return u

    def to_json(self) -> str:
        """Names and distributions, the same for equal ones."""
        return json.dumps({name: distribution_to_json(d) for name, d in self.space.items()})


def is_searched(distribution: BaseDistribution) -> bool:
    """Whether it is a number that has more than one value."""
    return (
        isinstance(distribution, FloatDistribution | IntDistribution) and not distribution.single()
    )


def _numbers(d: Any) -> tuple[float, ...]:
    """Low, high, whether it is logarithmic, the step (0 for none), what becomes 0 and what 1."""
    step = d.step or 0.0
    a, b = d.low - step / 2, d.high + step / 2
    if d.log:
        a, b = math.log(a), math.log(b)
    return d.low, d.high, d.log, step, a, b


class Intersection:
    """The parameters, with equal distributions, of all trials that it was shown.

    What `optuna.search_space.IntersectionSearchSpace` computes, without its copies: those take
    longer than all else in a trial with a thousand parameters.
    """

    def __init__(self) -> None:
        self._all: dict[str, BaseDistribution] | None = None
        self._searched: dict[str, BaseDistribution] = {}
        self._types: list[type] = []
        self._fields: list[dict[str, Any]] = []

    def narrow(self, distributions: dict[str, BaseDistribution]) -> None:
        """Show it one more trial."""
        if self._all is None:
            self._set(distributions)
        elif not self._same(distributions):
            common = {n: d for n, d in self._all.items() if distributions.get(n) == d}
            if len(common) < len(self._all):
                self._set(common)

    def searched(self) -> dict[str, BaseDistribution]:
        """Those that are searched, sorted by name."""
        return self._searched.copy()

    def _same(self, distributions: dict[str, BaseDistribution]) -> bool:
        """Whether it is the same space in the same order, by calls that run in C."""
        return (
            list(self._all or ()) == list(distributions)
            and self._types == list(map(type, distributions.values()))
            and self._fields == list(map(vars, distributions.values()))
        )

    def _set(self, distributions: dict[str, BaseDistribution]) -> None:
        self._all = dict(distributions)
        self._types = list(map(type, distributions.values()))
        self._fields = list(map(vars, distributions.values()))
        self._searched = {n: d for n, d in sorted(distributions.items()) if is_searched(d)}
