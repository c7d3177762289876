"""A generation: the candidates of a search, and the search after their values."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from fmnes._arrays import Array
from fmnes.engines import generation as figures
from fmnes.engines import jax_steps
from fmnes.engines.jax_steps import Constants
from fmnes.jax import _stopping as rules
from fmnes.jax._search import Metrics, Search
from fmnes.jax._tree import to_parameters


def ask(search: Search, first: Array | int = 0, count: int | None = None) -> Any:
    """Return the candidates of this generation.

    Parameters
    ----------
    search : Search
        The search.
    first, count : int, optional
        Only the candidates ``first`` to ``first + count - 1``; all of them by default. ``first``
        may be an array, such as the number of a device under `jax.shard_map`.

    Returns
    -------
    pytree
        Parameters with the structure of ``x0``. Every array has one axis more, the first, for the
        candidates.
    """
    constants, layout = search.program.constants, search.program.layout
    with jax.default_matmul_precision("highest"):
        return to_parameters(layout, _candidates(search, constants, first, count))


def _candidates(search: Search, constants: Constants, first: Array, count: int | None) -> Array:
    if count is None:
        return jax_steps.population(constants, search.words, search.state)[0]
    if not constants.algorithm.LINEAR:
        x, _ = jax_steps.population(constants, search.words, search.state)
        return jax.lax.dynamic_slice_in_dim(x, first, count)
    one = partial(jax_steps.candidate, constants, search.words, search.state)
    return jax.vmap(one)(first + jnp.arange(count))


def tell(search: Search, values: Array) -> tuple[Search, Metrics]:
    """Return the search after a generation, and what the generation showed.

    Parameters
    ----------
    search : Search
        The search that was given to `ask`.
    values : array of shape (popsize,)
        The values of the candidates. +inf marks an infeasible candidate, NaN a failed evaluation,
        which is ranked like an infeasible one.

    Returns
    -------
    search : Search
        The search with the next generation's distribution.
    metrics : Metrics
        Figures of the generation, and the reasons to stop.
    """
    values = jnp.asarray(values)
    if values.shape != (search.popsize,):
        raise ValueError(
            f"values: expected an array of shape ({search.popsize},), got shape {values.shape}"
        )
    if jnp.issubdtype(values.dtype, jnp.complexfloating):
        raise TypeError(f"values: expected real numbers, got {values.dtype}")
    with jax.default_matmul_precision("highest"):
        return _told(search, values.astype(search.best_f.dtype))


def _told(search: Search, f: Array) -> tuple[Search, Metrics]:
    program, words = search.program, search.words
    (algorithm, params), limits = program.constants, program.rules
    shown: Any
    shown, i = figures.surveyed(jnp, f)
    z = jax_steps.draws(program.constants, words, search.state.mean)
    better = shown.least < search.best_f
    best_x = jnp.where(better, _candidate(program.constants, search.state, z, i), search.best_x)
    best_f = jnp.where(better, shown.least, search.best_f)

    words = jax_steps.next_words(words)
    generation = words[2].astype(jnp.int32)
    state = _refreshed(program.constants, algorithm.tell(params, search.state, z, f), generation)
    summary = algorithm.summary(params, state)
    now = figures.described(jnp, summary, state.mean, limits.stopping.tolx * search.initial)

    rule_state = rules.counted(limits, search.rule_state, generation, shown)
    reasons = rules.reasons(limits, rule_state, generation, best_f, shown, now, search.deviation0)
    new = Search(
        state=state,
        words=words,
        initial=search.initial,
        deviation0=search.deviation0,
        best_x=best_x,
        best_f=best_f,
        rule_state=rule_state,
        reasons=reasons,
        program=program,
    )
    return new, Metrics(
        generation=generation,
        nfev=generation * params.popsize,
        best=best_f,
        generation_best=shown.least,
        median=shown.median,
        feasible=shown.feasible.astype(jnp.int32),
        failed=shown.nan.astype(jnp.int32),
        sigma=now["sigma"],
        deviation_min=now["deviation_min"],
        deviation_max=now["deviation_max"],
        axis_ratio=now["axis_ratio"],
        phase=now["phase"].astype(jnp.int32),
        stop=new.stopped,
        reasons=reasons,
    )


def _candidate(constants: Constants, state: Any, z: Array, i: Array) -> Array:
    """Candidate i of a population with draws z."""
    algorithm, params = constants
    if not algorithm.LINEAR:
        return algorithm.ask(params, state, z)[i, :]
    return jax_steps.at_row(constants, state, z[i % z.shape[0], :][None, :], i)


def _refreshed(constants: Constants, state: Any, generation: Array) -> Any:
    """The state after a generation, refreshed if that is due."""
    algorithm, params = constants
    if not params.refresh_every:
        return state
    if params.refresh_every == 1:
        return algorithm.refresh(params, state)
    refresh = partial(algorithm.refresh, params)
    due = generation % params.refresh_every == 0
    return jax.lax.cond(due, refresh, lambda same: same, state)
