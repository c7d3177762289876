"""The main job in one file: minimize 1000 variables, compare the methods, draw the runs."""

import sys
import time
from typing import Any

import numpy as np

import fmnes
from fmnes.problems import PROBLEMS

PICTURE = "demo.png"


def main() -> None:
    print("1. The ellipsoid function of 1000 variables, condition number 1e6, with the method auto")
    problem = PROBLEMS["ellipsoid"](1000)
    result = fmnes.minimize(
        problem, problem.x0, problem.sigma0, ftarget=1e-6, vectorized=True, progress=True, rng=1
    )
    print(result)

    print("\n2. Every method on the Rosenbrock function of 40 variables, target 1e-8")
    runs = compare()

    figure = draw(result, runs)
    figure.savefig(PICTURE, dpi=150)
    print(f"\nThe runs are drawn in {PICTURE}.")


def compare() -> dict[str, fmnes.Result]:
    """One run of each method, as a table on standard output."""
    problem = PROBLEMS["rosenbrock"](40)
    runs = {}
    print(f"{'method':<12}{'status':<12}{'f':>12}{'evaluations':>14}{'seconds':>10}")
    for name in fmnes.METHODS:
        begun = time.perf_counter()
        run = fmnes.minimize(
            problem,
            problem.x0,
            problem.sigma0,
            method=name,
            ftarget=1e-8,
            maxfevals=100_000,
            vectorized=True,
            rng=1,
        )
        seconds = time.perf_counter() - begun
        print(f"{name:<12}{run.status:<12}{run.fun:>12.3g}{run.nfev:>14}{seconds:>10.1f}")
        sys.stdout.flush()
        runs[name] = run
    return runs


def draw(result: fmnes.Result, runs: dict[str, fmnes.Result]) -> Any:
    """Left: the large run. Right: the methods side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    history = result.history
    left.plot(history["nfev"], history["best"], label="best value")
    left.plot(history["nfev"], history["sigma"], label="sigma")
    left.plot(history["nfev"], np.sqrt(history["condition"]), label="axis ratio")
    left.set_title("cr-fm-nes, ellipsoid, 1000 variables")
    for name, run in runs.items():
        width = 2.5 if name == "cr-fm-nes" else 1.0
        right.plot(run.history["nfev"], run.history["best"], label=name, lw=width)
    right.set_title("Rosenbrock, 40 variables: best value")
    for axes in (left, right):
        axes.set_yscale("log")
        axes.set_xlabel("evaluations")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    main()
