"""Evidence for what is not known of FM-NES: when to take the rank-one update, and the reset.

Prints a table of evaluations and writes one row per trial to a CSV file.

    python benchmarks/fm_nes_evidence.py --workers 2     # both parts, about an hour
    python benchmarks/fm_nes_evidence.py --part published    # d = 80 only, a few minutes

Part "published": the five functions of arXiv 2201.11422 at d = 80 with the smallest population of
its protocol, beside the figures read off the authors' slides (two digits at best).

Part "gains": evaluations of DX-NES-IC over those of FM-NES. The FM-NES paper reports
1.71 (Rosenbrock), 1.78 (cigar), 1.67 and 1.42 (the same two with implicit constraints), and
"almost the same performance" on the others. Its dimension and its constraints are not known here
and are chosen: d = 20, the default population, and a half space in every coordinate whose
boundary touches the optimum.
"""

import argparse
import csv
import math
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.algorithms import METHODS, _phases, fm_nes
from fmnes.algorithms._records import Shape
from fmnes.draws import normals

Objective = Callable[[NDArray[np.float64]], NDArray[np.float64]]
TARGET = 1e-10


# === Problems ===


class Problem(NamedTuple):
    """A function of rows of points with minimum 0, and where the search starts."""

    fun: Objective
    mean: float
    sigma: float


def _scaled(scales: Callable[[int], NDArray[np.float64]]) -> Objective:
    return lambda x: np.sum((x * scales(x.shape[1])) ** 2, axis=1)


def _where_positive(fun: Objective) -> Objective:
    return lambda x: np.where(np.all(x >= 0, axis=1), fun(x), np.inf)


def _rosenbrock(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sum(100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (x[:, :-1] - 1) ** 2, axis=1)


def _ic_rosenbrock(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.all(x <= 1, axis=1), _rosenbrock(x), np.inf)


def _rastrigin(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 10 * x.shape[1] + np.sum(x * x - 10 * np.cos(2 * np.pi * x), axis=1)


_sphere = _scaled(np.ones)
_ellipsoid = _scaled(lambda d: 1000 ** (np.arange(d) / (d - 1)))
_k_tablet = _scaled(lambda d: np.where(np.arange(d) < d // 4, 1.0, 100.0))
_cigar = _scaled(lambda d: np.where(np.arange(d) < 1, 1.0, 1000.0))

PROBLEMS = {
    "sphere": Problem(_sphere, 3.0, 2.0),
    "ellipsoid": Problem(_ellipsoid, 3.0, 2.0),
    "k-tablet": Problem(_k_tablet, 3.0, 2.0),
    "cigar": Problem(_cigar, 3.0, 2.0),
    "rosenbrock": Problem(_rosenbrock, 0.0, 0.5),
    "rastrigin": Problem(_rastrigin, 3.0, 2.0),
    # Five standard deviations from the boundary, as in the tests of the authors' crfmnes.
    "ic-sphere": Problem(_where_positive(_sphere), 10.0, 2.0),
    "ic-ellipsoid": Problem(_where_positive(_ellipsoid), 10.0, 2.0),
    "ic-k-tablet": Problem(_where_positive(_k_tablet), 10.0, 2.0),
    "ic-cigar": Problem(_where_positive(_cigar), 10.0, 2.0),
    "ic-rosenbrock": Problem(_ic_rosenbrock, 0.0, 0.5),
}
PUBLISHED_80 = {
    "sphere": 8.7e3,
    "ellipsoid": 1.6e5,
    "k-tablet": 1.3e5,
    "rosenbrock": 1.9e5,
    "rastrigin": 3.7e5,
}
PUBLISHED_GAINS = {"rosenbrock": 1.71, "cigar": 1.78, "ic-rosenbrock": 1.67, "ic-cigar": 1.42}


# === Variants of FM-NES ===


def _always(xp: Any, params: Any, step: Any, r: Any, z: Any, f: Any) -> Any:
    return step.lam_F >= 0


def _in_movement(xp: Any, params: Any, step: Any, r: Any, z: Any, f: Any) -> Any:
    return step.phase == _phases.MOVEMENT  # as in the author's code of 2017


def _all_feasible(xp: Any, params: Any, step: Any, r: Any, z: Any, f: Any) -> Any:
    return step.lam_F == params.popsize


def _no_reset(xp: Any, new: Any, infeasible: Any) -> Any:
    return new


CONDITIONS = {
    "library": fm_nes._path_is_free,
    "behind-1": fm_nes._path_is_free,  # with other thresholds
    "behind-2": fm_nes._path_is_free,
    "always": _always,
    "movement": _in_movement,
    "feasible": _all_feasible,
}
_BEHIND = fm_nes._BEHIND
THRESHOLDS = {"behind-1": 1.0, "behind-2": 2.0}
RESETS = {"library": fm_nes._reset_at_first_infeasible, "none": _no_reset}


# === Trials ===


class Trial(NamedTuple):
    """One row of the CSV file; evaluations is inf where the target was not reached."""

    part: str
    function: str
    dim: int
    popsize: int
    method: str
    rank_one: str
    reset: str
    seed: int
    evaluations: float = math.nan


def trials(part: str, count: int, dim: int) -> list[Trial]:
    """All trials of a part, without their results; ``dim`` is that of the gains."""
    if part == "published":
        popsizes = {name: 20 * 80 if name == "rastrigin" else 18 for name in PUBLISHED_80}
        cells = [
            (name, 80, lam, "fm-nes", rank_one, "library")
            for name, lam in popsizes.items()
            for rank_one in ("library", "movement")
        ]
    else:
        lam = fm_nes.default_popsize(dim)
        rules = [("library", "library"), ("movement", "library")]
        # Where everything is feasible, the library's rule, "always" and "feasible" are the same.
        others = ("always", "feasible", "behind-1", "behind-2")
        constrained = [("library", "none"), *((rule, "library") for rule in others)]
        cells = []
        for name in PROBLEMS:
            if name != "rastrigin":
                cells.append((name, dim, lam, "dx-nes-ic", "-", "-"))
                for rule in rules + (constrained if name.startswith("ic-") else []):
                    cells.append((name, dim, lam, "fm-nes", *rule))
    return [Trial(part, *cell, seed) for cell in cells for seed in range(count)]


def run(trial: Trial) -> Trial:
    """The trial with the evaluations that it took."""
    if trial.method == "fm-nes":  # a process runs one trial at a time
        fm_nes._path_is_free = CONDITIONS[trial.rank_one]
        fm_nes._BEHIND = THRESHOLDS.get(trial.rank_one, _BEHIND)
        fm_nes._reset_at_first_infeasible = RESETS[trial.reset]
    method, problem = METHODS[trial.method], PROBLEMS[trial.function]
    dim, lam = trial.dim, trial.popsize
    params = method.params(dim, lam)
    mean, sigma = np.full(dim, problem.mean), np.asarray(problem.sigma)
    state = method.init(params, mean, sigma, Shape(np.ones(dim)), np.zeros(dim))
    budget = 2 * dim * 10**4
    for generation in range(budget // lam):
        z = normals(trial.seed, 0, generation, 0, lam // 2, dim)
        f = problem.fun(method.ask(params, state, z))
        if np.min(f) < TARGET:
            return trial._replace(evaluations=(generation + 1) * lam)
        state = method.tell(params, state, z, f)
    return trial._replace(evaluations=math.inf)


def summary(done: list[Trial]) -> None:
    """Print evaluations by cell: mean of the solved trials over the share solved."""
    cells: dict[Any, list[float]] = {}
    for trial in done:
        cells.setdefault(trial[:7], []).append(trial.evaluations)
    line = "{:14} {:>3} {:>6} {:10} {:9} {:8} {:>11} {:>8} {:>7} {:>5}  {}"
    head = "function d lambda method rank-one reset evaluations sd solved gain published"
    print(line.format(*head.split()))
    reference: dict[str, float] = {}
    for (part, name, dim, lam, method, rank_one, reset), values in cells.items():
        solved = [v for v in values if math.isfinite(v)]
        mean = statistics.fmean(solved) * len(values) / len(solved) if solved else math.inf
        sd = f"{statistics.stdev(solved):.2g}" if len(solved) > 1 else "-"
        reference.update({name: mean} if method == "dx-nes-ic" else {})
        gain = f"{reference[name] / mean:.2f}" if part == "gains" else "-"
        known = (PUBLISHED_80 if part == "published" else PUBLISHED_GAINS).get(name, "")
        share = f"{len(solved)}/{len(values)}"
        evaluations = f"{mean:.3g}"
        print(
            line.format(
                name, dim, lam, method, rank_one, reset, evaluations, sd, share, gain, known
            )
        )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--part", choices=["published", "gains"], help="one part only")
    parser.add_argument("--dim", type=int, default=20, help="dimension of the gains")
    parser.add_argument("--trials", type=int, help="trials a cell; else 3 published, 10 gains")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    default = Path(__file__).parent / "results" / "fm_nes_evidence.csv"
    parser.add_argument("--csv", type=Path, default=default, help="file to write")
    args = parser.parse_args()
    todo: list[Trial] = []
    for part, count in (("published", 3), ("gains", 10)):
        if args.part in (None, part):
            todo += trials(part, args.trials or count, args.dim)
    with ProcessPoolExecutor(args.workers) as pool:
        done = list(pool.map(run, todo))
    summary(done)
    args.csv.parent.mkdir(parents=True, exist_ok=True)
    with args.csv.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Trial._fields)
        writer.writerows(done)


if __name__ == "__main__":
    main()
