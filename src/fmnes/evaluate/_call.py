"""Calls of the objective, in the process or thread that runs them."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fmnes._checks import Hint
from fmnes.evaluate._outcome import Failure, Value, attach
from fmnes.evaluate._values import to_row, to_value


class ObjectiveCall(NamedTuple):
    """The objective and its further arguments, which are the same for all candidates."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    constraints: int = 0  # how many it returns with the value, as (f, g)

    def to_value(self, raw: Any, candidate: int) -> Value:
        """What the objective returned for a candidate, converted."""
        if self.constraints:
            return to_row(raw, candidate, self.constraints)
        return to_value(raw, candidate)


class ChunkResult(NamedTuple):
    """What a worker returns for a chunk of candidates: plain data, also after failures."""

    results: Sequence[Value | Failure] = ()  # of the first candidates; the others did not start
    seconds: float = 0.0  # that these took
    missing: bool = False  # the worker lacks the objective or the population
    refused: tuple[str, Failure] | None = None  # kind of a payload that did not load, and why


# The exceptions that count as failures of the objective. In the driver's process Ctrl-C raises
# KeyboardInterrupt, which must end the search. Worker processes ignore the signal, so that a
# KeyboardInterrupt there is the objective's own.
IN_DRIVER: tuple[type[BaseException], ...] = (Exception, SystemExit)
IN_WORKER: tuple[type[BaseException], ...] = (BaseException,)


_forks = 0  # how many forks lie between the process that imported this module and this one


def _note_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def call_user(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``; a child process that the function forked ends here.

    A child that leaves the function, by returning or by an exception, would go on with the search
    of its parent: it would answer the same requests and write to the same files.
    """
    forks = _forks
    try:
        returned = function(*arguments)
    except BaseException as error:
        if _forks != forks:
            _end_child(error)
        _advise(error, *arguments)
        raise
    if _forks != forks:
        _end_child(None)
    return returned


def plain_values(call: ObjectiveCall, x: Any, candidates: Iterable[int]) -> Iterator[Value]:
    """Yield the values of some rows of x; exceptions of the objective go up, with ``error.x``.

    This is `call_user` in a loop, written out for objectives that take microseconds.
    """
    (fun, args, constraints), forks = call, _forks
    convert = call.to_value if constraints else to_value
    for i in candidates:
        row = x[i, ...]
        try:
            value = convert(fun(row, *args), i)
        except BaseException as error:
            if _forks != forks:
                _end_child(error)
            _advise(error, row)
            attach(error, "x", copied(row))
            raise
        if _forks != forks:
            _end_child(None)
        yield value


def _end_child(error: BaseException | None) -> NoReturn:
    """End this process as Python would end a program, without any code of the parent."""
    code = 0 if error is None else 1
    try:
        if isinstance(error, SystemExit):
            if error.code is None or isinstance(error.code, int):
                code = error.code or 0
            else:
                print(error.code, file=sys.stderr)
        elif error is not None:
            traceback.print_exception(error)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 0xFF)


def _advise(error: BaseException, x: Any = None, *_: Any) -> None:
    """Add to an error what to do: x was written to, or taken for something else than it is."""
    if not isinstance(x, np.ndarray):
        return
    here = error.__traceback__
    if isinstance(error, TypeError) and here is not None and here.tb_next is None:
        error.add_note(
            Hint("The objective is called as fun(x, *args): x is one array of all variables")
        )
    text = error.args[0] if type(error) is ValueError and error.args else None
    if isinstance(text, str) and "read-only" in text:
        error.add_note(Hint("The objective's x is read-only. Change a copy of it: x = x.copy()"))
    elif isinstance(error, np.exceptions.AxisError) and x.ndim == 1:
        error.add_note(
            Hint("The objective's x is one candidate. With vectorized=True it is all of them")
        )


def copied(x: Any) -> Any:
    """Return a copy of a NumPy array, whose memory the next generation uses again."""
    return np.array(x) if isinstance(x, np.ndarray) else x


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
    results: list[Value | Failure] = []
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
) -> Value | Failure:
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
    value: Value | Failure = attempt(_to_value, call, raw, candidate, caught=caught)
    return value


def _to_value(call: ObjectiveCall, raw: Any, candidate: int) -> Value | Failure:
    try:
        return call.to_value(raw, candidate)
    except TypeError as error:
        return failure_of(error)._replace(traceback="", bad_value=True)


def attempt(
    call: Callable[..., Any], *arguments: Any, caught: tuple[type[BaseException], ...] = IN_DRIVER
) -> Any:
    """What a call of the user's code returns, or the Failure that it ended in."""
    try:
        return call_user(call, *arguments)
    except caught as error:
        for _ in range(2):  # begin with the user's code
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
        return failure_of(error)


def failure_of(error: BaseException, *, lost: bool = False) -> Failure:
    """Return an exception as text, even if its ``__str__`` raises or is not valid Unicode."""
    summary = " ".join("".join(traceback.format_exception_only(error)).split("\n")).strip()
    return Failure(
        _unicode(summary), _unicode("".join(traceback.format_exception(error))), lost=lost
    )


def _unicode(text: str) -> str:
    """Return text that any file can hold: surrogates without a partner become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
