"""Several devices: eight of the host, which XLA has to be told before JAX starts."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.arrays

PROGRAM = """
import json

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P

import fmnes
import fmnes.jax

GENERATIONS = 10
mesh = Mesh(np.array(jax.devices()), ("n",))
x0 = {"a": jnp.linspace(1.0, 2.0, 200), "b": jnp.full((8, 25), 3.0)}  # no leaf ends with a shard
weights = jnp.linspace(1.0, 50.0, 400)


def values(x):
    flat = jnp.concatenate([x["a"], x["b"].reshape(-1, 200)], axis=1)
    return (weights * flat * flat).sum(axis=1)


def generation(search):
    return fmnes.jax.tell(search, values(fmnes.jax.ask(search)))


def run(search, step):
    for _ in range(GENERATIONS):
        search, metrics = step(search)
    return search, metrics


first = fmnes.jax.init(jax.random.key(1), x0, 0.5, method="cr-fm-nes", popsize=16)
alone, metrics = run(first, jax.jit(generation))

# === The variables over the devices ===
sharded = jax.device_put(first, fmnes.jax.shardings(first, mesh, "n"))
compiled = jax.jit(generation)
split, split_metrics = run(sharded, compiled)
program = compiled.lower(sharded).compile().as_text()

# === The candidates over the devices; every device has the whole search ===
def share(search):
    count = search.popsize // mesh.size
    first = jax.lax.axis_index("n") * count
    mine = values(fmnes.jax.ask(search, first, count))
    return jax.lax.all_gather(mine, "n", tiled=True)

evaluate = jax.shard_map(share, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
everywhere = jax.device_put(first, jax.sharding.NamedSharding(mesh, P()))
shared, _ = run(everywhere, jax.jit(lambda s: fmnes.jax.tell(s, evaluate(s))))

# === An Optimizer with a sharded x0; 18 values are no multiple of the devices ===
def optimizer(x0, on_device):
    opt = fmnes.Optimizer(x0, 0.5, method="cr-fm-nes", popsize=18, rng=1)
    for _ in range(GENERATIONS):
        x = opt.ask()
        f = (weights * x * x).sum(axis=1)
        opt.tell(f if on_device else np.asarray(f))
    return opt

flat = jnp.linspace(1.0, 2.0, 400)
parts = jax.device_put(flat, jax.sharding.NamedSharding(mesh, P("n")))
optimizers = [[optimizer(x, here) for x in (flat, parts)] for here in (True, False)]

# === Bounds; without the variable that they fix, 399 are no multiple of the devices ===
def fixed(x0):
    bounds = [(-9.0, 9.0)] * 399 + [(2.0, 2.0)]
    opt = fmnes.Optimizer(x0, 0.5, method="cr-fm-nes", popsize=18, rng=1, bounds=bounds)
    for _ in range(GENERATIONS):
        opt.tell((weights * opt.ask() ** 2).sum(axis=1))
    return opt

bounded = [fixed(x) for x in (flat, parts)]

try:
    fmnes.jax.shardings(fmnes.jax.init(jax.random.key(1), jnp.zeros(9), 1.0), mesh, "n")
    refused = ""
except ValueError as error:
    refused = str(error)


def gap(a, b):
    pairs = zip(map(np.asarray, jax.tree.leaves(a)), map(np.asarray, jax.tree.leaves(b)))
    return max(float(np.max(np.abs(p - q)) / np.max(np.abs(q))) for p, q in pairs)


print(json.dumps({
    "devices": jax.device_count(),
    "split": gap(split.state, alone.state),
    "split_best": abs(float(split_metrics.best) / float(metrics.best) - 1),
    "on_each": [len(s.data) for s in split.state.mean.addressable_shards],
    "gathers": [s for s in program.splitlines() if "all-gather(" in s and "[8,400]" in s],
    "shared": gap(shared.state, alone.state),
    "optimizers": [gap(b._state, a._state) for a, b in optimizers],
    "bounded": gap(bounded[1].result.x, bounded[0].result.x),
    "fixed": float(bounded[1].result.x[-1]),
    "parts": [len(s.data) for s in optimizers[0][1]._state.v.addressable_shards],
    "refused": refused,
}))
"""


@pytest.fixture(scope="module")
def report():
    flags = "--xla_force_host_platform_device_count=8"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_variables_over_devices(report):
    """Each device holds its part of every vector, and the search is that of one device."""
    assert report["devices"] == 8
    assert report["on_each"] == [50] * 8
    assert report["split"] < 1e-11
    assert report["split_best"] < 1e-11


def test_no_device_gathers_the_draws(report):
    assert report["gathers"] == []


def test_candidates_over_devices(report):
    assert report["shared"] < 1e-11


def test_an_optimizer_with_a_sharded_x0(report):
    """Values of the device and of the host; each device holds its part of every vector."""
    assert max(report["optimizers"]) < 1e-11
    assert report["parts"] == [50] * 8


def test_a_sharded_x0_with_a_variable_that_bounds_fix(report):
    assert report["bounded"] < 1e-11
    assert report["fixed"] == 2.0


def test_a_number_of_variables_that_cannot_be_split(report):
    assert report["refused"].startswith("search: expected a number of variables that is a multiple")
