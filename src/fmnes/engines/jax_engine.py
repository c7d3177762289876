"""The JAX engine: any method, compiled by `jax.jit`, with its state and its draws on the device.

`ask` and `tell` are one compiled call each. `tell` starts the next population before it waits for
the figures of the generation. Values that are on the device stay there: a generation then copies
fifteen numbers to the host, and one number to the device when the best value has changed elsewhere.
Values of the host are copied to the device. No array of size d is copied.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_array
from numpy.typing import NDArray

from fmnes._arrays import Array, place
from fmnes.draws import array_draws
from fmnes.engines import generation, jax_steps
from fmnes.engines.contract import EngineSpec, Generation
from fmnes.engines.jax_steps import Constants


class JaxEngine:
    """Any method on JAX arrays."""

    def __init__(self, spec: EngineSpec) -> None:
        best = spec.state.mean if spec.best is None else spec.best
        self.params, (self.state, self.best) = spec.params, _as_results((spec.state, best))
        self._step = _compiled(Constants(spec.algorithm, spec.params))
        self._generation = spec.address.generation
        self._words = self._upload(np.array(array_draws.Words.of(*spec.address), np.uint32))
        self.initial = self._step.deviations(self.state) if spec.initial is None else spec.initial
        self._converged = spec.tolx * self.initial
        self._best_f: tuple[float, Array] | None = None  # best value so far, on host and device
        self._population: tuple[Array, Array] | None = None  # candidates and draws, until `tell`
        self._one_by_one = spec.algorithm.LINEAR and not spec.params.store_draws

    def ask(self, first: int, last: int, out: NDArray[Any] | None = None) -> Array:
        """Candidates first to last - 1. JAX arrays are immutable, so no copy is needed."""
        if self._one_by_one:
            row = functools.partial(self._step.candidate, self._words, self.state)
            x = self._step.stack([row(i) for i in range(first, last)])
        else:
            x, _ = self._sample()
            if last - first < self.params.popsize:
                x = x[first:last, :]
        if out is None:
            return x
        out[...] = np.asarray(x)
        return out

    def reads(self, values: Any) -> bool:
        """Whether these are floating-point numbers of the population, on the state's devices."""
        return (
            is_jax_array(values)
            and values.shape == (self.params.popsize,)
            and values.dtype.kind == "f"
            and values.devices() == self.state.mean.devices()
        )

    def tell(self, values: Array, best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``.

        Nothing changes before all is computed, so that a call that fails can be made again.
        """
        shown = None if is_jax_array(values) else generation.survey(values)
        if shown is None:
            f, best_f = values, self._on_device(best_so_far, values.dtype)
        else:  # the device ranks, and a limit tells it whether the first of them is the best so far
            dtype = self.state.mean.dtype
            ranks = values if dtype == np.float64 else generation.ranks_of(values).astype(dtype)
            improves = shown.least < best_so_far
            f = self._upload(ranks)
            best_f = self._upload(np.asarray(np.inf if improves else -np.inf, dtype))
        population = None if self._one_by_one else self._sample()
        state, words, best, best_f, numbers = self._step.tell(
            self.state, self._words, self.best, best_f, population, f, self._converged
        )
        self._population, population = None, None  # `_sample` can make it again
        state, figures = self._refreshed(state)
        if not self._one_by_one:  # while the host waits for the figures
            population = self._step.sample(words, state)
        record = generation.from_numbers(self._download(numbers), shown, self._download(figures))
        self.state, self._words, self.best, self._population = state, words, best, population
        self._generation += 1
        self._best_f = None if shown else (min(best_so_far, record.least), best_f)
        return record

    def _refreshed(self, state: Any) -> tuple[Any, Array | None]:
        """The state after this generation, refreshed if that is due, and then its figures."""
        every = self.params.refresh_every
        if not every or (self._generation + 1) % every:
            return state, None
        refreshed, figures = self._step.refresh(state, self._converged)
        return self._step.resized(refreshed), figures

    def _sample(self) -> tuple[Array, Array]:
        if self._population is None:
            self._population = self._step.sample(self._words, self.state)
        return self._population

    def _on_device(self, best_so_far: float, dtype: Any) -> Array:
        """The best value so far as a number of the device."""
        if self._best_f is not None:
            value, here = self._best_f
            if value == best_so_far and here.dtype == dtype:
                return here
        rounded = np.asarray(best_so_far, dtype)
        if float(rounded) < best_so_far:  # up: the same values of this dtype are below it
            rounded = np.nextafter(rounded, np.asarray(math.inf, dtype))
        return self._upload(rounded)

    def _upload(self, value: NDArray[Any]) -> Array:
        import jax

        return jax.device_put(value, place(self.state.mean, value.shape))

    def _download(self, value: Array | None) -> Any:
        import jax

        return None if value is None else jax.device_get(value)


def _as_results(arrays: Any) -> Any:
    """The arrays as compiled functions return them.

    For JAX, arrays such as ``jnp.full(d, 3.0)`` are of another kind: their dtype and their device
    may still change. The first generation would be compiled for them, and the second one again.
    """
    import jax
    import jax.numpy as jnp

    return jax.tree.map(
        lambda array: jax.device_put(jnp.asarray(array, dtype=array.dtype), array.sharding), arrays
    )


class _Steps(NamedTuple):
    """The compiled functions of a method, for one set of constants."""

    sample: Any  # (words, state) -> x, z
    candidate: Any  # (words, state, i) -> x_i
    stack: Any  # [x_i, ...] -> x
    tell: Any  # (state, words, best, best_f, (x, z) or None, f, converged) -> the next, and numbers
    refresh: Any  # (state, converged) -> state, figures
    resized: Any  # state -> state; not compiled, as shapes depend on values
    deviations: Any  # state -> standard deviations


@functools.lru_cache(maxsize=64)  # a restart, a copy or a loaded search is not compiled again
def _compiled(constants: Constants) -> _Steps:
    import jax
    import jax.numpy as jnp

    algorithm, params = constants

    def figures(state: Any, converged: Array) -> Array:
        return generation.figures(jnp, algorithm.summary(params, state), state.mean, converged)

    def tell(
        state: Any,
        words: Array,
        best: Array,
        best_f: Array,
        population: tuple[Array, Array] | None,
        f: Array,
        converged: Array,
    ) -> tuple[Any, Array, Array, Array, Array]:
        shown, i = generation.surveyed(jnp, f)
        if population is None:
            x_i = jax_steps.candidate(constants, words, state, i)
            z = jax_steps.draws(constants, words, state.mean)
        else:
            x, z = population
            x_i = x[i, :]
        better = shown.least < best_f
        best, best_f = jnp.where(better, x_i, best), jnp.where(better, shown.least, best_f)
        new = algorithm.tell(params, state, z, f)
        numbers = jax_steps.on_host(jnp.concatenate([jnp.stack(shown), figures(new, converged)]))
        return new, jax_steps.next_words(words), best, best_f, numbers

    def refresh(state: Any, converged: Array) -> tuple[Any, Array]:
        new = algorithm.refresh(params, state)
        return new, figures(new, converged)

    def compiled(function: Any) -> Any:
        return jax.jit(jax_steps.precise(function))

    return _Steps(
        sample=compiled(functools.partial(jax_steps.population, constants)),
        candidate=compiled(functools.partial(jax_steps.candidate, constants)),
        stack=jax.jit(jnp.stack),
        tell=compiled(tell),
        refresh=compiled(refresh),
        resized=lambda state: algorithm.resized(params, state),
        deviations=compiled(lambda state: algorithm.summary(params, state).deviations),
    )
