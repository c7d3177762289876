"""The JAX engine: any method, compiled by `jax.jit`, with its state and its draws on the device.

`ask` and `tell` are one compiled call each. Each generation copies popsize objective values to the
device and eight numbers back to the host. `tell` copies no array of size d.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes._arrays import Array
from fmnes.algorithms import Algorithm
from fmnes.draws import array_draws
from fmnes.engines import generation
from fmnes.engines.contract import EngineSpec, Generation


class JaxEngine:
    """Any method on JAX arrays."""

    def __init__(self, spec: EngineSpec) -> None:
        self.params, self.state, self.best = spec.params, spec.state, spec.best
        self._step = _compiled(_Constants(spec.algorithm, spec.params))
        self._address = spec.address
        self.initial = self._step.deviations(spec.state) if spec.initial is None else spec.initial
        self._converged = spec.tolx * self.initial
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

    def tell(self, values: NDArray[np.float64], best_so_far: float) -> Generation:
        """One generation; a candidate better than ``best_so_far`` is kept in ``best``."""
        shown = generation.survey(values)
        if shown.least < best_so_far:
            best = generation.best_of(values)
            if self._one_by_one:
                self.best = self._step.candidate(self._words, self.state, best)
            else:
                self.best = self._step.row(self._sample()[0], best)
        f = values
        if not generation.is_float64(self.state.mean):
            f = generation.ranks_of(values).astype(self.state.mean.dtype)
        z = self._step.draw(self._words, self.state) if self._one_by_one else self._sample()[1]
        self.state, figures = self._step.tell(self.state, z, f, self._converged)
        self._population = None
        self._address = self._address._replace(generation=self._address.generation + 1)
        every = self.params.refresh_every
        if every and self._address.generation % every == 0:
            refreshed, figures = self._step.refresh(self.state, self._converged)
            self.state = self._step.resized(refreshed)
        return generation.to_record(shown, self._step.to_host(figures))

    def _sample(self) -> tuple[Array, Array]:
        if self._population is None:
            self._population = self._step.sample(self._words, self.state)
        return self._population

    @property
    def _words(self) -> NDArray[np.uint32]:
        """The address of this generation's draws, as an argument of the compiled functions."""
        return np.array(array_draws.Words.of(*self._address), np.uint32)


class _Constants:
    """A method and its Params as a cache key; two keys are equal if all their values are equal."""

    def __init__(self, algorithm: Algorithm, params: Any) -> None:
        self.algorithm, self.params = algorithm, params
        self._content = id(algorithm), _content(params)

    def __hash__(self) -> int:
        return hash(self._content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constants) and self._content == other._content


def _content(value: Any) -> Any:
    """The value in a form that can be hashed."""
    if isinstance(value, tuple):
        return tuple(_content(item) for item in value)
    return value.tobytes() if isinstance(value, np.ndarray) else value


class _Steps(NamedTuple):
    """The compiled functions of a method, for one set of constants."""

    draw: Any  # (words, state) -> z
    sample: Any  # (words, state) -> x, z
    candidate: Any  # (words, state, i) -> x_i
    row: Any  # (x, i) -> x_i
    to_host: Any  # figures -> NumPy; explicit, so jax.transfer_guard("disallow") allows it
    stack: Any  # [x_i, ...] -> x
    tell: Any  # (state, z, f, converged) -> state, figures
    refresh: Any  # (state, converged) -> state, figures
    resized: Any  # state -> state; not compiled, as shapes depend on values
    deviations: Any  # state -> standard deviations


@functools.lru_cache(maxsize=64)  # a restart, a copy or a loaded search is not compiled again
def _compiled(constants: _Constants) -> _Steps:
    import jax
    import jax.numpy as jnp

    algorithm, params = constants.algorithm, constants.params
    rows = params.popsize // 2 if algorithm.ANTITHETIC else params.popsize

    def draw(words: Array, state: Any, first: Array = 0, count: int = rows) -> Array:
        address = array_draws.Words(*words)
        return array_draws.normals(jnp, address, first, count, params.dim, state.mean)

    def sample(words: Array, state: Any) -> tuple[Array, Array]:
        z = draw(words, state)
        return algorithm.ask(params, state, z), z

    def candidate(words: Array, state: Any, i: Array) -> Array:
        step = algorithm.transform(params, state, draw(words, state, i % rows, 1))[0, :]
        return state.mean + jnp.where(i < rows, step, -step)

    def figures(state: Any, converged: Array) -> Array:
        return generation.figures(algorithm.summary(params, state), state.mean, converged)

    def tell(state: Any, z: Array, f: Array, converged: Array) -> tuple[Any, Array]:
        new = algorithm.tell(params, state, z, f)
        return new, figures(new, converged)

    def refresh(state: Any, converged: Array) -> tuple[Any, Array]:
        new = algorithm.refresh(params, state)
        return new, figures(new, converged)

    return _Steps(
        draw=jax.jit(draw),
        sample=jax.jit(sample),
        candidate=jax.jit(candidate),
        row=jax.jit(lambda x, i: x[i, :]),
        to_host=jax.device_get,
        stack=jax.jit(jnp.stack),
        tell=jax.jit(tell),
        refresh=jax.jit(refresh),
        resized=lambda state: algorithm.resized(params, state),
        deviations=jax.jit(lambda state: algorithm.summary(params, state).deviations),
    )
