"""What a `fmnes.Cluster` sends: bytes of each generation, and what hashes and updates cost.

    python benchmarks/cluster.py                  prints, and writes results/cluster.json
    python benchmarks/cluster.py --engines dask --dims 1000

Counted are the arguments and the answers of all calls to the actors, pickled; the engine's own
envelopes and heartbeats come on top, some hundred bytes for each call.
"""

import argparse
import contextlib
import json
import os
import pickle
import time
from pathlib import Path

import numpy as np

import fmnes

RESULTS = Path(__file__).parent / "results" / "cluster.json"
GENERATIONS, WORKERS = 7, 2


class Counting:
    """A host, with the bytes that cross it."""

    def __init__(self, host):
        self.count, self.start, self.end, self._call = host.count, host.start, host.end, host.call
        self.bytes = self.calls = 0

    def call(self, actor, method, *args):
        """The same call, counted."""
        self.calls += 1
        self.bytes += len(pickle.dumps((method, args), protocol=pickle.HIGHEST_PROTOCOL))
        future = self._call(actor, method, *args)
        future.add_done_callback(self._count_answer)
        return future

    def _count_answer(self, future):
        if not future.cancelled() and future.exception() is None:
            answer = pickle.dumps(future.result(), protocol=pickle.HIGHEST_PROTOCOL)
            self.bytes += len(answer)


@contextlib.contextmanager
def dask():
    from distributed import Client

    with Client(n_workers=WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        yield client


@contextlib.contextmanager
def ray():
    import ray

    from fmnes.evaluate import RayExecutor

    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    yield RayExecutor()
    ray.shutdown()


ENGINES = {"dask": dask, "ray": ray}


def sphere(x):
    return float(np.sum(x * x))


def measure(pool, dim):
    """One short search; the first generations, in which the workers join, are not counted."""
    host, marks = Counting(fmnes.Cluster(pool).host()), []

    def note(intermediate):
        marks.append((host.bytes, host.calls))

    x0 = np.linspace(-1.0, 2.0, dim)
    # One candidate at a time, as long evaluations are sent: short ones take fewer calls.
    with fmnes.Evaluator(fmnes.Cluster(host, WORKERS), chunksize=1) as evaluator:
        result = fmnes.minimize(
            sphere,
            x0,
            1.0,
            method="cr-fm-nes",
            rng=1,
            maxiter=GENERATIONS,
            callback=note,
            workers=evaluator,
        )
    steady = np.diff(np.array(marks)[2:], axis=0)
    popsize = result.nfev // result.nit
    return {
        "dim": dim,
        "popsize": popsize,
        "workers": WORKERS,
        "bytes_of_a_generation_median": int(np.median(steady[:, 0])),
        "bytes_of_a_generation_most": int(np.max(steady[:, 0])),
        "calls_of_a_generation_median": int(np.median(steady[:, 1])),
        "bytes_until_all_have_joined": int(marks[2][0]),
        "bytes_of_the_candidates": 8 * popsize * dim,
        **local_costs(x0, popsize),
    }


def local_costs(x0, popsize):
    """CPU time of the parts of a generation that every worker goes through, least of three."""
    opt = fmnes.Optimizer(x0, 1.0, method="cr-fm-nes", rng=1)
    values = np.arange(float(popsize))
    update, fingerprint = [], []
    for _ in range(3):
        population = opt.population()
        begun = time.process_time()
        population.fingerprint()
        fingerprint.append(time.process_time() - begun)
        begun = time.process_time()
        opt.ask(rows=slice(0, 1))  # draws for all
        opt.tell(values)
        update.append(time.process_time() - begun)
    return {
        "cpu_ms_of_draws_and_update": round(1e3 * min(update), 2),
        "cpu_ms_of_a_hash": round(1e3 * min(fingerprint), 2),
        "bytes_of_a_checkpoint": len(pickle.dumps(opt.population())),
    }


def stored(path):
    """The rows of an earlier run."""
    return json.loads(path.read_text())["rows"] if path.exists() else []


def write(path, rows):
    """Rows replace those of the same engine and number of variables."""
    known = {(row["engine"], row["dim"]): row for row in [*stored(path), *rows]}
    config = {name: fmnes.config()[name] for name in ("fmnes", "numpy", "kernels", "level")}
    ordered = [known[key] for key in sorted(known)]
    content = {"command": "python benchmarks/cluster.py", "config": config, "rows": ordered}
    path.write_text(json.dumps(content, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--dims", nargs="+", type=int, default=[1000, 10**5, 10**6])
    options = parser.parse_args()
    for engine in options.engines:
        with ENGINES[engine]() as pool:
            for dim in options.dims:
                row = {"engine": engine, **measure(pool, dim)}
                print(json.dumps(row), flush=True)
                write(RESULTS, [row])


if __name__ == "__main__":
    main()
