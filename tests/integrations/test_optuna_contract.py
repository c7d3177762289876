"""Optuna's own tests for samplers, which Optuna has since version 4.8."""

import pytest

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
cases = pytest.importorskip("optuna.testing.pytest_samplers", reason="needs Optuna >= 4.8")
from optuna.distributions import CategoricalDistribution, FloatDistribution  # noqa: E402

from fmnes.integrations.optuna import FmnesSampler  # noqa: E402


class TestContract(
    cases.BasicSamplerTestCase, cases.RelativeSamplerTestCase, cases.SingleOnlySamplerTestCase
):
    """Optuna's own tests for samplers."""

    @pytest.fixture
    def sampler(self):
        return lambda: FmnesSampler(seed=1)

    # Categories are not ours: they are never in the space that we infer.
    def test_sample_relative_categorical(self, sampler):
        self.check_inferred(sampler(), {"x": CategoricalDistribution([1, 10])}, [])

    def test_sample_relative_mixed(self, sampler):
        space = {"x": FloatDistribution(0, 1), "y": CategoricalDistribution([1, 10])}
        self.check_inferred(sampler(), space, ["x"])

    def check_inferred(self, sampler, space, expected):
        study = optuna.create_study(sampler=sampler)
        study.tell(study.ask(space), 1.0)
        trial = study.ask(space)
        assert set(trial.params) == set(space)
        assert list(trial.relative_params) == expected
