"""A policy trained wholly on the device: cart-pole swing-up in MuJoCo's MJX, beside evosax.

    python examples/mjx_policy.py --out mjx-policy.json       a few minutes on a GPU
    python examples/mjx_policy.py --small                     seconds on a CPU
    python examples/mjx_policy.py --report                    picture and table of the stored runs

A motor pushes a cart, from which a pole hangs. The policy, a network 5-32-32-1, has to swing the
pole up and balance it. All searches of a method, one for each seed and initial step size, run at
once in one compiled program.
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import fmnes.jax

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks/results/examples/mjx-policy.json"
PAGE = ROOT / "docs/examples/mjx-policy.md"

# No contacts, joint limits or implicit damping: a step needs no iterative solver.
MODEL = """
<mujoco>
  <option timestep="0.02" jacobian="sparse" integrator="Euler">
    <flag contact="disable" constraint="disable" eulerdamp="disable"/>
  </option>
  <worldbody>
    <body name="cart" pos="0 0 1">
      <joint name="slide" type="slide" axis="1 0 0" damping="0.05"/>
      <geom type="box" size="0.2 0.15 0.1" mass="1"/>
      <body name="pole">
        <joint name="hinge" type="hinge" axis="0 1 0" damping="0.002"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size="0.045" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="slide" gear="10" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


class Sizes(NamedTuple):
    """The size of an experiment."""

    hidden: int = 32
    popsize: int = 256
    episodes: int = 8  # of each candidate
    steps: int = 200  # of an episode: 4 seconds
    generations: int = 200
    chunk: int = 20  # generations of one call of the compiled program
    tests: int = 512  # episodes for the final policy
    sigmas: tuple[float, ...] = (0.3, 1.0, 3.0)
    seeds: tuple[int, ...] = (1, 2, 3)


SMALL = Sizes(4, 8, 2, 10, 4, 2, 4, (0.3, 1.0), (1,))


def first_policy(key: Any, hidden: int) -> dict[str, Any]:
    """Random hidden layers, and a last layer of zeros: a motor that does nothing."""
    widths = (5, hidden, hidden, 1)
    policy = {}
    for i, (n, m) in enumerate(itertools.pairwise(widths)):
        drawn = jax.random.normal(jax.random.fold_in(key, i), (n, m))
        policy |= {f"w{i}": drawn if m > 1 else jnp.zeros((n, m)), f"b{i}": jnp.zeros(m)}
    return policy


def act(policy: dict[str, Any], position: Any, velocity: Any) -> Any:
    """The force of the motor. Weights are divided by sqrt(inputs), so that one sigma fits all."""
    x, angle = position
    y = jnp.stack([x, jnp.cos(angle), jnp.sin(angle), velocity[0], velocity[1] / 5])
    for i in range(3):
        w, b = policy[f"w{i}"], policy[f"b{i}"]
        y = jnp.tanh(y @ w / np.sqrt(w.shape[0]) + b)
    return y


def make_episode(steps: int) -> Callable[..., Any]:
    """Return a function of a policy and a key: the return of an episode, at most ``steps``."""
    import mujoco
    from mujoco import mjx

    model = mjx.put_model(mujoco.MjModel.from_xml_string(MODEL))
    start = mjx.make_data(model)

    def episode(policy: dict[str, Any], key: Any) -> Any:
        noise = 0.2 * jax.random.uniform(key, (4,), minval=-1.0)
        hanging = jnp.array([0.0, np.pi])
        data = start.replace(qpos=hanging + noise[:2], qvel=noise[2:])

        def step(data: Any, _: None) -> tuple[Any, Any]:
            data = mjx.step(model, data.replace(ctrl=act(policy, data.qpos, data.qvel)))
            x, angle = data.qpos
            upright = (1 + jnp.cos(angle)) / 2
            return data, upright * jnp.exp(-((x / 2) ** 2))

        return jax.lax.scan(step, data, length=steps)[1].sum()

    return episode


class Strategy(NamedTuple):
    """A search as three functions, for both libraries."""

    init: Callable[..., Any]  # of a key
    ask: Callable[..., Any]  # of a key and a state: the population and the state
    tell: Callable[..., Any]  # of a key, a population, values and a state
    mean: Callable[..., Any]  # of a state


def ours(x0: Any, popsize: int) -> Strategy:
    return Strategy(
        init=lambda key: fmnes.jax.init(key, x0, 1.0, method="cr-fm-nes", popsize=popsize),
        ask=lambda key, state: (fmnes.jax.ask(state), state),
        tell=lambda key, population, values, state: fmnes.jax.tell(state, values)[0],
        mean=fmnes.jax.mean,
    )


def evosax(name: str, rate: float | None, x0: Any, popsize: int) -> Strategy:
    """A method of evosax; a rate replaces its optimizer of the mean by Adam."""
    import optax
    from evosax import algorithms

    options = {} if rate is None else {"optimizer": optax.adam(rate)}
    method = getattr(algorithms, name)(population_size=popsize, solution=x0, **options)
    params = method.default_params
    return Strategy(
        init=lambda key: method.init(key, x0, params),
        ask=lambda key, state: method.ask(key, state, params),
        tell=lambda key, x, values, state: method.tell(key, x, values, state, params)[0],
        mean=method.get_mean,
    )


RATE = 0.3  # of Adam, relative to sigma; 0.1 was much slower in short trials

METHODS: dict[str, Callable[[Any, int], Strategy]] = {
    "fmnes CR-FM-NES": ours,
    "evosax CR_FM_NES": partial(evosax, "CR_FM_NES", None),
    "evosax Open_ES": partial(evosax, "Open_ES", RATE),
    "evosax PGPE": partial(evosax, "PGPE", RATE),
    "evosax SNES": partial(evosax, "SNES", None),
}


def programs(
    strategy: Strategy, first: Any, episode: Callable[..., Any], sizes: Sizes
) -> tuple[Any, Any]:
    """The compiled functions that begin all searches of a method, and continue them.

    Every search begins at zero with standard deviation 1. The weights of a policy are those of the
    first policy plus sigma times the variables. So a learning rate fits every sigma.
    """

    def policy_of(sigma: Any, base: Any, x: Any) -> Any:
        return jax.tree.map(lambda weights, change: weights + sigma * change, base, x)

    def generation(sigma: Any, base: Any, carry: Any, _: None) -> tuple[Any, Any]:
        state, key = carry
        key, ask, tell, world = jax.random.split(key, 4)
        worlds = jax.random.split(world, sizes.episodes)  # the same for all candidates
        population, state = strategy.ask(ask, state)
        # The mean is evaluated for the curve only; the search does not see its value.
        both = jax.tree.map(
            lambda x, m: jnp.concatenate([x, m[None]]), population, strategy.mean(state)
        )
        of_one = jax.vmap(episode, in_axes=(None, 0))
        policies = policy_of(sigma, base, both)
        returns = jax.vmap(of_one, in_axes=(0, None))(policies, worlds).mean(axis=1)
        state = strategy.tell(tell, population, -returns[:-1], state)
        return (state, key), returns[-1]

    def begin(seed: Any) -> Any:
        weights, draws, later = jax.random.split(jax.random.key(seed), 3)
        return first(weights), (strategy.init(draws), later)

    def proceed(sigma: Any, base: Any, carry: Any) -> tuple[Any, Any, Any]:
        step = partial(generation, sigma, base)
        carry, curve = jax.lax.scan(step, carry, length=sizes.chunk)
        return carry, curve, policy_of(sigma, base, strategy.mean(carry[0]))

    return jax.jit(jax.vmap(begin)), jax.jit(jax.vmap(proceed))


def search(
    name: str, episode: Any, tested: Any, sizes: Sizes, seconds: float, chunks: int | None
) -> dict[str, Any]:
    """All searches of a method: the returns of the mean over generations, and those of the test.

    ``chunks`` is how often the compiled program is called; None: as often as there is time.
    """
    first = partial(first_policy, hidden=sizes.hidden)
    x0 = jax.tree.map(jnp.zeros_like, first(jax.random.key(0)))
    begin, proceed = programs(METHODS[name](x0, sizes.popsize), first, episode, sizes)
    grid = [(sigma, seed) for sigma in sizes.sigmas for seed in sizes.seeds]
    sigmas, seeds = jnp.array([s for s, _ in grid]), jnp.array([seed for _, seed in grid])
    began = time.monotonic()
    base, carry = begin(seeds)
    compiled = proceed.lower(sigmas, base, carry).compile()
    compilation = time.monotonic() - began
    curves: list[Any] = []
    since = time.monotonic()
    while chunks is None or len(curves) < chunks:
        carry, curve, policies = compiled(sigmas, base, carry)
        curves.append(np.asarray(curve))
        spent = time.monotonic() - since
        at = f"{len(curves) * sizes.chunk} generations, {spent:.1f} s"
        print(
            f"  {name}: {at}, best of {len(grid)} means {curves[-1][:, -1].max():.1f}", flush=True
        )
        if chunks is None:
            affordable = int((seconds - compilation) / spent)
            chunks = max(1, min(sizes.generations // sizes.chunk, affordable))
    returns, tests = np.concatenate(curves, axis=1), np.asarray(tested(policies))
    runs = [
        {"sigma": sigma, "seed": seed, "curve": curve.round(2).tolist(), "test": round(test, 2)}
        for (sigma, seed), curve, test in zip(grid, returns, tests.tolist(), strict=True)
    ]
    times = {"compilation": round(compilation, 1), "seconds": round(spent, 1)}
    return times | {"chunks": chunks, "runs": runs}


def train(options: Any) -> None:
    """Run all methods with the same number of generations; write the results after each."""
    sizes = SMALL if options.small else Sizes()
    began = time.monotonic()
    episode = make_episode(sizes.steps)
    keys = jax.random.split(jax.random.key(10**6), sizes.tests)
    of_one = jax.vmap(episode, in_axes=(None, 0))
    tested = jax.jit(jax.vmap(lambda policy: of_one(policy, keys).mean()))
    found: dict[str, Any] = {
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "sizes": sizes._asdict(),
        "variables": sum(x.size for x in first_policy(keys[0], sizes.hidden).values()),
        "methods": {},
    }
    share, chunks = options.seconds / len(options.methods), None
    for name in options.methods:
        if time.monotonic() - began > options.seconds:
            print(f"{name}: no time left", flush=True)
            continue
        found["methods"][name] = done = search(name, episode, tested, sizes, share, chunks)
        chunks = done["chunks"]
        options.out.write_text(json.dumps(found))
        times = f"{done['compilation']} s to compile, {done['seconds']} s to run"
        print(f"{name}: {times}, tests {[r['test'] for r in done['runs']]}", flush=True)


def chosen(method: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs with the sigma that has the best median in the test."""
    runs = method["runs"]
    groups = {
        sigma: [r for r in runs if r["sigma"] == sigma] for sigma in {r["sigma"] for r in runs}
    }
    return max(groups.values(), key=lambda group: np.median([r["test"] for r in group]))


def result_table(found: dict[str, Any]) -> str:
    """What the page shows of the results."""
    from pages import table

    sizes, rows = found["sizes"], []
    for name, method in found["methods"].items():
        best = chosen(method)[0]["sigma"]
        cells = []
        for sigma in sizes["sigmas"]:
            tests = ", ".join(f"{r['test']:.1f}" for r in method["runs"] if r["sigma"] == sigma)
            cells.append(f"**{tests}**" if sigma == best else tests)
        rows.append([name, *cells, f"{method['seconds']:.0f}", f"{method['compilation']:.0f}"])
    titles = ["method", *(f"sigma {s}" for s in sizes["sigmas"]), "run, s", "compile, s"]
    episodes, searches = sizes["popsize"] * sizes["episodes"], len(method["runs"])
    told = (
        f"{found['variables']} variables, {len(method['runs'][0]['curve'])} generations. "
        f"Each of the {searches} searches of a method runs {episodes} episodes of "
        f"{sizes['steps']} steps a generation. Device: {found['device']}, JAX {found['jax']}."
    )
    return f"{table(titles, rows)}\n\n{told}"


def draw(found: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for i, (name, method) in enumerate(found["methods"].items()):
        runs = chosen(method)
        for j, run in enumerate(runs):
            label = None if j else f"{name}, sigma {run['sigma']}"
            axes.plot(range(1, len(run["curve"]) + 1), run["curve"], f"C{i}", lw=1, label=label)
    axes.set(xlabel="generation", ylabel="return of the mean")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=150)


def report(stored: Path, page: Path) -> None:
    """Draw the picture, and make the table of the page anew."""
    sys.path.append(str(ROOT / "benchmarks"))
    from pages import with_tables

    found = json.loads(stored.read_text())
    draw(found, page.with_suffix(".png"))
    page.write_text(with_tables(page.read_text(), {"mjx-policy": result_table(found)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("mjx-policy.json"), help="results")
    parser.add_argument("--seconds", type=float, default=190, help="time in all, about")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--small", action="store_true", help="a trial on a CPU")
    parser.add_argument("--report", type=Path, nargs="?", const=STORED, help="only the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that --report changes")
    options = parser.parse_args()
    if options.report is None:
        train(options)
    else:
        report(options.report, options.page)


if __name__ == "__main__":
    main()
