"""Ctrl-C and SIGTERM while `minimize` runs: both end the search between two generations."""

import contextlib
import os
import signal
import threading
from types import FrameType
from typing import Any, Self

from fmnes.records.status import Status

_STATUS = {signal.SIGINT: Status.INTERRUPTED, signal.SIGTERM: Status.TERMINATED}
_DEFAULTS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


class Interrupts:
    """Context in which the two signals raise KeyboardInterrupt, but only during evaluations.

    At any other time a signal waits for the next evaluation, so that no update is interrupted and
    the saved state is complete. Once a signal has ended the search, a further Ctrl-C raises at once
    and a further SIGTERM changes nothing. The context replaces only the handlers of Python and of
    Ray. It does nothing outside of the main thread of the main interpreter, because Python handles
    signals only there.
    """

    def __init__(self) -> None:
        self._evaluating = False
        self._received: int | None = None
        self._answered: int | None = None
        self._replaced: dict[signal.Signals, Any] = {}
        self._process = os.getpid()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            with contextlib.suppress(ValueError):  # in a subinterpreter
                for number in _DEFAULTS:
                    if _may_be_replaced(number):
                        self._replaced[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        if self._received != self._answered:  # it came after the search had ended
            signal.raise_signal(signal.Signals(self._received or 0))

    def allow(self) -> None:
        """Let signals raise from here on; one that came before raises now."""
        self._evaluating = True
        if self._received is not None:
            raise KeyboardInterrupt

    def defer(self) -> None:
        """Let signals wait from here on."""
        self._evaluating = False

    def answer(self, status: Status) -> Status:
        """The status of a signal if one came, else the given one."""
        self._answered = self._received
        return status if self._answered is None else _STATUS[signal.Signals(self._answered)]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # in a forked worker the default handler decides
            signal.signal(number, _DEFAULTS[signal.Signals(number)])
            signal.raise_signal(number)
        elif number == signal.SIGINT or self._received is None:
            self._received = self._received or number
            if self._evaluating:
                raise KeyboardInterrupt


def _may_be_replaced(number: signal.Signals) -> bool:
    """Whether the handler is Python's own, or the one of `ray.init`, which ends the program."""
    handler = signal.getsignal(number)
    module = getattr(handler, "__module__", None) or ""
    return handler is _DEFAULTS[number] or module.startswith("ray.")
