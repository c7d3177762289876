"""What all tests share: the names of the methods, and the profiles of hypothesis."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from fmnes import METHODS
from property_tests import DEFAULT
from time_limit import hard_limit

# The default profile runs the same examples every time, so that a test fails for everybody or for
# nobody; "few" is its short form. `make test-explore` runs new examples and keeps what fails.
# No profile has a deadline: no test may depend on how fast the machine is.
ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SAME = settings(ANY_SPEED, derandomize=True)
settings.register_profile("same", SAME, max_examples=DEFAULT)
settings.register_profile("few", SAME, max_examples=DEFAULT // 10)
settings.register_profile(
    "explore",
    ANY_SPEED,
    max_examples=20 * DEFAULT,
    database=DirectoryBasedExampleDatabase(Path(__file__).parents[1] / ".hypothesis/explore"),
)
settings.load_profile("same")


# Windows has no POSIX signals, process groups, forks, record locks or limits of memory, and no fake
# programs that are shell scripts. Tests of these are left out there.
POSIX = [
    "checkpoints/test_asynchronous_kills.py",
    "checkpoints/test_crashes.py",
    "checkpoints/test_damage.py",
    "checkpoints/test_kills.py",
    "checkpoints/test_lock.py",
    "checkpoints/test_signals.py",
    "cli",
    "cluster",
    "pools",
    "experiments/test_runner.py",
    "faults",
    "integrations/test_coco.py",
]
collect_ignore = POSIX if sys.platform == "win32" else []


def pytest_report_header():
    return f"left out, because they need POSIX: {', '.join(POSIX)}" if collect_ignore else []


# For the whole session, because hypothesis runs many examples within one test function.
@pytest.fixture(scope="session", params=list(METHODS))
def method(request):
    """The name of each method in turn."""
    return request.param


@pytest.fixture(autouse=True)
def _pools_end(request):
    """A time limit for the tests with real pools, which wait for processes in many places."""
    if request.node.get_closest_marker("pools") is None:
        yield
    else:
        with hard_limit(450):
            yield
