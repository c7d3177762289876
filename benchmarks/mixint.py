"""COCO's mixed-integer suite bbob-mixint: fmnes beside cmaes and pycma, for docs/variables.md.

    python benchmarks/mixint.py auto cmaes-CMAwM --dims 10 20    # keeps each run in results/
    python benchmarks/mixint.py --large auto pycma --dims 80     # few evaluations, four functions
    python benchmarks/mixint.py                                  # makes the tables of the page

Four fifths of the variables take 2, 4, 8 or 16 values. A solver has a budget of evaluations for
each variable and starts again, with other random numbers, when it ends by itself. It starts in the
middle of the ranges with a sixth of each as deviation. The figure of a run is its share of
51 targets, from 1e2 to 1e-8 above the optimum, equally spaced in the logarithm.
"""

import argparse
import contextlib
import itertools
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fmnes
import pages
import row_files
from fmnes.algorithms import METHODS

KEPT = Path(__file__).parent / "results/mixint.jsonl"
PAGE = Path(__file__).parents[1] / "docs/variables.md"
FUNCTIONS = (1, 2, 3, 5, 6, 8, 10, 12, 15, 17, 20, 21)  # at least two of each of COCO's five groups
LARGE = (1, 6, 12, 17)  # functions of the second table, for which other packages need long
LARGE_BUDGET, BUDGET = 30, 300
TARGETS = 10 ** np.linspace(2, -8, 51)
Vector = NDArray[np.float64]


class DoneError(Exception):
    """The budget is spent, or the last target reached."""


class Task(NamedTuple):
    """A problem of the suite as a solver sees it."""

    fun: Callable[[Vector], float]
    low: Vector
    high: Vector
    integers: int  # the first variables
    seed: int
    factor: int = 1  # times the default population

    @property
    def width(self) -> Vector:
        """The ranges; those of integers with the numbers that are rounded to the ends."""
        return self.high - self.low + (np.arange(len(self.low)) < self.integers)


def by_fmnes(method: Any) -> Callable[[Task], None]:
    """A method of fmnes."""

    def run(task: Task) -> None:
        middle = (task.low + task.high) / 2
        integrality = np.arange(len(middle)) < task.integers
        fmnes.minimize(
            task.fun,
            middle,
            method=method,
            bounds=fmnes.Bounds(task.low, task.high),
            integrality=integrality,
            popsize=METHODS[method].default_popsize(len(middle)) * task.factor,
            rng=task.seed,
        )

    return run


def by_cmawm(task: Task) -> None:
    """CMA-ES with margin of the package cmaes, in variables of equal deviation."""
    import cmaes

    scale = task.width
    whole = np.arange(len(scale)) < task.integers
    opt = cmaes.CMAwM(
        mean=(task.low + task.high) / 2 / scale,
        sigma=1 / 6,
        bounds=np.stack([task.low, task.high], axis=1) / scale[:, None],
        steps=np.where(whole, 1 / scale, 0.0),
        population_size=_popsize(task),
        seed=task.seed,
    )
    while not opt.should_stop():
        told = []
        for _ in range(opt.population_size):
            evaluated, x = opt.ask()
            told.append(
                (x, task.fun(np.where(whole, np.round(evaluated * scale), evaluated * scale)))
            )
        opt.tell(told)


def _popsize(task: Task) -> int:
    """Return the default of both classes of cmaes, times the factor."""
    return (4 + int(3 * np.log(len(task.low)))) * task.factor


def by_catcmawm(task: Task) -> None:
    """CatCMA with margin of the package cmaes; it needs no scales for integers."""
    import cmaes

    n = task.integers
    opt = cmaes.CatCMAwM(
        x_space=np.stack([task.low, task.high], axis=1)[n:],
        z_space=[
            list(np.arange(a, b + 1)) for a, b in zip(task.low[:n], task.high[:n], strict=True)
        ],
        population_size=_popsize(task),
        seed=task.seed,
    )
    while not opt.should_stop():
        told = []
        for _ in range(opt.population_size):
            found = opt.ask()
            told.append((found, task.fun(np.concatenate([found.z, found.x]))))
        opt.tell(told)


def by_pycma(task: Task) -> None:
    """The integer variables of pycma."""
    import cma

    whole = np.arange(len(task.low)) < task.integers
    options = {
        "bounds": [list(task.low - 0.5 * whole), list(task.high + 0.5 * whole)],
        "integer_variables": list(range(task.integers)),
        "CMA_stds": list(task.width / 6),
        "popsize_factor": task.factor,
        "seed": task.seed + 1,
        "verbose": -9,
    }

    def rounded(x: Any) -> float:
        x = np.where(whole, np.round(np.asarray(x)), x)
        return task.fun(np.clip(x, task.low, task.high))

    es = cma.CMAEvolutionStrategy((task.low + task.high) / 2, 1.0, options)
    while not es.stop():
        x = es.ask()
        es.tell(x, [rounded(one) for one in x])


SOLVERS: dict[str, Callable[[Task], None]] = {
    **{name: by_fmnes(name) for name in ("auto", "cr-fm-nes", "sep-cma", "vd-cma")},
    "cmaes CMAwM": by_cmawm,
    "cmaes CatCMAwM": by_catcmawm,
    "pycma": by_pycma,
}


def optimum(problem: Any) -> float:
    """The value of the optimum: COCO writes where it is to a file, with all its digits."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")
        return float(problem(np.loadtxt("._bbob_problem_best_parameter.txt")))


def run(solver: str, function: int, dim: int, instance: int, budget: float) -> dict[str, Any]:
    """Run a solver on a problem until its budget is spent, and return the row to keep."""
    import cocoex

    options = f"dimensions:{dim} function_indices:{function}"
    suite = cocoex.Suite("bbob-mixint", f"instances:{instance}", options)
    problem = suite[0]
    best_value = optimum(problem)
    best, spent, inside = np.inf, 0, 0.0

    def fun(x: Vector) -> float:
        nonlocal best, spent, inside
        if spent >= budget * dim or best - best_value <= TARGETS[-1]:
            raise DoneError
        begun = time.process_time()
        value = float(problem(x))
        spent, best = spent + 1, min(best, value)
        inside += time.process_time() - begun
        return value

    begun, starts = time.process_time(), 0
    try:
        while True:
            seed = 1000 * starts + instance
            task = Task(
                fun,
                problem.lower_bounds,
                problem.upper_bounds,
                problem.number_of_integer_variables,
                seed,
            )
            SOLVERS[solver](task)
            starts += 1
    except DoneError:
        pass
    share = float(np.mean(best - best_value <= TARGETS))
    seconds = time.process_time() - begun - inside
    return {
        "solver": solver,
        "function": function,
        "dim": dim,
        "instance": instance,
        "budget": budget,
        "share": round(share, 4),
        "nfev": spent,
        "seconds": round(seconds, 3),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The share of targets and the time of each solver, by dimension, for rows of one budget."""
    shares: dict[tuple[str, int], list[float]] = defaultdict(list)
    times: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        key = row["solver"], row["dim"]
        shares[key].append(row["share"])
        times[key].append(1e6 * row["seconds"] / row["nfev"])
    dims = sorted({row["dim"] for row in rows})
    solvers = [name for name in SOLVERS if any((name, dim) in shares for dim in dims)]
    lines = ["| solver | " + " | ".join(f"d = {dim}" for dim in dims) + " |"]
    lines.append("|---" * (len(dims) + 1) + "|")
    for name in solvers:
        cells = [
            f"{np.mean(shares[name, dim]):.3f} ({np.mean(times[name, dim]):.0f} µs)"
            if (name, dim) in shares
            else ""
            for dim in dims
        ]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(text: str, rows: list[dict[str, Any]]) -> str:
    """Return the page with its tables made from the rows."""
    budgets = {"mixint": BUDGET, "mixint-large": LARGE_BUDGET}
    parts = {
        name: table([row for row in rows if row["budget"] == budget])
        for name, budget in budgets.items()
    }
    return pages.with_tables(text, parts)


def main() -> None:
    """Run what is asked for and not kept yet, or make the table of the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("solvers", nargs="*", choices=[*SOLVERS, []])
    parser.add_argument("--dims", type=int, nargs="+", default=[10])
    parser.add_argument("--functions", type=int, nargs="+", default=FUNCTIONS)
    parser.add_argument("--instances", type=int, nargs="+", default=[1])
    parser.add_argument("--budget", type=float, default=BUDGET)
    parser.add_argument("--large", action="store_true", help="four functions, few evaluations")
    parser.add_argument("--kept", type=Path, default=KEPT)
    arguments = parser.parse_args()
    if not arguments.solvers:
        PAGE.write_text(page(PAGE.read_text(), row_files.read(arguments.kept)))
        return
    if arguments.large:
        arguments.functions, arguments.budget = LARGE, LARGE_BUDGET
    warnings.simplefilter("ignore")
    tasks = itertools.product(
        arguments.solvers,
        arguments.functions,
        arguments.dims,
        arguments.instances,
        [arguments.budget],
    )
    names = ("solver", "function", "dim", "instance", "budget")
    row_files.fill(arguments.kept, names, tasks, run)
    rows = row_files.read(arguments.kept)
    print(table([row for row in rows if row["budget"] == arguments.budget]))


if __name__ == "__main__":
    main()
