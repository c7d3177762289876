"""Lennard-Jones clusters: the arrangement of atoms of least energy, found with restarts.

    python examples/lennard_jones.py                              ten minutes: 13 and 38 atoms
    python examples/lennard_jones.py --atoms 13 --seeds 1 --budget 20000

Atoms attract each other and repel each other when close; the energy has a valley for each of the
many ways to pack them. The least energies known are those of D. J. Wales, J. P. K. Doye, J. Phys.
Chem. A 101 (1997) 5111. Beside it pycma's VD-CMA, with the same starts, box, step size, tolerances
and restarts.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import cma
import numpy as np
from cma.restricted_gaussian_sampler import GaussVDSampler
from matplotlib.figure import Figure

import fmnes

KNOWN = {13: -44.326801, 38: -173.928427}
SOLVED = 1e-5  # at most so much above the least energy known
SIGMA0 = 0.2  # an atom's diameter is about 1
TOLFUN, TOLX = 1e-8, 1e-4  # relative: a run that settles in a valley is to end soon


def energy(x: np.ndarray) -> np.ndarray:
    """The energy of each row of (m, 3n) coordinates: 4 times the sum over pairs r^-12 - r^-6."""
    atoms = x.reshape(len(x), -1, 3)
    i, j = np.triu_indices(atoms.shape[1], 1)
    attraction = ((atoms[:, i] - atoms[:, j]) ** 2).sum(axis=2) ** -3.0
    return 4 * np.sum(attraction * (attraction - 1), axis=1)


class Recorder:
    """The energy, and what was found within the budget: when, how low, where."""

    def __init__(self, budget: int) -> None:
        self.budget, self.nfev, self.x = budget, 0, np.empty(0)
        self.nfevs: list[int] = []
        self.bests: list[float] = []

    def __call__(self, x: Any) -> np.ndarray:  # noqa: D102
        values = energy(np.asarray(x))
        counted = values[: self.budget - self.nfev]
        self.nfev += len(counted)
        if len(counted) and (not self.bests or counted.min() < self.bests[-1]):
            self.nfevs.append(self.nfev)
            self.bests.append(float(counted.min()))
            self.x = np.array(x[counted.argmin()])
        return values


def search(solver: str, atoms: int, seed: int, budget: int) -> dict[str, Any]:
    """One search; the box and the start grow with the cluster's radius."""
    box = 1.5 * (atoms / 13) ** (1 / 3)  # without it atoms would fly away
    x0 = np.random.default_rng(seed).uniform(-2 / 3 * box, 2 / 3 * box, 3 * atoms)
    fun, target = Recorder(budget), KNOWN[atoms] + SOLVED
    limits: dict[str, Any] = {"ftarget": target, "maxfevals": budget}
    if solver in fmnes.METHODS:
        # Larger populations only boil the cluster: each run is as large as the first.
        limits |= {"restarts": fmnes.IPOP(10_000, factor=1.0), "bounds": [(-box, box)] * len(x0)}
        limits |= {"stopping": fmnes.Stopping(tolfun=TOLFUN, tolx=TOLX), "rng": seed}
        fmnes.minimize(fun, x0, SIGMA0, method=solver, vectorized=True, **limits)
    else:
        limits |= dict.fromkeys(("tolfun", "tolfunhist"), TOLFUN * abs(target))
        limits |= {"tolx": TOLX * SIGMA0, "bounds": [-box, box], "seed": seed + 1, "verbose": -9}
        again = {"restarts": 10_000, "incpopsize": 1, "parallel_objective": lambda x: list(fun(x))}
        cma.fmin2(None, x0, SIGMA0, GaussVDSampler.extend_cma_options(limits), **again)
    thin = np.linspace(0, len(fun.bests) - 1, min(300, len(fun.bests))).astype(int)
    nfevs, bests = (np.array(column)[thin].tolist() for column in (fun.nfevs, fun.bests))
    return {"nfev": fun.nfev, "nfevs": nfevs, "bests": bests, "x": fun.x.tolist()}


def draw(groups: dict[int, dict[str, list[dict[str, Any]]]]) -> Figure:
    """For each size the energy above the least known, and the best cluster."""
    figure = Figure(figsize=(7, 2.6 * len(groups)), layout="constrained")
    rows = figure.subfigures(len(groups), 2, width_ratios=[3, 2], squeeze=False)
    for (atoms, group), (left, right) in zip(groups.items(), rows, strict=True):
        pairs = {name: [(r["nfevs"], r["bests"]) for r in runs] for name, runs in group.items()}
        fmnes.plot_runs(pairs, fopt=KNOWN[atoms], figure=left)
        left.axes[0].set_xscale("log")
        best = min((run for runs in group.values() for run in runs), key=lambda r: r["bests"][-1])
        axes, x = right.add_subplot(projection="3d"), np.reshape(best["x"], (-1, 3))
        for a in x:
            for b in x[np.linalg.norm(x - a, axis=1) < 1.3]:
                axes.plot(*np.stack([a, b]).T, color="0.6", linewidth=0.7)
        axes.scatter(*x.T, s=60, color="#0072B2", edgecolor="white")
        axes.set_axis_off()
        axes.set_title(f"{atoms} atoms, energy {best['bests'][-1]:.6f}", fontsize=8)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atoms", type=int, nargs="+", choices=KNOWN, default=list(KNOWN))
    parser.add_argument("--seeds", type=int, default=5, help="searches with each solver")
    parser.add_argument("--budget", type=int, default=200_000, help="evaluations of a search")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for figures and picture")
    options = parser.parse_args()
    groups: dict[int, dict[str, list[dict[str, Any]]]] = {atoms: {} for atoms in options.atoms}
    print("atoms  solver      solved   best gap  median gap  median evaluations")
    for atoms, group in groups.items():
        for solver in ("auto", "cr-fm-nes", "pycma VD"):
            runs = [search(solver, atoms, seed, options.budget) for seed in range(options.seeds)]
            group[solver] = runs
            gaps = np.array([run["bests"][-1] for run in runs]) - KNOWN[atoms]
            nfev = np.median([run["nfev"] for run in runs])
            figures = f"{(gaps <= SOLVED).sum()} of {len(gaps)}{gaps.min():11.6f}"
            print(f"{atoms:5}  {solver:<12}{figures}{np.median(gaps):12.6f}{nfev:20.0f}")
    (options.out / "lennard_jones.json").write_text(json.dumps(groups))
    draw(groups).savefig(options.out / "lennard_jones.png", dpi=150)


if __name__ == "__main__":
    main()
