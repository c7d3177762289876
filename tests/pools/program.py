"""Faults and optimizations on one pool, in a process of its own.

    python start.py ENGINE FOLDER SCENARIO...

prints one line of JSON for each scenario. Engines leave threads, processes, warnings and signal
handlers behind: nothing of that in the process of the tests.
"""

import contextlib
import functools
import hashlib
import json
import logging
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import fmnes
from faults import objectives
from fmnes.evaluate import Evaluator
from pools import everything, problems

TIMEOUT = 2.0
X = objectives.population()


# === Engines ===


DASK = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}


@contextlib.contextmanager
def dask():
    import dask
    from distributed import Client

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        Client(**DASK) as client,
    ):
        yield client


@contextlib.contextmanager
def dask_factory():
    from distributed import Client

    yield functools.partial(Client, **DASK)


@contextlib.contextmanager
def ray():
    import ray

    from fmnes.evaluate import RayExecutor

    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=10**8, log_to_driver=False)
    yield RayExecutor()
    ray.shutdown()


@contextlib.contextmanager
def loky():
    from loky import get_reusable_executor

    yield functools.partial(get_reusable_executor, 2)


@contextlib.contextmanager
def mpi():
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as pool:
        yield pool


@contextlib.contextmanager
def submitit(cluster="local"):
    from submitit import AutoExecutor

    executor = AutoExecutor(folder="jobs", cluster=cluster)
    executor.update_parameters(timeout_min=2)
    if cluster == "slurm":
        executor.update_parameters(slurm_mem="500MB")
    yield executor


@contextlib.contextmanager
def slurm_dask():
    from dask_jobqueue import SLURMCluster
    from distributed import Client

    with (
        SLURMCluster(
            cores=1,
            memory="800MB",
            walltime="00:05:00",
            interface="lo",
            scheduler_options={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(jobs=2)
        yield client


def process_pool():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver"))


POOLS = {
    "processes": lambda: contextlib.nullcontext(2),
    "executor": lambda: contextlib.nullcontext(process_pool),
    "loky": loky,
    "dask": dask,
    "dask-factory": dask_factory,
    "ray": ray,
    "mpi": mpi,
    "submitit": submitit,
    "slurm-submitit": functools.partial(submitit, "slurm"),
    "slurm-dask": slurm_dask,
}


# === Scenarios: (workers, folder) -> what to print ===


def told(outcome, log=None):
    return {
        "values": [value.hex() for value in outcome.values.tolist()],
        "nfailed": outcome.nfailed,
        "error": outcome.first_error,
        "calls": objectives.calls(log) if log and os.path.exists(log) else {},
    }


BALLAST = np.zeros(2**17)  # more than goes with every chunk


def evaluates(fun, *, logs=False, warm=False, args=(), **policies):
    """A scenario that evaluates one population; ``warm``: on workers that are up already."""

    def scenario(workers, folder):
        log = str(folder / fun.__name__)
        with Evaluator(workers, on_error="penalize", **policies) as evaluator:
            if warm:
                evaluator.evaluate(objectives.sphere, (), X)
            return told(evaluator.evaluate(fun, (*((log,) if logs else ()), *args), X), log)

    return scenario


def ends_a_hang(workers, folder, timeout=TIMEOUT, chunksize=1, args=()):
    """Whether the process that hung is gone, and the next population has its values."""
    number = len(list(folder.glob("hangs*")))
    log, pids = str(folder / f"hangs{number}"), str(folder / f"pids{number}")
    with Evaluator(workers, on_error="penalize", timeout=timeout, chunksize=chunksize) as evaluator:
        evaluator.evaluate(objectives.sphere, (), X)
        outcome = evaluator.evaluate(problems.hangs_and_says_where, (log, pids, *args), X)
        gone = [wait_until_gone(int(pid)) for pid in Path(pids).read_text().split()]
        after = evaluator.evaluate(objectives.sphere, (), X)
    return told(outcome, log) | {"gone": gone, "after": told(after)["values"]}


def wait_until_gone(pid, seconds=10.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def optimizes(fun, dim, **policies):
    """A scenario that runs a search: its Result, to the bit."""

    def scenario(workers, folder):
        with Evaluator(workers, on_error="penalize", **policies) as evaluator:
            return {"result": digest(search(fun, dim, workers=evaluator))}

    return scenario


def search(fun, dim, **how):
    start, bounds = np.linspace(-1.0, 3.0, dim), [(-4.0, 5.0)] * dim
    return fmnes.minimize(fun, start, 1.0, popsize=16, maxiter=4, rng=5, bounds=bounds, **how)


def digest(result):
    """Everything in a Result but its seconds."""
    history = result.history.to_array()
    names = [name for name in history.dtype.names if not name.startswith("seconds")]
    content = [
        result.x.tobytes(),
        result.mean.tobytes(),
        *(np.ascontiguousarray(history[name]).tobytes() for name in names),
        repr(
            (
                result.fun,
                result.sigma,
                result.nfev,
                result.nit,
                result.status,
                result.nfailed,
                result.first_error,
            )
        ).encode(),
    ]
    return hashlib.sha256(b"|".join(content)).hexdigest()


def is_interrupted(workers, folder):
    """Says when it is ready to be sent a signal; how the search ended, and whether life goes on."""

    def ready(intermediate):
        print("ready", flush=True)

    with Evaluator(workers, on_error="penalize") as evaluator:
        evaluator.evaluate(objectives.sphere, (), X)
        result = fmnes.minimize(
            problems.slow_sphere, [3.0] * 4, 1.0, rng=1, workers=evaluator, callback=ready
        )
        answer = {"status": str(result.status), "nfev": result.nfev}
        if result.status == "interrupted":  # of a SIGTERM also the workers of others may die
            answer |= told(evaluator.evaluate(objectives.sphere, (), X))
    return answer


def resumes(workers, folder):
    """A search with a checkpoint, whose objective kills the whole job in the midst of it, once."""
    calls, killed = str(folder / "calls"), str(folder / "killed")
    result = search(
        problems.kills_once_at_20,
        6,
        args=(calls, killed),
        workers=Evaluator(workers, chunksize=1),
        checkpoint=folder / "checkpoint",
    )
    return {"result": digest(result), "ncalls": len(Path(calls).read_text().split())}


def alone(scenario):
    """The search of a scenario, undisturbed and without workers."""
    fun, dim = {
        "optimize": (problems.sphere_with_failures, 6),
        "optimize-large": (objectives.sphere, 3000),
        "resumes": (objectives.sphere, 6),
    }[scenario]
    return {"result": digest(search(fun, dim, workers=Evaluator(on_error="penalize")))}


SCENARIOS = {
    "plain": evaluates(objectives.sphere),
    "killed-once": evaluates(objectives.killed_once, logs=True, warm=True),
    "killed-always": evaluates(objectives.killed_always, logs=True, retries=1, chunksize=1),
    "killed-always-in-a-chunk": evaluates(objectives.killed_always, logs=True, chunksize=4),
    "large-killed-once": evaluates(
        problems.killed_once_with_ballast, logs=True, warm=True, args=(BALLAST,)
    ),
    "hang": ends_a_hang,
    "large-hang": functools.partial(ends_a_hang, args=(BALLAST,)),
    "raise": evaluates(objectives.raises),
    "unpicklable": evaluates(objectives.raises_unpicklable),
    "exit": evaluates(objectives.exits),
    "exit-hard": evaluates(objectives.exits_hard),
    "memory": evaluates(problems.wants_too_much_memory),
    "lambda": lambda workers, folder: evaluates(lambda x: objectives.sphere(x))(workers, folder),
    "optimize": optimizes(problems.sphere_with_failures, 6),
    "optimize-large": optimizes(objectives.sphere, 3000),
    "is_interrupted": is_interrupted,
    "resumes": resumes,
    "everything": everything.to_be_killed,
    # Where every chunk is a process or a job of its own.
    "raise-in-jobs": evaluates(objectives.raises, chunksize=4),
    "unpicklable-in-jobs": evaluates(objectives.raises_unpicklable, chunksize=4),
    "exit-in-jobs": evaluates(objectives.exits, chunksize=4),
    "memory-in-jobs": evaluates(problems.wants_too_much_memory, chunksize=4),
    "killed-once-in-jobs": evaluates(objectives.killed_once, logs=True, chunksize=4),
    "killed-always-in-jobs": evaluates(objectives.killed_always, logs=True, chunksize=4),
    # The time that a job takes to start counts here.
    "hang-in-jobs": functools.partial(ends_a_hang, timeout=15.0, chunksize=4),
    "optimize-in-jobs": optimizes(problems.sphere_with_failures, 6, chunksize=8),
}


def main(pool, folder, *scenarios):
    logging.disable(logging.CRITICAL)
    os.chdir(folder)
    with POOLS[pool]() as workers:
        for name in scenarios:
            begun = time.monotonic()
            answer = SCENARIOS[name](workers, Path(folder))
            answer["seconds"] = round(time.monotonic() - begun, 2)
            print(json.dumps({"scenario": name, **answer}), flush=True)
