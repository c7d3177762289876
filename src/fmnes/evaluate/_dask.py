"""Dask: a `distributed.Client`, or the executor that a client makes."""

import functools
import os
import platform
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._executor import ElasticPool
from fmnes.evaluate._outcome import EvaluationError, Failure
from fmnes.evaluate._payload import ignore_interrupts

_ABSENT_SECONDS = 30  # after which a worker that should come back is replaced
_RESTART_SECONDS = 10  # to wait for a worker that is restarted

_known_clients: "weakref.WeakSet[Any]" = weakref.WeakSet()


class DaskPool(ElasticPool):
    """Tasks of Dask, which itself repeats the chunks of a dead worker up to four times.

    Dask counts a death against all chunks that were at the worker, the waiting ones too, so a
    chunk is not isolated. Cancelling a running chunk does not end it: the nanny has to restart
    the worker.
    """

    isolates = False

    def _reset(self) -> None:
        super()._reset()
        self._executor: Any = None  # of the client
        self._keys: dict[Future[Any], str] = {}
        self._started: set[Any] = set()  # names of workers
        self._last_seen: dict[Any, float] = {}  # when the scheduler listed each worker last

    @property
    def client(self) -> Any:
        """The pool itself, or the client of an executor."""
        client = getattr(self.pool, "_client", self.pool)
        if client not in _known_clients:
            _known_clients.add(client)
            driver = platform.node(), os.getpid()
            # Ctrl-C reaches the workers of a LocalCluster, too, and would end them.
            client.register_worker_callbacks(functools.partial(_ignore_interrupts, driver))
        return client

    def count(self) -> int:
        """The number of threads of all workers; workers that the cluster gave up are replaced.

        A cluster gives up workers that do not come back in time, for example one that is killed
        twice. Sometimes a nanny does not restart its worker at all.
        """
        cluster, now = self.client.cluster, time.monotonic()
        wanted, nannies = getattr(cluster, "worker_spec", {}), getattr(cluster, "workers", {})
        listed = getattr(cluster, "scheduler_info", {}).get("workers", {}).values()
        self._started.update(nannies)
        self._last_seen.update(dict.fromkeys((worker["name"] for worker in listed), now))
        lost = [
            name
            for name in wanted
            if (name in self._started and name not in nannies)
            or now - self._last_seen.get(name, now) > _ABSENT_SECONDS
        ]
        if lost:
            size = len(wanted)
            for name in lost:  # under new names: the scheduler may still know the old ones
                del wanted[name]
            cluster.scale(size)
        return sum(self.client.nthreads().values())

    def _call(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a task; the handle is a Future of `concurrent.futures`."""
        import dask

        key = f"fmnes-{os.urandom(16).hex()}"
        # Large data travel with the first chunks. If they were scattered, they would be lost with
        # the worker that holds them, and the chunks that need them would wait for ever.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**62}):
            if self._executor is None:
                self._executor = self.client.get_executor(pure=False)
            handle: Future[Any] = self._executor.submit(function, *args, key=key)
        self._keys[handle] = key
        handle.add_done_callback(lambda done: self._keys.pop(done, None))
        return handle

    def _failure(self, error: Exception) -> Failure:
        """Why Dask lost a chunk: after its own attempts the chunk itself counts as the cause."""
        attempts = getattr(error, "allowed_failures", 0)  # of Dask's KilledWorker
        return super()._failure(error)._replace(lost=not attempts)

    def is_queued(self, handle: Future[Any]) -> bool:
        return self._worker_of(handle) is None

    def _kill(self, handle: Future[Any]) -> None:
        """Restart the worker that runs a chunk, and only that one."""
        worker = self._worker_of(handle)
        handle.cancel()
        if worker is not None:
            self.restart(worker)

    def restart(self, worker: str) -> None:
        """End a worker with all that it runs; its nanny starts it again."""
        try:
            status = self.client.restart_workers([worker], _RESTART_SECONDS, raise_for_error=False)
        except ValueError as error:  # the worker has no nanny
            raise EvaluationError(f"timeout: expected workers with a nanny; {error}") from error
        # A worker that "timed out" has ended, too, if it only has not come back yet.
        if status.get(worker) not in ("OK", "removed") and worker in self.client.nthreads():
            raise EvaluationError(f"timeout: the Dask worker {worker} hangs and was not ended")

    def _shut_down(self, pool: Any, force: bool) -> None:
        """Close the client, and with it a cluster that the client made."""
        getattr(pool, "_client", pool).close()

    def _worker_of(self, handle: Future[Any]) -> str | None:
        key = self._keys.get(handle)
        running: dict[str, list[str]] = self.client.processing()
        return next((worker for worker, keys in running.items() if key in keys), None)


def _ignore_interrupts(driver: tuple[str, int]) -> None:
    """Ignore Ctrl-C in a worker, unless it is a thread of the driver's process."""
    if (platform.node(), os.getpid()) != driver:
        ignore_interrupts()
