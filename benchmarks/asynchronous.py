"""What waiting costs, and what not waiting costs, on a simulated clock.

    python benchmarks/asynchronous.py --dims 40            # runs what is missing, and keeps it
    python benchmarks/asynchronous.py --report             # writes the table of the page

16 workers evaluate candidates in lognormal times with mean 1 and coefficient of variation 1. Each
search is `minimize` itself, with a pool whose workers compute in no time and whose clock is
simulated. It ends at the target 1e-8, and starts from the paper's x0 and sigma0. A popsize of 12 is
below the number of workers, 16 equal to it, and 32 above.
"""

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fmnes
import row_files
from fmnes.benchmarking.simulated_workers import SimulatedWorkers
from pages import table, with_tables

KEPT = Path(__file__).parent / "results/asynchronous.jsonl"
PAGE = Path(__file__).parents[1] / "docs/asynchronous.md"
WORKERS = 16
POPSIZES = (12, 16, 32)
PROBLEMS = ("sphere", "ellipsoid", "rosenbrock")
METHODS = ("cr-fm-nes", "auto")


class Trial(NamedTuple):
    """One search."""

    method: str
    problem: str
    dim: int
    popsize: int
    asynchronous: bool
    seed: int


def run(trial: Trial) -> dict[str, Any]:
    """Evaluations to the target, time on the simulated clock, and how busy the workers were."""
    problem = fmnes.problems.PROBLEMS[trial.problem](trial.dim)
    luck, variance = np.random.default_rng(trial.seed), math.log(2)
    pool = SimulatedWorkers(WORKERS, lambda: luck.lognormal(-variance / 2, math.sqrt(variance)))
    if trial.asynchronous:
        evaluator = fmnes.Evaluator(pool, asynchronous=True)
    else:
        evaluator = fmnes.Evaluator(pool, chunksize=1)
    result = fmnes.minimize(
        problem,
        problem.x0,
        problem.sigma0,
        method=trial.method,
        popsize=trial.popsize,
        workers=evaluator,
        ftarget=1e-8,
        rng=trial.seed,
        maxfevals=5_000_000,
    )
    if result.status in ("interrupted", "terminated"):
        raise SystemExit("a signal ended the search")
    figures = {"solved": result.success, "evaluations": result.nfev}
    return {**trial._asdict(), **figures, "time": pool.now, "utilisation": pool.utilisation}


def kept() -> dict[Trial, dict[str, Any]]:
    """The rows so far."""
    rows = row_files.read(KEPT, Trial._fields)
    return {Trial(*(row[name] for name in Trial._fields)): row for row in rows}


def cells(rows: dict[Trial, dict[str, Any]]) -> Iterator[list[object]]:
    """For each kind of search: evaluations, their ratio, utilisations, and the gain in time.

    Only seeds with which both searches were run count.
    """
    found = defaultdict(list)
    for trial, row in rows.items():
        if trial._replace(asynchronous=not trial.asynchronous) in rows:  # both with this seed
            found[trial[:4], trial.asynchronous].append(row)

    def median(key: Any, name: str) -> float:
        return statistics.median(r[name] if r["solved"] else math.inf for r in found[key])

    for key in sorted({key for key, _ in found}):
        if (key, True) in found and (key, False) in found:
            waits, never = (key, False), (key, True)
            yield [
                *(f"`{key[0]}`", key[1], key[2], key[3], f"{len(found[waits])}"),
                f"{median(waits, 'evaluations'):.0f}",
                f"{median(never, 'evaluations') / median(waits, 'evaluations'):.2f}",
                f"{100 * median(waits, 'utilisation'):.0f} %",
                f"{100 * median(never, 'utilisation'):.0f} %",
                f"{median(waits, 'time') / median(never, 'time'):.1f}",
            ]


def tables() -> dict[str, str]:
    """The tables of the page."""
    titles = (
        *("method", "problem", "d", "popsize", "runs", "evaluations"),
        *("ratio", "busy", "busy, async", "times as fast"),
    )
    return {"asynchronous": table(titles, cells(kept()))}


def main() -> None:
    """Run what is missing, or write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS, choices=PROBLEMS)
    parser.add_argument("--popsizes", nargs="+", type=int, default=POPSIZES)
    parser.add_argument("--dims", nargs="+", type=int, default=(40, 200))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        PAGE.write_text(with_tables(PAGE.read_text(), tables()))
        return
    done = kept()
    wanted = (
        Trial(method, problem, dim, popsize, asynchronous, seed)
        for method in options.methods
        for dim in options.dims
        for problem in options.problems
        for popsize in options.popsizes
        for seed in range(options.seeds)
        for asynchronous in (False, True)
    )
    with row_files.appending(KEPT) as append:
        for trial in wanted:
            if trial in done:
                continue
            same = trial._replace(popsize=max(trial.popsize, WORKERS))
            if trial.asynchronous and same in done:  # a smaller population is enlarged
                done[trial] = {**done[same], "popsize": trial.popsize}
            else:
                done[trial] = run(trial)
            append(done[trial])


if __name__ == "__main__":
    main()
