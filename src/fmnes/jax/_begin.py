"""How a search begins, and how it begins again."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from fmnes import _checks as checks
from fmnes import draws
from fmnes._arrays import Array
from fmnes.algorithms import MethodName, MethodSettings
from fmnes.arguments.method import read_method_of_fixed_size, read_popsize
from fmnes.arguments.shape import initial_shape
from fmnes.engines import jax_steps
from fmnes.engines.jax_steps import Constants, Static
from fmnes.jax import _stopping as rules
from fmnes.jax._search import Program, Search
from fmnes.jax._stopping import Reasons, Rules
from fmnes.jax._tree import layout_of, to_deviations, to_vector
from fmnes.records.stopping import Stopping, read_stopping, tolfun_window


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
    _check_start(x0, sigma0)
    program = Program(
        Constants(algorithm, algorithm.fixed(algorithm.params(dim, size, settings))),
        Static(settings),
        layout,
        Rules(
            stopping=read_stopping(stopping),
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
