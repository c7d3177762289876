"""How a search shows its progress: a bar of tqdm, one line that changes, or a line now and then."""

import math
import sys
import time
from typing import Any

from fmnes._history import PHASES
from fmnes._runs import Search

_EVERY = 0.1  # seconds from one look to the next on a terminal,
_EVERY_LINE = 10.0  # and where each leaves a line


class Progress:
    """A progress display on standard error; does nothing unless it is on."""

    def __init__(self, on: bool) -> None:
        self._on = on
        self._is_live = on and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._bar: Any = None
        self._begun: tuple[float, int] | None = None  # when we saw the search first, and its nfev
        self._shown = -math.inf
        self._unseen: Search | None = None  # since the last line

    def update(self, search: Search) -> None:
        """Show where the search stands, if it is time for that."""
        if not self._on:
            return
        now = time.monotonic()
        if self._begun is None:
            self._begun = now, search.nfev - search.current.popsize
            if self._is_live:
                self._bar = _tqdm_bar(search.budget.maxfevals, self._begun[1])
        is_due = now - self._shown >= (_EVERY if self._is_live else _EVERY_LINE)
        self._unseen = None if is_due else search
        if is_due:
            self._shown = now
            self._show(search, now)
        elif self._bar is not None:
            self._bar.update(search.nfev - self._bar.n)

    def _show(self, search: Search, now: float) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(self._words(search, now)), refresh=False)
            self._bar.update(search.nfev - self._bar.n)
            return
        line = ", ".join([f"{search.nfev} evaluations", *self._words(search, now)])
        if self._is_live:
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the last line standing."""
        if self._unseen is not None:
            self._show(self._unseen, time.monotonic())
        if self._bar is not None:
            self._bar.close()
        elif self._is_live and self._begun is not None:
            print(file=sys.stderr)

    def _words(self, search: Search, now: float) -> list[str]:
        """Where the search stands, how fast it goes and how long it may take."""
        words = _headline(search)
        begun, nfev = self._begun or (now, 0)
        rate = (search.nfev - nfev) / (now - begun) if now > begun else 0.0
        left = _seconds_left(search, rate)
        if self._bar is None and rate:
            words.append(f"{rate:.3g} evaluations/s")
        # tqdm knows the rate, and the time left if that is a matter of evaluations.
        if left is not None and (self._bar is None or self._bar.total is None):
            words.append(f"{_clock(left)} left")
        return words


def _headline(search: Search) -> list[str]:
    """Best value, step size, phase, and failures if there were any."""
    tally = search.current.tally
    sigma, phase = (tally.history.last(column, 1)[0] for column in ("sigma", "phase"))
    words = [f"best {tally.best_f:.6g}", f"sigma {sigma:.3g}"]
    if phase in PHASES:
        words.append(PHASES[int(phase)])
    if tally.nfailed:
        words.append(f"{tally.nfailed} failed")
    if search.current.run:
        words.append(f"restart {search.current.run}")
    return words


def _seconds_left(search: Search, rate: float) -> float | None:
    """Until the first limit of the budget; None where there is none. A target may come earlier."""
    maxfevals, timeout = search.budget.maxfevals, search.budget.timeout
    limits = []
    if maxfevals is not None and rate > 0:
        limits.append((maxfevals - search.nfev) / rate)
    if timeout is not None:
        limits.append(timeout - search.elapsed)
    return max(0.0, min(limits)) if limits else None


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _tqdm_bar(maxfevals: int | None, initial: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=maxfevals, initial=initial, unit=" evals", dynamic_ncols=True)
