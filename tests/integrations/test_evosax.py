"""`fmnes.jax.evosax`: a program of evosax with another import, and the signatures of evosax."""

import inspect

import numpy as np
import pytest

DIM = 6


def minimized(strategies, generations):
    """A program as evosax's documentation has it; the module that is imported is the argument."""
    import jax
    import jax.numpy as jnp

    solution = {"w": jnp.zeros((2, 2)), "b": jnp.zeros(2)}
    strategy = strategies.CR_FM_NES(population_size=10, solution=solution)
    params = strategy.default_params.replace(std_init=0.5)

    def step(carry, key):
        state, params = carry
        key_ask, key_tell = jax.random.split(key)
        population, state = strategy.ask(key_ask, state, params)
        w, b = population["w"] - 1, population["b"] + 1
        fitness = jnp.sum(w**2, axis=(1, 2)) + jnp.sum(b**2, axis=1)
        state, metrics = strategy.tell(key_tell, population, fitness, state, params)
        return (state, params), (metrics["best_fitness"], metrics["mean"], fitness)

    state = strategy.init(jax.random.key(0), solution, params)
    keys = jax.random.split(jax.random.key(1), generations)
    (state, _), shown = jax.lax.scan(step, (state, params), keys)
    return strategy, state, shown


@pytest.mark.arrays
def test_a_program_of_evosax():
    pytest.importorskip("jax", reason="JAX is not installed: make test-arrays")
    from fmnes.jax import evosax

    strategy, state, (best, mean, fitness) = minimized(evosax, 150)
    assert best[-1] < 1e-6
    assert np.array_equal(best, np.minimum.accumulate(fitness.min(axis=1)))
    assert np.array_equal(mean[0], np.zeros(DIM))  # of the distribution that was sampled
    np.testing.assert_allclose(strategy.get_mean(state)["w"], np.ones((2, 2)), atol=1e-2)
    np.testing.assert_allclose(strategy.get_mean(state)["b"], -np.ones(2), atol=1e-2)
    assert (strategy.num_dims, state.generation_counter) == (DIM, 150)
    assert state.best_fitness == best[-1]
    assert float(state.std) < 0.5


@pytest.mark.arrays
def test_keys_and_fitness_shaping():
    jax = pytest.importorskip("jax", reason="JAX is not installed: make test-arrays")
    from fmnes.jax import evosax

    strategy = evosax.SNES(4, jax.numpy.zeros(2))
    params = strategy.default_params
    state = strategy.init(jax.random.key(0), jax.numpy.zeros(2), params)
    one, again, other = (strategy.ask(jax.random.key(n), state, params)[0] for n in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    with pytest.raises(TypeError, match="fitness_shaping_fn: expected None"):
        evosax.SNES(4, jax.numpy.zeros(2), fitness_shaping_fn=lambda *all_: None)


@pytest.mark.examples
@pytest.mark.parametrize("name", ["CR_FM_NES", "CMA_ES", "Sep_CMA_ES", "SNES", "xNES"])
def test_the_signatures_of_evosax(name):
    """Ours begin with theirs; what may be added has a default."""
    theirs = pytest.importorskip("evosax.algorithms", reason="evosax is not installed")
    from fmnes.jax import evosax

    ours, their = getattr(evosax, name), getattr(theirs, name)
    for method in ("__init__", "init", "ask", "tell", "get_mean"):
        got, wanted = (
            list(inspect.signature(getattr(c, method)).parameters) for c in (ours, their)
        )
        wanted = [n for n in wanted if n != "optimizer"]  # of SNES and xNES: not available
        assert got[: len(wanted)] == wanted, method


@pytest.mark.examples
def test_evosax_runs_the_same_program():
    theirs = pytest.importorskip("evosax.algorithms", reason="evosax is not installed")
    _, _, (best, mean, _) = minimized(theirs, 30)
    assert best[-1] < best[0]
    assert np.array_equal(mean[0], np.zeros(DIM))
