"""A robot learns to run: linear policies for HalfCheetah, beside pycma's VD-CMA.

    python examples/half_cheetah.py                       hours: 20 000 episodes a run
    python examples/half_cheetah.py --budget 100 --steps 20 --tests 1 --seeds 1

A policy is an affine map from 17 normalised observations to 6 torques: 108 variables. An evaluation
is one episode of 250 steps; what was learnt is tested in others, of the usual 1000. Finished runs
are kept in --out and are not repeated.
"""

import argparse
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cma
import gymnasium
import numpy as np
from cma.restricted_gaussian_sampler import GaussVDSampler
from matplotlib.figure import Figure

import fmnes
from fmnes.integrations.gymnasium import PolicyObjective

SIGMA0 = 0.4  # random policies then use the whole range of the torques


def run_fmnes(
    objective: PolicyObjective, seed: int, options: Any, path: Path, method: str
) -> dict[str, Any]:
    result = fmnes.minimize(
        objective,
        objective.x0,
        SIGMA0,
        method=method,
        maxfevals=options.budget,
        workers=options.workers,
        rng=seed,
        progress=True,
        checkpoint=path.with_suffix(".npz"),
    )
    if result.status in ("interrupted", "terminated"):
        raise SystemExit(f"{result.status}: start again to go on")
    history = result.history
    curve = [history["nfev"].tolist(), (-history["best"]).tolist()]
    return summary(objective, result.x, result.mean, curve, options.tests)


def run_pycma(objective: PolicyObjective, seed: int, options: Any, path: Path) -> dict[str, Any]:
    settings = {"seed": seed, "verbose": -9, "tolstagnation": np.inf}
    es = cma.CMAEvolutionStrategy(objective.x0, SIGMA0, GaussVDSampler.extend_cma_options(settings))
    curve: list[list[float]] = [[], []]
    with fmnes.Evaluator(options.workers) as evaluator:
        while es.countevals + es.popsize <= options.budget and not es.stop():
            candidates = es.ask()
            es.tell(candidates, evaluator.evaluate(objective, (), np.array(candidates)).values)
            curve[0].append(es.countevals)
            curve[1].append(-es.best.f)
    return summary(objective, es.best.x, es.mean, curve, options.tests)


def summary(
    objective: PolicyObjective, best: Any, mean: Any, curve: Any, episodes: int
) -> dict[str, Any]:
    """What is kept of a run: returns in long episodes that were not seen, and the way there."""
    long = PolicyObjective("HalfCheetah-v5", normalize=(objective.mean, objective.std))
    points = {"best": best, "mean": mean}
    tests = {key: long.returns(x, episodes=episodes, seed=10**6) for key, x in points.items()}
    thin = np.unique(np.linspace(0, len(curve[0]) - 1, 300).astype(int))
    return {
        "train": round(curve[1][-1], 1),
        "test": {name: [float(r.mean()), float(r.std())] for name, r in tests.items()},
        "evaluations": [int(curve[0][i]) for i in thin],
        "return": [round(curve[1][i], 1) for i in thin],
    }


SOLVERS: dict[str, Callable[..., dict[str, Any]]] = {
    "auto": functools.partial(run_fmnes, method="auto"),
    "cr-fm-nes": functools.partial(run_fmnes, method="cr-fm-nes"),
    "pycma-vd": run_pycma,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=20_000, help="episodes of a run")
    parser.add_argument("--steps", type=int, default=250, help="steps of an episode")
    parser.add_argument("--tests", type=int, default=50, help="episodes of 1000 steps afterwards")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("half_cheetah"), help="folder")
    options = parser.parse_args()
    make = functools.partial(gymnasium.make, "HalfCheetah-v5", max_episode_steps=options.steps)
    options.out.mkdir(parents=True, exist_ok=True)
    axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
    print(f"{'solver':<12}{'seed':>5}{'return':>8}{'1000 steps, best':>20}{'mean':>16}")
    for seed in options.seeds:
        for colour, name in zip(("C2", "C0", "C1"), options.solvers, strict=False):
            path = options.out / f"{name}-{seed}.json"
            if not path.exists():
                objective = PolicyObjective(make, "linear", seed=1000 * seed, normalize=10)
                path.write_text(json.dumps(SOLVERS[name](objective, seed, options, path)))
            run = json.loads(path.read_text())
            best, mean = ("{:.0f} ± {:.0f}".format(*run["test"][key]) for key in ("best", "mean"))
            print(f"{name:<12}{seed:>5}{run['train']:>8.0f}{best:>20}{mean:>16}", flush=True)
            label = name if seed == options.seeds[0] else None
            axes.plot(run["evaluations"], run["return"], colour, label=label)
    axes.set(
        xlabel="evaluations (episodes)",
        ylabel=f"best return, {options.steps} steps",
        title="HalfCheetah-v5, linear policy",
    )
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(options.out / "half-cheetah.png", dpi=150)


if __name__ == "__main__":
    main()
