"""A hard limit for every test here, and the file in which calls are counted."""

import signal

import pytest


@pytest.fixture(autouse=True)
def _hard_limit():
    """A hang must fail, not block."""

    def give_up(*_):
        raise RuntimeError("the test hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(40)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "calls")
