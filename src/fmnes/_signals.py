"""Ctrl-C and SIGTERM while `minimize` runs: both end the search, neither leaves half a step."""

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

from fmnes._result import Status

_STATUS = {signal.SIGINT: Status.INTERRUPTED, signal.SIGTERM: Status.TERMINATED}
_DEFAULTS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


class Interrupts:
    """Context: the two signals raise KeyboardInterrupt, but only while candidates are evaluated.

    At any other time they wait for the next evaluation, so that no generation is half told and
    what is saved afterwards is whole. Once a signal has ended the search, a further Ctrl-C raises
    at once and a further SIGTERM changes nothing. Handlers that are neither Python's own nor Ray's
    stay in charge; outside of the main thread Python has no say about signals.
    """

    def __init__(self) -> None:
        self._evaluating = False
        self._received: int | None = None
        self._answered: int | None = None
        self._replaced: dict[signal.Signals, Any] = {}
        self._process = os.getpid()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _DEFAULTS:
                if _may_be_replaced(number):
                    self._replaced[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        if self._received != self._answered:  # it came when everything was over
            signal.raise_signal(signal.Signals(self._received or 0))

    def allow(self) -> None:
        """From here on signals may raise; one that came before does so now."""
        self._evaluating = True
        if self._received is not None:
            raise KeyboardInterrupt

    def defer(self) -> None:
        """From here on signals wait."""
        self._evaluating = False

    def answer(self, status: Status) -> Status:
        """How the search ended: by a signal if one came, else as it says itself."""
        self._answered = self._received
        return status if self._answered is None else _STATUS[signal.Signals(self._answered)]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a worker that was forked here: not ours to decide
            signal.signal(number, _DEFAULTS[signal.Signals(number)])
            signal.raise_signal(number)
        elif number == signal.SIGINT or self._received is None:
            self._received = self._received or number
            if self._evaluating:
                raise KeyboardInterrupt


def _may_be_replaced(number: signal.Signals) -> bool:
    """Python's own handlers; and what `ray.init` puts in their place, which ends the program."""
    handler = signal.getsignal(number)
    module = getattr(handler, "__module__", None) or ""
    return handler is _DEFAULTS[number] or module.startswith("ray.")
