"""Dask's actors."""

import asyncio
import logging
import uuid
from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._dask import Dask
from fmnes.evaluate._outcome import EvaluationError
from fmnes.evaluate.cluster._replica import Replica

logger = logging.getLogger("fmnes")

_LOOK_AGAIN = 0.2  # seconds


class _Seat:
    """Where an actor is, or is going to be."""

    def __init__(self) -> None:
        self.address = ""
        self.future: Any = None  # of Dask, of the actor; while it lives, so does the actor
        self.actor: Any = None
        self.call: Future[Any] | None = None  # the last one


class DaskHost:
    """One actor in each worker of a Dask cluster.

    An actor dies with its worker and is not begun anew by Dask. Its calls have then nothing to wait
    for, but some of them wait for ever: so we look after their actors meanwhile.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._engine = client, Dask(client)
        self._seats: list[_Seat] = []
        self._hanging: set[str] = set()  # workers that nobody can end

    def count(self) -> int:
        """Workers."""
        self._engine.count()  # sees to those that the cluster has given up
        return len(self._client.nthreads())

    def start(self) -> _Seat:
        """A seat, which finds itself a worker at its first call."""
        self.count()
        self._seats.append(_Seat())
        return self._seats[-1]

    def call(self, actor: _Seat, method: str, *args: Any) -> "Future[Any]":
        """In the loop of the client, so that nobody has to wait for it."""
        loop = self._client.loop.asyncio_loop
        actor.call = asyncio.run_coroutine_threadsafe(self._answer(actor, method, args), loop)
        return actor.call

    def end(self, actor: _Seat, *, busy: bool) -> None:
        """A busy one with its worker, which its nanny starts again."""
        self._seats.remove(actor)
        if actor.call is not None:
            actor.call.cancel()  # it may still wait for a worker
        if actor.future is None:
            return
        if busy and actor.future.status == "finished":
            try:
                self._engine.restart(actor.address)
            except EvaluationError as error:
                logger.warning("workers: %s; it is left alone", error)
                self._hanging.add(actor.address)
        self._client.cancel([actor.future], force=True)  # whoever else may hold it

    async def _answer(self, seat: _Seat, method: str, args: tuple[Any, ...]) -> Any:
        with self._client.as_current():
            if seat.actor is None:
                await self._sit_down(seat)
            call = asyncio.ensure_future(getattr(seat.actor, method)(*args))
        try:
            while not (await asyncio.wait([call], timeout=_LOOK_AGAIN))[0]:
                if seat.future.status != "finished":
                    raise ConnectionError(f"the Dask worker {seat.address} was lost")
            return call.result()
        finally:
            call.cancel()

    async def _sit_down(self, seat: _Seat) -> None:
        """Wait for a worker without an actor of ours, and begin one there."""
        while not (free := await self._free_workers()):
            await asyncio.sleep(_LOOK_AGAIN)
        seat.address = free[0]
        seat.future = self._client.submit(
            Replica, actor=True, workers=[seat.address], key=f"fmnes-{uuid.uuid4().hex}"
        )
        starting = asyncio.ensure_future(seat.future)
        try:
            while not (await asyncio.wait([starting], timeout=_LOOK_AGAIN))[0]:
                if seat.address not in await self._workers():
                    raise ConnectionError(f"the Dask worker {seat.address} was lost")
            seat.actor = starting.result()
        finally:
            if seat.actor is None:
                seat.future.release()

    async def _free_workers(self) -> list[str]:
        workers = await self._workers()
        taken = self._hanging | {seat.address for seat in self._seats}
        return [address for address in workers if address not in taken]

    async def _workers(self) -> dict[str, int]:
        workers: dict[str, int] = await self._client.scheduler.ncores(workers=None)
        return workers
