"""What workers in other processes need, and how it reaches each of them only once.

The objective with its further arguments, and a large population in the few vectors it is built
from, travel as parcels. A worker keeps the last one of either kind; candidates name what they
belong to, and a worker that lacks it says so. So a generation costs the driver O(d) bytes a worker
and not O(lambda d), and the objective is sent once for a whole search.
"""

import contextlib
import itertools
import pickle
import signal
import threading
import uuid
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fmnes._population import Population
from fmnes.evaluate._guard import ELSEWHERE, Answer, Task, attempt, evaluate_chunk
from fmnes.evaluate._outcome import EvaluationError, Failure

try:
    import cloudpickle as _pickler  # takes lambdas, closures and what stands in a notebook
except ImportError:
    _pickler = pickle


class Parcel(NamedTuple):
    """Something that workers hold; without data, the name of what they should hold."""

    kind: str  # "objective" or "population"
    key: str
    data: bytes = b""


class Packer:
    """Gives every objective a key of its own, the same as long as it does not change."""

    def __init__(self) -> None:
        self._last = Parcel("objective", "")

    def pack(self, task: Task) -> Parcel:
        """The objective as bytes that a worker process can load; TypeError where it has none.

        It is pickled for every generation, because nothing else tells that it did not change.
        """
        data = _pickled(task)
        if data != self._last.data:
            self._last = Parcel("objective", _new_key(), data)
        return self._last


class Cargo:
    """One evaluation's freight: the objective, and the candidates."""

    def __init__(self, task: Task, x: Any, packer: Packer) -> None:
        self.task, self.x, self._packer = task, x, packer

    @cached_property
    def objective(self) -> Parcel:
        """The objective with its further arguments."""
        return self._packer.pack(self.task)

    @cached_property
    def parcels(self) -> tuple[Parcel, ...]:
        """What a worker has to hold before it is given candidates."""
        if not isinstance(self.x, Population):
            return (self.objective,)
        data = pickle.dumps(self.x, protocol=pickle.HIGHEST_PROTOCOL)
        return self.objective, Parcel("population", _new_key(), data)

    @property
    def names(self) -> list[Parcel]:
        """The parcels without what is in them."""
        return [Parcel(kind, key) for kind, key, _ in self.parcels]

    def rows(self, candidates: Sequence[int], *, built_there: bool = False) -> Any:
        """Candidates to send along; None if the worker builds them from the population."""
        if isinstance(self.x, Population):
            return None if built_there else [self.x.row(i) for i in candidates]
        if isinstance(self.x, np.ndarray):
            return self.x[candidates, :]
        return [self.x[i, ...] for i in candidates]


_numbers = itertools.count()
_session = uuid.uuid4().hex  # keys of different drivers meet in the workers of a shared cluster


def _new_key() -> str:
    return f"{_session}-{next(_numbers)}"


def _pickled(task: Task) -> bytes:
    try:
        data: bytes = _pickler.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(_not_picklable(task, error)) from error
    return data


def _not_picklable(task: Task, error: BaseException) -> str:
    try:
        _pickler.dumps(task.fun)
    except (pickle.PicklingError, AttributeError, TypeError):
        return (
            "fun: expected a function that can be pickled, because worker processes have to load "
            f"it, got {task.fun!r} ({error}); define it at the top level of a module, or install "
            "cloudpickle, which sends functions by value: pip install 'fmnes[workers]'"
        )
    return f"args: expected objects that can be pickled for worker processes ({error})"


# === In the worker ===

_held: dict[str, tuple[str, Any]] = {}  # kind -> (key, what it is)
_lock = threading.Lock()  # a worker of Dask may have several threads


def hold(parcel: Parcel) -> Answer | None:
    """Load a parcel unless it is held already; an Answer where that cannot be."""
    if _held.get(parcel.kind, ("", None))[0] == parcel.key:
        return None
    if not parcel.data:
        return Answer((), missing=True)
    content = attempt(pickle.loads, parcel.data)
    if isinstance(content, Failure):
        _held.pop(parcel.kind, None)
        return Answer((), refused=(parcel.kind, content))
    _held[parcel.kind] = parcel.key, content
    return None


def work(
    names: Sequence[Parcel], candidates: Sequence[int], rows: Any, seconds: float, *data: bytes
) -> Answer:
    """Evaluate a chunk in a process that is not the driver's; ``data`` is what it may lack."""
    ignore_interrupts()
    with _lock:
        for k, name in enumerate(names):
            problem = hold(name._replace(data=data[k]) if k < len(data) else name)
            if problem is not None:
                return problem
        task, *built = (_held[name.kind][1] for name in names)

    def row(k: int) -> Any:
        if rows is not None:
            return rows[k]
        with _lock:
            return built[0].row(candidates[k])

    return evaluate_chunk(task, candidates, row, seconds, ELSEWHERE)


def ignore_interrupts() -> None:
    """Ctrl-C is for the driver to deal with; only the main thread of a process may say so."""
    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(ValueError):  # an interpreter within the process
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def refusal(kind: str, failure: Failure) -> Exception:
    """What to raise where a worker could not load its freight, which no policy can mend."""
    if kind == "population":
        return EvaluationError(failure.summary)
    return TypeError(
        "fun: expected a function that worker processes can import, but loading it there raised "
        f"{failure.summary}\n\n{failure.traceback}"
    )
