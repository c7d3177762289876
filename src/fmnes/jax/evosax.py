"""The searches of `fmnes.jax` with the classes, methods and arguments of evosax 0.3.

A program that uses evosax changes its import::

    from evosax.algorithms import CR_FM_NES      # before
    from fmnes.jax.evosax import CR_FM_NES       # after

evosax itself is not needed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as _replace
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from fmnes._arrays import Array
from fmnes.algorithms import MethodName, MethodSettings
from fmnes.jax import _begin, _generation
from fmnes.jax._search import Search, best, mean
from fmnes.jax._tree import to_vector


@partial(jax.tree_util.register_dataclass, data_fields=["std_init"], meta_fields=[])
@dataclass(frozen=True)
class Params:
    """What can be changed with ``params.replace(...)``: the initial standard deviation."""

    std_init: Any = 1.0

    def replace(self, **changes: Any) -> "Params":
        """Return the parameters with some of them changed."""
        return _replace(self, **changes)


@partial(
    jax.tree_util.register_dataclass, data_fields=["search", "generation_counter"], meta_fields=[]
)
@dataclass(frozen=True)
class State:
    """A search with the names that evosax has for its parts."""

    search: Search
    generation_counter: Array

    def replace(self, **changes: Any) -> "State":
        """Return the state with other fields."""
        return _replace(self, **changes)

    @property
    def mean(self) -> Array:
        """The mean of the distribution, as a vector."""
        return self.search.state.mean

    @property
    def std(self) -> Array:
        """The step size: the geometric mean of the standard deviations along the axes."""
        algorithm, params = self.search.program.constants
        return algorithm.summary(params, self.search.state).sigma

    @property
    def best_solution(self) -> Array:
        """The best candidate so far, as a vector."""
        return self.search.best_x

    @property
    def best_fitness(self) -> Array:
        """The best value so far."""
        return self.search.best_f


def metrics_fn(
    key: Array, population: Array, fitness: Array, state: State, params: Params
) -> dict[str, Array]:
    """Return the metrics that evosax's distribution-based strategies return."""
    i = jnp.argmin(jnp.where(jnp.isnan(fitness), jnp.inf, fitness))
    return {
        "generation_counter": state.generation_counter,
        "best_fitness_in_generation": fitness[i],
        "best_solution_in_generation": population[i],
        "best_fitness": state.best_fitness,
        "best_solution": state.best_solution,
        "best_solution_norm": jnp.linalg.norm(state.best_solution),
        "mean": state.mean,
        "mean_norm": jnp.linalg.norm(state.mean, axis=-1),
    }


class Strategy:
    """A strategy in the manner of evosax, for any method of fmnes.

    Parameters
    ----------
    population_size : int
        Number of candidates of a generation.
    solution : pytree
        Parameters with the structure, shapes and dtypes of a candidate.
    fitness_shaping_fn : None
        Not available: fmnes ranks the candidates itself.
    metrics_fn : callable
        ``metrics_fn(key, population, fitness, state, params)``, called by `tell`.
    method : str or settings, optional
        A method of fmnes or its settings; by default that of the class.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from fmnes.jax.evosax import CR_FM_NES
    >>> strategy = CR_FM_NES(population_size=12, solution=jnp.zeros(10))
    >>> params = strategy.default_params.replace(std_init=2.0)
    >>> state = strategy.init(jax.random.key(1), jnp.full(10, 3.0), params)
    >>> population, state = strategy.ask(jax.random.key(2), state, params)
    >>> values = jnp.sum(population**2, axis=1)
    >>> state, metrics = strategy.tell(jax.random.key(3), population, values, state, params)
    >>> bool(metrics["best_fitness"] == values.min())
    True
    """

    default_method: ClassVar[MethodName] = "cr-fm-nes"

    def __init__(
        self,
        population_size: int,
        solution: Any,
        fitness_shaping_fn: None = None,
        metrics_fn: Callable[..., Any] = metrics_fn,
        *,
        method: MethodName | MethodSettings | None = None,
    ) -> None:
        if fitness_shaping_fn is not None:
            raise TypeError(
                "fitness_shaping_fn: expected None, because fmnes ranks the candidates itself, "
                f"got {fitness_shaping_fn!r}"
            )
        self.population_size, self.solution, self.metrics_fn = population_size, solution, metrics_fn
        self.method = self.default_method if method is None else method
        self.num_dims = self._begun(jax.random.key(0), solution, 1.0).dim

    @property
    def default_params(self) -> Params:
        """The parameters of `init`, `ask` and `tell`; ``replace`` changes them."""
        return Params()

    @partial(jax.jit, static_argnames=("self",))
    def init(self, key: Array, mean: Any, params: Params) -> State:
        """Return the first state, with the given mean."""
        begun = self._begun(key, mean, params.std_init)
        return State(begun, jnp.zeros((), jnp.int32))

    @partial(jax.jit, static_argnames=("self",))
    def ask(self, key: Array, state: State, params: Params) -> tuple[Any, State]:
        """Return a population drawn with the key, and the state that `tell` needs."""
        low, high = _begin.seed_words(key)
        words = state.search.words.at[:2].set(jnp.stack([low, high]))
        seeded = _replace(state.search, words=words)
        return _generation.ask(seeded), state.replace(search=seeded)

    @partial(jax.jit, static_argnames=("self",))
    def tell(
        self, key: Array, population: Any, fitness: Array, state: State, params: Params
    ) -> tuple[State, Any]:
        """Return the next state and metrics, from the values of the population of `ask`.

        The update uses the draws of `ask`: a population that was changed afterwards has no effect
        beyond its values.
        """
        told, _ = _generation.tell(state.search, fitness)
        layout = told.program.layout
        flat = jax.vmap(lambda one: to_vector(layout, one, "population"))(population)
        new = State(told, state.generation_counter)
        # As in evosax, metrics have the new best and the mean that the population was drawn with.
        shown = new.replace(search=_replace(told, state=state.search.state))
        metrics = self.metrics_fn(key, flat, fitness, shown, params)
        return new.replace(generation_counter=state.generation_counter + 1), metrics

    def get_mean(self, state: State) -> Any:
        """Return the mean with the structure of a solution."""
        return mean(state.search)

    def get_best_solution(self, state: State) -> Any:
        """Return the best candidate so far with the structure of a solution."""
        return best(state.search)

    def _begun(self, key: Array, mean: Any, sigma0: Any) -> Search:
        return _begin.init(key, mean, sigma0, method=self.method, popsize=self.population_size)


def _strategy(name: str, method: MethodName) -> type[Strategy]:
    """A class for a method, with the name that evosax has for it or would have."""
    doc = f"`Strategy` with the method {method!r} of fmnes."
    return type(name, (Strategy,), {"default_method": method, "__doc__": doc})


CR_FM_NES = _strategy("CR_FM_NES", "cr-fm-nes")
CMA_ES = _strategy("CMA_ES", "cma-es")
Sep_CMA_ES = _strategy("Sep_CMA_ES", "sep-cma")
SNES = _strategy("SNES", "snes")
xNES = _strategy("xNES", "xnes")
FM_NES = _strategy("FM_NES", "fm-nes")
DX_NES_IC = _strategy("DX_NES_IC", "dx-nes-ic")
R1_NES = _strategy("R1_NES", "r1-nes")
VD_CMA = _strategy("VD_CMA", "vd-cma")
Auto = _strategy("Auto", "auto")
