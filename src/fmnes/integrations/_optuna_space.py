"""The map between Optuna's parameters and the unit cube, in which every range is [0, 1]."""

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
    """The map between points of the unit cube and values of numerical parameters.

    A parameter with ``log`` is uniform in its logarithm. The range of a parameter with a step is
    extended by half a step on both sides, so that rounding gives every value an equal part of
    [0, 1].
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
        """Return the parameter values of a point of the cube."""
        x = self._a + u * (self._b - self._a)
        x[self._logs] = np.exp(x[self._logs])
        low, step = self._low[self._steps], self._step[self._steps]
        x[self._steps] = low + step * np.round((x[self._steps] - low) / step)
        values: list[Any] = np.clip(x, self._low, self._high).tolist()
        for j in self._ints:
            values[j] = int(values[j])
        return dict(zip(self.space, values, strict=True))

    def to_cube(self, params: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the point of the cube for some parameters; 0.5 for those that are not given."""
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
        """Return names and distributions as text, which is equal for equal spaces."""
        return json.dumps({name: distribution_to_json(d) for name, d in self.space.items()})


def is_searched(distribution: BaseDistribution) -> bool:
    """Return whether the parameter is a number with more than one possible value."""
    numerical = isinstance(distribution, FloatDistribution | IntDistribution)
    return numerical and not distribution.single()


def _numbers(d: Any) -> tuple[float, ...]:
    """Return low, high, log, step (0 for none), and the values that are mapped to 0 and to 1."""
    step = d.step or 0.0
    a, b = d.low - step / 2, d.high + step / 2
    if d.log:
        a, b = math.log(a), math.log(b)
    return d.low, d.high, d.log, step, a, b


class Intersection:
    """The parameters that all trials so far have in common, with equal distributions.

    `optuna.search_space.IntersectionSearchSpace` computes the same, but copies the parameters: with
    a thousand of them this takes longer than the rest of the sampler.
    """

    def __init__(self) -> None:
        self._all: dict[str, BaseDistribution] | None = None
        self._searched: dict[str, BaseDistribution] = {}
        self._types: list[type] = []
        self._fields: list[dict[str, Any]] = []

    def narrow(self, distributions: dict[str, BaseDistribution]) -> None:
        """Take the parameters of one more trial into account."""
        if self._all is None:
            self._set(distributions)
        elif not self._same(distributions):
            common = {n: d for n, d in self._all.items() if distributions.get(n) == d}
            if len(common) < len(self._all):
                self._set(common)

    def searched(self) -> dict[str, BaseDistribution]:
        """Return the common parameters that are searched, sorted by name."""
        return self._searched.copy()

    def _same(self, distributions: dict[str, BaseDistribution]) -> bool:
        """Return whether the space is the same in the same order; list comparisons are fast."""
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
