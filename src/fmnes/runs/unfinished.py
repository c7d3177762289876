"""The values of a generation that an exception or the end of its run has cut short."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fmnes._population import Population
from fmnes.constraints.kinds import Kinds, violation
from fmnes.evaluate import Value, copied
from fmnes.records.result import Result
from fmnes.runs.asynchronous import Flight


class Unfinished(NamedTuple):
    """A generation whose evaluation was ended: its candidates, and the values that some have."""

    x: Any
    values: Mapping[int, Value]
    constraints: Kinds | None = None
    injected: Mapping[int, float] = {}  # the values of points from elsewhere, not evaluated here

    def added_to(self, result: Result) -> Result:
        """Return the result of a run with these evaluations and, if it is better, their best."""
        usable = {i: value for i, value in self.values.items() if self._is_usable(value)}
        nfev, better = result.nfev + len(self.values.keys() - self.injected.keys()), {}
        found = ((i, self._key(value)) for i, value in usable.items())
        keys = {i: key for i, key in found if key[1] < np.inf}
        best = min(keys, key=keys.__getitem__, default=None)
        if best is not None and keys[best] < (result.constr_violation, result.fun):
            rows = self.x
            is_array = not isinstance(rows, Population | Flight)
            x = copied(rows[best, ...]) if is_array else rows.row(best)
            violated, fun = keys[best]
            better = {"x": x, "fun": fun, "constr_violation": violated}
            if self.constraints is not None:
                better["constr"] = np.array(usable[best])[1:]
        run = replace(result.restarts[0], nfev=nfev, fun=better.get("fun", result.fun))
        nfailed = result.nfailed + len(self.values) - len(usable)
        return replace(result, nfev=nfev, nfailed=nfailed, restarts=(run,), **better)

    def _is_usable(self, value: Value) -> bool:
        f, *g = np.atleast_1d(value)
        return not np.isnan(f) and bool(np.isfinite(g).all())

    def _key(self, value: Value) -> tuple[float, float]:
        """Return violation and value of a candidate: the smaller pair is the better one."""
        if self.constraints is None:
            return 0.0, float(value)
        f, *g = np.asarray(value)
        return float(violation(self.constraints, np.array(g))), float(f)
