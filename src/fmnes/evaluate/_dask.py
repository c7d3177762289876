"""Dask: a `distributed.Client`, or the executor that one makes."""

import itertools
import os
import socket
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import dask
from distributed import WorkerPlugin

from fmnes.evaluate._backends import Elastic
from fmnes.evaluate._cargo import ignore_interrupts
from fmnes.evaluate._outcome import EvaluationError, Failure

_PATIENCE = 30  # seconds until a worker is missed that should be back
_RESTART = 10  # seconds to wait for one that is started again


class Dask(Elastic):
    """A dead worker's chunks are done elsewhere by Dask itself, some four times in all.

    Those that waited there are blamed with the one that ran, so that it does not isolate.
    Cancelling a chunk that runs does not end it: its worker has to be restarted, by its nanny.
    """

    isolates = False

    def __init__(self, pool: Any) -> None:
        super().__init__(pool)
        self._client = getattr(pool, "_client", pool)
        self._executor = self._client.get_executor(pure=False)
        self._keys: dict[Future[Any], str] = {}
        self._started: set[Any] = set()  # names of workers
        self._seen: dict[Any, float] = {}  # when each was with the scheduler last
        self._name, self._numbers = uuid.uuid4().hex, itertools.count()
        self._client.register_plugin(_DeafToInterrupts())

    def count(self) -> int:
        """Threads of all workers; those that the cluster gave up are replaced.

        It does so with workers that are not back in time, as one is that is killed once more; and
        now and then a nanny forgets to start its worker again.
        """
        cluster, now = self._client.cluster, time.monotonic()
        wanted, nannies = getattr(cluster, "worker_spec", {}), getattr(cluster, "workers", {})
        there = getattr(cluster, "scheduler_info", {}).get("workers", {}).values()
        self._started.update(nannies)
        self._seen.update(dict.fromkeys((worker["name"] for worker in there), now))
        lost = [
            name
            for name in wanted
            if (name in self._started and name not in nannies)
            or now - self._seen.get(name, now) > _PATIENCE
        ]
        if lost:
            size = len(wanted)
            for name in lost:  # under new names: the scheduler may still know the old ones
                del wanted[name]
            cluster.scale(size)
        return sum(self._client.nthreads().values())

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """A Future of `concurrent.futures`."""
        key = f"fmnes-{self._name}-{next(self._numbers)}"
        # Large data travel with the first chunks. (Scattered, they are lost with the worker that
        # has them, and whatever needs them waits for ever.)
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**62}):
            handle: Future[Any] = self._executor.submit(function, *args, key=key)
        self._keys[handle] = key
        handle.add_done_callback(lambda done: self._keys.pop(done, None))
        return handle

    def failure(self, error: Exception) -> Failure:
        """Dask reports a killed worker after so many attempts of its own as it is set to make."""
        tried = getattr(error, "allowed_failures", 0)  # of its KilledWorker
        return super().failure(error)._replace(lost=not tried)

    def is_queued(self, handle: Future[Any]) -> bool:
        """Not with any worker."""
        return self._worker_of(handle) is None

    def stop(self, handle: Future[Any]) -> bool:
        """Restart the worker, and only that one."""
        worker = self._worker_of(handle)
        handle.cancel()
        if worker is not None:
            self.restart(worker)
        return True

    def restart(self, worker: str) -> None:
        """End a worker and what it does; its nanny starts it again."""
        try:
            told = self._client.restart_workers([worker], _RESTART, raise_for_error=False)
        except ValueError as error:  # it has no nanny
            raise EvaluationError(f"timeout: expected workers with a nanny; {error}") from error
        # One that "timed out" is gone, too, if it is only not back yet.
        if told.get(worker) not in ("OK", "removed") and worker in self._client.nthreads():
            raise EvaluationError(f"timeout: the Dask worker {worker} hangs and was not ended")

    def kill(self) -> None:
        """With the cluster, if the client made it."""
        self._client.close()

    close = kill

    def _worker_of(self, handle: Future[Any]) -> str | None:
        key = self._keys.get(handle)
        running: dict[str, list[str]] = self._client.processing()
        return next((worker for worker, keys in running.items() if key in keys), None)


class _DeafToInterrupts(WorkerPlugin):  # type: ignore[misc]
    """Ctrl-C reaches the workers of a LocalCluster, too, and it would not survive that."""

    name = "fmnes-deaf-to-interrupts"

    def __init__(self) -> None:
        self._driver = socket.gethostname(), os.getpid()

    def setup(self, worker: Any) -> None:
        if self._driver != (socket.gethostname(), os.getpid()):
            ignore_interrupts()
