"""Somebody's pool: anything with ``submit``, whose answers have ``done()`` and ``result()``."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from typing import Any

from fmnes.evaluate._driver import PoolBrokenError
from fmnes.evaluate._guard import Task, failure_of, guarded, pickled
from fmnes.evaluate._outcome import Failure

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.1  # seconds between two looks at what must be polled


class Pool:
    """A slot of the driver around one pool, given as it is or as the function that makes it.

    What the function makes is ours to shut down and to make again; what was given is not.
    """

    def __init__(self, given: Any = None, *, make: Callable[[], Any] | None = None) -> None:
        self._pool = given
        self._make = make

    @property
    def rebuildable(self) -> bool:
        """Whether we can make another."""
        return self._make is not None

    @property
    def width(self) -> int | None:
        """How many workers it has; the executors of the standard library and of loky tell."""
        width = getattr(self._live(), "_max_workers", None)
        return width if isinstance(width, int) else None

    def payload(self, task: Task) -> Task:
        """The task as it is: many pools ship functions that ``pickle`` cannot."""
        if isinstance(self._live(), ProcessPoolExecutor):
            pickled(task)  # for its message: this pool uses pickle, and reports late
        return task

    def prepare(self, payload: Task) -> None:
        """Nothing to wait for."""

    def submit(self, payload: Task, candidate: int, x: Any) -> Any:
        """Start one candidate."""
        try:
            return self._live().submit(guarded, payload, candidate, x)
        except BrokenExecutor as error:
            broken: Future[Any] = Future()
            broken.set_exception(error)
            return broken

    def result(self, handle: Any) -> float | Failure | None:
        """A value or a failure, also where the pool itself reports that it lost this one task."""
        try:
            answer: float | Failure = handle.result()
        except BrokenExecutor as error:
            raise PoolBrokenError(failure_of(error).summary) from error
        except Exception as error:  # noqa: BLE001  the pool's own; the objective's are data
            return failure_of(error)._replace(lost=True)
        return answer

    @staticmethod
    def completed(handles: Sequence[Any], seconds: float | None) -> Sequence[Any]:
        """Those that are done, after waiting for the first of them."""
        if all(isinstance(handle, Future) for handle in handles):
            return list(wait(handles, seconds, return_when=FIRST_COMPLETED).done)
        end = None if seconds is None else time.monotonic() + seconds
        pause = _SHORTEST_PAUSE
        while True:
            done = [handle for handle in handles if handle.done()]
            if done or (end is not None and time.monotonic() >= end):
                return done
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def kill(self) -> None:
        """Kill the processes of a pool that we made; threads can only be left behind."""
        pool, self._pool = self._pool, None
        # No public name before Python 3.14; a pool whose processes live on blocks the exit.
        processes = list((getattr(pool, "_processes", None) or {}).values())
        for process in processes:
            try:
                process.kill()
            except AttributeError:  # loky's know no other way
                process.terminate()
        if hasattr(pool, "shutdown"):
            pool.shutdown(wait=bool(processes))

    def close(self) -> None:
        """Shut down a pool that we made."""
        if self._make is not None:
            pool, self._pool = self._pool, None
            if hasattr(pool, "shutdown"):
                pool.shutdown(wait=True)

    def _live(self) -> Any:
        if self._pool is None and self._make is not None:
            self._pool = self._make()
            if not hasattr(self._pool, "submit"):
                raise TypeError(
                    "workers: expected a function that returns an object with a `submit` method, "
                    f"got one that returned {type(self._pool).__name__}"
                )
        return self._pool
