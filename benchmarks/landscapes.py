"""Evaluations that methods need on fifteen landscapes: for docs/auto.md.

    python benchmarks/landscapes.py auto --dims 80 --seeds 10    # keeps each run in results/
    python benchmarks/landscapes.py                              # makes the tables of the page

A run ends at 1e-10 or after a budget. A cell of the table is the mean number of evaluations of the
runs that got there over their share of all runs: what a user pays who starts again after a failure.
The rotations depend on the seed, x0 is 3 in each variable and sigma0 is 2, unless the function is
Rosenbrock's.
"""

import argparse
import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fmnes
import pages
import row_files

KEPT = Path(__file__).parent / "results/landscapes.jsonl"
PAGE = Path(__file__).parents[1] / "docs/auto.md"
Values = Callable[[NDArray[np.float64]], NDArray[np.float64]]
SETTINGS = {f"auto (adapt={adapt})": fmnes.Auto(adapt=adapt) for adapt in ("rates", "popsize")}
BUDGETS = {80: 300_000, 200: 1_200_000, 1000: 3_000_000}


def rotation(dim: int, seed: int) -> NDArray[np.float64]:
    """An orthogonal matrix by chance."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))
    return Q * np.sign(np.diag(R))


def quadratic(weights: NDArray[np.float64], T: NDArray[np.float64] | None = None) -> Values:
    """The sum of weights y^2 for y = T x."""
    return lambda x: (x if T is None else x @ T.T) ** 2 @ weights


def along(Q: NDArray[np.float64], ratio: float, scale: NDArray[np.float64] | float = 1.0) -> Values:
    """A bowl in scaled variables: weight ``ratio`` along the columns of Q, 1 elsewhere."""

    def f(x: NDArray[np.float64]) -> NDArray[np.float64]:
        y = scale * x
        inside = y @ Q
        size = max(1.0, 1 / ratio)
        rest = np.sum((y - inside @ Q.T) ** 2, axis=-1)
        return size * (ratio * np.sum(inside**2, axis=-1) + rest)

    return f


def blocks(dim: int, seed: int) -> NDArray[np.float64]:
    """A matrix that turns each group of eight variables by itself."""
    T = np.zeros((dim, dim))
    for i in range(0, dim, 8):
        n = min(8, dim - i)
        T[i : i + n, i : i + n] = rotation(n, 100 * seed + i)
    return T


def landscapes(dim: int, seed: int) -> dict[str, Values]:
    """The functions by name."""
    rng, Q = np.random.default_rng(seed), rotation(dim, seed)
    share = np.arange(dim) / (dim - 1)
    steps, scale = 10 ** (6 * share), rng.permutation(10 ** (2 * share))
    half = np.where(np.arange(dim) < dim // 2, 1.0, 1e6)
    rosenbrock = fmnes.problems.rosenbrock(dim).function
    return {
        "sphere": quadratic(np.ones(dim)),
        "ellipsoid": quadratic(steps),
        "k-tablet": quadratic(np.where(np.arange(dim) < dim // 4, 1.0, 1e4)),
        "Rosenbrock": rosenbrock,
        "rotated Rosenbrock": lambda x: rosenbrock(x @ Q.T),
        "cigar": along(Q[:, :1], 1e-6),
        "three long axes": along(Q[:, :3], 1e-6),
        "scaled, two long axes": along(Q[:, :2], 1e-4, scale),
        "discus": along(Q[:, :1], 1e6),
        "three short axes": along(Q[:, :3], 1e6),
        "scaled, two short axes": along(Q[:, :2], 1e4, scale),
        "two-axes (d/2 long)": quadratic(half, Q),
        "blocks of 8": quadratic(rng.permutation(steps), blocks(dim, seed)),
        "rotated ellipsoid": quadratic(steps, Q),
        "different powers, rotated": lambda x: np.sum(np.abs(x @ Q.T) ** (2 + 4 * share), axis=-1),
    }


def run(method: str, name: str, dim: int, seed: int) -> dict[str, Any]:
    """One search, as a row of the file."""
    curved = "Rosenbrock" in name
    x0, sigma0 = (np.zeros(dim), 0.5) if curved else (np.full(dim, 3.0), 2.0)
    result = fmnes.minimize(
        landscapes(dim, seed)[name],
        x0,
        sigma0,
        method=SETTINGS.get(method, method),
        ftarget=1e-10,
        maxfevals=BUDGETS[dim],
        vectorized=True,
        rng=seed,
    )
    row = {"method": method, "landscape": name, "d": dim, "seed": seed}
    return row | {"nfev": result.nfev, "solved": result.success, "fun": result.fun}


def stored() -> list[dict[str, Any]]:
    """The rows of the file."""
    return row_files.read(KEPT)


def table(rows: list[dict[str, Any]], dim: int) -> str:
    """Evaluations over the share of solved runs, a row for each landscape, in Markdown."""
    cells = defaultdict(list)
    for row in rows:
        if row["d"] == dim:
            cells[row["landscape"], row["method"]].append(row)
    methods = sorted({method for _, method in cells})
    titles = [f"d = {dim}", *(f"`{method}`" for method in methods)]
    names = [name for name in landscapes(2, 0) if any((name, m) in cells for m in methods)]
    return pages.table(
        titles, [[name, *(cell(cells[name, method]) for method in methods)] for name in names]
    )


def page(text: str) -> str:
    """The text of docs/auto.md with its tables made from what is stored."""
    rows = stored()
    shown = [dim for dim in BUDGETS if f"<!-- table: {dim} -->" in text]
    return pages.with_tables(text, {str(dim): table(rows, dim) for dim in shown})


def number(value: float) -> str:
    """A large number as the tables show it, such as 1.23e4."""
    power = math.floor(math.log10(value))
    return f"{value / 10**power:.2f}e{power}"


def cell(rows: list[dict[str, Any]]) -> str:
    """What one method needs on one landscape."""
    solved = [row["nfev"] for row in rows if row["solved"]]
    if not solved:
        return "none solved" if rows else ""
    share = len(solved) / len(rows)
    shown = number(np.mean(solved) / share)
    return shown if share == 1 else f"{shown} ({len(solved)} of {len(rows)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", help="methods to run; none: print what is stored")
    parser.add_argument("--dims", type=int, nargs="*", default=list(BUDGETS))
    parser.add_argument("--landscapes", nargs="*", help="all of them by default")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    names = options.landscapes or landscapes(2, 0)
    tasks = itertools.product(options.methods, names, options.dims, range(options.seeds))
    row_files.fill(KEPT, ("method", "landscape", "d", "seed"), tasks, run)
    PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
