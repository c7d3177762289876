"""Noisy and rugged functions at the default population: for docs/auto.md.

    python benchmarks/noise.py auto "auto (adapt=rates)" "auto (adapt=popsize)" cr-fm-nes
    python benchmarks/noise.py                                              # makes the table

A run on a rugged function ends at 1e-8 or after its budget; a cell is the mean number of
evaluations of the runs that got there over their share of all runs. On the noisy sphere a run uses
its whole budget, and a cell is the mean of |mean of the distribution|^2 at the end; the number of
generations follows.
"""

import argparse
import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fmnes
import pages
import row_files
from landscapes import SETTINGS, cell, number

KEPT = Path(__file__).parent / "results/noise.jsonl"
PAGE = Path(__file__).parents[1] / "docs/auto.md"
Points = NDArray[np.float64]


class Problem(NamedTuple):
    """A function of rows and of a random generator, a start and a budget."""

    values: Callable[[Points, np.random.Generator], NDArray[np.float64]]
    dim: int
    budget: int
    x0: float = 3.0
    sigma0: float = 2.0
    ftarget: float | None = 1e-8


def sphere(x: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(np.sum(x * x, axis=-1))


def noisy_sphere(x: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    return sphere(x, rng) + rng.standard_normal(len(x))


def noisy_ellipsoid(x: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    weights = 10 ** (6 * np.arange(x.shape[1]) / (x.shape[1] - 1))
    return np.asarray((x * x) @ weights * np.exp(0.3 * rng.standard_normal(len(x))))


def rastrigin(x: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    return 10 * x.shape[1] + np.asarray(np.sum(x * x - 10 * np.cos(2 * np.pi * x), axis=-1))


def schaffer(x: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    q = x[:, :-1] ** 2 + x[:, 1:] ** 2
    return np.asarray(np.sum(q**0.25 * (np.sin(50 * q**0.1) ** 2 + 1), axis=-1))


def ackley(x: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    hills = np.exp(np.mean(np.cos(2 * np.pi * x), axis=-1))
    bowl = 20 * np.exp(-0.2 * np.sqrt(np.mean(x * x, axis=-1)))
    return np.asarray(20 - bowl + math.e - hills)


PROBLEMS = {
    "sphere + N(0, 1), d = 40: error": Problem(noisy_sphere, 40, 80_000, ftarget=None),
    "ellipsoid times exp(0.3 N(0, 1)), d = 40": Problem(noisy_ellipsoid, 40, 200_000),
    "Rastrigin, d = 40": Problem(rastrigin, 40, 120_000),
    "Rastrigin, d = 80": Problem(rastrigin, 80, 200_000),
    "Schaffer, d = 80": Problem(schaffer, 80, 300_000),
    "Ackley from afar, d = 40": Problem(ackley, 40, 100_000, 15.5, 14.5),
}


def run(method: str, name: str, seed: int) -> dict[str, Any]:
    """One search, as a row of the file."""
    problem, rng = PROBLEMS[name], np.random.default_rng(1000 + seed)
    result = fmnes.minimize(
        lambda x: problem.values(x, rng),
        np.full(problem.dim, problem.x0),
        problem.sigma0,
        method=SETTINGS.get(method, method),
        ftarget=problem.ftarget,
        maxfevals=problem.budget,
        stopping=fmnes.Stopping(tolx=0.0),  # Schaffer's function is 1e-8 where x is 1e-20
        vectorized=True,
        rng=seed,
    )
    row = {"method": method, "problem": name, "seed": seed, "nfev": result.nfev, "nit": result.nit}
    error = float(np.sum(np.asarray(result.mean) ** 2))
    return row | {"solved": result.success, "error": error, "status": str(result.status)}


def stored() -> list[dict[str, Any]]:
    """The rows of the file."""
    return row_files.read(KEPT)


def table(rows: list[dict[str, Any]]) -> str:
    """A row for each problem and a column for each method, in Markdown."""
    cells = defaultdict(list)
    for row in rows:
        cells[row["problem"], row["method"]].append(row)
    methods = sorted({method for _, method in cells})

    def shown(name: str, method: str) -> str:
        if PROBLEMS[name].ftarget is None:
            return f"{np.mean([row['error'] for row in cells[name, method]]):.2g}"
        return cell(cells[name, method])

    def generations(name: str, method: str) -> str:
        """The mean number of generations; a row without one has generations of the default size."""
        popsize = fmnes.METHODS["auto"].default_popsize(PROBLEMS[name].dim)
        counts = [row.get("nit", row["nfev"] // popsize) for row in cells[name, method]]
        return number(np.mean(counts))

    titles = ["at the default population", *(f"`{method}`" for method in methods)]
    noisy = next(iter(PROBLEMS))
    first, *others = [[n, *(shown(n, method) for method in methods)] for n in PROBLEMS]
    second = [noisy.replace("error", "generations"), *(generations(noisy, m) for m in methods)]
    return pages.table(titles, [first, second, *others])


def page(text: str) -> str:
    """The text of docs/auto.md with its table of noise made from what is stored."""
    return pages.with_tables(text, {"noise": table(stored())})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", help="methods to run; none: print what is stored")
    parser.add_argument("--seeds", type=int, default=30)
    options = parser.parse_args()
    tasks = itertools.product(options.methods, PROBLEMS, range(options.seeds))
    row_files.fill(KEPT, ("method", "problem", "seed"), tasks, run)
    PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
