"""What surrounds the objective where it runs, in whatever process or thread that is."""

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fmnes.evaluate._outcome import Failure
from fmnes.evaluate._values import to_value


class Task(NamedTuple):
    """What is the same for every candidate."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]


class Answer(NamedTuple):
    """What a chunk of candidates came to: plain data, whatever happened."""

    results: Sequence[float | Failure]  # of its first candidates; the others were not begun
    seconds: float = 0.0  # that these took
    missing: bool = False  # the worker does not hold what it would have needed
    refused: tuple[str, Failure] | None = None  # what the worker cannot load, and why


# What an objective may raise. Here, Ctrl-C is for us; where another process ignores the signal, a
# KeyboardInterrupt is the objective's own, like anything else.
HERE: tuple[type[BaseException], ...] = (Exception, SystemExit)
ELSEWHERE: tuple[type[BaseException], ...] = (BaseException,)


def evaluate_chunk(
    task: Task,
    candidates: Sequence[int],
    row: Callable[[int], Any],
    seconds: float,
    caught: tuple[type[BaseException], ...] = HERE,
) -> Answer:
    """Evaluate candidates until they are done, or until ``seconds`` are over; one at least.

    So a chunk that takes longer than was expected of it comes back early, and what has a value is
    safe. ``row(k)`` is the k-th of them.
    """
    begun = time.perf_counter()
    results: list[float | Failure] = []
    for k, candidate in enumerate(candidates):
        x = attempt(row, k)
        results.append(x if isinstance(x, Failure) else guarded(task, candidate, x, caught))
        elapsed = time.perf_counter() - begun
        if elapsed >= seconds:
            break
    return Answer(results, elapsed)


def guarded(
    task: Task, candidate: int, x: Any, caught: tuple[type[BaseException], ...] = HERE
) -> float | Failure:
    """The value of one candidate, or why there is none: plain data either way.

    An exception that can be pickled but not unpickled (any class whose ``__init__`` takes two
    arguments) breaks a whole pool of processes on its way back, so none is ever sent.
    """
    if isinstance(x, np.ndarray):
        x.flags.writeable = False  # a row that came through a pickle has lost that
    raw = attempt(task.fun, x, *task.args, caught=caught)
    if isinstance(raw, Failure):
        return raw
    # Also a conversion may raise anything: what a device computes may fail as late as that.
    value: float | Failure = attempt(_converted, raw, candidate, caught=caught)
    return value


def _converted(raw: Any, candidate: int) -> float | Failure:
    try:
        return to_value(raw, candidate)
    except TypeError as error:
        return Failure(f"TypeError: {error}", bad_value=True)


def guarded_pair(task: Task, pair: tuple[int, Any]) -> float | Failure:
    """`guarded` with one argument, for a map."""
    return guarded(task, *pair)


def attempt(
    call: Callable[..., Any], *arguments: Any, caught: tuple[type[BaseException], ...] = HERE
) -> Any:
    """What a call of code that is not ours returns, or the Failure that it ended in."""
    try:
        return call(*arguments)
    except caught as error:  # whatever it was, a policy decides
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next  # begin with their code, not ours
        return failure_of(error)


def failure_of(error: BaseException) -> Failure:
    """An exception as text; `traceback` survives even a ``__str__`` that raises."""
    summary = "".join(traceback.format_exception_only(error)).strip()
    return Failure(summary, "".join(traceback.format_exception(error)))
