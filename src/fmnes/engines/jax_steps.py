"""The pure functions of a generation under JAX: draws from their addresses, candidates, precision.

`JaxEngine` compiles them one by one, and `fmnes.jax` lets its users compile them.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from fmnes._arrays import Array
from fmnes.algorithms import Algorithm
from fmnes.draws import array_draws


class Constants:
    """A method and its Params as a cache key; two keys are equal if all their values are equal."""

    def __init__(self, algorithm: Algorithm, params: Any) -> None:
        self.algorithm, self.params = algorithm, params
        self._content = id(algorithm), _content(params)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.algorithm, self.params))

    def __hash__(self) -> int:
        return hash(self._content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constants) and self._content == other._content


class Static:
    """Settings as static data of a program; two are equal if all values are, arrays included."""

    def __init__(self, value: Any) -> None:
        self.value, self._content = value, _content(value)

    def __hash__(self) -> int:
        return hash(self._content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._content == other._content


def _content(value: Any) -> Any:
    """The value in a form that can be hashed."""
    if dataclasses.is_dataclass(value):
        fields = (getattr(value, field.name) for field in dataclasses.fields(value))
        return type(value), *map(_content, fields)
    if isinstance(value, tuple | list):
        return tuple(_content(item) for item in value)
    if is_array_api_obj(value):
        array = np.asarray(value)
        return array.dtype.str, array.shape, array.tobytes()
    return value


def rows_of_draws(constants: Constants) -> int:
    """The number of rows of z: half of the candidates are mirrored in many methods."""
    algorithm, params = constants
    return int(params.popsize // 2 if algorithm.ANTITHETIC else params.popsize)


def draws(
    constants: Constants,
    words: Array,
    like: Array,
    first: Array | int = 0,
    count: int | None = None,
) -> Array:
    """Rows of the draws at an address (`array_draws.Words` as an array of shape (4,)); all rows."""
    _, params = constants
    count = rows_of_draws(constants) if count is None else count
    return _normals(count, params.dim, like.dtype)(words, first, like)


@functools.lru_cache(maxsize=64)
def _normals(rows: int, dim: int, dtype: Any) -> Any:
    """The draws as a function that JAX traces once, wherever a program needs them."""
    import jax
    import jax.numpy as jnp

    def normals(words: Array, first: Array, like: Array) -> Array:
        return array_draws.normals(jnp, array_draws.Words(*words), first, rows, dim, like)

    return jax.jit(normals)


def population(constants: Constants, words: Array, state: Any) -> tuple[Array, Array]:
    """All candidates, shape (popsize, d), and their draws."""
    algorithm, params = constants
    z = draws(constants, words, state.mean)
    return algorithm.ask(params, state, z), z


def candidate(constants: Constants, words: Array, state: Any, i: Array) -> Array:
    """Candidate i of a method of linear cost, from its own draws alone."""
    rows = rows_of_draws(constants)
    return at_row(constants, state, draws(constants, words, state.mean, i % rows, 1), i)


def at_row(constants: Constants, state: Any, z_i: Array, i: Array) -> Array:
    """Candidate i of a method of linear cost, from its row of draws, shape (1, d)."""
    import jax.numpy as jnp

    algorithm, params = constants
    step = algorithm.transform(params, state, z_i)[0, :]
    return state.mean + jnp.where(i < rows_of_draws(constants), step, -step)


def next_words(words: Array) -> Array:
    """The address of the next generation."""
    import jax.numpy as jnp

    low, high, generation, stream = words
    generation = generation + 1
    return jnp.stack([low, high, generation, stream + (generation == 0)])


def precise(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with matrix products of full precision, which are not the default on GPUs."""

    @functools.wraps(function)
    def in_full(*arguments: Any) -> Any:
        import jax

        with jax.default_matmul_precision("highest"):
            return function(*arguments)

    return in_full


def on_host(figures: Array) -> Array:
    """The figures in memory of the host, which a compiled program writes by itself.

    A copy after the program takes 0.1 ms longer on a GPU.
    """
    import jax

    if not hasattr(jax, "memory"):  # an older JAX
        return figures
    return jax.device_put(figures, jax.memory.Space.Host)
