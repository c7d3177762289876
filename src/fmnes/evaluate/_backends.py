"""The pools of others: what each of them can do beyond ``submit``.

An engine is recognised by its type's module, and nothing of it is imported before it is used.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

from fmnes.evaluate._guard import failure_of
from fmnes.evaluate._outcome import Failure

_LOOK_AGAIN = 2.0  # seconds until a cluster is asked again how many workers it has


class Engine:
    """Any object with ``submit`` whose answers have ``done()`` and ``result()``."""

    is_remote = False  # True: processes that take parcels; False: the objective goes as it is
    isolates = False
    can_stop = False  # a single chunk
    can_be_killed = True  # all of them, or left behind where they are threads
    patience = math.inf  # seconds until one should look again how many workers there are

    def __init__(self, pool: Any) -> None:
        self.pool = pool

    @property
    def width(self) -> int | None:
        """How many workers it has; the executors of the standard library tell."""
        width = getattr(self.pool, "_max_workers", None)
        return width if isinstance(width, int) else None

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """A handle with ``done()`` and ``result()``."""
        return self.pool.submit(function, *args)

    def share(self, data: bytes) -> Any:
        """Something that stands for many bytes in the arguments of `submit`."""
        return data

    def failure(self, error: Exception) -> Failure:
        """Why the pool lost a chunk."""
        return failure_of(error)._replace(lost=True)

    def is_queued(self, handle: Any) -> bool:
        """Whether a chunk is known to wait for a worker still."""
        return False

    def stop(self, handle: Any) -> bool:
        """End one chunk by force; False if there is no way to do it."""
        return False

    def drop(self, handle: Any) -> None:
        """Nobody waits for it any more."""
        if hasattr(handle, "cancel"):
            handle.cancel()

    def kill(self) -> None:
        """End all workers at once; threads can only be left behind."""
        if hasattr(self.pool, "shutdown"):
            self.pool.shutdown(wait=False)

    def close(self) -> None:
        """End the workers when they are done."""
        if hasattr(self.pool, "shutdown"):
            self.pool.shutdown(wait=True)


class Processes(Engine):
    """`concurrent.futures.ProcessPoolExecutor`: one dead worker breaks all of it."""

    is_remote = True

    def kill(self) -> None:
        """No public name before Python 3.14; a pool whose processes live on blocks the exit."""
        for process in list((self.pool._processes or {}).values()):
            process.kill()
        self.pool.shutdown(wait=True)


class Loky(Engine):
    """loky's executors break like those of the standard library, and are quicker to replace."""

    is_remote = True

    def kill(self) -> None:
        """With the programs that the workers started."""
        self.pool.shutdown(wait=True, kill_workers=True)


class MPI(Engine):
    """`mpi4py.futures`: a rank that dies ends the job, one that hangs cannot be ended."""

    is_remote = True
    can_be_killed = False


class Jobs(Engine):
    """submitit: every chunk is a job of the batch system."""

    isolates = True
    can_stop = True

    def is_queued(self, handle: Any) -> bool:
        """As the batch system has it; where it keeps no accounts, waiting counts as running."""
        return bool(handle.state == "PENDING")

    def stop(self, handle: Any) -> bool:
        """``scancel`` and the like."""
        self.drop(handle)
        return True

    def drop(self, handle: Any) -> None:
        """A batch system that cannot be reached now is no reason to lose a search."""
        handle.cancel(check=False)


class Elastic(Engine):
    """What clusters have in common: workers that come and go, each with its own fate."""

    is_remote = True
    isolates = True
    can_stop = True
    patience = _LOOK_AGAIN

    def __init__(self, pool: Any) -> None:
        super().__init__(pool)
        self._width, self._looked = 1, -float("inf")

    @property
    def width(self) -> int:
        """How many chunks run at the same time; 1 while there is no worker yet."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_AGAIN:
            self._width, self._looked = max(1, self.count()), now
        return self._width

    def count(self) -> int:
        """How many workers there are now."""
        raise NotImplementedError


def engine_of(pool: Any) -> Engine:
    """The engine that a pool of the caller belongs to."""
    home = type(pool).__module__
    if home.startswith("distributed."):
        from fmnes.evaluate._dask import Dask

        return Dask(pool)
    if home == "fmnes.evaluate._ray":
        from fmnes.evaluate._ray import Ray

        return Ray(pool)
    if "loky." in home and isinstance(pool, Executor):
        return Loky(pool)
    if home.startswith("mpi4py."):
        return MPI(pool)
    if home.startswith("submitit."):
        return Jobs(pool)
    return Processes(pool) if isinstance(pool, ProcessPoolExecutor) else Engine(pool)
