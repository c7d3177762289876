"""The learning rates of auto, against what they are made for: signal, noise and both."""

import numpy as np
import pytest

from fmnes.algorithms import auto
from fmnes.algorithms._records import Shape

DIM = 40


def search(values, evaluations, adapt="rates", seed=1, dim=DIM):
    """The state after so many evaluations of a vectorized function from x0 = 3, sigma0 = 2."""
    rng = np.random.default_rng(seed)
    popsize = auto.default_popsize(dim)
    params = auto.params(dim, popsize, auto.Auto(adapt=adapt))
    one = np.ones(dim)
    state = auto.init(params, 3 * one, np.asarray(2.0), Shape(D=one), one)
    for _ in range(evaluations // popsize):
        z = rng.standard_normal((popsize // 2, dim))
        state = auto.tell(params, state, z, values(auto.ask(params, state, z), rng))
    return state


def sphere(x, rng):
    return np.sum(x * x, axis=1)


def noisy_sphere(x, rng):
    return sphere(x, rng) + rng.standard_normal(len(x))


def test_without_noise_the_rate_stays_high():
    assert search(sphere, 3000).eta > 0.1


def test_the_mean_averages_noise():
    """With fixed rates the error stays near 1, as that of CR-FM-NES does."""
    fixed, adapted = (search(noisy_sphere, 12_000, adapt) for adapt in (None, "rates"))
    assert fixed.eta == 1
    assert adapted.eta < 0.1
    assert np.sum(adapted.mean**2) < np.sum(fixed.mean**2) / 10


def test_noise_alone_leaves_sigma_within_bounds():
    state = search(lambda x, rng: rng.standard_normal(len(x)), 12_000)
    assert state.eta < 0.05
    assert 0.02 < state.sigma < 200


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_a_generation_in_which_all_values_are_equal_changes_no_rate(scale):
    rng, params = np.random.default_rng(2), auto.params(DIM, 16)
    state = search(noisy_sphere, 1600)
    z = rng.standard_normal((8, DIM))
    new = auto.tell(params, state, z, np.full(16, scale))
    for name in ("eta", "m_gradient", "m_averages", "sigma_averages"):
        np.testing.assert_array_equal(getattr(new, name), getattr(state, name))
