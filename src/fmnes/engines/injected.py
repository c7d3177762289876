"""The engine of one generation in which points from elsewhere take the place of some candidates.

N. Hansen: "Injecting external solutions into CMA-ES", research report RR-7748, 2011. A point that
nobody drew may lie many standard deviations away, and would turn the whole distribution towards
itself. Therefore its draw z, the inverse of what makes a candidate from a draw, is shortened to at
most sqrt(d) + 2 d / (d + 2), which hardly any draw exceeds. The point keeps its value: the
distribution moves in its direction, and not further than a candidate could move it. In methods
that sample in pairs the mirror image of the shortened draw is a candidate too.
"""

import math

from array_api_compat import array_namespace

from fmnes._arrays import Array
from fmnes.algorithms._vectors import at_least
from fmnes.engines.array import ArrayEngine
from fmnes.engines.contract import EngineSpec


class InjectedEngine(ArrayEngine):
    """Any method on arrays of any library, for one generation; the first candidates are given."""

    def __init__(self, spec: EngineSpec, points: Array) -> None:
        super().__init__(spec._replace(params=spec.params._replace(store_draws=True)))
        self._points = points  # (k, d), in search coordinates

    def _draws(self) -> Array:
        if self._z is None:
            z, xp = super()._draws(), array_namespace(self._points)
            steps = self._points - self.state.mean
            given = shortened(self._algorithm.draws_of(self.params, self.state, steps))
            self._z = xp.concat([given, z[self._points.shape[0] :, :]], axis=0)
        return self._z

    def _candidates(self, first: int, last: int) -> Array:
        self._draws()
        x, given = super()._candidates(first, last), self._points[first:last, :]
        return array_namespace(x).concat([given, x[given.shape[0] :, :]], axis=0)


def shortened(z: Array) -> Array:
    """Rows of draws, none longer than the damping of injected points allows."""
    xp, dim = array_namespace(z), z.shape[-1]
    longest = math.sqrt(dim) + 2 * dim / (dim + 2)
    length = xp.sqrt(xp.sum(z * z, axis=-1, keepdims=True))
    shorter: Array = z * (longest / at_least(xp, length, longest))
    return shorter
