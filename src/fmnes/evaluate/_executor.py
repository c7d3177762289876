"""Pools of the user as worker groups: any object with ``submit``."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from fmnes.evaluate._call import ChunkResult, ObjectiveCall, evaluate_chunk, failure_of
from fmnes.evaluate._group import STARTUP_SECONDS, GroupBrokenError, WorkerGroup
from fmnes.evaluate._outcome import EvaluationError, Failure
from fmnes.evaluate._payload import Payload, Workload, work

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.1  # seconds between two looks at polled handles
_SMALL = 2**15  # bytes of payload that may travel with every chunk
_COUNT_SECONDS = 2.0  # after which a Dask or Ray cluster is asked again how many workers it has


def made_by(make: Callable[[], Any]) -> Any:
    """The pool that a function of the user makes."""
    try:
        pool = make()
    except TypeError as error:
        error.add_note(
            "`workers` is called without arguments, and has to make a pool. For a function that "
            "works like `map`, pass workers=fmnes.Evaluator.from_map(function)"
        )
        raise
    if not hasattr(pool, "submit"):
        raise TypeError(
            "workers: expected a function that returns an object with a `submit` method, got one "
            f"that returned {type(pool).__name__}"
        )
    return pool


class ExecutorPool(WorkerGroup):
    """Any object with ``submit`` whose handles have ``done()`` and ``result()``.

    If the function ``make`` made the pool, the pool is ours: we shut it down, and make it again
    after a failure.
    """

    isolates = False
    uses_payloads = False  # the workers are processes that stay, and can hold payloads
    stops_chunks = False  # a single chunk can be killed
    can_be_killed = True  # all workers can be killed, or left alone if they are threads

    def __init__(self, pool: Any, make: Callable[[], Any] | None = None) -> None:
        self._pool, self._make = pool, make
        self.replaceable = make is not None
        self._reset()

    def _reset(self) -> None:
        self._shared: dict[str, Any] = {}  # key of a large payload -> stand-in for its bytes
        self._sends_left = 0  # chunks that have to bring the large payloads with them
        self._answers = 0  # since workers were started

    @property
    def pool(self) -> Any:
        """The pool, made again if it has been shut down."""
        if self._pool is None and self._make is not None:
            self._pool = made_by(self._make)
        return self._pool

    @property
    def width(self) -> int | None:
        """The number of workers, which the executors of the standard library tell."""
        width = getattr(self.pool, "_max_workers", None)
        return width if isinstance(width, int) else None

    @property
    def lookahead(self) -> int:
        """One chunk for each process; threads respond quickly enough."""
        return (self.width or 0) if self.uses_payloads else 0

    @property
    def can_stop(self) -> bool:
        return self.stops_chunks or (self.replaceable and self.can_be_killed)

    @property
    def builds(self) -> bool:
        return self.uses_payloads and self.width is not None

    @property
    def startup_seconds(self) -> float:
        """Time to start, until each process may have answered once."""
        is_starting = self.uses_payloads and self._answers < (self.width or 1)
        return STARTUP_SECONDS if is_starting else 0.0

    def submit(self, workload: Workload, candidates: Sequence[int], seconds: float) -> Any:
        rows = workload.rows(candidates, built_by_worker=self.builds)
        try:
            if not self.uses_payloads:
                return self._call(evaluate_rows, workload.call, candidates, rows, seconds)
            data = self._data(workload.payloads)
            return self._call(work, workload.names, candidates, rows, seconds, *data)
        except BrokenExecutor as error:
            broken: Future[Any] = Future()
            broken.set_exception(error)
            return broken

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a worker; returns the handle."""
        try:
            return self.pool.submit(function, *args)
        except BrokenExecutor:
            raise
        except RuntimeError as error:  # of `submit` itself: the objective runs in the worker
            raise EvaluationError(
                f"workers: expected a pool that accepts evaluations, got one that does not "
                f"({error}); search inside the `with` block of the pool, or pass a function that "
                "makes one, as in workers=lambda: ProcessPoolExecutor(4)"
            ) from error

    def _data(self, payloads: Sequence[Payload]) -> list[Any]:
        """Small payloads go with every chunk; large ones with the first chunks and on demand."""
        large = {payload.key: payload.data for payload in payloads if len(payload.data) > _SMALL}
        if any(key not in self._shared for key in large):
            kept = self._shared
            self._shared = {key: kept.get(key) or self._share(large[key]) for key in large}
            self._sends_left = self.width or 1
        sends = self._sends_left > 0
        self._sends_left -= sends
        return [
            (self._shared[key] if sends else b"") if key in large else data
            for _, key, data in payloads
        ]

    def _share(self, data: bytes) -> Any:
        """A stand-in for many bytes in the arguments of a call."""
        return data

    def result(self, handle: Any) -> ChunkResult | Failure:
        try:
            result: ChunkResult = handle.result()
        except BrokenExecutor as error:
            raise GroupBrokenError(self._failure(error).summary) from error
        except Exception as error:  # noqa: BLE001  the pool's own; those of the objective are data
            return self._failure(error)
        self._answers += 1
        self._sends_left += result.missing
        return result

    def _failure(self, error: Exception) -> Failure:
        """Why the pool lost a chunk."""
        return failure_of(error, lost=True)

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

    def drop(self, handles: Sequence[Any]) -> None:
        for handle in handles:
            if hasattr(handle, "cancel"):
                handle.cancel()

    def end(self, *, force: bool) -> None:
        self._reset()
        if self.replaceable and self._pool is not None:
            pool, self._pool = self._pool, None
            self._shut_down(pool, force)

    def _shut_down(self, pool: Any, force: bool) -> None:
        """End the workers when they are idle, or by force; threads can only be left alone."""
        if hasattr(pool, "shutdown"):
            pool.shutdown(wait=not force)


def evaluate_rows(
    call: ObjectiveCall, candidates: Sequence[int], rows: Any, seconds: float
) -> ChunkResult:
    """Evaluate a chunk in a thread, or where a pool sends the objective by itself."""
    return evaluate_chunk(call, candidates, lambda k: rows[k], seconds)


class ProcessPool(ExecutorPool):
    """`concurrent.futures.ProcessPoolExecutor`: one dead worker breaks the whole pool."""

    uses_payloads = True

    def _shut_down(self, pool: Any, force: bool) -> None:
        if force:  # Python has no public way before 3.14; living processes block the exit
            for process in list((pool._processes or {}).values()):
                process.kill()
        pool.shutdown(wait=True)


class LokyPool(ExecutorPool):
    """loky's executors break like those of the standard library, and are replaced faster."""

    uses_payloads = True

    def _shut_down(self, pool: Any, force: bool) -> None:
        """End the workers; by force, also the programs that they started."""
        pool.shutdown(wait=True, kill_workers=force)


class MPIPool(ExecutorPool):
    """`mpi4py.futures`: a rank that dies ends the whole job; one that hangs cannot be ended."""

    uses_payloads = True
    can_be_killed = False


class SubmititPool(ExecutorPool):
    """submitit: each chunk is a job of the batch system."""

    isolates = stops_chunks = True

    def is_queued(self, handle: Any) -> bool:
        """Ask the batch system; without its accounting, pending jobs count as running."""
        return bool(handle.state == "PENDING")

    def stop(self, handle: Any) -> bool:
        self.drop([handle])
        return True

    def drop(self, handles: Sequence[Any]) -> None:
        """Cancel the jobs; a batch system that is unreachable now must not end the search."""
        for handle in handles:
            handle.cancel(check=False)


class ElasticPool(ExecutorPool):
    """Clusters whose workers come and go, independently of each other."""

    uses_payloads = isolates = stops_chunks = elastic = True

    def _reset(self) -> None:
        super()._reset()
        self._width, self._count_at = 1, 0.0  # when to count next

    @property
    def width(self) -> int:
        """How many chunks run at the same time; 1 while there is no worker yet."""
        if time.monotonic() >= self._count_at:
            self._width = max(1, self.count())
            self._count_at = time.monotonic() + _COUNT_SECONDS
        return self._width

    def count(self) -> int:
        """How many workers there are now."""
        raise NotImplementedError

    def stop(self, handle: Any) -> bool:
        self._answers = 0  # a worker has to start again
        self._kill(handle)
        return True

    def _kill(self, handle: Any) -> None:
        """End the worker that runs a chunk."""
        raise NotImplementedError
