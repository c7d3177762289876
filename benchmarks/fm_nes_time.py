"""How the time of a generation of FM-NES grows, and what of it is the decomposition: docs/paper.md.

    python benchmarks/fm_nes_time.py     # prints, and keeps in results/fm_nes_time.json

The decomposition is that of the d x d matrix B^T B, one a generation and the only one of that size.
Times are the best of several repeats, on one core.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fmnes

KEPT = Path(__file__).parent / "results/fm_nes_time.json"
DIMS = (50, 100, 200, 400, 800)
POPSIZE = 20  # as in the paper's figure
REPEATS = 15


def best_seconds(once: Callable[[], object]) -> float:
    """Of several repeats."""
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        once()
        times.append(time.perf_counter() - begun)
    return min(times)


def measure(dim: int) -> dict[str, float]:
    """Seconds of a generation on the sphere, and of the decomposition alone."""
    search = fmnes.Optimizer(np.ones(dim), 1.0, method="fm-nes", popsize=POPSIZE, rng=1)

    def generation() -> None:
        x = search.ask()
        search.tell((x**2).sum(axis=1))

    for _ in range(5):
        generation()
    B = np.random.default_rng(1).standard_normal((dim, dim)) / np.sqrt(dim) + 3 * np.eye(dim)
    return {
        "dim": dim,
        "generation": best_seconds(generation),
        "decomposition": best_seconds(lambda: np.linalg.eigh(B.T @ B)),
    }


def main() -> None:
    rows = [measure(dim) for dim in DIMS]
    KEPT.write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        share = row["decomposition"] / row["generation"]
        print(f"d = {row['dim']}: {1e3 * row['generation']:.2f} ms, decomposition {share:.0%}")


if __name__ == "__main__":
    main()
