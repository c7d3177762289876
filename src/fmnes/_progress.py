"""Progress on standard error: a bar of tqdm, one line that is rewritten, or a line now and then."""

import contextlib
import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from fmnes.records.history import PHASES
from fmnes.runs.sequential import Runs

_EVERY = 0.1  # seconds between updates on a terminal

Words = Callable[[], list[str]]


class Display:
    """Shows how much of some work is done, its speed, and the time left.

    A terminal and a notebook show a bar of tqdm, or without tqdm one line that changes. A file gets
    a line every ``every_line`` seconds. ``total`` is all there is to do, if that is known, and
    ``initial`` what was done before. Both count ``unit``; without a unit, these numbers would mean
    nothing to a reader, who sees a bar and the time left.
    """

    def __init__(
        self, total: float | None, initial: float = 0, unit: str = "", every_line: float = 10.0
    ) -> None:
        self._total, self._initial, self._unit = total, initial, unit
        self._is_live = sys.stderr.isatty() or _is_in_notebook()
        self._every = _EVERY if self._is_live else every_line
        self._bar = _tqdm_bar(total, initial, unit) if self._is_live else None
        self._begun, self._shown = time.monotonic(), -math.inf
        self._last: tuple[float, Words, float] | None = None  # the arguments of `update`
        self._is_seen = self._has_ended = False

    def update(self, done: float, words: Words, seconds_left: float = math.inf) -> None:
        """Show that ``done`` is done, if it is time, and what ``words()`` says about it.

        ``seconds_left`` is when the work ends at the latest.
        """
        self._last = done, words, seconds_left
        self._is_seen = time.monotonic() - self._shown >= self._every
        if self._is_seen:
            self._show(*self._last)

    def close(self) -> None:
        """Show the last state, and end the line."""
        self._has_ended = True
        if self._bar is not None and self._last and self._last[0] < (self._bar.total or 0):
            self._bar.total = None  # or it would show a time left
        if self._last and (self._is_live or not self._is_seen):
            self._show(*self._last)
        with contextlib.suppress(OSError):
            if self._bar is not None:
                self._bar.close()
            elif self._is_live and self._last:
                print(file=sys.stderr)

    def _show(self, done: float, words: Words, seconds_left: float) -> None:
        self._shown = now = time.monotonic()
        rate = (done - self._initial) / (now - self._begun) if now > self._begun else 0.0
        if self._total is not None and rate > 0:
            seconds_left = min(seconds_left, (self._total - done) / rate)
        texts = words()
        if self._bar is None and self._unit:
            texts = [f"{done} {self._unit}", *texts, f"{rate:.3g} {self._unit}/s"]
        # tqdm shows the rate itself, and the time left if it knows the total.
        is_told = self._has_ended or (self._bar is not None and self._bar.total is not None)
        if seconds_left < math.inf and not is_told:
            texts.append(f"{_clock(max(0.0, seconds_left))} left")
        with contextlib.suppress(OSError):  # standard error is a closed pipe, or on a full disk
            self._draw(done, ", ".join(texts))

    def _draw(self, done: float, text: str) -> None:
        if self._bar is not None:
            self._bar.n = done  # tqdm's own update() would skip some of them
            self._bar.set_postfix_str(text)
        elif self._is_live:
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)


class Progress:
    """The display of a search; it shows nothing unless it is on."""

    def __init__(self, on: bool, runs: Runs) -> None:
        self._runs = runs
        if on and runs.resumed_at:  # the search may even have ended before
            with contextlib.suppress(OSError):
                print(f"resumed at {runs.resumed_at} evaluations", file=sys.stderr, flush=True)
        self._display = Display(runs.budget.maxfevals, runs.nfev, "evaluations") if on else None

    def update(self) -> None:
        """Show the state of the search, if it is time."""
        if self._display is not None:
            runs, timeout = self._runs, self._runs.budget.timeout
            left = math.inf if timeout is None else timeout - runs.elapsed
            self._display.update(runs.nfev, self._headline, left)

    def close(self) -> None:
        """Show the last state, and end the line."""
        if self._display is not None:
            self._display.close()

    def _headline(self) -> list[str]:
        """Return best value, step size, phase, failures and restarts, as texts."""
        current = self._runs.current
        record, last = current.record, current.record.history.last
        words = [f"best {record.best_f:.6g}", f"sigma {last.sigma:.3g}"]
        if last.phase in PHASES:
            words.append(PHASES[last.phase])
        if record.popsize != record.limits.popsize:
            words.append(f"popsize {record.popsize}")
        if record.nfailed:
            words.append(f"{record.nfailed} failed")
        if current.run:
            words.append(f"restart {current.run}")
        return words


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _is_in_notebook() -> bool:
    """Return whether this is a notebook: a shell of IPython with a kernel behind it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def _tqdm_bar(total: float | None, initial: float, unit: str) -> Any:
    """Return a bar; None if tqdm is not installed, or cannot write."""
    numbers = {} if unit else {"bar_format": "{l_bar}{bar}| {elapsed}<{remaining}{postfix}"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # in a notebook without ipywidgets: a bar of text
            from tqdm.auto import tqdm  # in a notebook, the notebook's own bar

        return tqdm(total=total, initial=initial, unit=f" {unit}", dynamic_ncols=True, **numbers)
    except (ImportError, OSError):
        return None
