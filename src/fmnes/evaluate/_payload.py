"""What workers in other processes need, and how each of them receives it only once.

The objective with its arguments, and a large population in the few vectors that describe it, travel
as payloads. A worker keeps the last payload of either kind. Each chunk of candidates names the
payloads it needs, and a worker that lacks one says so. So a generation costs the driver O(d) bytes
per worker and not O(lambda d), and the objective is sent once for a whole search.
"""

import contextlib
import functools
import itertools
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fmnes._population import Population
from fmnes.evaluate._call import IN_WORKER, ChunkResult, ObjectiveCall, attempt, evaluate_chunk
from fmnes.evaluate._outcome import EvaluationError, Failure

_BY_VALUE = (
    "define it at the top level of a module (a file, not a notebook), or install cloudpickle, "
    "which sends functions by value: pip install 'fmnes[workers]'"
)

_numbers = itertools.count()
_session = os.urandom(16).hex()  # several drivers may use the workers of one Dask or Ray cluster


class Payload(NamedTuple):
    """Bytes that workers load and keep; without data, the name of what they should hold."""

    kind: str  # "objective" or "population"
    key: str
    data: bytes = b""

    @classmethod
    def new(cls, kind: str, data: bytes) -> "Payload":
        """A payload with a key of its own."""
        return cls(kind, f"{_session}-{next(_numbers)}", data)


class ObjectivePickler:
    """Pickles the objective; its key stays the same as long as the bytes do."""

    def __init__(self) -> None:
        self._last = Payload("objective", "")

    def pickle(self, call: ObjectiveCall) -> Payload:
        """The objective as a payload; TypeError if it cannot be pickled.

        It is pickled in every generation, because that is the only way to see whether it changed.
        """
        data = _pickled(call)
        if data != self._last.data:
            self._last = Payload.new("objective", data)
        return self._last


class Workload:
    """The objective and the candidates of one evaluation, in the forms in which they are sent."""

    def __init__(self, call: ObjectiveCall, x: Any, pickler: ObjectivePickler) -> None:
        self.call, self.x, self._pickler = call, x, pickler

    @functools.cached_property
    def objective(self) -> Payload:
        """The objective with its arguments."""
        return self._pickler.pickle(self.call)

    @functools.cached_property
    def payloads(self) -> tuple[Payload, ...]:
        """What a worker has to hold before it can evaluate candidates."""
        if not isinstance(self.x, Population):
            return (self.objective,)
        data = pickle.dumps(self.x, protocol=pickle.HIGHEST_PROTOCOL)
        return self.objective, Payload.new("population", data)

    @property
    def names(self) -> list[Payload]:
        """The payloads without their data."""
        return [payload._replace(data=b"") for payload in self.payloads]

    def rows(self, candidates: Sequence[int], *, built_by_worker: bool = False) -> Any:
        """The candidates to send; None if the worker builds them from the population."""
        if isinstance(self.x, Population):
            return None if built_by_worker else [self.x.row(i) for i in candidates]
        if isinstance(self.x, np.ndarray):
            return self.x[candidates, :]
        return [self.x[i, ...] for i in candidates]


class StreamWorkload(Workload):
    """The same for candidates that are handed out one by one; ``row`` returns one by its number."""

    def __init__(
        self, call: ObjectiveCall, row: Callable[[int], Any], pickler: ObjectivePickler
    ) -> None:
        super().__init__(call, None, pickler)
        self._row = row

    def rows(self, candidates: Sequence[int], *, built_by_worker: bool = False) -> Any:
        """The candidates to send."""
        return [self._row(i) for i in candidates]


@functools.cache
def _pickler() -> Any:
    try:
        import cloudpickle  # takes lambdas, closures and functions of a notebook
    except ImportError:
        return pickle
    return cloudpickle


def _pickled(call: ObjectiveCall) -> bytes:
    errors = pickle.PicklingError, AttributeError, TypeError
    try:
        data: bytes = _pickler().dumps(call, protocol=pickle.HIGHEST_PROTOCOL)
    except errors as error:
        message = f"args: expected objects that can be pickled for worker processes ({error})"
        try:
            _pickler().dumps(call.fun)
        except errors:
            message = (
                "fun: expected a function that can be pickled, because worker processes have to "
                f"load it, got {call.fun!r} ({error}); {_BY_VALUE}"
            )
        raise TypeError(message) from error
    return data


def refusal(kind: str, failure: Failure) -> Exception:
    """The exception for a payload that a worker could not load; a retry would not help."""
    if kind == "population":
        return EvaluationError(failure.summary)
    advice = f"; {_BY_VALUE}" if _pickler() is pickle else ""
    return TypeError(
        "fun: expected a function that worker processes can import, but loading it there raised "
        f"{failure.summary}{advice}\n\n{failure.traceback}"
    )


# === In the worker ===

_held: dict[str, tuple[str, Any]] = {}  # kind -> (key, what was loaded)
_lock = threading.Lock()  # a Dask worker may have several threads


def load(payload: Payload) -> ChunkResult:
    """Load a payload unless the worker holds it already; the result says what went wrong."""
    kind, key, data = payload
    if _held.get(kind, ("", None))[0] == key:
        return ChunkResult()
    if not data:
        return ChunkResult(missing=True)
    content = attempt(pickle.loads, data)
    if isinstance(content, Failure):
        _held.pop(kind, None)
        return ChunkResult(refused=(kind, content))
    _held[kind] = key, content
    return ChunkResult()


def work(
    names: Sequence[Payload], candidates: Sequence[int], rows: Any, seconds: float, *data: bytes
) -> ChunkResult:
    """Evaluate a chunk in a worker process; ``data`` has the bytes of the named payloads, or none.

    The objective comes first; without rows, the population follows and the worker builds them.
    """
    ignore_interrupts()
    with _lock:
        for k, name in enumerate(names):
            loaded = load(name._replace(data=data[k]) if data else name)
            if loaded.missing or loaded.refused:
                return loaded
        call, *population = (_held[name.kind][1] for name in names)

    def row(k: int) -> Any:
        if rows is not None:
            return rows[k]
        with _lock:
            return population[0].row(candidates[k])

    return evaluate_chunk(call, candidates, row, seconds, IN_WORKER)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C, which the driver handles; only the main thread of a process can do this."""
    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(ValueError):  # in a subinterpreter
            signal.signal(signal.SIGINT, signal.SIG_IGN)
