"""Somebody's pool as a slot of the driver: anything with ``submit``, of whatever engine."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from fmnes.evaluate._backends import Engine, engine_of
from fmnes.evaluate._cargo import Cargo, Parcel, work
from fmnes.evaluate._guard import Answer, Task, evaluate_chunk
from fmnes.evaluate._outcome import Failure
from fmnes.evaluate._slot import PoolBrokenError

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.1  # seconds between two looks at what must be polled
_SMALL = 2**15  # bytes that may go with every chunk
_STARTING = 30.0  # seconds that a worker of somebody else's may need to come up


class Pool:
    """A slot of the driver around one pool, given as it is or as the function that makes it.

    What the function makes is ours to shut down and to make again; what was given is not.
    """

    leaves_stragglers = True
    in_order = False

    def __init__(self, given: Any = None, *, make: Callable[[], Any] | None = None) -> None:
        self.replaceable = make is not None
        self._make = make or (lambda: given)
        self._made = None if self.replaceable else engine_of(given)
        self._shared: dict[str, Any] = {}  # key of a large parcel -> what stands for its bytes
        self._lacking = 0  # chunks that have to bring everything with them
        self._answers = 0  # since workers had to be started

    @property
    def can_stop(self) -> bool:
        """A hang can be ended by the engine, or with a pool that we made or shall make."""
        if self._made is None:
            return True
        return self._made.can_stop or (self.replaceable and self._made.can_be_killed)

    @property
    def width(self) -> int | None:
        """How many workers it has."""
        return self._engine.width

    @property
    def lookahead(self) -> int:
        """One for each process; threads are near enough."""
        return (self.width or 0) if self._engine.is_remote else 0

    @property
    def isolates(self) -> bool:
        """Whether a worker that dies takes only its own chunk with it."""
        return self._engine.isolates

    @property
    def builds(self) -> bool:
        """Processes that stay; a batch job would have to be told everything anew."""
        return self._engine.is_remote and self._engine.width is not None

    @property
    def allowance(self) -> float:
        """Until each process may have answered once."""
        starting = self._engine.is_remote and self._answers < (self.width or 1)
        return _STARTING if starting else 0.0

    @property
    def patience(self) -> float:
        """Clusters grow and shrink."""
        return self._engine.patience

    def prepare(self, cargo: Cargo) -> None:
        """Nothing to wait for."""

    def submit(self, cargo: Cargo, candidates: Sequence[int], seconds: float) -> Any:
        """Start a chunk."""
        engine = self._engine
        rows = cargo.rows(candidates, built_there=self.builds)
        try:
            if not engine.is_remote:
                return engine.submit(evaluate_here, cargo.task, candidates, rows, seconds)
            data = self._freight(engine, cargo.parcels)
            return engine.submit(work, cargo.names, candidates, rows, seconds, *data)
        except BrokenExecutor as error:
            broken: Future[Any] = Future()
            broken.set_exception(error)
            return broken

    def _freight(self, engine: Engine, parcels: Sequence[Parcel]) -> list[Any]:
        """What is small goes with every chunk; what is not, with the first ones, and on demand."""
        large = [parcel for parcel in parcels if len(parcel.data) > _SMALL]
        if any(parcel.key not in self._shared for parcel in large):
            kept = self._shared
            self._shared = {p.key: kept.get(p.key) or engine.share(p.data) for p in large}
            self._lacking = engine.width or 1
        with_all = self._lacking > 0
        self._lacking -= with_all
        large_data = self._shared if with_all else {}
        return [
            large_data.get(parcel.key, b"") if parcel in large else parcel.data
            for parcel in parcels
        ]

    def result(self, handle: Any) -> Answer | Failure:
        """An answer, or a failure where the pool itself reports that it lost this one chunk."""
        try:
            answer: Answer = handle.result()
        except BrokenExecutor as error:
            raise PoolBrokenError(self._engine.failure(error).summary) from error
        except Exception as error:  # noqa: BLE001  the pool's own; the objective's are data
            return self._engine.failure(error)
        self._answers += 1
        self._lacking += answer.missing
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

    def is_queued(self, handle: Any) -> bool:
        """Whether a chunk is known to wait for a worker still."""
        return self._engine.is_queued(handle)

    def stop(self, handle: Any) -> bool:
        """End one chunk by force, where the engine can."""
        self._answers = 0
        return self._engine.stop(handle)

    def drop(self, handles: Sequence[Any]) -> None:
        """Nobody waits for these any more."""
        if self._made is not None:
            for handle in handles:
                self._made.drop(handle)

    def kill(self) -> None:
        """End the workers of a pool that we made."""
        engine, self._made = self._made, None
        self._shared, self._answers = {}, 0
        if engine is not None:
            engine.kill()

    def close(self) -> None:
        """Shut down a pool that we made."""
        if self.replaceable and self._made is not None:
            engine, self._made = self._made, None
            engine.close()
        self._shared, self._answers = {}, 0

    @property
    def _engine(self) -> Engine:
        if self._made is None:
            pool = self._make()
            if not hasattr(pool, "submit"):
                raise TypeError(
                    "workers: expected a function that returns an object with a `submit` method, "
                    f"got one that returned {type(pool).__name__}"
                )
            self._made = engine_of(pool)
        return self._made


def evaluate_here(task: Task, candidates: Sequence[int], rows: Any, seconds: float) -> Answer:
    """Evaluate a chunk whose objective came as it is: in a thread, or wherever a pool sends it."""
    return evaluate_chunk(task, candidates, lambda k: rows[k], seconds)
