"""A hang must fail, not block."""

import contextlib
import signal


@contextlib.contextmanager
def hard_limit(seconds):
    """Raise in the main thread when the time is over."""

    def give_up(*_):
        raise RuntimeError(f"the test hangs: not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
