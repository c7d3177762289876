"""Bring your simulator: an external program that crashes and hangs, resumed after a kill.

    python examples/simulator.py                                 ten minutes, most of it waiting
    python examples/simulator.py --evaluations 150 --seeds 1

`crane.py` is the program: 40 accelerations of a crane's trolley in, a cost out. First `fmnes run`
is killed on its way and resumed. Then several seeds beside pycma's VD-CMA and separable CMA-ES, all
of them with `fmnes.Evaluator`, so that none of them hangs.
"""

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import cma
import numpy as np
from cma.restricted_gaussian_sampler import GaussVDSampler
from matplotlib.figure import Figure

import crane
import fmnes

PROGRAM = [sys.executable, "-S", crane.__file__]
DIM, SIGMA0, TIMEOUT, WORKERS = 40, 0.4, 2.0, 2
Course = tuple[list[int], list[float]]  # evaluations, and the best value until then


def killed_and_resumed(folder: Path, evaluations: int) -> dict[str, Any]:
    """Seed 1 by the command line: killed when about a third is done, and resumed."""
    fmnes_, command = [sys.executable, "-m", "fmnes"], " ".join([*PROGRAM, "{file}"])
    flags = f"--x0 0 --dim {DIM} --sigma0 {SIGMA0} --rng 1 --maxfevals {evaluations} --quiet "
    flags += f"--workers {WORKERS} --evaluation-timeout {TIMEOUT} --out {folder}"
    process = subprocess.Popen([*fmnes_, "run", "--command", command, *flags.split()])
    history, generations = folder / "history.csv", evaluations // 50
    while not history.exists() or len(history.read_text().splitlines()) <= generations:
        time.sleep(0.1)
    process.kill()
    print(f"killed after {generations} generations; exit status {process.wait()}", flush=True)
    subprocess.run([*fmnes_, "resume", folder, "--quiet"], check=True)
    return json.loads((folder / "result.json").read_text())


def cost(x: np.ndarray) -> float:
    """What the program says. An exception where it fails; and it may take for ever."""
    lines = "\n".join(map(repr, x.tolist()))
    done = subprocess.run(PROGRAM, input=lines, capture_output=True, text=True, check=True)
    return float(done.stdout)


def by_fmnes(seed: int, n: int, workers: fmnes.Evaluator, method: str) -> Course:
    result = fmnes.minimize(
        cost, np.zeros(DIM), SIGMA0, method=method, rng=seed, maxfevals=n, workers=workers
    )
    return result.history["nfev"].tolist(), result.history["best"].tolist()


def by_pycma(seed: int, n: int, workers: fmnes.Evaluator, extend: Any) -> Course:
    options = extend({"seed": seed, "verbose": -9})
    search, nfev, best = cma.CMAEvolutionStrategy(np.zeros(DIM), SIGMA0, options), [], []
    while search.countevals + search.popsize <= n:
        x = search.ask()
        values = workers.evaluate(cost, (), np.asarray(x)).values
        search.tell(x, np.where(np.isnan(values), 1e6, values))
        nfev.append(search.countevals)
        best.append(float(np.nanmin([*values, *best[-1:]])))
    return nfev, best


SOLVERS = {
    "auto": partial(by_fmnes, method="auto"),
    "CR-FM-NES": partial(by_fmnes, method="cr-fm-nes"),
    "pycma, VD": partial(by_pycma, extend=GaussVDSampler.extend_cma_options),
    "pycma, separable": partial(by_pycma, extend=lambda given: {**given, "CMA_diagonal": True}),
}


def by_the_book() -> list[float]:
    """Speed up for one period of the pendulum, brake for another: the load comes to rest."""
    n = round(2 * np.pi * (crane.CABLE / crane.GRAVITY) ** 0.5 / crane.SECONDS * (DIM - 1))
    shape = np.array([0.0] + n * [0.1] + n * [-0.1] + (DIM - 1 - 2 * n) * [0.0])
    trolley = list(crane.simulate(shape.tolist()))[-2][1]
    return (crane.GOAL / trolley * shape).tolist()


def draw(runs: dict[str, list[Course]], x: list[float]) -> Figure:
    """Left: the searches. Right: the load on its way, and the trolley that takes it there."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subfigures(1, 2)
    fmnes.plot_runs(runs, figure=left)
    axes = right.subplots()
    for name, controls in {"found": x, "by the book": by_the_book()}.items():
        t, trolley, load = zip(*list(crane.simulate(controls))[:-1], strict=True)
        (line,) = axes.plot(t, load, label=f"load, {name}")
        axes.plot(t, trolley, "--", color=line.get_color(), lw=1, label=f"trolley, {name}")
    axes.set(xlabel="seconds", ylabel="metres")
    axes.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("simulator"))
    given = parser.parse_args()
    killed = killed_and_resumed(given.out / "run", given.evaluations)
    print(f"by the book: {cost(np.array(by_the_book())):.3f}", flush=True)
    runs = {}
    for name, solve in SOLVERS.items():
        with fmnes.Evaluator(WORKERS, timeout=TIMEOUT, on_error="penalize") as w:
            runs[name] = [solve(k + 1, given.evaluations, w) for k in range(given.seeds)]
        ends = sorted(best[-1] for _, best in runs[name])
        print(f"{name}: median {np.median(ends):.3f}, {ends[0]:.3f} to {ends[-1]:.3f}", flush=True)
    print("the same after a kill:", killed["fun"] == runs["auto"][0][1][-1])
    (given.out / "runs.json").write_text(json.dumps({"killed": killed, "runs": runs}))
    draw(runs, killed["x"]).savefig(given.out / "simulator.png", dpi=150)
