"""Time of a generation of the methods with a full matrix, next to what it cannot do without.

    python benchmarks/full_matrix.py     # prints, and keeps in results/full_matrix.json

For the figures of docs/paper.md, on one line:

    python benchmarks/full_matrix.py --methods fm-nes --popsize 20 --dims 50 100 200 400 800
        --output benchmarks/results/fm_nes_time.json

The yardstick is one eigendecomposition of the covariance matrix that the search has reached, and
three products of matrices of the same size. All of them take turns within a process, with one BLAS
thread. A lap has at least eight generations on the ellipsoid, without the evaluation, so that it
holds several phases of the search and its share of the decompositions of CMA-ES. Times are medians
of CPU times, which other processes disturb less than the time on the clock.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fmnes
from fmnes.kernels.blas import one_thread

KEPT = Path(__file__).parent / "results/full_matrix.json"
METHODS = ("fm-nes", "dx-nes-ic", "xnes", "cma-es")
DIMS = (16, 64, 128, 256)


class Clock:
    """Milliseconds of CPU time that each of several things takes."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = defaultdict(list)

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the function returns, and record its time."""
        begun = time.thread_time()
        returned = function(*arguments)
        self._times[name].append(1e3 * (time.thread_time() - begun))
        return returned

    def median(self, name: str, laps: int = 1) -> float:
        """Of the times by that name, or of the means over as many successive ones as a lap has."""
        times = self._times[name]
        return statistics.median(
            statistics.fmean(times[i : i + laps]) for i in range(0, len(times), laps)
        )


@one_thread
def measure(method: str, dim: int, popsize: int | None, seconds: float) -> dict[str, Any]:
    """Milliseconds of a generation and of the yardstick, and their ratio."""
    problem = fmnes.problems.ellipsoid(dim)
    begin = partial(fmnes.Optimizer, problem.x0, 2.0, method=method, popsize=popsize, rng=1)
    search = begin()
    lap = max(8, fmnes.METHODS[method].params(dim, search.popsize).refresh_every)
    M = np.random.default_rng(1).standard_normal((dim, dim))
    clock, end = Clock(), time.monotonic() + seconds
    while time.monotonic() < end:
        search = begin() if search.stop else search
        for _ in range(lap):
            x = clock.call("ask", search.ask)
            clock.call("tell", search.tell, problem(x))
        C = search.result.shape.C
        clock.call("decomposition", np.linalg.eigh, C)
        clock.call("product", np.matmul, C, M)
    generation = clock.median("ask", lap) + clock.median("tell", lap)
    decomposition = clock.median("decomposition")
    yardstick = decomposition + 3 * clock.median("product")
    return {
        "method": method,
        "d": dim,
        "lambda": search.popsize,
        "generation": generation,
        "decomposition": decomposition,
        "yardstick": yardstick,
        "ratio": generation / yardstick,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a table in Markdown."""
    lines = ["| method | d | λ | generation, ms | yardstick, ms | ratio |", 6 * "|---" + "|"]
    lines += [
        f"| `{row['method']}` | {row['d']} | {row['lambda']} | {row['generation']:.2f} "
        f"| {row['yardstick']:.2f} | {row['ratio']:.2f} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", type=int, nargs="+", default=DIMS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--popsize", type=int, help="the default of each method if left out")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row")
    parser.add_argument("--output", type=Path, default=KEPT)
    chosen = parser.parse_args()
    rows = [
        measure(method, dim, chosen.popsize, chosen.seconds)
        for method in chosen.methods
        for dim in chosen.dims
    ]
    chosen.output.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
