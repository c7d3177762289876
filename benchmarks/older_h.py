"""CR-FM-NES (paper variant) with the right H and with the older one, on the same draws.

    python benchmarks/older_h.py             # makes the trials, about five minutes
    python benchmarks/older_h.py --report    # makes the table of docs/appendix.md from them

Evaluations to 1e-10 at the default population, and the share of generations in which alpha < 1:
in all others both H are the same.
"""

import argparse
import csv
import dataclasses
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import fmnes
from fmnes import draws, problems
from fmnes.algorithms import Algorithm, Shape, cr_fm_nes
from fmnes.algorithms import _vd_gaussian as vd
from fmnes.draws import Address
from fmnes.engines import EngineSpec
from fmnes.engines.array import ArrayEngine
from fmnes.experiments import older_h

RESULTS = Path(__file__).parent / "results"
METHODS: dict[str, Algorithm] = {"right": cr_fm_nes, "older": older_h}
SEEDS = {10: 30, 80: 10}  # by dimension
TARGET = 1e-10


def lopsided_cigar(dim: int) -> problems.Problem:
    """A cigar of condition 1e2 whose long axis has 0.8 of its square in the first coordinate."""
    u = np.full(dim, math.sqrt(0.2 / (dim - 1)))
    u[0] = math.sqrt(0.8)

    def values(x: NDArray[np.float64]) -> NDArray[np.float64]:
        along = x @ u
        return along**2 + 1e2 * np.sum((x - along[:, None] * u) ** 2, axis=1)

    return dataclasses.replace(problems.cigar(dim, 1e2), name="lopsided cigar", function=values)


PROBLEMS: dict[str, Callable[[int], problems.Problem]] = {
    **{name: problems.PROBLEMS[name] for name in ("sphere", "ktablet", "ellipsoid", "rosenbrock")},
    "cigar, condition 1e2": lambda dim: problems.cigar(dim, 1e2),
    "cigar, condition 1e6": problems.cigar,
    "lopsided cigar": lopsided_cigar,
}


class Trial(NamedTuple):
    """One run, and what came of it."""

    function: str
    dim: int
    H: str
    seed: int
    evaluations: int = 0
    value: float = math.inf
    share: float = 0.0  # of the generations with alpha < 1


def run(trial: Trial) -> Trial:
    """To the target, to the end of the paper's budget, or until a value is no number."""
    method, dim = METHODS[trial.H], trial.dim
    problem = PROBLEMS[trial.function](dim)
    params = method.params(dim, method.default_popsize(dim), fmnes.CRFMNES(variant="paper"))
    z = draws.normals(trial.seed, draws.initial_stream(0), 0, 0, 1, dim)[0]
    start = Shape(D=np.ones(dim))
    state = method.init(params, problem.x0, np.asarray(problem.sigma0), start, z)
    address = Address(trial.seed, draws.population_stream(0))
    engine = ArrayEngine(EngineSpec(method, params, state, address, tolx=0.0))
    best, generations, lopsided = math.inf, 0, 0
    with np.errstate(all="ignore"):
        while best > TARGET and (generations + 1) * params.popsize <= 5 * dim * 10**4:
            f = problem(engine.ask(0, params.popsize))
            generations += 1
            if not np.isfinite(f).all():
                break
            _, alpha = older_h.constants(np, vd.direction_of(np, engine.state.v))
            lopsided += int(alpha < 1)
            best = min(best, float(np.min(f)))
            engine.tell(f, best)
    share = lopsided / generations
    return trial._replace(evaluations=generations * params.popsize, value=best, share=share)


def trials() -> Iterator[Trial]:
    """All of them."""
    for dim, seeds in SEEDS.items():
        for function in PROBLEMS:
            for H in METHODS:
                for seed in range(1, seeds + 1):
                    yield Trial(function, dim, H, seed)


def write(rows: list[Trial]) -> None:
    """One line a trial."""
    with (RESULTS / "older_h.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Trial._fields)
        writer.writerows(rows)


def read() -> list[Trial]:
    """What `write` wrote."""
    with (RESULTS / "older_h.csv").open(newline="") as file:
        return [
            Trial(
                row["function"],
                int(row["dim"]),
                row["H"],
                int(row["seed"]),
                int(row["evaluations"]),
                float(row["value"]),
                float(row["share"]),
            )
            for row in csv.DictReader(file)
        ]


def evaluations(rows: list[Trial], function: str, dim: int, H: str) -> list[int]:
    """Of the runs that reached the target."""
    return [
        row.evaluations for row in rows if row[:3] == (function, dim, H) and row.value <= TARGET
    ]


def ratio(right: list[int], older: list[int]) -> tuple[float, float]:
    """The logarithm of older / right, and half of its 95 % interval."""
    logs = [np.log(count) for count in (older, right)]
    half = 2 * math.sqrt(sum(x.var(ddof=1) / len(x) for x in logs))
    return float(logs[0].mean() - logs[1].mean()), half


def table(rows: list[Trial]) -> str:
    """The table of docs/appendix.md."""
    head = ["function", "d", "alpha < 1", "right H", "older H", "older / right"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for dim, seeds in SEEDS.items():
        for function in PROBLEMS:
            counts = [evaluations(rows, function, dim, H) for H in METHODS]
            share = np.mean([row.share for row in rows if row[:3] == (function, dim, "right")])
            cells = [
                f"{np.mean(c):.0f} (sd {np.std(c, ddof=1):.0f})" if len(c) == seeds
                else f"{len(c)} of {seeds} solved"
                for c in counts
            ]  # fmt: skip
            quotient = "-"
            if min(map(len, counts)) == seeds:
                log, half = ratio(*counts)
                low, high = math.exp(log - half), math.exp(log + half)
                quotient = f"{math.exp(log):.3f} ({low:.3f} to {high:.3f})"
            lines.append(f"| {function} | {dim} | {share:.0%} | {' | '.join(cells)} | {quotient} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="only make the table again")
    if not parser.parse_args().report:
        with ProcessPoolExecutor() as pool:
            write(list(pool.map(run, trials())))
    (RESULTS / "older_h.md").write_text(table(read()))
