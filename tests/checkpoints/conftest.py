"""What the tests of checkpoints have in common."""

import pytest


@pytest.fixture
def path(tmp_path):
    """Where a search is kept."""
    return tmp_path / "run.npz"
