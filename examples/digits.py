"""Digits by their 0-1 loss, which has no gradient, beside SGD and Adam on cross-entropy.

    python examples/digits.py        half an hour; for a try: --budget 300 --seeds 1 --widths 8

A network 64-width-10 with tanh: 2 410 and 10 060 variables. An evaluation is one pass over the
1 347 training images, and so is an epoch of SGD and Adam. Runs in --out are not repeated.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import cma
import numpy as np
import torch
from cma.restricted_gaussian_sampler import GaussVDSampler
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import fmnes
from fmnes.integrations.torch import ModuleObjective

images, digits = load_digits(return_X_y=True)
split = train_test_split(images.astype(np.float32) / 16, digits, random_state=0, stratify=digits)
X, X_TEST, Y, Y_TEST = (torch.tensor(part) for part in split)


def error(model: Any, x: Any = X, y: Any = Y) -> Any:
    return (model(x).argmax(1) != y).double().mean()


def start(module: Any) -> tuple[ModuleObjective, np.ndarray]:
    """The last layer begins at zero: a digit that is never named at first hardly comes back."""
    sizes = [sum(p.numel() for p in module[i].parameters()) for i in (0, 2)]
    sigma0 = np.repeat([0.8 / module[i].in_features ** 0.5 for i in (0, 2)], sizes)
    nn.utils.vector_to_parameters(torch.zeros(sizes[1]), module[2].parameters())
    return ModuleObjective(module, error), sigma0


def run_fmnes(module: Any, seed: int, budget: int, method: str = "cr-fm-nes") -> list[Any]:
    f, sigma0 = start(module)
    options = {"maxfevals": budget, "vectorized": True, "rng": seed}
    result = fmnes.minimize(f, f.x0, sigma0, method=method, **options)
    if result.status in ("interrupted", "terminated"):  # a part of a run is no result
        raise KeyboardInterrupt
    f.load(result.x)
    return list(zip(result.history["nfev"], result.history["best"], strict=True))


def run_pycma(module: Any, seed: int, budget: int) -> list[Any]:
    f, sigma0 = start(module)
    options = {"CMA_stds": sigma0, "seed": seed, "verbose": -9}
    options |= {"tolflatfitness": np.inf, "tolstagnation": np.inf, "tolfun": 0, "tolfunhist": 0}
    es = cma.CMAEvolutionStrategy(f.x0, 1.0, GaussVDSampler.extend_cma_options(options))
    curve = []
    while es.countevals + es.popsize <= budget and not es.stop():
        es.tell(candidates := es.ask(), f(np.array(candidates)))
        curve.append((es.countevals, es.best.f))
    f.load(es.best.x)
    return curve


def run_gradient(module: Any, budget: int, optimizer: Any) -> list[Any]:
    curve = []
    for epoch in range(1, min(budget, 200) + 1):
        for batch in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(X[batch]), Y[batch]).backward()
            optimizer.step()
        curve.append((epoch, error(module).item()))
    return curve


SOLVERS: dict[str, Any] = {  # to pairs: passes over the images, training error
    "auto": partial(run_fmnes, method="auto"),
    "fmnes": run_fmnes,
    "pycma-vd": run_pycma,
    "sgd": lambda m, _, n: run_gradient(m, n, torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)),
    "adam": lambda m, _, n: run_gradient(m, n, torch.optim.Adam(m.parameters(), 0.01)),
}


def run(name: str, width: int, seed: int, options: Any) -> dict[str, Any]:
    path = options.out / f"{name}-{width}-{seed}.json"
    if not path.exists():
        torch.manual_seed(seed)  # the same network for every solver
        module = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 10))
        curve = np.array(SOLVERS[name](module, seed, options.budget)).T
        errors = {"train": error(module).item(), "test": error(module, X_TEST, Y_TEST).item()}
        path.write_text(json.dumps(errors | {"curve": curve.round(6).tolist()}))
    return json.loads(path.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=30_000, help="evaluations of a run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 134])
    parser.add_argument("--out", type=Path, default=Path("digits"), help="folder of the results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(5 * len(options.widths), 4), layout="constrained")
    panels = figure.subplots(1, len(options.widths), squeeze=False, sharey=True)[0]
    print(f"{'solver':<12}{'variables':>10}{'training error, %':>24}{'test error, %':>24}")
    for axes, width in zip(panels, options.widths, strict=True):
        for i, name in enumerate(SOLVERS):
            runs = [run(name, width, seed, options) for seed in options.seeds]
            texts = (" ".join(f"{100 * r[key]:.2f}" for r in runs) for key in ("train", "test"))
            print(f"{name:<12}{75 * width + 10:>10}{next(texts):>24}{next(texts):>24}", flush=True)
            for r, label in zip(runs, [name] + [None] * len(runs), strict=False):
                axes.plot(r["curve"][0], 100 * np.array(r["curve"][1]), f"C{i}", lw=1, label=label)
        axes.set(xscale="log", yscale="symlog", xlabel="passes", title=f"64-{width}-10")
    panels[0].legend(title="training error, %", loc="upper left")
    figure.savefig(options.out / "digits.png", dpi=150)


if __name__ == "__main__":
    main()
