"""Searches on the workers of a real cluster, in a process of its own.

    python start.py ENGINE FOLDER SCENARIO...

prints one line of JSON for each scenario.
"""

import contextlib
import functools
import gc
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import fmnes
from cluster.common import Counting, digest, ellipsoid
from fmnes import Cluster, EvaluationError, Evaluator
from fmnes.evaluate.cluster._replica import Replica

WORKERS = 3
DIM = 400  # one vector is 3200 bytes, more than a generation may send


# === Objectives ===


def notes_who(x, pids):
    with open(pids, "a") as file:
        print(os.getpid(), file=file)
    time.sleep(0.002)
    return ellipsoid(x)


def kills_its_worker(x, calls, done):
    """Once, at about the fortieth call."""
    with open(calls, "a") as file:
        print(os.getpid(), file=file)
    if os.path.getsize(calls) > 200 and not os.path.exists(done):
        Path(done).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return ellipsoid(x)


def alters_its_worker(x, calls, done):
    """Once, at about the fortieth call: the rest of its candidates are wrong ones."""
    with open(calls, "a") as file:
        print(os.getpid(), file=file)
    if os.path.getsize(calls) > 200 and not os.path.exists(done):
        Path(done).touch()
        gc.collect()
        (replica,) = (o for o in gc.get_objects() if isinstance(o, Replica))
        replica._population._engine.state.mean[0] += 0.5
    return ellipsoid(x)


def is_trouble(x):
    """One candidate in some sixty."""
    return x[0] > 1.2


def has_no_value(x):
    return np.nan if is_trouble(x) else ellipsoid(x)


def raises(x):
    if is_trouble(x):
        raise ValueError("the mesh is tangled")
    return ellipsoid(x)


def exits(x):
    if is_trouble(x):
        sys.exit("the simulator gave up")
    return ellipsoid(x)


def kills_always(x):
    if is_trouble(x):
        os.kill(os.getpid(), signal.SIGKILL)
    return ellipsoid(x)


def hangs(x):
    if is_trouble(x):
        time.sleep(1000)
    return ellipsoid(x)


def slow(x):
    time.sleep(0.05)
    return ellipsoid(x)


# === Engines: the pool, how to let a further worker in ===


@contextlib.contextmanager
def dask():
    from distributed import Client

    with Client(n_workers=WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:

        def let_in():
            client.cluster.scale(WORKERS + 1)
            client.wait_for_workers(WORKERS + 1)

        yield client, WORKERS + 1, let_in


@contextlib.contextmanager
def ray():
    import ray

    from fmnes.evaluate import RayExecutor

    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.init(
        num_cpus=WORKERS, include_dashboard=False, object_store_memory=10**8, log_to_driver=False
    )
    blockers = []

    def let_in():
        for blocker in blockers:
            ray.kill(blocker)

    def pool_with_a_blocker():
        blockers.append(ray.remote(num_cpus=1)(Blocker).remote())
        ray.get(blockers[0].wait.remote())
        return WORKERS

    yield RayExecutor(), pool_with_a_blocker, let_in
    ray.shutdown()


class Blocker:
    def wait(self):
        """Returns once it is there."""


ENGINES = {"dask": dask, "ray": ray}


# === Scenarios ===


def search(workers, fun=ellipsoid, args=(), maxiter=20, **changes):
    return fmnes.minimize(
        fun, np.linspace(-1.0, 2.0, DIM), 1.0, args=args, popsize=22, rng=3, maxiter=maxiter,
        workers=workers, **changes,
    )  # fmt: skip


def hashed(result):
    return hashlib.sha256(repr(digest(result)).encode()).hexdigest()


def bits(n, pool, others, let_in, folder):
    return {"result": hashed(search(Cluster(pool, n)))}


def once(fun, pool, others, let_in, folder):
    """Something happens to a worker."""
    calls, done = folder / f"{fun.__name__}.calls", folder / f"{fun.__name__}.done"
    result = search(Cluster(pool, 2), fun, (str(calls), str(done)))
    pids = set(calls.read_text().split())
    return {"result": hashed(result), "happened": done.exists(), "processes": len(pids)}


def troubled(fun, pool, others, let_in, folder, **policies):
    """Some candidates fail, and count as if they had no value."""
    with Evaluator(Cluster(pool, 2), on_error="penalize", **policies) as evaluator:
        result = search(evaluator, fun, maxiter=3)
    return {"result": hashed(result), "nfailed": result.nfailed, "error": result.first_error}


def late(pool, others, let_in, folder):
    """One worker finds its place while the search goes on; it ends when that one has worked."""
    pids, seen = folder / "pids", []
    n = others() if callable(others) else others

    def watch(intermediate):
        seen.append(len(set(pids.read_text().split())))
        if intermediate.nit == 5:
            let_in()
        if seen[-1] == n or intermediate.nit == 1000:
            raise StopIteration

    with Evaluator(Cluster(pool, n), chunksize=1) as evaluator:
        result = search(evaluator, notes_who, (str(pids),), maxiter=None, callback=watch)

    def stop_there(intermediate):
        if intermediate.nit == result.nit:
            raise StopIteration

    serial = search(None, maxiter=None, callback=stop_there)
    return {
        "same": hashed(serial) == hashed(result),
        "before": seen[4],
        "after": seen[-1],
        "n": n,
    }


def refused(pool, others, let_in, folder):
    """Workers with other kernels: with Dask one among others, with Ray all of them."""
    if hasattr(pool, "scheduler_info"):
        n = len(pool.nthreads()) + 1
        stranger = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", pool.scheduler.address,
             "--nthreads", "1", "--no-dashboard"],
            env={**os.environ, "FMNES_KERNELS": "agnostic"},
        )  # fmt: skip
        try:
            pool.wait_for_workers(n)
            return {"result": hashed(search(Cluster(pool, n))), "text": ""}
        finally:
            stranger.terminate()
            stranger.wait()
    from fmnes.evaluate import RayExecutor

    other = RayExecutor(runtime_env={"env_vars": {"FMNES_KERNELS": "agnostic"}})
    try:
        search(Cluster(other, 1))
    except EvaluationError as error:
        return {"result": hashed(search(Cluster(pool, 2))), "text": str(error)}
    return {}


def traffic(pool, others, let_in, folder):
    host, marks = Counting(Cluster(pool).host()), []
    with Evaluator(Cluster(host, 2), chunksize=6) as evaluator:
        search(evaluator, callback=lambda intermediate: marks.append(host.bytes))
    return {"bytes": int(np.median(np.diff(marks)))}  # some may join late


def is_interrupted(pool, others, let_in, folder):
    def ready(intermediate):
        print("ready", flush=True)

    result = search(Cluster(pool, 2), slow, maxiter=None, callback=ready)
    answer = {"status": str(result.status), "nfev": result.nfev}
    if result.status == "interrupted":  # of a SIGTERM also the workers may die
        answer["result"] = hashed(search(Cluster(pool, 2)))
    return answer


SCENARIOS = {
    **{f"bits-{n}": functools.partial(bits, n) for n in (1, 2, 3)},
    "killed": functools.partial(once, kills_its_worker),
    "altered": functools.partial(once, alters_its_worker),
    "raises": functools.partial(troubled, raises),
    "exits": functools.partial(troubled, exits),
    "kills-always": functools.partial(troubled, kills_always),
    "hangs": functools.partial(troubled, hangs, timeout=3.0),
    "traffic": traffic,
    "late": late,
    "refused": refused,
    "is_interrupted": is_interrupted,
}


class Warnings(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def main(engine, folder, *scenarios):
    logger, warnings = logging.getLogger("fmnes"), Warnings()
    logger.addHandler(warnings)
    logger.propagate = False
    os.chdir(folder)
    with ENGINES[engine]() as pool:
        for name in scenarios:
            begun = time.monotonic()
            warnings.lines.clear()
            answer = SCENARIOS[name](*pool, Path(folder))
            answer |= {"seconds": round(time.monotonic() - begun, 2), "warnings": warnings.lines}
            print(json.dumps({"scenario": name, **answer}), flush=True)
