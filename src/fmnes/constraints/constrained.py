"""The state of a search with constraints: the multipliers, and the best candidate so far."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.constraints import lagrangian
from fmnes.constraints.kinds import Floats, Kinds, index_of_best, violation
from fmnes.constraints.lagrangian import Lagrangian
from fmnes.records.record import Feasible


class Constrained(NamedTuple):
    """What a search with constraints knows in addition to the state of its method."""

    kinds: Kinds
    lagrangian: Lagrangian
    f: float  # value and constraints of the best candidate; inf and NaN while there is none
    g: Floats

    @classmethod
    def new(cls, kinds: Kinds, multipliers: Floats | None = None) -> "Constrained":
        """Return the state before the first generation; an earlier search may know multipliers."""
        none = np.full(kinds.number, np.nan)
        return cls(kinds, lagrangian.initial(kinds.equality, multipliers), math.inf, none)

    @property
    def violation(self) -> float:
        """By how much the best candidate violates its worst constraint; 0 if it is feasible."""
        return float(violation(self.kinds, self.g))

    def with_best_of(self, f: Floats, g: Floats) -> tuple["Constrained", Feasible, int | None]:
        """Return the state, what the values of some points show, and the index of a better one."""
        violated = violation(self.kinds, g)
        least = np.min(np.where((violated == 0) & ~np.isnan(f), f, np.inf))
        feasible = Feasible(float(least), float(np.median(violated)))
        best = index_of_best(f, violated)
        if best is None or not (violated[best], f[best]) < (self.violation, self.f):
            return self, feasible, None
        return self._replace(f=float(f[best]), g=g[best].copy()), feasible, best

    def after(
        self, dim: int, f: Floats, g: Floats, unchanged: NDArray[np.bool_] | None = None
    ) -> tuple["Constrained", Floats]:
        """Return the state after a generation, and the values to rank.

        ``unchanged``: which candidates have the integers and choices of the mean.
        """
        # An objective may be -inf outside of its domain, which the constraints describe.
        f = np.where((f == -np.inf) & (violation(self.kinds, g) > 0), np.inf, f)
        found = self.violation == 0
        now, merits = lagrangian.after(self.lagrangian, dim, f, g, unchanged, found=found)
        return self._replace(lagrangian=now), merits

    def result_fields(self) -> dict[str, Any]:
        """Return the fields of a Result that only a search with constraints has."""
        lam, mu = self.lagrangian.multipliers, self.lagrangian.penalties
        # The ranked values do not depend on a constraint that is satisfied by lambda / mu.
        inactive = ~self.lagrangian.equality & (mu * self.g < -lam)
        return {
            "constr": self.g.copy(),
            "constr_violation": self.violation,
            "multipliers": np.where(inactive, 0.0, lam),
        }
