"""The pure functions of every method under JAX's vmap and scan, with draws made by JAX.

Both only arrange the same operations differently. XLA then sums and fuses in another order, which
moves a field by a few units in the last place of its largest entry in each generation. A generation
carries on such a difference about as it is, because the rates at which a method learns are below 1:
n generations may differ by n times what test_core.py allows for one, 64 eps. All ranks stay the
same: the values of two candidates are never that close.
"""

import numpy as np
import pytest

from backends.common import Search, assert_close
from fmnes.algorithms import Shape

pytestmark = pytest.mark.arrays

GENERATIONS = 20
SEARCHES = 3
RTOL = GENERATIONS * 64 * np.finfo(np.float64).eps


class Run:
    """Generations of one method on an ellipsoid of condition 1e6, as functions for JAX."""

    def __init__(self, method, jax_library):
        import jax

        self.jax, self.np, self.array = jax, jax_library.module, jax_library.array
        self.search = Search(method)
        self.scanned_jitted = jax.jit(self.scanned)

    def generation(self, state, number_and_key):
        """The next state, and the values of the generation that led to it."""
        number, key = number_and_key
        search = self.search
        module, params = search.module, search.params
        z = self.jax.random.normal(key, (search.rows, search.dim), dtype=self.np.float64)
        x = module.ask(params, state, z)
        f = self.np.sum(10 ** (6 * self.np.arange(search.dim) / (search.dim - 1)) * x * x, axis=-1)
        state = module.tell(params, state, z, f)
        if params.refresh_every:
            state = self.jax.lax.cond(
                (number + 1) % params.refresh_every == 0,
                lambda state: module.refresh(params, state),
                lambda state: state,
                state,
            )
        return state, f

    def scanned(self, state, keys):
        """The last state, and the values of all generations."""
        numbers = self.np.arange(len(keys))
        return self.jax.lax.scan(self.generation, state, (numbers, keys))

    def keys(self, seed):
        return self.jax.random.split(self.jax.random.key(seed), GENERATIONS)

    def first(self, number):
        """The first state of one of several searches; each starts at another mean."""
        search = self.search
        mean = self.np.full(search.dim, 3.0) + 0.5 * number
        D = self.array(np.exp(np.linspace(0, 1, search.dim)), np.float64)
        z = self.array(search.draws(0)[0], np.float64)
        return search.module.init(search.params, mean, self.array(2.0, np.float64), Shape(D), z)


@pytest.fixture(scope="module")
def run(method, jax_library):
    return Run(method, jax_library)


def test_scan_equals_a_loop(run):
    generation = run.jax.jit(run.generation)
    state, values = run.first(0), []
    keys = run.keys(1)
    last, all_values = run.scanned_jitted(state, keys)
    for number, key in enumerate(keys):
        state, f = generation(state, (number, key))
        values.append(f)
    assert_close(state, last, RTOL)
    np.testing.assert_allclose(all_values, np.stack(values), rtol=1e-9)
    assert np.min(all_values[-1]) < np.min(all_values[0])


def test_vmap_over_searches_equals_one_by_one(run):
    """Whole runs from `init` on: vmap over scan, under jit."""
    jax, numbers = run.jax, run.np.arange(SEARCHES)
    keys = [run.keys(number) for number in range(SEARCHES)]
    states = jax.vmap(run.first)(numbers)
    last, values = jax.jit(jax.vmap(run.scanned))(states, run.np.stack(keys))
    for number in range(SEARCHES):
        alone, alone_values = run.scanned_jitted(run.first(number), keys[number])
        assert_close(alone, jax.tree.map(lambda leaf, n=number: leaf[n], last), RTOL)
        np.testing.assert_allclose(values[number], alone_values, rtol=1e-9)
