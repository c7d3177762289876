"""Progress of a search: a bar of tqdm, one line that is rewritten, or a line every ten seconds."""

import contextlib
import math
import sys
import time
from typing import Any

from fmnes._history import PHASES
from fmnes._runs import Runs

_EVERY = 0.1  # seconds between updates on a terminal
_EVERY_LINE = 10.0  # seconds between lines elsewhere


class Progress:
    """A progress display on standard error; it does nothing unless it is on."""

    def __init__(self, on: bool) -> None:
        self._on = on
        self._is_live = on and (sys.stderr.isatty() or _is_in_notebook())
        self._bar: Any = None
        self._begun: tuple[float, int] | None = None  # time and nfev at the first update
        self._shown = -math.inf
        self._has_ended = False
        self._last: Runs | None = None  # the search, after the last update
        self._is_seen = True  # whether that state was shown

    def update(self, runs: Runs) -> None:
        """Show the state of the search, if it is time."""
        if self._on:
            try:
                self._update(runs, time.monotonic())
            except OSError:  # standard error is a file on a full disk, or a closed pipe
                self._on = False

    def _update(self, runs: Runs, now: float) -> None:
        if self._begun is None:
            self._begun = now, runs.nfev - runs.current.popsize
            if self._is_live:
                self._bar = _tqdm_bar(runs.budget.maxfevals, self._begun[1])
        is_due = now - self._shown >= (_EVERY if self._is_live else _EVERY_LINE)
        self._last, self._is_seen = runs, is_due
        if is_due:
            self._shown = now
            self._show(runs, now)
        elif self._bar is not None:
            self._bar.update(runs.nfev - self._bar.n)

    def _show(self, runs: Runs, now: float) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(self._words(runs, now)), refresh=False)
            self._bar.update(runs.nfev - self._bar.n)
            return
        line = ", ".join([f"{runs.nfev} evaluations", *self._words(runs, now)])
        if self._is_live:
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Show the last state, and end the line."""
        if not self._on:
            return
        self._has_ended = True
        with contextlib.suppress(OSError):  # see `update`
            if self._bar is not None and self._bar.n < (self._bar.total or 0):
                self._bar.total = None  # or it would show a time left
            if self._last is not None and (self._is_live or not self._is_seen):
                self._show(self._last, time.monotonic())
            if self._bar is not None:
                self._bar.close()
            elif self._is_live and self._begun is not None:
                print(file=sys.stderr)

    def _words(self, runs: Runs, now: float) -> list[str]:
        """Return the state of the search, its speed and the time left, as texts."""
        words = _headline(runs)
        begun, nfev = self._begun or (now, 0)
        rate = (runs.nfev - nfev) / (now - begun) if now > begun else 0.0
        left = None if self._has_ended else _seconds_left(runs, rate)
        if self._bar is None and rate:
            words.append(f"{rate:.3g} evaluations/s")
        # tqdm shows the rate itself, and the time left if the limit is a number of evaluations.
        if left is not None and (self._bar is None or self._bar.total is None):
            words.append(f"{_clock(left)} left")
        return words


def _headline(runs: Runs) -> list[str]:
    """Return best value, step size, phase, failures and restarts, as texts."""
    record = runs.current.record
    last = record.history.last
    words = [f"best {record.best_f:.6g}", f"sigma {last.sigma:.3g}"]
    if last.phase in PHASES:
        words.append(PHASES[last.phase])
    if record.nfailed:
        words.append(f"{record.nfailed} failed")
    if runs.current.run:
        words.append(f"restart {runs.current.run}")
    return words


def _seconds_left(runs: Runs, rate: float) -> float | None:
    """Return the seconds until the first limit of the budget; None without a limit."""
    maxfevals, timeout = runs.budget.maxfevals, runs.budget.timeout
    limits = []
    if maxfevals is not None and rate > 0:
        limits.append((maxfevals - runs.nfev) / rate)
    if timeout is not None:
        limits.append(timeout - runs.elapsed)
    return max(0.0, min(limits)) if limits else None


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _is_in_notebook() -> bool:
    """Return whether this is a notebook: a shell of IPython with a kernel behind it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def _tqdm_bar(maxfevals: int | None, initial: int) -> Any:
    try:
        from tqdm.auto import tqdm  # in a notebook, the notebook's own bar
    except ImportError:
        return None
    return tqdm(total=maxfevals, initial=initial, unit=" evals", dynamic_ncols=True)
