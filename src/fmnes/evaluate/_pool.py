"""A pool of the user as a worker group: any object with ``submit``, of whichever backend."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from fmnes.evaluate._backends import (
    Backend,
    LokyBackend,
    MPIBackend,
    ProcessPoolBackend,
    SubmititBackend,
    is_from,
)
from fmnes.evaluate._call import ChunkResult, ObjectiveCall, evaluate_chunk
from fmnes.evaluate._dask import DaskBackend
from fmnes.evaluate._group import GroupBrokenError, WorkerGroup
from fmnes.evaluate._outcome import Failure
from fmnes.evaluate._payload import Payload, Workload, work
from fmnes.evaluate._ray import RayBackend

# Package that defines the pool -> backend. Any other pool has the abilities of `Backend`.
BACKENDS: dict[str, type[Backend]] = {
    "distributed": DaskBackend,
    "fmnes.evaluate._ray": RayBackend,
    "loky": LokyBackend,
    "joblib.externals.loky": LokyBackend,
    "mpi4py": MPIBackend,
    "submitit": SubmititBackend,
    "concurrent.futures.process": ProcessPoolBackend,
}
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.1  # seconds between two looks at polled handles
_SMALL = 2**15  # bytes of payload that may travel with every chunk
_STARTUP_SECONDS = 30.0  # that a worker of the pool may need to start


def backend_of(pool: Any) -> Backend:
    """The backend of a pool."""
    kinds = (backend for package, backend in BACKENDS.items() if is_from(package, pool))
    return next(kinds, Backend)(pool)


class ExecutorPool(WorkerGroup):
    """A worker group around one pool, or around a function that makes the pool.

    A pool that the function made is ours: we shut it down, and make it again after a failure.
    """

    def __init__(self, pool: Any = None, *, make: Callable[[], Any] | None = None) -> None:
        self.replaceable = make is not None
        self._make = make or (lambda: pool)
        self._current = None if self.replaceable else backend_of(pool)
        self._reset()

    def _reset(self) -> None:
        self._shared: dict[str, Any] = {}  # key of a large payload -> stand-in for its bytes
        self._sends_left = 0  # chunks that have to bring the large payloads with them
        self._answers = 0  # since workers were started

    @property
    def _backend(self) -> Backend:
        if self._current is None:
            pool = self._make()
            if not hasattr(pool, "submit"):
                raise TypeError(
                    "workers: expected a function that returns an object with a `submit` method, "
                    f"got one that returned {type(pool).__name__}"
                )
            self._current = backend_of(pool)
        return self._current

    @property
    def width(self) -> int | None:
        return self._backend.width

    @property
    def lookahead(self) -> int:
        """One chunk for each process; threads respond quickly enough."""
        return (self.width or 0) if self._backend.uses_payloads else 0

    @property
    def isolates(self) -> bool:
        return self._backend.isolates

    @property
    def can_stop(self) -> bool:
        """Whether the backend can kill one chunk, or we may kill the whole pool."""
        if self._current is None:
            return True
        return self._current.can_stop or (self.replaceable and self._current.can_be_killed)

    @property
    def builds(self) -> bool:
        """Whether the workers are processes that stay; a batch job would need all data again."""
        return self._backend.uses_payloads and self._backend.width is not None

    @property
    def startup_seconds(self) -> float:
        """Time to start, until each process may have answered once."""
        is_starting = self._backend.uses_payloads and self._answers < (self.width or 1)
        return _STARTUP_SECONDS if is_starting else 0.0

    def submit(self, workload: Workload, candidates: Sequence[int], seconds: float) -> Any:
        backend = self._backend
        rows = workload.rows(candidates, built_by_worker=self.builds)
        try:
            if not backend.uses_payloads:
                return backend.submit(evaluate_rows, workload.call, candidates, rows, seconds)
            data = self._data(backend, workload.payloads)
            return backend.submit(work, workload.names, candidates, rows, seconds, *data)
        except BrokenExecutor as error:
            broken: Future[Any] = Future()
            broken.set_exception(error)
            return broken

    def _data(self, backend: Backend, payloads: Sequence[Payload]) -> list[Any]:
        """Small payloads go with every chunk; large ones with the first chunks and on demand."""
        large = {payload.key: payload.data for payload in payloads if len(payload.data) > _SMALL}
        if any(key not in self._shared for key in large):
            kept = self._shared
            self._shared = {key: kept.get(key) or backend.share(large[key]) for key in large}
            self._sends_left = backend.width or 1
        sends = self._sends_left > 0
        self._sends_left -= sends
        return [
            (self._shared[key] if sends else b"") if key in large else data
            for _, key, data in payloads
        ]

    def result(self, handle: Any) -> ChunkResult | Failure:
        try:
            result: ChunkResult = handle.result()
        except BrokenExecutor as error:
            raise GroupBrokenError(self._backend.failure(error).summary) from error
        except Exception as error:  # noqa: BLE001  the pool's own; those of the objective are data
            return self._backend.failure(error)
        self._answers += 1
        self._sends_left += result.missing
        return result

    def completed(self, handles: Sequence[Any], seconds: float) -> Sequence[Any]:
        if all(isinstance(handle, Future) for handle in handles):
            return list(wait(handles, seconds, return_when=FIRST_COMPLETED).done)
        end, pause = time.monotonic() + seconds, _SHORTEST_PAUSE
        while not (done := [handle for handle in handles if handle.done()]):
            if time.monotonic() >= end:
                break
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return done

    def is_queued(self, handle: Any) -> bool:
        return self._backend.is_queued(handle)

    def stop(self, handle: Any) -> bool:
        self._answers = 0
        return self._backend.stop(handle)

    def drop(self, handles: Sequence[Any]) -> None:
        if self._current is not None:
            for handle in handles:
                self._current.drop(handle)

    def end(self, *, force: bool) -> None:
        """Shut down a pool that we made."""
        self._reset()
        if self.replaceable and self._current is not None:
            backend, self._current = self._current, None
            backend.end(force=force)


def evaluate_rows(
    call: ObjectiveCall, candidates: Sequence[int], rows: Any, seconds: float
) -> ChunkResult:
    """Evaluate a chunk in a thread, or wherever a pool sends the objective by itself."""
    return evaluate_chunk(call, candidates, lambda k: rows[k], seconds)
