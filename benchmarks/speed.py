"""Microseconds of one generation, ask and tell without the objective, beside the peers.

Best of many repeats, all solvers in one run: what holds is the ratio between the columns.

    python benchmarks/speed.py [--dims 10 80 200 1000]
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable

import numpy as np

import fmnes
from fmnes.algorithms._shared import even_default_popsize

Generation = Callable[[], None]


def ours(dim: int, lam: int) -> Generation:
    """Optimizer.ask and Optimizer.tell as a user calls them."""
    opt = fmnes.Optimizer(np.full(dim, 3.0), 2.0, popsize=lam, rng=1)
    values = np.arange(lam, dtype=float)

    def generation() -> None:
        opt.ask()
        opt.tell(values)

    return generation


def authors(dim: int, lam: int) -> Generation:
    """The package crfmnes 1.0.0 without its loop over violations."""
    from crfmnes import CRFMNES

    values = iter(lambda: 1.0, 0.0)
    opt = CRFMNES(
        dim, lambda x: next(values), np.full((dim, 1), 3.0), 2.0, lam,
        use_constraint_violation=False,
    )  # fmt: skip
    return lambda: opt.one_iteration() and None


def cmaes_sep(dim: int, lam: int) -> Generation:
    """The SepCMA of cmaes, one point an ask."""
    from cmaes import SepCMA

    opt = SepCMA(np.full(dim, 3.0), 2.0, population_size=lam, seed=1)

    def generation() -> None:
        opt.tell([(opt.ask(), float(i)) for i in range(lam)])

    return generation


def pycma_vd(dim: int, lam: int) -> Generation:
    """The VD-CMA of pycma."""
    import cma
    from cma.restricted_gaussian_sampler import GaussVDSampler

    options = GaussVDSampler.extend_cma_options({"popsize": lam, "verbose": -9, "seed": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        es = cma.CMAEvolutionStrategy(np.full(dim, 3.0), 2.0, options)
    values = list(map(float, range(lam)))
    return lambda: es.tell(es.ask(), values)


SOLVERS = {
    "fmnes": ours,
    "authors' crfmnes": authors,
    "cmaes SepCMA": cmaes_sep,
    "pycma VD": pycma_vd,
}


def best_of(generation: Generation, seconds: float) -> float:
    """The fastest generation within a time limit, in microseconds."""
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        generation()
        best = min(best, time.perf_counter() - begun)
    return 1e6 * best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", type=int, nargs="+", default=[10, 80, 200, 1000, 10_000])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each cell")
    arguments = parser.parse_args()
    print(f"NumPy {np.__version__}, {os.cpu_count()} cores; microseconds of one generation\n")
    print("| d | lambda | " + " | ".join(SOLVERS) + " |")
    print("|---" * (2 + len(SOLVERS)) + "|")
    for dim in arguments.dims:
        lam = even_default_popsize(dim)
        with np.errstate(all="ignore"):
            times = [best_of(make(dim, lam), arguments.seconds) for make in SOLVERS.values()]
        print(f"| {dim} | {lam} | " + " | ".join(f"{t:.0f}" for t in times) + " |", flush=True)


if __name__ == "__main__":
    main()
