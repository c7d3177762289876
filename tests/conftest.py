"""What all tests share: the methods of THE TABLE, and how hypothesis runs."""

import pytest
from hypothesis import HealthCheck, settings
from time_limit import hard_limit

from fmnes import METHODS

# No test may depend on the clock or on the day: no deadline, the same examples every time.
settings.register_profile(
    "fmnes", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fmnes")


# For the whole session, because hypothesis runs many examples within one test function.
@pytest.fixture(scope="session", params=list(METHODS))
def method(request):
    """The name of every method, one after the other."""
    return request.param


@pytest.fixture(autouse=True)
def _engines_end(request):
    """Tests with real engines wait for processes in many places."""
    if request.node.get_closest_marker("engines") is None:
        yield
    else:
        with hard_limit(450):
            yield
