"""What surrounds the objective where it runs, in whatever process or thread that is."""

import pickle
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fmnes.evaluate._outcome import Failure
from fmnes.evaluate._values import to_value


class Task(NamedTuple):
    """What is the same for every candidate."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]


def guarded(task: Task, candidate: int, x: Any) -> float | Failure:
    """The value of one candidate, or why there is none: plain data either way.

    An exception that can be pickled but not unpickled (any class whose ``__init__`` takes two
    arguments) breaks a whole pool of processes on its way back, so none is ever sent.
    """
    if isinstance(x, np.ndarray):
        x.flags.writeable = False  # a row that came through a pickle has lost that
    raw = attempt(task.fun, x, *task.args)
    if isinstance(raw, Failure):
        return raw
    try:
        return to_value(raw, candidate)
    except TypeError as error:
        return Failure(f"TypeError: {error}", bad_value=True)


def guarded_pair(task: Task, pair: tuple[int, Any]) -> float | Failure:
    """`guarded` with one argument, for a map."""
    return guarded(task, *pair)


def attempt(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call of code that is not ours returns, or the Failure that it ended in."""
    try:
        return call(*arguments)
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it was, a policy decides
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next  # begin with their code, not ours
        return failure_of(error)


def failure_of(error: BaseException) -> Failure:
    """An exception as text; `traceback` survives even a ``__str__`` that raises."""
    summary = "".join(traceback.format_exception_only(error)).strip()
    return Failure(summary, "".join(traceback.format_exception(error)))


def pickled(task: Task) -> bytes:
    """The task as bytes that a worker process can load; TypeError where that cannot be."""
    try:
        return pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(_not_picklable(task, error)) from error


def _not_picklable(task: Task, error: BaseException) -> str:
    try:
        pickle.dumps(task.fun)
    except (pickle.PicklingError, AttributeError, TypeError):
        return (
            "fun: expected a function that can be pickled, because worker processes have to load "
            f"it, got {task.fun!r} ({error}); define it at the top level of a module, or install "
            "loky, which ships functions by value: Evaluator(loky.get_reusable_executor)"
        )
    return f"args: expected objects that can be pickled for worker processes ({error})"
