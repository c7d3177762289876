"""Executor backends: what each kind of pool can do beyond ``submit``."""

import math
import time
from collections.abc import Callable
from typing import Any

from fmnes.evaluate._call import failure_of
from fmnes.evaluate._outcome import Failure

_REFRESH_SECONDS = 2.0  # after which a Dask or Ray cluster is asked again how many workers it has


class Backend:
    """Any object with ``submit`` whose handles have ``done()`` and ``result()``."""

    uses_payloads = False  # workers are processes that stay, and can hold payloads
    isolates = False  # a worker that dies takes only its own chunk with it
    can_stop = False  # a single chunk can be killed
    can_be_killed = True  # all workers can be killed, or left alone if they are threads

    def __init__(self, pool: Any) -> None:
        self.pool = pool

    @property
    def width(self) -> int | None:
        """The number of workers, which the executors of the standard library tell."""
        width = getattr(self.pool, "_max_workers", None)
        return width if isinstance(width, int) else None

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a worker; the handle has ``done()`` and ``result()``."""
        return self.pool.submit(function, *args)

    def share(self, data: bytes) -> Any:
        """A stand-in for many bytes that can be passed to `submit`."""
        return data

    def failure(self, error: Exception) -> Failure:
        """Why the pool lost a chunk."""
        return failure_of(error, lost=True)

    def is_queued(self, handle: Any) -> bool:
        """Whether a chunk is known to be waiting for a worker."""
        return False

    def stop(self, handle: Any) -> bool:
        """Kill one chunk; False if the pool has no way to do this."""
        return False

    def drop(self, handle: Any) -> None:
        """Give up a chunk: nobody waits for it any more."""
        if hasattr(handle, "cancel"):
            handle.cancel()

    def end(self, *, force: bool) -> None:
        """End the workers when they are idle, or by force; threads can only be left alone."""
        if hasattr(self.pool, "shutdown"):
            self.pool.shutdown(wait=not force)


class ProcessPoolBackend(Backend):
    """`concurrent.futures.ProcessPoolExecutor`: one dead worker breaks the whole pool."""

    uses_payloads = True

    def end(self, *, force: bool) -> None:
        if force:  # Python has no public way before 3.14; living processes block the exit
            for process in list((self.pool._processes or {}).values()):
                process.kill()
        self.pool.shutdown(wait=True)


class LokyBackend(Backend):
    """loky's executors break like those of the standard library, and are replaced faster."""

    uses_payloads = True

    def end(self, *, force: bool) -> None:
        """End the workers; by force, also the programs that they started."""
        self.pool.shutdown(wait=True, kill_workers=force)


class MPIBackend(Backend):
    """`mpi4py.futures`: a rank that dies ends the whole job; one that hangs cannot be ended."""

    uses_payloads = True
    can_be_killed = False


class SubmititBackend(Backend):
    """submitit: each chunk is a job of the batch system."""

    isolates = can_stop = True

    def is_queued(self, handle: Any) -> bool:
        """Ask the batch system; without its accounting, pending jobs count as running."""
        return bool(handle.state == "PENDING")

    def stop(self, handle: Any) -> bool:
        self.drop(handle)
        return True

    def drop(self, handle: Any) -> None:
        """Cancel the job; a batch system that is unreachable now must not end the search."""
        handle.cancel(check=False)


class ElasticBackend(Backend):
    """Clusters whose workers come and go, independently of each other."""

    uses_payloads = isolates = can_stop = True

    def __init__(self, pool: Any) -> None:
        super().__init__(pool)
        self._width, self._counted_at = 1, -math.inf

    @property
    def width(self) -> int:
        """How many chunks run at the same time; 1 while there is no worker yet."""
        now = time.monotonic()
        if now - self._counted_at >= _REFRESH_SECONDS:
            self._width, self._counted_at = max(1, self.count()), now
        return self._width

    def count(self) -> int:
        """How many workers there are now."""
        raise NotImplementedError


def is_from(package: str, pool: Any) -> bool:
    """Whether the class of a pool, or one of its base classes, is defined in a package.

    This needs no import of the package.
    """
    return any(f"{base.__module__}.".startswith(f"{package}.") for base in type(pool).__mro__)
