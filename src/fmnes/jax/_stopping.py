"""The rules of `fmnes.Stopping` as flags of a compiled program."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from fmnes import _checks as checks
from fmnes._arrays import Array
from fmnes.records.stopping import Stopping


class Reasons(NamedTuple):
    """The reasons to end a search, each True or False; `fmnes.Status` describes them.

    They are those of `fmnes.Optimizer`, apart from "stagnation", which needs a long history, and
    from the budgets of generations and time, which a program has in its loop.
    """

    ftarget: Array
    unbounded: Array
    infeasible: Array
    scale: Array
    tolx: Array
    tolfun: Array
    flat: Array
    condition: Array
    sigma_up: Array
    sigma_underflow: Array


class RuleState(NamedTuple):
    """What the rules remember of earlier generations."""

    flat: Array  # generations in a row: equal values, nothing feasible
    infeasible: Array
    varied: Array  # whether the values of one generation ever differed
    all_nan_at_first: Array
    recent_best: Array  # (window,): the best values of the last generations, in a ring


class Rules(NamedTuple):
    """Constants of the rules."""

    stopping: Stopping
    ftarget: float | None
    popsize: int
    window: int  # generations that the rule of tolfun looks at
    axis_ratio: float
    tiny: float  # smallest normal and largest finite number of the dtype
    huge: float


def first_rule_state(rules: Rules) -> RuleState:
    """The state of the rules before the first generation."""
    zero, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    return RuleState(zero, zero, no, no, jnp.full(rules.window, jnp.inf))


def counted(rules: Rules, rule_state: RuleState, generation: Array, shown: Any) -> RuleState:
    """The state of the rules after generation number ``generation``, which counts from 1."""
    some, flat = shown.feasible > 0, shown.flat == 1
    all_nan = (generation == 1) & (shown.nan == rules.popsize)
    place = (generation - 1) % rule_state.recent_best.shape[0]
    return RuleState(
        flat=jnp.where(flat, rule_state.flat + 1, 0),
        infeasible=jnp.where(some, 0, rule_state.infeasible + 1),
        varied=rule_state.varied | (some & ~flat),
        all_nan_at_first=rule_state.all_nan_at_first | all_nan,
        recent_best=rule_state.recent_best.at[place].set(shown.least),
    )


def reasons(
    rules: Rules,
    rule_state: RuleState,
    generation: Array,
    best_f: Array,
    shown: Any,
    state: dict[str, Array],
    deviation0: Array,
) -> Reasons:
    """Every rule that holds now; ``state`` has the figures of `engines.generation.described`."""
    stopping = rules.stopping
    found, shrunk = best_f < jnp.inf, state["shrunk"] == 1
    hopeless = rule_state.all_nan_at_first | (rule_state.infeasible >= stopping.infeasible)
    limit = rules.huge * checks.ROOM
    return Reasons(
        ftarget=found & (best_f <= (-math.inf if rules.ftarget is None else rules.ftarget)),
        unbounded=best_f == -jnp.inf,
        infeasible=hopeless | (shrunk & ~found),
        scale=~((state["deviation_max"] < limit) & (state["mean_max"] < limit)),
        tolx=shrunk & found & (rule_state.infeasible == 0),
        tolfun=rule_state.varied & _converged_values(rules, rule_state, generation, shown),
        flat=(rule_state.flat >= stopping.flat) & ~rule_state.varied,
        condition=state["axis_ratio"] > rules.axis_ratio,
        sigma_up=state["deviation_max"] > stopping.tolsigmaup * deviation0,
        sigma_underflow=state["deviation_min"] < rules.tiny,
    )


def _converged_values(rules: Rules, rule_state: RuleState, generation: Array, shown: Any) -> Array:
    tolerance = rules.stopping.tolfun * shown.size
    window = rule_state.recent_best
    agree = (shown.most - shown.least <= tolerance) & (
        jnp.max(window) - jnp.min(window) <= tolerance
    )
    known = generation >= window.shape[0]
    return (rule_state.flat >= rules.stopping.flat) | ((rule_state.infeasible == 0) & known & agree)
