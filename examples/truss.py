"""A bridge of hundreds of bars: the least weight at which it bends no more than allowed.

    python examples/truss.py                              399 bars, half a minute
    python examples/truss.py --panels 20 --seeds 1        79 bars, seconds

A Warren truss spans n panels between two supports and carries the same load at each lower joint.
A bar of length L, area A and force N gets longer by N L / (E A), and the middle sinks by

    u = sum N n L / (E A),     n: the forces for a unit load in the middle (virtual work).

We minimize the weight, the sum of L A, over the areas of all bars. The deflection u is a constraint
with a value. The strength |N| / A <= limit of each bar is a bound on its area. The optimum is
known: A is proportional to sqrt(N n), and where that is too weak, the bound. `--solvers pycma` runs
pycma's `fmin_con2` instead, with the same number of evaluations.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import cma
import numpy as np
from matplotlib.figure import Figure

import fmnes

LIMIT = 1.0  # deflection allowed; lengths, loads and Young's modulus have units that make it 1


class Truss:
    """Forces and lengths of a Warren truss with an even number of panels of length 1."""

    def __init__(self, panels: int) -> None:
        top = [(i + 0.5, np.sqrt(3) / 2) for i in range(panels)]
        joints = np.array([(float(i), 0.0) for i in range(panels + 1)] + top)
        low, high = np.arange(panels + 1), panels + 1 + np.arange(panels)
        bars = [(low[i], low[i + 1]) for i in range(panels)]
        bars += [(low[i], high[i]) for i in range(panels)]
        bars += [(high[i], low[i + 1]) for i in range(panels)]
        bars += [(high[i], high[i + 1]) for i in range(panels - 1)]
        a, b = np.array(bars).T
        along = joints[b] - joints[a]
        self.length = np.linalg.norm(along, axis=1)
        unit = along / self.length[:, None]
        # Equilibrium of each joint in x and y, with reactions in x and y left, in y right.
        balance = np.zeros((2 * len(joints), len(bars) + 3))
        for k in range(2):
            balance[2 * a + k, np.arange(len(bars))] = unit[:, k]
            balance[2 * b + k, np.arange(len(bars))] = -unit[:, k]
        balance[[0, 1, 2 * panels + 1], [-3, -2, -1]] = 1.0
        loads = np.zeros((2 * len(joints), 2))
        loads[2 * low[1:-1] + 1, 0] = 1.0 / panels  # on all inner lower joints, downwards
        loads[2 * (panels // 2) + 1, 1] = 1.0  # the unit load in the middle
        self.force, self.unit_force = np.linalg.solve(balance, loads)[:-3].T
        self.work = self.force * self.unit_force * self.length
        self.weakest = np.maximum(np.abs(self.force), 1e-3) / 4.0  # the least area for its strength

    def __call__(self, x: np.ndarray) -> tuple[float, float]:
        """Weight and deflection beyond the limit, relative to it, for logarithms of the areas."""
        area = np.exp(x)
        return float(self.length @ area), float((self.work / area).sum() / LIMIT - 1)

    def optimum(self) -> np.ndarray:
        """The best areas: max(weakest, c sqrt(N n)) with c from the limit, by bisection."""
        best = np.sqrt(np.maximum(self.work / self.length, 0.0))
        low, high = 0.0, 1e9
        for _ in range(200):
            c = (low + high) / 2
            area = np.maximum(self.weakest, c * best)
            low, high = (low, c) if (self.work / area).sum() < LIMIT else (c, high)
        return np.maximum(self.weakest, high * best)


def design(truss: Truss, seed: int, **options: object) -> fmnes.Result:
    """Search for the areas, from bars that are all equally thick."""
    lowest, start = limits(truss)
    return fmnes.minimize(
        truss, start, 0.5, bounds=fmnes.Bounds(lowest, np.inf), constraints=1, rng=seed, **options
    )


class Watched:
    """A truss that notes how far above the least weight the best design is, and when."""

    def __init__(self, truss: Truss, budget: int) -> None:
        self._truss, self._budget = truss, budget
        self._least = float(truss.length @ truss.optimum())
        self.nfev = 0
        self.run: dict[str, Any] = {"nfevs": [], "above": []}

    def __call__(self, x: np.ndarray) -> tuple[float, float]:  # noqa: D102
        weight, excess = self._truss(x)
        self.nfev += 1
        above = weight / self._least - 1
        feasible = excess <= 0 and (x >= np.log(self._truss.weakest)).all()
        best = self.run["above"][-1] if self.run["above"] else np.inf
        if self.nfev <= self._budget and feasible and above < 0.98 * best:
            self.run["nfevs"].append(self.nfev)
            self.run["above"].append(max(above, 1e-15))
            self.run["area"] = np.exp(x).tolist()
        return weight, excess


def search(solver: str, truss: Truss, seed: int, budget: int) -> dict[str, Any]:
    """Let a solver search, and return when it found which weight."""
    watched = Watched(truss, budget)
    if solver in fmnes.METHODS:
        lowest, start = limits(truss)
        fmnes.minimize(
            watched, start, 0.5, bounds=fmnes.Bounds(lowest, np.inf), constraints=1,
            method=solver, maxfevals=budget, rng=seed,
        )  # fmt: skip
        return watched.run
    lowest, start = limits(truss)
    last: dict[str, Any] = {}

    def weight(x: Any) -> float:
        last["x"], last["value"] = np.array(x), watched(np.array(x))
        return float(last["value"][0])

    def excess(x: Any) -> list[float]:  # of the same candidate
        if not np.array_equal(last.get("x"), x):
            weight(x)
        return [float(last["value"][1])]

    options = {
        "bounds": [lowest, None],
        "maxfevals": budget,
        "seed": seed + 1,
        "verbose": -9,
        "verb_log": 0,
    }
    cma.fmin_con2(weight, start, 0.5, constraints=excess, options=options)
    return watched.run


def limits(truss: Truss) -> tuple[np.ndarray, np.ndarray]:
    """Return the least logarithms of the areas, and where a search starts: bars all alike."""
    lowest = np.log(truss.weakest)
    return lowest, np.maximum(lowest, np.log(2 * truss.work.sum() / LIMIT))


def draw(groups: dict[str, list[dict[str, Any]]], truss: Truss) -> Figure:
    """Draw the courses of all searches, and the best areas beside the known ones."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    left, right = figure.subfigures(1, 2)
    pairs = {name: [(r["nfevs"], r["above"]) for r in runs] for name, runs in groups.items()}
    fmnes.plot_runs(pairs, fopt=0.0, figure=left)
    left.axes[0].set_ylabel("weight above the least, relative", fontsize=8)
    solver = next(iter(groups))
    axes, area = right.subplots(), np.array(groups[solver][0]["area"])
    axes.plot(truss.optimum() / truss.optimum().max(), color="0.6", lw=3, label="known")
    axes.plot(area / truss.optimum().max(), color="#0072B2", lw=0.8, label=solver)
    axes.set_xlabel("bar: lower chord, diagonals, upper chord", fontsize=8)
    axes.set_ylabel("area, relative", fontsize=8)
    axes.legend(fontsize=7)
    return figure


def main() -> None:
    """Compare what solvers find with the least weight."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--panels", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=2, help="searches with each solver")
    parser.add_argument("--solvers", nargs="+", default=["cr-fm-nes", "auto", "sep-cma"])
    parser.add_argument("--budget", type=int, help="evaluations of a search; 150 for each bar")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for figures and picture")
    options = parser.parse_args()
    truss = Truss(options.panels)
    budget = options.budget or 150 * len(truss.length)
    groups: dict[str, list[dict[str, Any]]] = {}
    print(f"{len(truss.length)} bars, {budget} evaluations")
    print("solver          above the least weight, median")
    for solver in options.solvers:
        seeds = range(1, 1 + options.seeds)
        groups[solver] = runs = [search(solver, truss, seed, budget) for seed in seeds]
        print(f"{solver:<16}{np.median([run['above'][-1] for run in runs]):.1e}", flush=True)
    (options.out / "truss.json").write_text(json.dumps(groups))
    draw(groups, truss).savefig(options.out / "truss.png", dpi=150)


if __name__ == "__main__":
    main()
