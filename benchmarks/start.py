"""What a wrong sigma0 costs `auto`, with and without its check of the first generation.

    python benchmarks/start.py run [D ...]   append rows to benchmarks/results/start.csv
    python benchmarks/start.py show            print a table of them

Each row is one search: the function, d, the factor by which sigma0 differs from the documented one
(r min(1/3, 0.37 popsize / sqrt(d)) with r the distance of x0 from the optimum in each variable),
whether sigma0 was checked, the seed, the evaluations to the target (inf: not reached), the step
size that the search started with, and f(mean)/f(x0) at the end.
"""

import csv
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fmnes

ROWS = Path(__file__).parent / "results" / "start.csv"
FIELDS = ("function", "d", "factor", "checked", "seed", "nfev", "sigma", "final")
FACTORS = (0.01, 0.1, 1.0, 10.0, 100.0)


class Case(NamedTuple):
    """A function of points in rows, where to start, and when it counts as solved."""

    fun: Callable[[NDArray[Any]], NDArray[Any]]
    x0: NDArray[Any]
    distance: float  # from x0 to the optimum in each variable
    target: float  # of f, relative to f(x0)
    maxfevals: int
    bounds: Any = None


def _levy(x: NDArray[Any]) -> NDArray[Any]:
    w = 1 + (x - 1) / 4
    first, inner, last = w[:, 0], w[:, :-1], w[:, -1]
    ends = np.sin(np.pi * first) ** 2 + (last - 1) ** 2 * (1 + np.sin(2 * np.pi * last) ** 2)
    return ends + ((inner - 1) ** 2 * (1 + 10 * np.sin(np.pi * inner + 1) ** 2)).sum(axis=1)


def _ackley(x: NDArray[Any]) -> NDArray[Any]:
    r, ripple = np.sqrt((x**2).mean(axis=1)), np.cos(2 * np.pi * x).mean(axis=1)
    return 20 - 20 * np.exp(-0.2 * r) + np.e - np.exp(ripple)


def _rosenbrock(x: NDArray[Any]) -> NDArray[Any]:
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


def _rastrigin(x: NDArray[Any]) -> NDArray[Any]:
    return (10 + x**2 - 10 * np.cos(2 * np.pi * x)).sum(axis=1)


def cases(d: int, seed: int) -> dict[str, Case]:
    """The functions at d; x0 and noise depend on the seed where they are random."""
    rng = np.random.default_rng([seed, d])
    scales = 10 ** (6 * np.arange(d) / (d - 1))
    three = np.full(d, 3.0)
    budget = {10: 20_000, 100: 60_000, 1000: 100_000}.get(d, 1_500)
    easy = 1e-2 if d <= 1000 else 0.97
    found = {
        "sphere": Case(lambda x: (x**2).sum(axis=1), three, 3.0, easy, budget),
        "ellipsoid": Case(lambda x: (scales * x**2).sum(axis=1), three, 3.0, easy, budget),
        "quartic": Case(lambda x: (x**4).sum(axis=1), three, 3.0, easy**2, budget),
        "l1": Case(
            lambda x: np.abs(x).sum(axis=1), three, 3.0, 0.1 if d <= 1000 else 0.985, budget
        ),
        "rosenbrock": Case(_rosenbrock, np.zeros(d), 1.0, 0.95 if d <= 1000 else 0.9999, budget),
        "bounded": Case(
            lambda x: ((x - 0.9) ** 2).sum(axis=1), np.zeros(d), 0.9, easy, budget, [(-1, 1)] * d
        ),
        "noisy": Case(
            lambda x: (x**2).sum(axis=1) + d * rng.standard_normal(len(x)),
            three,
            3.0,
            0.1,
            min(budget, 5_000),
        ),
    }
    if d <= 100:
        q = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0]
        found["rotated"] = Case(
            lambda x: (scales * (x @ q) ** 2).sum(axis=1), three, 3.0, easy, budget
        )
    if d == 40:
        uniform = rng.uniform(1, 5, d) * rng.choice([-1, 1], d)
        hard = 300_000
        found = {
            "rastrigin": Case(_rastrigin, uniform, 3.0, 1e-6, hard),
            "ackley": Case(_ackley, 6 * uniform, 18.0, 1e-6, hard),
            "levy": Case(_levy, 1 - 2 * uniform, 6.0, 1e-6, hard),
        }
    return found


def measure(name: str, d: int, factor: float, checked: bool, seed: int) -> dict[str, Any]:
    """Run one search."""
    case = cases(d, seed)[name]
    popsize = fmnes.METHODS["auto"].default_popsize(d)
    if d == 40:
        popsize = {"rastrigin": 400, "ackley": 40, "levy": 100}[name]
    step = min(1 / 3, 0.37 * popsize / math.sqrt(d))
    f0 = float(case.fun(case.x0[None])[0])
    result = fmnes.minimize(
        case.fun,
        case.x0,
        factor * step * case.distance,
        method=fmnes.Auto(check_sigma0=checked),
        popsize=popsize,
        bounds=case.bounds,
        ftarget=None if name == "noisy" else case.target * f0,
        maxfevals=case.maxfevals,
        vectorized=True,
        rng=seed,
    )
    final = float(case.fun(result.mean[None])[0]) / f0
    solved = final <= case.target if name == "noisy" else result.success
    nfev = result.nfev if solved else math.inf
    sigma = result.restarts[0].sigma0
    return dict(zip(FIELDS, (name, d, factor, checked, seed, nfev, sigma, final), strict=True))


def run(dims: list[int], seeds: int) -> None:
    """Append the rows that are not in the file."""
    done = {key(row) for row in read()} if ROWS.exists() else set()
    is_new = not ROWS.exists()
    with ROWS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        for d in dims:
            for seed in range(seeds if d <= 1000 else 1):
                for name in cases(d, seed):
                    for factor in FACTORS:
                        for checked in (False, True):
                            row = dict(zip(FIELDS, (name, d, factor, checked, seed), strict=False))
                            if key(row) not in done:
                                writer.writerow(measure(name, d, factor, checked, seed))
                                file.flush()


def key(row: dict[str, Any]) -> tuple[str, ...]:
    """What identifies a search."""
    return tuple(str(row[name]) for name in FIELDS[:5])


def read() -> list[dict[str, str]]:
    """All rows."""
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def show() -> None:
    """Print, for each function and d, evaluations over the success rate at each factor."""
    rows = read()
    print("| function | d | check | " + " | ".join(f"{factor:g}" for factor in FACTORS) + " |")
    print("|---" * (3 + len(FACTORS)) + "|")
    for name, d in dict.fromkeys((row["function"], row["d"]) for row in rows):
        for checked in ("False", "True"):
            cells = []
            for factor in FACTORS:
                found = [r for r in rows if key(r)[:4] == (name, d, str(factor), checked)]
                cells.append(cell(found))
            print(
                f"| {name} | {d} | {'yes' if checked == 'True' else 'no'} | {' | '.join(cells)} |"
            )


def cell(rows: list[dict[str, str]]) -> str:
    """Return evaluations over the success rate; f(mean)/f(x0) if no search reached the target."""
    nfev = np.array([float(row["nfev"]) for row in rows])
    if not rows:
        return ""
    if not np.isfinite(nfev).any():
        return f"({np.median([float(row['final']) for row in rows]):.2g})"
    rate = np.isfinite(nfev).mean()
    return f"{np.mean(nfev[np.isfinite(nfev)]) / rate:.3g}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run([int(word) for word in sys.argv[2:]] or [10, 100, 40, 1000, 100_000], seeds=2)
    else:
        show()
