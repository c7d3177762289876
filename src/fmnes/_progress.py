"""How a search shows its progress: tqdm where it is installed, one line otherwise."""

import sys
import time
from typing import Any

from fmnes._optimizer import Optimizer


class Progress:
    """A progress display on standard error; does nothing unless it is on."""

    def __init__(self, on: bool, maxfevals: int | None) -> None:
        self._on, self._bar, self._shown = on, None, -1.0
        if on:
            self._bar = _tqdm_bar(maxfevals)

    def update(self, opt: Optimizer, evaluations: int) -> None:
        """Show where the search stands, ten times a second at most."""
        if not self._on:
            return
        now = time.monotonic()
        last, self._shown = self._shown, now
        if now - last < 0.1:
            self._shown = last
            if self._bar is not None:
                self._bar.update(evaluations)
            return
        text = opt.headline()
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(evaluations)
        else:
            print(f"\r{opt.nfev} evaluations, {text}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the last line standing."""
        if self._bar is not None:
            self._bar.close()
        elif self._on and self._shown >= 0:
            print(file=sys.stderr)


def _tqdm_bar(maxfevals: int | None) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=maxfevals, unit=" evals", dynamic_ncols=True)
