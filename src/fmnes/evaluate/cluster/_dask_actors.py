"""Actors of Dask.

`asyncio` is imported inside functions: it would make `import fmnes` several percent slower.
"""

import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._dask import DaskPool
from fmnes.evaluate._outcome import EvaluationError
from fmnes.evaluate.cluster._replica import Replica

logger = logging.getLogger("fmnes")

_POLL_SECONDS = 0.2


class _DaskActor:
    """An actor, before and after it has found a worker."""

    def __init__(self) -> None:
        self.address = ""  # of the worker
        self.future: Any = None  # Dask's Future of the actor, which keeps the actor alive
        self.proxy: Any = None
        self.call: Future[Any] | None = None  # the last one


class DaskHost:
    """Keeps one actor in each worker of a Dask cluster.

    An actor dies with its worker, and Dask does not start it again. Some of its calls then wait for
    ever. So we check that the actor is alive while we wait for a call.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._pool = client, DaskPool(client)
        self._actors: list[_DaskActor] = []
        self._hanging: set[str] = set()  # workers that could not be restarted

    def count(self) -> int:
        """The number of workers."""
        self._pool.count()  # replaces the workers that the cluster has given up
        return len(self._client.nthreads())

    def start(self) -> _DaskActor:
        """An actor that finds a worker at its first call."""
        self.count()
        self._actors.append(_DaskActor())
        return self._actors[-1]

    def call(self, actor: _DaskActor, method: str, *args: Any) -> "Future[Any]":
        """Call a method in the event loop of the client, so that nobody has to wait for it."""
        import asyncio

        loop = self._client.loop.asyncio_loop
        actor.call = asyncio.run_coroutine_threadsafe(self._answer(actor, method, args), loop)
        return actor.call

    def end(self, actor: _DaskActor, *, busy: bool) -> None:
        """End an actor; a busy one with its worker, which the nanny starts again."""
        self._actors.remove(actor)
        if actor.call is not None:
            actor.call.cancel()  # it may still wait for a worker
        if actor.future is None:
            return
        if busy and actor.future.status == "finished":
            try:
                self._pool.restart(actor.address)
            except EvaluationError as error:
                logger.warning("workers: %s; it is left alone", error)
                self._hanging.add(actor.address)
        self._client.cancel([actor.future], force=True)  # even if others hold the Future

    async def _answer(self, actor: _DaskActor, method: str, args: tuple[Any, ...]) -> Any:
        async def is_alive() -> bool:
            return bool(actor.future.status == "finished")

        with self._client.as_current():
            if actor.proxy is None:
                await self._place(actor)
            return await _unless_lost(actor, getattr(actor.proxy, method)(*args), is_alive)

    async def _place(self, actor: _DaskActor) -> None:
        """Wait for a worker without an actor of ours, and start the actor there."""
        import asyncio

        async def is_alive() -> bool:
            return actor.address in await self._workers()

        while not (free := await self._free_workers()):
            await asyncio.sleep(_POLL_SECONDS)
        actor.address = free[0]
        actor.future = self._client.submit(
            Replica, actor=True, workers=[actor.address], key=f"fmnes-{os.urandom(16).hex()}"
        )
        try:
            actor.proxy = await _unless_lost(actor, actor.future, is_alive)
        finally:
            if actor.proxy is None:
                actor.future.release()

    async def _free_workers(self) -> list[str]:
        taken = self._hanging | {actor.address for actor in self._actors}
        return [address for address in await self._workers() if address not in taken]

    async def _workers(self) -> dict[str, int]:
        workers: dict[str, int] = await self._client.scheduler.ncores(workers=None)
        return workers


async def _unless_lost(
    actor: _DaskActor, result: Awaitable[Any], is_alive: Callable[[], Awaitable[bool]]
) -> Any:
    """Wait for a result; ConnectionError if the worker is lost in the meantime."""
    import asyncio

    task = asyncio.ensure_future(result)
    try:
        while not (await asyncio.wait([task], timeout=_POLL_SECONDS))[0]:
            if not await is_alive():
                raise ConnectionError(f"the Dask worker {actor.address} was lost")
        return task.result()
    finally:
        task.cancel()
