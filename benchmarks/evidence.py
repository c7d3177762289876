"""The evidence behind the safe variant, from raw trials to tables.

    python benchmarks/evidence.py cigars        # docs/safe-variant.md, (a) and (b)
    python benchmarks/evidence.py cost          # docs/safe-variant.md, (c)
    python benchmarks/evidence.py               # both

Each trial is one row of benchmarks/results/NAME.csv, appended when it ends; trials that are there
already are not run again. ``--report`` runs nothing: it prints the tables and writes them into the
pages that show them.
"""

import argparse
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fmnes.algorithms._weights import even_default_popsize
from fmnes.benchmarking.lines import appending, read_lines
from fmnes.benchmarking.loop import RunSpec
from fmnes.benchmarking.processes import with_progress
from fmnes.experiments import protocol
from fmnes.experiments.solvers import SOLVERS
from fmnes.problems import PROBLEMS
from pages import table, with_tables

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/safe-variant.md"
TARGET = 1e-10
PAPER_FUNCTIONS = ("sphere", "ktablet", "ellipsoid", "rosenbrock")
NAMES = {
    "fmnes safe": protocol.SAFE,
    "fmnes paper": protocol.PAPER,
    "pycma VD": protocol.VD_PYCMA,
}


class Trial(NamedTuple):
    """One run, named by what it depends on."""

    function: str
    condition: float  # of a cigar; 0 for the other functions
    spread: float  # by which the coordinates of a cigar are stretched; 1 for none
    dim: int
    popsize: int
    solver: str
    seed: int


class Row(NamedTuple):
    """A trial and what came of it."""

    trial: Trial
    evaluations: int
    best: float
    seconds: float

    @property
    def solved(self) -> bool:
        """Whether the target was reached."""
        return self.best <= TARGET


def cigars() -> Iterator[Trial]:
    """(a) rotated cigars, (b) the same in stretched coordinates; with pycma's VD-CMA beside."""
    for dim in (10, 20, 40, 80, 200, 1000):
        lam = even_default_popsize(dim)
        for spread in (1.0, 1e3):
            for condition in (1e4, 1e6):
                for solver in ("fmnes safe", "pycma VD"):
                    for seed in range(10):
                        yield Trial("cigar", condition, spread, dim, lam, solver, seed)
        for function in ("ktablet", "ellipsoid"):
            for solver in ("fmnes safe", "pycma VD"):
                for seed in range(10):
                    yield Trial(function, 0.0, 1.0, dim, lam, solver, seed)


def cost() -> Iterator[Trial]:
    """(c) the paper's functions: what the safe variant costs beside the paper's."""
    for dim in (20, 80, 200):
        for function in PAPER_FUNCTIONS:
            for times in (1, 3):
                for solver in ("fmnes paper", "fmnes safe"):
                    for seed in range(30):
                        lam = times * even_default_popsize(dim)
                        yield Trial(function, 0.0, 1.0, dim, lam, solver, seed)


EXPERIMENTS = {"cigars": cigars, "cost": cost}


def run(trial: Trial) -> Row:
    """One trial, by the protocol of the paper's section IV."""
    begun = time.perf_counter()
    if trial.function == "cigar":
        problem = PROBLEMS["cigar"](
            trial.dim, condition=trial.condition, spread=trial.spread, seed=trial.seed
        )
    else:
        problem = PROBLEMS[trial.function](trial.dim)
    # The paper's budget; on cigars a lower one, which is 5 times what any solver there needs.
    budget = trial.dim * (3000 if trial.function == "cigar" else 50_000)
    seed = trial.seed + 1  # to pycma 0 means the clock
    spec = RunSpec(problem, trial.popsize, seed, TARGET, budget)
    count, best = SOLVERS[NAMES[trial.solver]](spec)
    return Row(trial, count, best, time.perf_counter() - begun)


HEADER = ",".join([*Trial._fields, "evaluations", "best", "seconds"]) + "\n"


def read(path: Path) -> dict[Trial, Row]:
    """Return the rows of a results file by trial."""
    rows = {}
    for line in read_lines(path, HEADER):
        function, condition, spread, dim, popsize, solver, seed, *outcome = line.split(",")
        numbers = float(condition), float(spread), int(dim), int(popsize)
        trial = Trial(function, *numbers, solver, int(seed))
        rows[trial] = Row(trial, int(outcome[0]), float(outcome[1]), float(outcome[2]))
    return rows


def fill(name: str, jobs: int) -> None:
    """Run what is missing of an experiment; rows are written as they come in."""
    path = RESULTS / f"{name}.csv"
    with appending(path, "results", HEADER) as append, ProcessPoolExecutor(jobs) as pool:
        done = read(path)
        todo = [trial for trial in EXPERIMENTS[name]() if trial not in done]
        # The longest first: pycma's at the largest dimension.
        todo.sort(key=lambda t: (t.dim, t.function == "rosenbrock", t.solver), reverse=True)
        rows = (future.result() for future in as_completed([pool.submit(run, t) for t in todo]))
        ended = ((row.trial, row) for row in rows)
        for trial, row in with_progress(ended, todo, lambda trial: trial.dim):
            outcome = row.evaluations, row.best, f"{row.seconds:.2f}"
            append([",".join(map(str, [*trial, *outcome]))])


Cells = dict[tuple[str, float, float, int, int], dict[str, list[Row]]]


def table_of(name: str) -> str:
    """The table of an experiment in Markdown."""
    cells: Cells = defaultdict(lambda: defaultdict(list))
    for row in read(RESULTS / f"{name}.csv").values():
        t = row.trial
        cells[t.function, t.condition, t.spread, t.dim, t.popsize][t.solver].append(row)
    return _cost_table(cells) if name == "cost" else _evaluations_table(name, cells)


def _evaluations_table(name: str, cells: Cells) -> str:
    solvers = list(dict.fromkeys(t.solver for t in EXPERIMENTS[name]()))
    rows = []
    for (function, condition, spread, dim, lam), by_solver in sorted(cells.items()):
        label = f"{function} {condition:g}" if condition else function
        label += ", stretched" if spread > 1 else ""
        rows.append([label, dim, lam, *(_cell(by_solver[s]) for s in solvers)])
    return table(["function", "d", "lambda", *solvers], rows)


def _cell(rows: list[Row]) -> str:
    """Mean evaluations of the successes over the success rate, the paper's metric."""
    solved = [row.evaluations for row in rows if row.solved]
    if not solved:
        return f"none of {len(rows)}"
    text = f"{np.mean(solved) * len(rows) / len(solved):.3g}"
    if len(solved) > 1:
        text += f" (sd {np.std(solved, ddof=1):.2g})"
    return text if len(solved) == len(rows) else f"{text}, {len(solved)} of {len(rows)}"


def _cost_table(cells: Cells) -> str:
    """Ratio of geometric means, safe over paper, with its 95 % interval (Welch, on logarithms)."""
    titles = ["function", "d", "lambda", "paper: solved", "safe: solved", "ratio", "95 % interval"]
    lines: list[list[object]] = []
    ratios = []
    for (function, _, _, dim, lam), by_solver in sorted(cells.items()):
        paper, safe = by_solver["fmnes paper"], by_solver["fmnes safe"]
        a, b = ([math.log(r.evaluations) for r in rows if r.solved] for rows in (paper, safe))
        ratio = float(np.mean(b) - np.mean(a))
        half = 2.0 * math.sqrt(np.var(a, ddof=1) / len(a) + np.var(b, ddof=1) / len(b))
        ratios.append(ratio)
        counts = [f"{len(x)} of {len(rows)}" for x, rows in ((a, paper), (b, safe))]
        interval = f"{math.exp(ratio - half):.3f} to {math.exp(ratio + half):.3f}"
        lines.append([function, dim, lam, *counts, f"{math.exp(ratio):.3f}", interval])
    mean = math.exp(np.mean(ratios))
    return f"{table(titles, lines)}\n\nGeometric mean of the ratios: {mean:.3f}."


def tables() -> dict[str, str]:
    """Those of the page, by name."""
    return {name: table_of(name) for name in EXPERIMENTS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(EXPERIMENTS)}; all by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", action="store_true", help="run nothing, write the tables")
    arguments = parser.parse_args()
    names = arguments.names or list(EXPERIMENTS)
    for name in names:
        if name not in EXPERIMENTS:
            parser.error(f"names: expected any of {', '.join(EXPERIMENTS)}, got {name}")
        if not arguments.report:
            fill(name, arguments.jobs)
        print(f"\n{name}\n\n{table_of(name)}")
    PAGE.write_text(with_tables(PAGE.read_text(), tables()))


if __name__ == "__main__":
    main()
