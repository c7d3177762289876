"""A hard limit for every test here, and the file in which calls are counted."""

import pytest

from time_limit import hard_limit


@pytest.fixture(autouse=True)
def _hard_limit():
    with hard_limit(40):
        yield


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "calls")
