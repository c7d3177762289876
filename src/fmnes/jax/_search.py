"""A search as a pytree."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fmnes._arrays import Array
from fmnes.engines.jax_steps import Constants, Static
from fmnes.jax._stopping import Reasons, Rules, RuleState
from fmnes.jax._tree import Layout, to_parameters


class Program(NamedTuple):
    """What is fixed when a program is compiled."""

    constants: Constants
    settings: Static
    layout: Layout
    rules: Rules


@partial(
    jax.tree_util.register_dataclass,
    data_fields=[
        "state",
        "words",
        "initial",
        "deviation0",
        "best_x",
        "best_f",
        "rule_state",
        "reasons",
    ],
    meta_fields=["program"],
)
@dataclass(frozen=True)
class Search:
    """A search in progress: a pytree of arrays, with its method and shapes as static data.

    Attributes
    ----------
    state : NamedTuple
        The state of the method: mean, step size and shape, as vectors.
    generation, nfev : array
        The number of generations and of evaluations of the current run.
    stopped : array of bool
        Whether one of the `reasons` to end the search holds.
    reasons : Reasons
        Each reason to end the search as a flag.
    best_f : array
        The best value so far.
    popsize, dim : int
        The number of candidates of a generation, and of variables.
    """

    state: Any
    words: Array  # the address of the draws (`array_draws.Words`): seed, stream, generation
    initial: Array  # (d,): standard deviations at the start of the run
    deviation0: Array  # the largest of them
    best_x: Array
    best_f: Array
    rule_state: RuleState
    reasons: Reasons
    program: Program

    @property
    def popsize(self) -> int:
        """The number of candidates of a generation."""
        return int(self.program.constants.params.popsize)

    @property
    def dim(self) -> int:
        """The number of variables."""
        return self.program.layout.dim

    @property
    def generation(self) -> Array:
        """The number of generations of the current run."""
        return self.words[..., 2]

    @property
    def nfev(self) -> Array:
        """The number of evaluations of the current run."""
        return self.generation * jnp.asarray(self.popsize, self.words.dtype)

    @property
    def stopped(self) -> Array:
        """Whether a reason to end the search holds."""
        return jnp.any(jnp.stack(self.reasons), axis=0)


class Metrics(NamedTuple):
    """What `tell` says about a generation; every field is an array without axes."""

    generation: Array  # counts from 1
    nfev: Array
    best: Array  # the best value so far
    generation_best: Array  # smallest value of the generation, and the median; inf if infeasible
    median: Array
    feasible: Array  # how many values can be ranked: neither +inf nor NaN
    failed: Array  # how many values are NaN
    sigma: Array  # the step size
    deviation_min: Array  # smallest and largest standard deviation of a variable
    deviation_max: Array
    axis_ratio: Array  # longest over shortest axis
    phase: Array  # 1 movement, 2 stagnation, 3 convergence; 0 for a method without phases
    stop: Array  # whether one of the reasons holds
    reasons: Reasons


def mean(search: Search) -> Any:
    """Return the mean of the distribution as parameters."""
    return to_parameters(search.program.layout, search.state.mean)


def best(search: Search) -> Any:
    """Return the best candidate so far as parameters; x0 before the first feasible one."""
    return to_parameters(search.program.layout, search.best_x)
