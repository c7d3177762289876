"""A search as a pytree, and the pure functions that begin it and take it from step to step."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array
from fmnes.algorithms import MethodName, MethodSettings
from fmnes.arguments.shape import initial_shape
from fmnes.arguments.start import read_method_of_fixed_size, read_popsize
from fmnes.engines import generation as figures
from fmnes.engines import jax_steps
from fmnes.engines.jax_steps import Constants, Static
from fmnes.jax import _stopping as rules
from fmnes.jax._stopping import Reasons, Rules, RuleState
from fmnes.jax._tree import Layout, layout_of, to_deviations, to_parameters, to_vector
from fmnes.records.stopping import Stopping, tolfun_window


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


def init(
    key: Array,
    x0: Any,
    sigma0: Any,
    *,
    method: MethodName | MethodSettings = "cr-fm-nes",
    popsize: int | None = None,
    ftarget: float | None = None,
    stopping: Stopping | None = None,
) -> Search:
    """Return a search that has not begun.

    Parameters
    ----------
    key : JAX random key
        All random numbers of the search derive from it. ``jax.random.key(n)`` gives the draws of
        the seed n.
    x0 : pytree of floating-point arrays
        The starting point. Candidates have the same structure, shapes and dtypes. The search itself
        computes in the most precise dtype of the arrays, and in float32 at least.
    sigma0 : float or pytree
        Initial standard deviation: one number, or a pytree with the structure of ``x0`` that has a
        number or an array for each array.
    method : str or settings
        A name of `fmnes.METHODS`, or settings such as ``fmnes.CRFMNES(variant="paper")``. Compiled
        programs have fixed shapes, so the arrays of ``"auto"`` have room for all their axes from
        the start, and a full matrix never replaces them. ``fmnes.Auto(axes=8)`` takes less time and
        memory than the default of 64 axes.
    popsize : int, optional
        Number of candidates of a generation; each method has its own default.
    ftarget : float, optional
        ``reasons.ftarget`` holds once the best value is at most ``ftarget``.
    stopping : Stopping, optional
        Tolerances of the other reasons to stop.

    Returns
    -------
    Search
        A pytree for `ask` and `tell`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> import fmnes.jax
    >>> x0 = {"w": jnp.full((2, 3), 3.0), "b": jnp.zeros(3)}
    >>> def step(search, _):
    ...     x = fmnes.jax.ask(search)  # {"w": (popsize, 2, 3), "b": (popsize, 3)}
    ...     values = (x["w"] ** 2).sum(axis=(1, 2)) + (x["b"] ** 2).sum(axis=1)
    ...     return fmnes.jax.tell(search, values)
    >>> search = fmnes.jax.init(jax.random.key(1), x0, 2.0)
    >>> search, metrics = jax.jit(lambda s: jax.lax.scan(step, s, length=200))(search)
    >>> bool(metrics.best[-1] < 1e-6)
    True
    """
    row = read_method_of_fixed_size(method, "in compiled programs")
    _, algorithm, settings = row
    layout = layout_of(x0)
    dim, info = layout.dim, jnp.finfo(layout.dtype)
    size = read_popsize(popsize, row, dim)
    if stopping is not None and not isinstance(stopping, Stopping):
        raise TypeError(f"stopping: expected fmnes.Stopping(...), got {stopping!r}")
    _check_start(x0, sigma0)
    program = Program(
        Constants(algorithm, algorithm.fixed(algorithm.params(dim, size, settings))),
        Static(settings),
        layout,
        Rules(
            stopping=Stopping() if stopping is None else stopping,
            ftarget=None if ftarget is None else checks.real("ftarget", ftarget),
            popsize=size,
            window=tolfun_window(dim, size),
            axis_ratio=1e15 if algorithm.LINEAR else 0.1 / math.sqrt(float(info.eps)),
            tiny=float(info.smallest_normal),
            huge=float(info.max),
        ),
    )
    mean = to_vector(layout, x0)
    return _begun(program, _first_words(key), mean, sigma0, mean, jnp.asarray(jnp.inf, float))


def _check_start(x0: Any, sigma0: Any) -> None:
    """Raise an error if the values of x0 or sigma0 are known, and cannot start a search."""
    for name, tree, expected in (
        ("x0", x0, "finite numbers"),
        ("sigma0", sigma0, "finite numbers > 0"),
    ):
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            if isinstance(leaf, jax.core.Tracer) or not jnp.size(leaf):
                continue
            with jax.ensure_compile_time_eval():
                # One call instead of several, each of which is compiled.
                all_good, first = jax.jit(_usable)(
                    jnp.asarray(leaf), -math.inf if name == "x0" else 0.0
                )
                if not all_good:
                    where = jax.tree_util.keystr(path)
                    raise ValueError(f"{name}{where}: expected {expected}, got {float(first)}")


def _usable(leaf: Array, above: float) -> tuple[Array, Array]:
    """Whether all numbers are finite and larger than ``above``, and the first one that is not."""
    values = jnp.ravel(leaf)
    good = jnp.isfinite(values) & (values > above)
    return jnp.all(good), values[jnp.argmin(good)]


def seed_words(key: Array) -> tuple[Array, Array]:
    """The low and the high word of the seed that a key stands for."""
    if not jnp.issubdtype(jnp.result_type(key), jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(jnp.asarray(key, jnp.uint32))
    if key.shape:
        raise ValueError(
            f"key: expected one key, got keys of shape {key.shape}; use jax.vmap for many searches"
        )
    words = jax.random.key_data(key)
    return words[-1], words[-2]


def _first_words(key: Array) -> Array:
    """The address of the first draws under a key."""
    stream = jnp.asarray(draws.population_stream(0) << 12, jnp.uint32)
    return jnp.stack([*seed_words(key), jnp.zeros((), jnp.uint32), stream])


def _begun(
    program: Program, words: Array, mean: Array, sigma0: Any, best_x: Array, best_f: Array
) -> Search:
    """The first state of a run, whose draws are at an address of generation 0."""
    algorithm, params = program.constants
    deviations = to_deviations(program.layout, sigma0)
    shape = initial_shape(jnp, mean, program.settings.value)
    log = jnp.log(deviations)  # the step size is the geometric mean, the rest goes into the shape
    sigma, scale = jnp.exp(jnp.mean(log)), jnp.exp(log - jnp.mean(log))
    if deviations.ndim:
        C = None if shape.C is None else scale[:, None] * shape.C * scale
        shape = shape._replace(D=scale * shape.D, C=C)
    else:
        sigma = deviations
    its_own = words.at[3].add(1 << 12)  # the stream of the draw that v starts from
    z = jax_steps.draws(program.constants, its_own, mean, 0, 1)[0, :]
    state = algorithm.init(params, mean, sigma, shape, z)
    initial = algorithm.summary(params, state).deviations
    no = jnp.zeros((), bool)
    return Search(
        state=state,
        words=words,
        initial=initial,
        deviation0=jnp.max(initial),
        best_x=best_x,
        best_f=best_f,
        rule_state=rules.first_rule_state(program.rules),
        reasons=Reasons(*[no] * len(Reasons._fields)),
        program=program,
    )


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


def restart(search: Search, x0: Any, sigma0: Any, when: Array | bool = True) -> Search:
    """Return the search with a new run from another point, with draws of its own.

    The best candidate so far is kept. Under `jax.vmap`, each search has its own ``when``.

    Parameters
    ----------
    search : Search
        The search that has stopped.
    x0, sigma0
        Where the new run starts, as in `init`.
    when : array of bool
        Where this is False, the search stays as it is.
    """
    mean = to_vector(search.program.layout, x0)
    low, high, _, stream = search.words
    stream = (stream >> 12) + draws.population_stream(1)  # the next run's
    words = jnp.stack([low, high, jnp.zeros_like(low), stream << 12])
    new = _begun(search.program, words, mean, sigma0, search.best_x, search.best_f)
    chosen: Search = jax.tree.map(partial(jnp.where, when), new, search)
    return chosen


def mean(search: Search) -> Any:
    """Return the mean of the distribution as parameters."""
    return to_parameters(search.program.layout, search.state.mean)


def best(search: Search) -> Any:
    """Return the best candidate so far as parameters; x0 before the first feasible one."""
    return to_parameters(search.program.layout, search.best_x)
