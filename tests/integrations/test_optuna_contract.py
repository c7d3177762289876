"""Optuna's own tests for samplers, which Optuna has since version 4.8."""

import pytest

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
cases = pytest.importorskip("optuna.testing.pytest_samplers", reason="needs Optuna >= 4.8")
from fmnes.integrations.optuna import FmnesSampler  # noqa: E402


class TestContract(
    cases.BasicSamplerTestCase, cases.RelativeSamplerTestCase, cases.SingleOnlySamplerTestCase
):
    """Optuna's own tests for samplers."""

    @pytest.fixture
    def sampler(self):
        return lambda: FmnesSampler(seed=1)
