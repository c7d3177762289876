"""The loop of a search: ask, evaluate and tell, generation by generation and run after run."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fmnes import _checks as checks
from fmnes._progress import Progress
from fmnes._signals import Interrupts
from fmnes.evaluate import attach, call_user
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.runs.evaluation import Evaluation
from fmnes.runs.sequential import Runs

Callback = Callable[..., bool | np.bool_ | None]


def searched(
    runs: Runs,
    evaluation: Evaluation,
    callback: Callback | None,
    bar: Progress,
    interrupts: Interrupts,
) -> Result:
    """Return the result of all runs. An exception that ends the search gets the Result so far."""
    try:
        try:
            with evaluation:
                status = _status_at_end(runs, evaluation, callback, bar, interrupts)
        except KeyboardInterrupt:  # a second one propagates
            status = Status.INTERRUPTED
        runs.save()
    except BaseException as error:
        _attach_result(error, runs)
        raise
    return runs.result(interrupts.answer(status))


def _status_at_end(
    runs: Runs,
    evaluation: Evaluation,
    callback: Callback | None,
    bar: Progress,
    interrupts: Interrupts,
) -> Status:
    """Ask, evaluate and tell in run after run; return why the last run ended."""

    def inject(x: Any, f: Any = None) -> None:
        evaluation.check_injection()
        runs.inject(x, f)

    more = (inject,) if callback is not None and _takes_two(callback) else ()
    while True:
        while not (reasons := runs.reasons()):
            x = runs.ask(evaluation.ask)
            interrupts.allow()
            outcome = runs.evaluate(evaluation.evaluate, x)
            interrupts.defer()
            is_complete = runs.tell(outcome)
            if is_complete:
                bar.update()
            if callback is not None and is_complete:
                interrupts.allow()
                try:
                    if _says_stop(call_user(callback, runs.result(Status.RUNNING), *more)):
                        return Status.CALLBACK
                except StopIteration:
                    return Status.CALLBACK
                finally:
                    interrupts.defer()
        if not runs.next_run(reasons[0]):
            return reasons[0]


def _attach_result(error: BaseException, runs: Runs) -> None:
    """Give an exception that ends the search the Result so far, so that no work is lost."""
    with contextlib.suppress(Exception):  # on a device that has failed there is no Result
        result = runs.result(Status.ERROR)
        attach(error, "result", result)
        if result.nfev:
            candidate = "" if getattr(error, "x", None) is None else ", `error.x` what failed"
            error.add_note(
                f"The exception ended the search after {checks.count(result.nfev, 'evaluation')}. "
                f"`error.result` is the Result so far (best value {result.fun:.6g}){candidate}."
            )


def _takes_two(callback: Callable[..., Any]) -> bool:
    """Return whether a callback has two required arguments; the second one is `inject`."""
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):  # some functions in C have no signature
        return False
    for count in (1, 2):
        with contextlib.suppress(TypeError):
            signature.bind(*[None] * count)
            return count == 2
    raise TypeError(
        "callback: expected a function of one argument, the Result so far, or of two, got one with "
        f"the parameters {signature}"
    )


def _says_stop(answer: Any) -> bool:
    """Return whether a callback's answer ends the search; TypeError if it is not clear."""
    if answer is not None and not isinstance(answer, bool | np.bool_):
        raise TypeError(
            "callback: expected it to return True to end the search, or False or None to continue, "
            f"got {answer!r:.60} of type {type(answer).__name__}"
        )
    return bool(answer)
