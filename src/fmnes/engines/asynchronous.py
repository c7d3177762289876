"""The asynchronous engine: any method, told candidates of several generations.

In an asynchronous search a candidate is drawn from the newest distribution when a worker is free,
and told when its value arrives. Meanwhile the distribution may have moved. A generation consists
of the next lambda values that arrive, whenever their candidates were drawn.

The draws z are told as they were drawn: a candidate of an older distribution says which direction
and length of z is better, as a newer one does. Candidates are independent, also those of methods
that otherwise draw antithetic pairs: a pair would wait for the slower of its two evaluations, and
be older by half. What older values cost is a mean that reacts late, and oscillates. Against this
the mean takes a shorter step, see `_share_of_step`. benchmarks/asynchronous.py has the evidence.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes import draws
from fmnes._arrays import Array
from fmnes.engines import generation
from fmnes.engines.array import ArrayEngine
from fmnes.engines.contract import EngineSpec, Generation
from fmnes.kernels import blas


class Origin(NamedTuple):
    """The address of a candidate's draw: a row of the generation that it was drawn in."""

    generation: int
    row: int

    def of_run(self, run: int) -> "Origin":
        """Return the address among several runs, as the journal keeps it."""
        return self._replace(generation=self.generation + run * _GENERATIONS)

    def split(self) -> "tuple[int, Origin]":
        """Return the number of the run, and the address in this run."""
        run, generation = divmod(self.generation, _GENERATIONS)
        return run, self._replace(generation=generation)


_GENERATIONS = 2**40  # more than any run has
X0 = Origin(0, 2**32 - 1)  # of the user's x0, which is evaluated too but has no draw


class Candidate(NamedTuple):
    """A candidate, and where it comes from."""

    origin: Origin
    y: Array  # in search coordinates, as it was drawn; of discrete variables, latent numbers


class AsynchronousEngine(ArrayEngine):
    """Any method, any array library; candidates are drawn one by one and told in any order."""

    def __init__(self, spec: EngineSpec) -> None:
        super().__init__(spec)
        self._arrived: Sequence[Candidate] = ()  # those that are told next

    @blas.one_thread
    def candidate(self, row: int) -> Candidate:
        """A candidate of the newest distribution; ``row`` may be larger than the population."""
        z = draws.normals_like(self.state.mean, self._address, row, row + 1)
        step = self._algorithm.transform(self.params, self.state, z)
        return Candidate(Origin(self._address.generation, row), (self.state.mean + step)[0, :])

    def arrive(self, candidates: Sequence[Candidate]) -> None:
        """Take the candidates of the next generation; `ask` and `tell` refer to them."""
        self._arrived = candidates

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Candidates first to last - 1 of those that have arrived."""
        rows = array_namespace(self.state.mean).stack([one.y for one in self._arrived[first:last]])
        if out is None:
            return rows
        out[...] = rows
        return out

    @blas.one_thread
    def tell(self, values: NDArray[np.float64], best_so_far: float) -> Generation:
        """One generation, from the candidates that have arrived and their values."""
        shown = generation.survey(values)
        if shown.least < best_so_far:
            self.best = self._arrived[generation.best_of(values)].y
        draws_told = [self._draw(candidate.origin) for candidate in self._arrived]
        return self._update(array_namespace(self.state.mean).concat(draws_told), values, shown)

    def _draw(self, origin: Origin) -> Array:
        address = self._address._replace(generation=origin.generation)
        return draws.normals_like(self.state.mean, address, origin.row, origin.row + 1)

    def _told(self, z: Array, f: Array) -> Any:
        mean, new = self.state.mean, super()._told(z, f)
        born = [candidate.origin.generation for candidate in self._arrived]
        age = self._address.generation - sum(born) / len(born)
        share = _share_of_step(age, self.params.popsize, self.params.dim)
        return new._replace(mean=mean + share * (new.mean - mean))


def _share_of_step(age: float, popsize: int, dim: int) -> float:
    """The share of its step that the mean takes if values are ``age`` generations old.

    On the sphere with mu_eff << d, the random part of a step turns the gradient by about mu_eff/d
    in each generation, where mu_eff is popsize/3. Values that are some generations old show a
    gradient that is wrong by q = age mu_eff/d, and for small q the best step is shorter by 3/2 q
    (measured on sphere and ellipsoid: 2 q). If popsize is as large as d, the mean nearly reaches
    the optimum in one generation, and values that are one generation old would let it take the same
    step twice: half of it is right.
    """
    return 1 / (1 + age * min(1.0, 2 / 3 * popsize / dim))
