"""Tests of the compiled kernels. They are left out if the kernels are not built."""

import pytest

from fmnes import kernels

if kernels.in_use == "agnostic":
    collect_ignore_glob = ["test_*.py"]


def pytest_terminal_summary(terminalreporter):
    if kernels.in_use == "agnostic":
        terminalreporter.write_line(f"tests/native left out: {kernels.why}")


@pytest.fixture(autouse=True)
def level_and_threads():
    """Restore the level and the number of threads after each test."""
    from fmnes.kernels import _native

    level, threads = _native.level(), _native.num_threads()
    yield
    _native.set_level(level)
    _native.set_num_threads(threads)
