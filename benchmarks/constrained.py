"""COCO's bbob-constrained: fmnes beside pycma's fmin_con2, and SciPy's COBYQA and SLSQP.

    python benchmarks/constrained.py run --dims 2,5 --solvers fmnes,pycma    writes rows
    python benchmarks/constrained.py page                                     the table of the page

Every solver starts from COCO's initial solution with the step size 1 and starts again, with another
seed, until 500 d evaluations are used; one evaluation gives f and all constraints. A target
f* + 10^k, k from 2 to -8 in steps of 1/2, counts when a point with all g <= 0 reaches it. For
d >= 20 the sample has every fifth function: a function has six numbers of constraints, one after
the other, so that the sample has all of them. SLSQP approximates gradients by
differences. COBYQA runs for d = 2: its time per evaluation grows quickly with the number of
constraints. Run again, it replaces the rows of a solver and dimension.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import row_files
from mixint import optimum
from pages import table, with_tables

RESULTS = Path(__file__).parent / "results" / "constrained.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "constraints.md"
TARGETS = 10.0 ** np.arange(2, -8.1, -0.5)


BUDGET = 500  # evaluations of a solver, times the number of variables


def is_sampled(function: int, dim: int) -> bool:
    """Whether a function is run: all in small dimensions, and every fifth in larger ones."""
    return dim < 20 or function % 5 == 1


class SpentError(Exception):
    """The evaluations are used up, or all targets are reached."""


class Problem:
    """A problem of COCO that counts evaluations and notes when targets are reached."""

    def __init__(self, problem: Any, best: float) -> None:
        self._problem, self._best = problem, best
        self.dim, self.x0 = problem.dimension, problem.initial_solution
        self.constraints = problem.number_of_constraints
        self.nfev, self.hits = 0, list[int]()

    def __call__(self, x: Any) -> tuple[float, np.ndarray]:
        """Return f and g."""
        if self.nfev >= BUDGET * self.dim or len(self.hits) == len(TARGETS):
            raise SpentError
        x = np.array(x)
        self.nfev += 1
        f, g = self._problem(x), np.atleast_1d(self._problem.constraint(x))
        while (g <= 0).all() and len(self.hits) < len(TARGETS):
            if f > self._best + TARGETS[len(self.hits)]:
                break
            self.hits.append(self.nfev)
        return f, g


class Last:
    """f and g of the last point: other packages ask for them one after the other."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._x = problem, np.empty(0)

    def _at(self, x: Any) -> tuple[float, np.ndarray]:
        if not np.array_equal(x, self._x):
            self._value, self._x = self._problem(x), np.array(x)
        return self._value

    def f(self, x: Any) -> float:
        """Return the objective."""
        return self._at(x)[0]

    def g(self, x: Any) -> np.ndarray:
        """Return the constraints, <= 0 where they are satisfied."""
        return self._at(x)[1]


def _fmnes(method: Any) -> Callable[[Problem, int], None]:
    def solve(problem: Problem, seed: int) -> None:
        import fmnes

        m = problem.constraints
        fmnes.minimize(problem, problem.x0, 1.0, constraints=m, method=method, rng=seed)

    return solve


def _pycma(problem: Problem, seed: int) -> None:
    import cma

    last = Last(problem)
    options = {"verbose": -9, "seed": seed + 1}
    cma.fmin_con2(last.f, problem.x0, 1.0, constraints=lambda x: list(last.g(x)), options=options)


def _scipy(method: str) -> Callable[[Problem, int], None]:
    def solve(problem: Problem, seed: int) -> None:
        from scipy.optimize import NonlinearConstraint, minimize

        last = Last(problem)
        below = NonlinearConstraint(last.g, -np.inf, 0)
        x0 = problem.x0 + (np.random.default_rng(seed).normal(size=problem.dim) if seed else 0)
        minimize(last.f, x0, method=method, constraints=[below])

    return solve


SOLVERS: dict[str, Callable[[Problem, int], None]] = {
    "fmnes": _fmnes("cma-es"),
    "fmnes auto": _fmnes("auto"),
    "pycma": _pycma,
    "COBYQA": _scipy("COBYQA"),
    "SLSQP": _scipy("SLSQP"),
}


def run(dims: list[int], solvers: list[str]) -> None:
    """Append the rows of these dimensions and solvers."""
    import cocoex

    row_files.keep(RESULTS, lambda row: row["dim"] not in dims or row["solver"] not in solvers)
    with row_files.appending(RESULTS) as append:
        for dim in dims:
            options = f"dimensions:{dim} instance_indices:1"
            for problem in cocoex.Suite("bbob-constrained", "", options):
                if not is_sampled(problem.id_function, dim):
                    continue
                best = optimum(problem)
                for solver in solvers:
                    counted = solved(Problem(problem, best), SOLVERS[solver])
                    row = {"solver": solver, "dim": dim, "function": problem.id_function}
                    append(row | {"constraints": counted.constraints, "hits": counted.hits})


def solved(problem: Problem, solver: Callable[[Problem, int], None]) -> Problem:
    seed = 0
    try:
        while True:
            before = problem.nfev
            solver(problem, seed)
            seed += 1
            if problem.nfev == before:
                return problem
    except SpentError:
        return problem


def page(text: str) -> str:
    """Return the page with its table made from the rows."""
    rows = row_files.read(RESULTS)
    dims = sorted({row["dim"] for row in rows})
    shares = []
    for solver in SOLVERS:
        cells = []
        for dim in dims:
            of = [r["hits"] for r in rows if (r["solver"], r["dim"]) == (solver, dim)]
            share = np.mean([len(hits) / len(TARGETS) for hits in of]) if of else None
            cells.append("" if share is None else f"{100 * share:.0f} %")
        shares.append([solver, *cells])
    return with_tables(text, {"bbob-constrained": table(["", *map(str, dims)], shares)})


def main() -> None:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "page"])
    parser.add_argument("--dims", default="2,5,10")
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    arguments = parser.parse_args()
    if arguments.command == "run":
        warnings.simplefilter("ignore")
        dims = [int(dim) for dim in arguments.dims.split(",")]
        run(dims, arguments.solvers.split(","))
    else:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
