"""Where to put 16 wind turbines: the layout of the IEA Wind Task 37 case study 1, with PyWake.

    python examples/wind_farm.py                              ten minutes
    python examples/wind_farm.py --seeds 1 --budget 500

The layout of most energy a year is asked for: 32 variables. It is infeasible, and worth inf, if a
turbine stands outside the circle of the site or closer than two diameters to another; the method is
told no more. Wind, turbine, wake model and the layout to improve on are the case study's. Beside it
pycma's CMA-ES, with VD and with full covariance, which draws infeasible candidates (NaN, as its
documentation says) again. Infeasible layouts count as evaluations for all.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import cma
import numpy as np
from cma.restricted_gaussian_sampler import GaussVDSampler
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from py_wake.literature.iea37_case_study1 import IEA37CaseStudy1

import fmnes

FARM = IEA37CaseStudy1(16)
RADIUS, DIAMETER = 1300.0, 130.0
GIVEN = FARM.site.initial_position  # its outer turbines stand on the circle itself
START = 0.75 * GIVEN.ravel() / DIAMETER  # so the search starts inside
SIGMA0, POPSIZE = 0.6, 32
BASELINE, RECORD = 366941.57, 418924.41  # MWh: given, and best of the case study's ten entries


class Layout:
    """Minus the energy of a layout, and the best found within the budget: when, how much, where."""

    def __init__(self, infeasible: float, budget: int) -> None:
        self.infeasible, self.budget = infeasible, budget
        self.nfev = self.rejected = 0
        self.run: dict[str, Any] = {"nfevs": [], "bests": []}

    def __call__(self, x: np.ndarray) -> float:  # noqa: D102
        self.nfev += 1
        if violation(x) > 0:
            self.rejected += 1
            return self.infeasible
        value, bests = -energy(x), self.run["bests"]
        if self.nfev <= self.budget and (not bests or value < bests[-1]):
            self.run["nfevs"].append(self.nfev)
            bests.append(value)
            self.run["x"] = x.tolist()
        return value


def violation(x: np.ndarray) -> float:
    """By how many diameters the worst rule is broken; not above 0 if none is."""
    turbines = x.reshape(-1, 2)
    i, j = np.triu_indices(len(turbines), 1)
    closest = np.linalg.norm(turbines[i] - turbines[j], axis=1).min()
    return float(max(2.0 - closest, np.linalg.norm(turbines, axis=1).max() - RADIUS / DIAMETER))


def energy(x: np.ndarray) -> float:
    """MWh a year; x in diameters, (east, north) turbine by turbine."""
    return 1000 * float(FARM.aep(*(DIAMETER * x.reshape(-1, 2).T)))


def search(solver: str, seed: int, budget: int) -> dict[str, Any]:
    fun = Layout(np.nan if solver.startswith("pycma") else np.inf, budget)
    if solver in fmnes.METHODS:
        options = {"popsize": POPSIZE, "rng": seed, "maxfevals": budget}
        fmnes.minimize(fun, START, SIGMA0, method=solver, **options)
    else:
        options = {"popsize": POPSIZE, "seed": seed + 1, "verbose": -9, "tolstagnation": np.inf}
        options |= GaussVDSampler.extend_cma_options({}) if solver == "pycma VD" else {}
        es = cma.CMAEvolutionStrategy(START, SIGMA0, options)
        while fun.nfev < budget and not es.stop():
            es.tell(*es.ask_and_eval(fun))
    return {**fun.run, "infeasible": fun.rejected / fun.nfev}


def draw(groups: dict[str, list[dict[str, Any]]]) -> Figure:
    figure = Figure(figsize=(7, 3), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[4, 3])
    pairs = {name: [(r["nfevs"], r["bests"]) for r in runs] for name, runs in groups.items()}
    fmnes.plot_runs(pairs, fopt=-RECORD, figure=left)
    left.axes[0].set_ylabel("MWh a year below the best entry", fontsize=8)
    best = min((run for runs in groups.values() for run in runs), key=lambda r: r["bests"][-1])
    axes = right.subplots()
    axes.add_patch(Circle((0, 0), RADIUS, fill=False, color="0.5"))
    axes.plot(*GIVEN.T, "x", color="#D55E00", label=f"given: {BASELINE:.0f} MWh")
    found = DIAMETER * np.reshape(best["x"], (-1, 2))
    axes.plot(*found.T, "o", color="#0072B2", label=f"found: {-best['bests'][-1]:.0f} MWh")
    axes.set(aspect="equal", xticks=[], yticks=[])
    right.legend(loc="outside lower center", fontsize=7, ncols=2)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="searches with each solver")
    parser.add_argument("--budget", type=int, default=10_000, help="evaluations of a search")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for figures and picture")
    options = parser.parse_args()
    groups: dict[str, list[dict[str, Any]]] = {}
    print("solver      median MWh  best MWh  above the given layout  infeasible")
    for solver in ("auto", "cr-fm-nes", "dx-nes-ic", "pycma VD", "pycma full"):
        groups[solver] = runs = [search(solver, s, options.budget) for s in range(options.seeds)]
        found = np.array([-run["bests"][-1] for run in runs])
        middle, share = np.median(found), np.median([run["infeasible"] for run in runs])
        more = middle / BASELINE - 1
        print(f"{solver:<12}{middle:10.0f}{found.max():10.0f}{more:24.1%}{share:12.0%}")
    (options.out / "wind_farm.json").write_text(json.dumps(groups))
    draw(groups).savefig(options.out / "wind_farm.png", dpi=150)


if __name__ == "__main__":
    main()
