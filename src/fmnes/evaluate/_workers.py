"""What the `workers` argument stands for."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fmnes.evaluate._dask import DaskPool
from fmnes.evaluate._executor import (
    ExecutorPool,
    LokyPool,
    MPIPool,
    ProcessPool,
    SubmititPool,
    made_by,
)
from fmnes.evaluate._group import WorkerGroup
from fmnes.evaluate._process import ProcessWorker
from fmnes.evaluate._ray import RayPool
from fmnes.evaluate.cluster._cluster import Cluster
from fmnes.evaluate.cluster._group import ReplicaGroup
from fmnes.kernels import available_cpus

# The package that defines a pool -> its class of worker group. Recognised by name: nothing is
# imported before it is used.
POOLS: dict[str, type[ExecutorPool]] = {
    "distributed": DaskPool,
    "fmnes.evaluate._ray": RayPool,
    "loky": LokyPool,
    "joblib.externals.loky": LokyPool,
    "mpi4py": MPIPool,
    "submitit": SubmititPool,
    "concurrent.futures.process": ProcessPool,
}


def is_factory(workers: Any) -> bool:
    """Whether `workers` is a function or class that makes a pool."""
    return callable(workers) and (isinstance(workers, type) or not hasattr(workers, "submit"))


def worker_groups(workers: Any) -> Sequence[WorkerGroup]:
    """The worker groups for a `workers` argument; a function that makes a pool is called."""
    if workers is None:
        return []
    if isinstance(workers, (int, np.integer)) and not isinstance(workers, bool):
        if workers < 1 and workers != -1:
            raise ValueError(
                f"workers: expected at least 1, or -1 for one process per CPU, got {workers!r}"
            )
        count = available_cpus() if workers == -1 else int(workers)
        return [ProcessWorker() for _ in range(count)]
    if isinstance(workers, Cluster):
        return [ReplicaGroup(workers)]
    if is_factory(workers):
        return [_pool(made_by(workers), workers)]
    if hasattr(workers, "submit"):
        return [_pool(workers, None)]
    has_map = hasattr(workers, "map")
    hint = "; for its map, pass fmnes.Evaluator.from_map(pool.map)" if has_map else ""
    raise TypeError(
        "workers: expected None, a number of processes (-1: one for each CPU), an object with a "
        "`submit` method, a function that makes one, or a Cluster, got "
        f"{type(workers).__name__}: {workers!r}{hint}"
    )


def _pool(pool: Any, make: Callable[[], Any] | None) -> ExecutorPool:
    for base in type(pool).__mro__:
        for package, kind in POOLS.items():
            if f"{base.__module__}.".startswith(f"{package}."):
                return kind(pool, make)
    return ExecutorPool(pool, make)
