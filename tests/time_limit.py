"""A time limit that turns a hang into a failure."""

import contextlib
import signal


@contextlib.contextmanager
def hard_limit(seconds):
    """Context: RuntimeError in the main thread after so many seconds. Needs POSIX."""

    def give_up(*_):
        raise RuntimeError(f"the test hangs: not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
