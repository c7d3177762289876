"""The solvers whose generations `gpu.py` measures on a GPU.

A generation is ask, a sphere function, and tell, in float32, with the default popsize of
CR-FM-NES for every solver. The rows "fmnes.jax" and "evosax CR_FM_NES" compile it as one call;
rows "in a scan" run twenty generations in one compiled program. The row of many searches is the
time of 500 generations of all of them. The streaming rows write every candidate once, in bfloat16,
and evaluate nothing.

A solver is a function that is registered in SOLVERS: called with (dim, popsize), it returns a
function that runs one generation and waits for its end.
"""

import math
import time

DIMS = [10**3, 10**5, 10**6, 10**7]
SOLVERS = {}
STREAMING_DIMS = [10**8, 10**9]
MANY = "fmnes.jax, 256 searches, 500 generations"


def solver(name, dims=tuple(DIMS)):
    """Register a function (dim, popsize) -> one generation, and the dimensions to measure."""

    def register(function):
        SOLVERS[name] = function, dims
        return function

    return register


def popsize_of(dim):
    """The default of CR-FM-NES."""
    popsize = 4 + math.floor(3 * math.log(dim))
    return popsize + popsize % 2


# === fmnes and PyTorch ===


def optimizer(dim, popsize, method="cr-fm-nes"):
    import torch

    import fmnes

    x0 = torch.full((dim,), 3.0, device="cuda")
    return fmnes.Optimizer(x0, 2.0, method=method, popsize=popsize, rng=1)


@solver("fmnes PyTorch")
def fmnes_torch(dim, popsize, method="cr-fm-nes"):
    import torch

    opt = optimizer(dim, popsize, method)

    def generation():
        opt.tell(torch.linalg.vector_norm(opt.ask(), dim=1) ** 2)

    return generation


@solver("fmnes PyTorch, array engine", dims=(10**3, 10**5, 10**6))
def fmnes_torch_array(dim, popsize, method="cr-fm-nes"):
    """The engine that serves without Triton."""
    from fmnes import engines

    engines.ENGINES = tuple(row for row in engines.ENGINES if row.name != "triton")
    return fmnes_torch(dim, popsize, method)


@solver("fmnes PyTorch, auto")
def fmnes_torch_auto(dim, popsize):
    return fmnes_torch(dim, popsize, "auto")


@solver("fmnes PyTorch, auto, array engine", dims=(10**3, 10**5))
def fmnes_torch_auto_array(dim, popsize):
    return fmnes_torch_array(dim, popsize, "auto")


@solver("fmnes PyTorch, streaming", dims=STREAMING_DIMS)
def fmnes_torch_streaming(dim, popsize):
    import numpy as np
    import torch

    import fmnes

    opt = optimizer(dim, popsize, method=fmnes.CRFMNES(store_draws=False))
    candidate = torch.empty(dim, dtype=torch.bfloat16, device="cuda")
    values = np.random.default_rng(1)

    def generation():
        for i in range(popsize):
            opt.write_candidate(i, [candidate])
        opt.tell(values.normal(size=popsize))

    return generation


# === fmnes and JAX, and evosax ===


def _sphere():
    import jax

    return jax.jit(lambda x: (x * x).sum(axis=1))


@solver("fmnes JAX")
def fmnes_jax(dim, popsize, method="cr-fm-nes"):
    import jax.numpy as jnp

    import fmnes

    opt = fmnes.Optimizer(jnp.full(dim, 3.0), 2.0, method=method, popsize=popsize, rng=1)
    sphere = _sphere()

    def generation():
        opt.tell(sphere(opt.ask()))

    return generation


@solver("fmnes JAX, auto", dims=(10**3, 10**5))
def fmnes_jax_auto(dim, popsize):
    return fmnes_jax(dim, popsize, "auto")


def _called(step, state):
    """One generation, ask, the sphere and tell, in one compiled call."""
    import jax

    compiled = jax.jit(step)

    def generation():
        nonlocal state
        state = jax.block_until_ready(compiled(state))

    return generation


def _scanned(step, state):
    """One generation of a program that runs twenty of them in one `scan`."""
    import jax

    run = jax.jit(lambda state: jax.lax.scan(lambda s, _: (step(s), None), state, length=20)[0])
    calls = 0

    def generation():
        nonlocal state, calls
        if calls % 20 == 0:
            state = jax.block_until_ready(run(state))
        calls += 1

    return generation


def _jax_search(key, dim, popsize):
    import jax.numpy as jnp

    import fmnes.jax

    return fmnes.jax.init(key, jnp.full(dim, 3.0), 2.0, method="cr-fm-nes", popsize=popsize)


def _jax_generation(dim, popsize):
    """One generation of fmnes.jax as a function of its search, and the first of them."""
    import jax
    import jax.numpy as jnp

    import fmnes.jax

    def step(search):
        return fmnes.jax.tell(search, jnp.sum(fmnes.jax.ask(search) ** 2, axis=1))[0]

    return step, _jax_search(jax.random.key(1), dim, popsize)


@solver("fmnes.jax")
def fmnes_jax_call(dim, popsize):
    return _called(*_jax_generation(dim, popsize))


@solver("fmnes.jax in a scan")
def fmnes_jax_program(dim, popsize):
    return _scanned(*_jax_generation(dim, popsize))


@solver(MANY, dims=(100,))
def fmnes_jax_many(dim, popsize):
    import jax
    import jax.numpy as jnp

    import fmnes.jax

    def step(search, _):
        search, _ = fmnes.jax.tell(search, jnp.sum(fmnes.jax.ask(search) ** 2, axis=1))
        return search, None

    def one(key):
        search = _jax_search(key, dim, popsize)
        return jax.lax.scan(step, search, length=500)[0].best_f

    keys = jax.random.split(jax.random.key(1), 256)
    begun = time.perf_counter()
    run = jax.jit(jax.vmap(one)).lower(keys).compile()
    compile_s = time.perf_counter() - begun

    def generations():
        jax.block_until_ready(run(keys))

    generations.compile_s = round(compile_s, 2)
    return generations


def _evosax(dim, popsize):
    """One generation of evosax as a function of its state and key, and the first of them."""
    import jax
    import jax.numpy as jnp
    from evosax.algorithms import CR_FM_NES

    strategy = CR_FM_NES(population_size=popsize, solution=jnp.zeros(dim))
    params = strategy.default_params.replace(std_init=2.0)
    state, key = strategy.init(jax.random.key(1), jnp.full(dim, 3.0), params), jax.random.key(2)

    def step(state_and_key):
        state, key = state_and_key
        key, key_ask, key_tell = jax.random.split(key, 3)
        x, state = strategy.ask(key_ask, state, params)
        state, _ = strategy.tell(key_tell, x, jnp.sum(x * x, axis=1), state, params)
        return state, key

    return step, (state, key)


@solver("evosax CR_FM_NES")
def evosax_cr_fm_nes(dim, popsize):
    return _called(*_evosax(dim, popsize))


@solver("evosax CR_FM_NES in a scan")
def evosax_program(dim, popsize):
    return _scanned(*_evosax(dim, popsize))


# === EvoX ===


@solver("EvoX SNES")
def evox_snes(dim, popsize):
    """EvoX has no CR-FM-NES; SNES costs less for each generation, as it learns no direction."""
    import torch
    from evox.algorithms import SNES
    from evox.core import Problem
    from evox.workflows import StdWorkflow

    class Sphere(Problem):
        def evaluate(self, pop):
            return (pop * pop).sum(dim=1)

    torch.set_default_device("cuda")
    algorithm = SNES(popsize, torch.full((dim,), 3.0), sigma=2.0, device=torch.device("cuda"))
    workflow = StdWorkflow(algorithm, Sphere())
    workflow.init_step()
    step = torch.compile(workflow.step)

    def generation():
        step()
        torch.cuda.synchronize()

    return generation
