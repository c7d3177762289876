"""Calls of the objective, in whichever process or thread they run."""

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fmnes.evaluate._outcome import Failure
from fmnes.evaluate._values import to_value


class ObjectiveCall(NamedTuple):
    """The objective and its further arguments, which are the same for all candidates."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]


class ChunkResult(NamedTuple):
    """What a worker returns for a chunk of candidates: plain data, also after failures."""

    results: Sequence[float | Failure] = ()  # of the first candidates; the others did not start
    seconds: float = 0.0  # that these took
    missing: bool = False  # the worker lacks the objective or the population
    refused: tuple[str, Failure] | None = None  # kind of a payload that did not load, and why


# The exceptions that count as failures of the objective. In the driver's process Ctrl-C raises
# KeyboardInterrupt, which must end the search. Worker processes ignore the signal, so that a
# KeyboardInterrupt there is the objective's own.
IN_DRIVER: tuple[type[BaseException], ...] = (Exception, SystemExit)
IN_WORKER: tuple[type[BaseException], ...] = (BaseException,)


def evaluate_chunk(
    call: ObjectiveCall,
    candidates: Sequence[int],
    row: Callable[[int], Any],
    seconds: float,
    caught: tuple[type[BaseException], ...] = IN_DRIVER,
) -> ChunkResult:
    """Evaluate candidates until all are done or ``seconds`` have passed; at least one.

    So a chunk that is slower than expected returns early, and the values it has are safe.
    ``row(k)`` returns the k-th candidate of the chunk.
    """
    begun = time.perf_counter()
    results: list[float | Failure] = []
    for k, candidate in enumerate(candidates):
        x = attempt(row, k)
        results.append(x if isinstance(x, Failure) else evaluate_one(call, candidate, x, caught))
        elapsed = time.perf_counter() - begun
        if elapsed >= seconds:
            break
    return ChunkResult(results, elapsed)


def evaluate_one(
    call: ObjectiveCall,
    candidate: int,
    x: Any,
    caught: tuple[type[BaseException], ...] = IN_DRIVER,
) -> float | Failure:
    """The value of one candidate, or why there is none.

    Exceptions are never sent between processes: one that can be pickled but not unpickled (any
    class whose ``__init__`` takes two arguments) breaks a whole pool of processes.
    """
    if isinstance(x, np.ndarray):
        x.flags.writeable = False  # pickling a row loses this flag
    raw = attempt(call.fun, x, *call.args, caught=caught)
    if isinstance(raw, Failure):
        return raw
    # The conversion may raise, too: asynchronous devices report errors only at this point.
    value: float | Failure = attempt(_to_value, raw, candidate, caught=caught)
    return value


def _to_value(raw: Any, candidate: int) -> float | Failure:
    try:
        return to_value(raw, candidate)
    except TypeError as error:
        return Failure(f"TypeError: {error}", bad_value=True)


def attempt(
    call: Callable[..., Any], *arguments: Any, caught: tuple[type[BaseException], ...] = IN_DRIVER
) -> Any:
    """What a call of the user's code returns, or the Failure that it ended in."""
    try:
        return call(*arguments)
    except caught as error:
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next  # begin with the user's code
        return failure_of(error)


def failure_of(error: BaseException, *, lost: bool = False) -> Failure:
    """An exception as text; this works even if the ``__str__`` of the exception raises."""
    summary = "".join(traceback.format_exception_only(error)).strip()
    return Failure(summary, "".join(traceback.format_exception(error)), lost=lost)
