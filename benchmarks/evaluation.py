"""What evaluating in workers costs: time beside the objective's own, and bytes sent.

    python benchmarks/evaluation.py [engine ...]

measures every engine that is installed (see ENGINES) and keeps the figures of docs/many-machines.md
in benchmarks/results/evaluation.json. Run it on a machine that has nothing else to do: two workers
and the driver want two cores.
"""

import contextlib
import functools
import json
import multiprocessing
import pickle
import platform
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import fmnes
from fmnes.evaluate import Evaluator
from fmnes.evaluate._process import WorkerProcess

RESULTS = Path(__file__).parent / "results" / "evaluation.json"
SECONDS = 1e-3  # of one evaluation
POPSIZES = (64, 256)
GENERATIONS = 30


# === Objectives: they return the seconds that they really took ===


def sleeps(x):
    begun = time.perf_counter()
    time.sleep(SECONDS)
    return time.perf_counter() - begun


def computes(x):
    begun = time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        pass
    return time.perf_counter() - begun


# === Engines ===


@contextlib.contextmanager
def loky():
    from loky import get_reusable_executor

    yield functools.partial(get_reusable_executor, 2)


@contextlib.contextmanager
def dask():
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        yield client


@contextlib.contextmanager
def ray():
    import ray

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=10**8, log_to_driver=False)
    yield fmnes.evaluate.RayExecutor()
    ray.shutdown()


def process_pool(make=ProcessPoolExecutor):
    return make(2, mp_context=multiprocessing.get_context("forkserver"))


ENGINES = {  # name -> (module it needs, what makes it)
    "workers=2": (None, lambda: contextlib.nullcontext(2)),
    "ProcessPoolExecutor": (None, lambda: contextlib.nullcontext(process_pool)),
    "loky": ("loky", loky),
    "Dask": ("distributed", dask),
    "Ray": ("ray", ray),
}


def overhead(evaluator, fun, popsize):
    """By how much a generation takes longer than its evaluations on two workers; the median.

    Of whole generations of `minimize`, with a journal that is not synced: the values are seconds.
    """
    marks = []
    with tempfile.TemporaryDirectory() as folder:
        result = fmnes.minimize(
            fun,
            np.zeros(10),
            1.0,
            method="cr-fm-nes",
            popsize=popsize,
            maxiter=5 + GENERATIONS,
            rng=1,
            stopping=fmnes.Stopping(tolfun=0.0, tolx=0.0),
            workers=evaluator,
            checkpoint=fmnes.Checkpoint(f"{folder}/run.npz", fsync="never"),
            callback=lambda _: marks.append(time.perf_counter()),
        )
    seconds = result.history["median"][5:] * popsize / 2
    return float(np.median(np.diff(marks)[4:] / seconds)) - 1.0


def measure_overhead(name):
    with ENGINES[name][1]() as workers, Evaluator(workers) as evaluator:
        return {
            f"{fun.__name__} {popsize}": overhead(evaluator, fun, popsize)
            for fun in (sleeps, computes)
            for popsize in POPSIZES
        }


# === Bytes ===


class Counted(ProcessPoolExecutor):
    """Counts the bytes of what it is sent."""

    sent = 0

    def submit(self, function, /, *args):
        """As its parent does it."""
        Counted.sent += len(pickle.dumps((function, args), protocol=pickle.HIGHEST_PROTOCOL))
        return super().submit(function, *args)


def bytes_of_a_generation(dim, popsize, generations, workers, sent):
    """What the driver sends, in bytes, as `minimize` does it; the first generation left out."""
    marks = []
    fmnes.minimize(
        norm,
        np.full(dim, 3.0),
        1.0,
        method="cr-fm-nes",
        popsize=popsize,
        maxiter=generations,
        rng=1,
        workers=workers,
        callback=lambda _: marks.append(sent()),
    )
    return (marks[-1] - marks[0]) / (generations - 1)


def norm(x):
    return float(np.sum(x * x))


def measure_bytes(dim, popsize=46, generations=4):
    """Of two workers, for our own processes and for somebody's pool of them."""
    total = 0
    send = WorkerProcess.send

    def counted(self, message):
        nonlocal total
        nbytes = send(self, message)
        total += nbytes
        return nbytes

    WorkerProcess.send = counted
    try:
        ours = bytes_of_a_generation(dim, popsize, generations, 2, lambda: total)
    finally:
        WorkerProcess.send = send
    pool = Evaluator(functools.partial(process_pool, Counted))
    with pool:
        theirs = bytes_of_a_generation(dim, popsize, generations, pool, lambda: Counted.sent)
    vector = 8 * dim
    return {
        "d": dim,
        "popsize": popsize,
        "workers=2": ours,
        "ProcessPoolExecutor": theirs,
        "candidates would be": popsize * vector,
        "vectors a worker": ours / 2 / vector,
    }


def main(*names):
    installed = [name for name, (module, _) in ENGINES.items() if not module or find_spec(module)]
    figures = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"overhead": {}}
    figures["machine"] = f"{platform.machine()}, {multiprocessing.cpu_count()} cores"
    figures["python"], figures["numpy"] = platform.python_version(), np.__version__
    print(f"overhead of evaluations of {1000 * SECONDS:g} ms on 2 workers")
    for name in names or installed:
        figures["overhead"][name] = row = measure_overhead(name)
        print(
            f"  {name:20}", "  ".join(f"{k}: {100 * v:5.1f} %" for k, v in row.items()), flush=True
        )
    print("bytes that the driver sends for a generation")
    figures["bytes"] = [measure_bytes(dim) for dim in (1_000, 10_000, 100_000)]
    for row in figures["bytes"]:
        print("  ", "  ".join(f"{name}: {value:.6g}" for name, value in row.items()))
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
