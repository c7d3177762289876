"""One cell of benchmarks/speed.py: a solver at a number of variables, in a process of its own.

A solver is the loop its user would write; `Generations` gives it the values and holds the clock.

    python benchmarks/solvers.py "fmnes" 1000 24 1.0     # name, d, lambda, seconds; prints JSON
"""

import functools
import importlib
import json
import math
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

WARM_UP = 2  # generations before the clock starts: memory is touched, jit has compiled
LIFE = 200  # timed generations of one search: under values without meaning its state drifts off
LAP = 5e-4  # seconds between two looks at the clock, at least

ALL = (10, 80, 200, 1000, 10_000, 100_000, 1_000_000)
FULL = (80, 200, 1000)  # numbers of variables for full matrices


class Generations:
    """Prepared values, one row a generation, and the seconds that each block of them took.

    Ranks change at random, and every generation has a new best: the most a solver has to do.
    """

    def __init__(self, lam: int, blocks: int, block: int) -> None:
        count = WARM_UP + blocks * block
        values = default_rng(1).random((count, lam)) - np.arange(count)[:, None]
        self.rows = list(values)
        self.blocks, self.block = blocks, block
        self.laps: list[float] = []

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        rows = iter(self.rows)
        yield from islice(rows, WARM_UP)
        for _ in range(self.blocks):
            begun = time.perf_counter()
            yield from islice(rows, self.block)
            self.laps.append((time.perf_counter() - begun) / self.block)


Loop = Callable[[int, int, Generations], None]


# === fmnes: imported here and below inside the functions, so that a cell holds one peer ===


def ours(method: Any = "cr-fm-nes", dtype: str = "float64", *, into_buffer: bool = False) -> Loop:
    """Optimizer.ask and Optimizer.tell as a user calls them."""

    def loop(dim: int, lam: int, generations: Generations) -> None:
        import fmnes

        settings = method() if callable(method) else method
        x0 = np.full(dim, 3.0, dtype=dtype)
        opt = fmnes.Optimizer(x0, 2.0, method=settings, popsize=lam, rng=1)
        x = np.empty((lam, dim), dtype=dtype) if into_buffer else None
        for values in generations:
            opt.ask() if x is None else opt.ask(out=x)
            opt.tell(values)

    return loop


def ours_minimize(dim: int, lam: int, generations: Generations) -> None:
    """Minimize with a vectorized objective that costs nothing."""
    import fmnes

    with_x0 = np.zeros(lam + 1)  # of the first generation
    values, last = chain([with_x0], generations), generations.rows[-1]
    result = fmnes.minimize(
        lambda x: next(values, last),
        np.full(dim, 3.0),
        2.0,
        method="cr-fm-nes",
        popsize=lam,
        vectorized=True,
        maxiter=len(generations) + 2,  # the clock stops as one more is asked for
        rng=1,
    )
    if result.status is not fmnes.Status.MAXITER:
        raise RuntimeError(f"expected a search that ends by maxiter, got {result.status}")


def _streaming() -> Any:
    import fmnes

    return fmnes.CRFMNES(store_draws=False)


# === Peers ===


def authors(dim: int, lam: int, generations: Generations) -> None:
    """crfmnes, its Python loop over violations of bounds switched off."""
    from crfmnes import CRFMNES

    values: Iterator[float] = iter(())
    opt = CRFMNES(
        dim, lambda x: next(values), np.full((dim, 1), 3.0), 2.0, lam,
        seed=1, use_constraint_violation=False,
    )  # fmt: skip
    for row in generations:
        values = iter(row)
        opt.one_iteration()


def fcmaes(dim: int, lam: int, generations: Generations) -> None:
    """The C++ class of fcmaes."""
    from fcmaes.crfmnescpp import CRFMNES_C

    opt = CRFMNES_C(
        dim, x0=np.full(dim, 3.0), input_sigma=2.0, popsize=lam,
        rg=default_rng(1), use_constraint_violation=False,
    )  # fmt: skip
    for values in generations:
        if opt.ask() is None or opt.tell(values) == -1:
            raise RuntimeError("fcmaes: ask or tell failed")


@functools.cache  # one object, one compilation
def _evosax(dim: int, lam: int) -> Any:
    from evosax.algorithms import CR_FM_NES

    return CR_FM_NES(population_size=lam, solution=np.zeros(dim))


def evosax(dim: int, lam: int, generations: Generations) -> None:
    """CR_FM_NES of evosax: its jitted ask and tell, in float64, the keys prepared beforehand."""
    import jax

    opt = _evosax(dim, lam)
    params = opt.default_params.replace(std_init=2.0)
    key = jax.random.key(1)
    state = opt.init(key, np.full(dim, 3.0), params)
    keys = list(jax.random.split(key, len(generations)))
    for key, values in zip(keys, generations, strict=True):
        x, state = opt.ask(key, state, params)
        state, metrics = opt.tell(key, x, values, state, params)
        jax.block_until_ready((state, metrics))


def cmaes_sep(dim: int, lam: int, generations: Generations) -> None:
    """The SepCMA of cmaes: one point an ask."""
    from cmaes import SepCMA

    opt = SepCMA(np.full(dim, 3.0), 2.0, population_size=lam, seed=1)
    for values in generations:
        opt.tell([(opt.ask(), value) for value in values])


def pycma(kind: str) -> Loop:
    """The CMA-ES of pycma: full matrix, diagonal, or D (I + v v^T) D."""

    def loop(dim: int, lam: int, generations: Generations) -> None:
        from fmnes.benchmarking import packages

        es = packages.pycma(kind, np.full(dim, 3.0), 2.0, popsize=lam, seed=1)
        for values in generations:
            es.tell(es.ask(), values)

    return loop


# === What bounds a row ===


def draws_alone(dim: int, lam: int, generations: Generations) -> None:
    """The normal draws of half a population, compiled, to memory that was touched before."""
    from fmnes.kernels import _native

    z = np.zeros((lam // 2, dim))
    for g, _ in enumerate(generations):
        _native.normals(1, 0, g, 0, z)


def write_once(dim: int, lam: int, generations: Generations) -> None:
    """Candidates written once, to memory that was touched before."""
    x = np.zeros((lam, dim))
    for _ in generations:
        x.fill(1.0)


def eigendecomposition(dim: int, lam: int, generations: Generations) -> None:
    """One symmetric eigendecomposition and three matrix products, by NumPy."""
    A = default_rng(1).standard_normal((dim, dim))
    C = A @ A.T
    for _ in generations:
        _, B = np.linalg.eigh(C)
        A @ B
        B @ A
        A @ C


# === The table ===


class Solver(NamedTuple):
    """A loop, and what its process needs."""

    loop: Loop
    package: str
    environment: Mapping[str, str] = MappingProxyType({})
    threads: int = 1  # and as many CPUs
    dims: tuple[int, ...] = ALL
    block: int = 1  # generations timed together, at least: those between two eigendecompositions


def _environment(threads: int, kernels: str = "native") -> dict[str, str]:
    return {"FMNES_NUM_THREADS": str(threads), "FMNES_KERNELS": kernels}


ONE, TWO = _environment(1), _environment(2)
JAX = {
    "JAX_ENABLE_X64": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
EIGEN = 56  # at d = 1000 ours decomposes C every 7 generations, pycma every 8

SOLVERS = {
    "fmnes": Solver(ours(), "fmnes", ONE),
    "fmnes, 2 threads": Solver(ours(), "fmnes", TWO, threads=2),
    "fmnes, NumPy kernels": Solver(ours(), "fmnes", _environment(1, "agnostic")),
    "fmnes, ask(out=)": Solver(ours(into_buffer=True), "fmnes", ONE),
    "fmnes, streaming": Solver(ours(_streaming, into_buffer=True), "fmnes", ONE),
    "fmnes, float32": Solver(ours(dtype="float32"), "fmnes", ONE),
    "fmnes, minimize": Solver(ours_minimize, "fmnes", ONE),
    "crfmnes (authors)": Solver(authors, "crfmnes"),
    "fcmaes C++": Solver(fcmaes, "fcmaes.crfmnescpp"),
    "evosax": Solver(evosax, "evosax.algorithms", JAX),
    "evosax, 2 threads": Solver(evosax, "evosax.algorithms", JAX, threads=2),
    "cmaes SepCMA": Solver(cmaes_sep, "cmaes"),
    "pycma VD": Solver(pycma("vd"), "cma"),
    "pycma diagonal": Solver(pycma("diagonal"), "cma"),
    "draws alone": Solver(draws_alone, "fmnes", ONE),
    "write once": Solver(write_once, "numpy"),
    "fmnes CMA-ES": Solver(ours("cma-es"), "fmnes", ONE, dims=FULL, block=EIGEN),
    "pycma CMA-ES": Solver(pycma("full"), "cma", dims=FULL, block=EIGEN),
    "fmnes FM-NES": Solver(ours("fm-nes"), "fmnes", ONE, dims=FULL),
    "eigh + 3 products": Solver(eigendecomposition, "numpy", dims=FULL),
}


# === One cell ===


def measure(solver: Solver, dim: int, lam: int, seconds: float) -> dict[str, Any]:
    """Search after search until that many seconds were timed; one figure a lap."""
    imported = _peak_mib()
    begun, cpu = time.perf_counter(), time.process_time()
    (first,) = _run(solver, dim, lam, 1, solver.block)
    peak = _peak_mib()  # of one search; what the next ones add is left to the allocator
    block = max(solver.block, min(LIFE, math.ceil(LAP / first)))
    laps = [first] if block == solver.block else []  # else it was too short to count
    left = seconds - sum(laps) * block
    while left > 0:
        blocks = max(1, min(LIFE // block, int(left / (first * block))))
        more = _run(solver, dim, lam, blocks, block)
        left -= sum(more) * block
        laps += more
    cores_busy = (time.process_time() - cpu) / (time.perf_counter() - begun)
    memory = {"peak_mib": peak, "imported_mib": imported}
    return {"laps": laps, "cores_busy": cores_busy, **memory}


def _run(solver: Solver, dim: int, lam: int, blocks: int, block: int) -> list[float]:
    generations = Generations(lam, blocks, block)
    solver.loop(dim, lam, generations)
    return generations.laps


def _peak_mib() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would begin with the peak of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS


def main() -> None:
    name, dim, lam, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    solver = SOLVERS[name]
    warnings.simplefilter("ignore")  # of the peers
    if hasattr(os, "sched_setaffinity"):  # JAX has no other way to use one core only
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-solver.threads :])
    try:
        for module in (solver.package, "fmnes.benchmarking.packages"):  # before memory is measured
            importlib.import_module(module)
    except ImportError as error:  # a peer that is not installed, kernels that are not built
        print(json.dumps({"note": f"not there: {error}"}))
        return
    cell = measure(solver, dim, lam, seconds)
    package = solver.package.split(".")[0]
    version = getattr(sys.modules[package], "__version__", None) or metadata.version(package)
    print(json.dumps({**cell, "version": f"{package} {version}"}))


if __name__ == "__main__":
    main()
