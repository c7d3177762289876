"""The map between Optuna's parameters and the variables of a search.

A float has the range [0, 1] in the search. A parameter with ``log`` is uniform in its logarithm.
An integer, and a float with a step, is an integer variable that counts the steps. A category is a
choice. An integer with ``log`` is a float, whose value is rounded.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from fmnes.variables.kinds import Choice, Int, Real
from fmnes.variables.space import Space


class _Figures(NamedTuple):
    """The figures of numerical parameters: one number each, or an array with one for each."""

    low: Any
    high: Any
    log: Any
    step: Any  # 0 for none
    zero: Any  # the parameter, or its logarithm, where the variable is 0
    unit: Any  # and how much it changes if the variable changes by 1


class SearchedSpace:
    """The parameters that are searched together, and their variables."""

    def __init__(self, space: Mapping[str, BaseDistribution]) -> None:
        self.space = dict(space)
        kinds = self.space.items()
        self._categories = {n: d for n, d in kinds if isinstance(d, CategoricalDistribution)}
        numerical = {n: d for n, d in kinds if n not in self._categories}
        self._numbers = list(numerical)
        figures = np.array([_figures_of(d) for d in numerical.values()])
        self._figures = _Figures(*figures.reshape(-1, len(_Figures._fields)).T)
        self._logs = np.flatnonzero(self._figures.log)
        self._log_ints = np.flatnonzero(self._figures.log * self._figures.step)
        self._ints = [j for j, d in enumerate(numerical.values()) if isinstance(d, IntDistribution)]
        variables = {name: self._variable(name) for name in self.space}
        self.is_discrete = any(not isinstance(one, Real) for one in variables.values())
        self._variables = variables
        sizes = [_size(variable) for variable in variables.values()]
        self._slices = dict(zip(self.space, _slices(sizes), strict=True))
        self._columns = np.array([self._slices[name].start for name in self._numbers], np.intp)

    def _variable(self, name: str) -> Real | Int | Choice:
        if name in self._categories:
            return Choice(range(len(self._categories[name].choices)))
        d: Any = self.space[name]
        return Real(0, 1) if d.log or not d.step else Int(0, _last_step(d))

    def variables(self, x0: Mapping[str, Any]) -> Space:
        """Return the variables of a search that starts at some parameters."""
        known = {name: value for name, value in x0.items() if name in self.space}
        return Space(self._variables, self._point(known, "x0"))

    def deviations(self, share: float) -> dict[str, float]:
        """Return standard deviations that are a share of each range; choices have none."""
        found = {}
        for name, variable in self._variables.items():
            if not isinstance(variable, Choice):
                found[name] = share * (variable.high + 1 if isinstance(variable, Int) else 1.0)
        return found

    def to_params(self, x: NDArray[np.float64]) -> dict[str, Any]:
        """Return the parameters for a vector of the search."""
        u = x[self._columns]
        values = self._figures.zero + u * self._figures.unit
        values[self._logs] = np.exp(values[self._logs])
        values[self._log_ints] = np.round(values[self._log_ints])
        numbers: list[Any] = np.clip(values, self._figures.low, self._figures.high).tolist()
        for j in self._ints:
            numbers[j] = round(numbers[j])
        found = dict(zip(self._numbers, numbers, strict=True))
        for name, distribution in self._categories.items():
            part = x[self._slices[name]]
            index = int(part[0]) if part.size == 1 else int(np.argmax(part))
            found[name] = distribution.choices[index]
        return {name: found[name] for name in self.space}

    def to_vector(self, params: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the vector of a trial's parameters; inverse of `to_params`."""
        return Space(self._variables).encode(self._point(params, "params"))

    def _point(self, params: Mapping[str, Any], argument: str) -> dict[str, Any]:
        """Return parameters as values of the variables."""
        point = {}
        for name, value in params.items():
            distribution = self.space[name]
            try:
                fits = distribution._contains(distribution.to_internal_repr(value))
            except (TypeError, ValueError):
                fits = False
            if not fits:
                raise ValueError(
                    f"{argument}[{name!r}]: expected one of {distribution}, got {value!r}"
                )
            point[name] = self._of_variable(name, value)
        return point

    def _of_variable(self, name: str, value: Any) -> Any:
        if name in self._categories:
            return int(self._categories[name].to_internal_repr(value))
        j = self._numbers.index(name)
        x = math.log(value) if self._figures.log[j] else float(value)
        u = float((x - self._figures.zero[j]) / self._figures.unit[j])
        return round(u) if isinstance(self._variables[name], Int) else min(max(u, 0.0), 1.0)

    def to_json(self) -> str:
        """Return names and distributions as text, which is equal for equal spaces."""
        return json.dumps({name: distribution_to_json(d) for name, d in self.space.items()})


def is_searched(distribution: BaseDistribution) -> bool:
    """Return whether the parameter has more than one possible value."""
    return not distribution.single()


def _figures_of(d: Any) -> _Figures:
    """Return the figures of one parameter."""
    step = d.step or 0.0
    if step and not d.log:
        return _Figures(d.low, d.high, d.log, step, d.low, step)
    # An integer is rounded: each of them gets the numbers that are rounded to it.
    a, b = d.low - step / 2, d.high + step / 2
    if d.log:
        a, b = math.log(a), math.log(b)
    return _Figures(d.low, d.high, d.log, step, a, b - a)


def _last_step(d: FloatDistribution | IntDistribution) -> int:
    return round((d.high - d.low) / (d.step or 1))


def _size(variable: Real | Int | Choice) -> int:
    return len(variable.coordinates().low)


def _slices(sizes: list[int]) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


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
