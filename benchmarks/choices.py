"""Choices of more than two options: fmnes beside CatCMA of cmaes, for docs/variables.md.

    python benchmarks/choices.py run      measures, and replaces the rows in results/choices.jsonl
    python benchmarks/choices.py page     makes the table of the page

Each problem has reals and choices. A solver starts at x = 3 with deviation 1 and equal chances of
all options. The figure is the number of evaluations to a value of 1e-6, the median of three seeds.
"""

import argparse
import math
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import fmnes
import row_files
from pages import table, with_tables

RESULTS = Path(__file__).parent / "results" / "choices.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "variables.md"
SEEDS, MOST = 3, 20_000
Fun = Callable[[NDArray[np.float64], NDArray[np.int64]], float]


def interacting(x: NDArray[np.float64], c: NDArray[np.int64]) -> float:
    """Where the optimum of a real is depends on a choice."""
    return float(((x - 0.1 * c[: len(x)]) ** 2).sum() + (c != 0).sum())


def one_max(x: NDArray[np.float64], c: NDArray[np.int64]) -> float:
    """The number of wrong options, and a sphere."""
    return float((x**2).sum() + (c != np.arange(len(c)) % 3).sum())


def leading(x: NDArray[np.float64], c: NDArray[np.int64]) -> float:
    """The number of options from the first wrong one on, and a sphere."""
    wrong = np.flatnonzero(c != 0)
    return float((x**2).sum() + len(c) - (wrong[0] if len(wrong) else len(c)))


def ellipsoid(x: NDArray[np.float64], c: NDArray[np.int64]) -> float:
    """The number of wrong options, and an ellipsoid of condition 1000."""
    scales = 10 ** (3 * np.arange(len(x)) / (len(x) - 1))
    return float((scales * (x - 0.3) ** 2).sum() + (c != 1).sum())


PROBLEMS: dict[str, tuple[Fun, int, int, int]] = {  # reals, choices, options
    "interacting": (interacting, 5, 10, 5),
    "OneMax": (one_max, 2, 30, 5),
    "OneMax, many": (one_max, 2, 100, 10),
    "leading ones": (leading, 5, 10, 3),
    "ellipsoid": (ellipsoid, 20, 10, 4),
}


def by_fmnes(method: str) -> Callable[[Fun, tuple[int, int, int], int], float]:
    """A method of fmnes."""

    def solve(fun: Fun, sizes: tuple[int, int, int], seed: int) -> float:
        reals, choices, options = sizes
        kinds = {
            "x": fmnes.Real(shape=reals),
            "c": fmnes.Choice(range(options), shape=choices),
        }
        result = fmnes.minimize(
            lambda p: fun(p["x"], p["c"].astype(int)),
            fmnes.Space(kinds, x0={"x": 3.0}),
            {"x": 1.0},
            method=method,
            ftarget=1e-6,
            maxfevals=MOST,
            rng=seed,
        )
        return result.nfev if result.fun <= 1e-6 else math.inf

    return solve


def by_catcma(fun: Fun, sizes: tuple[int, int, int], seed: int) -> float:
    """CatCMA of the package cmaes."""
    import cmaes

    reals, choices, options = sizes
    opt = cmaes.CatCMA(np.full(reals, 3.0), 1.0, np.full(choices, options), seed=seed)
    spent, best = 0, math.inf
    while best > 1e-6 and spent < MOST and not opt.should_stop():
        told = []
        for _ in range(opt.population_size):
            x, c = opt.ask()
            told.append(((x, c), fun(x, np.argmax(c, axis=1))))
        opt.tell(told)
        spent, best = spent + len(told), min(best, *(f for _, f in told))
    return spent if best <= 1e-6 else math.inf


SOLVERS = {
    **{name: by_fmnes(name) for name in ("auto", "cr-fm-nes", "sep-cma", "vd-cma")},
    "cmaes CatCMA": by_catcma,
}


def run() -> None:
    """Measure all solvers on all problems."""
    row_files.keep(RESULTS, lambda row: False)
    with row_files.appending(RESULTS) as append:
        for problem, (fun, *sizes) in PROBLEMS.items():
            for solver, solve in SOLVERS.items():
                spent = [solve(fun, tuple(sizes), seed) for seed in range(1, 1 + SEEDS)]
                kept = [None if math.isinf(number) else number for number in spent]
                append({"problem": problem, "solver": solver, "nfev": kept})


def page(text: str) -> str:
    """Return the page with its table made from the rows."""
    rows = row_files.read(RESULTS)
    cells = {}
    for row in rows:
        spent = [math.inf if number is None else number for number in row["nfev"]]
        middle = float(np.median(spent))
        cells[row["solver"], row["problem"]] = (
            "not solved" if math.isinf(middle) else f"{middle:.0f}"
        )
    head = ["", *(f"{name}: {n} + {m} x {k}" for name, (_, n, m, k) in PROBLEMS.items())]
    lines = [[f"`{s}`", *(cells.get((s, problem), "") for problem in PROBLEMS)] for s in SOLVERS]
    return with_tables(text, {"choices": table(head, lines)})


def main() -> None:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "page"])
    if parser.parse_args().command == "run":
        warnings.simplefilter("ignore")
        run()
    else:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
