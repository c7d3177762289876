"""A ranking by chance says nothing: a distribution that follows it must not grow without end."""

import numpy as np
import pytest

import fmnes


def growth(method, dim, popsize, seed):
    """Of the logarithm of the standard deviations, in 150 generations."""
    endless = fmnes.Stopping(stagnation=0, tolsigmaup=np.inf)
    opt = fmnes.Optimizer(
        np.zeros(dim), 1.0, method=method, popsize=popsize, rng=seed, stopping=endless
    )
    values = np.random.default_rng(seed)
    for _ in range(150):
        opt.ask()
        opt.tell(values.normal(size=popsize))
    return np.mean(np.log(opt.result.stds))


@pytest.mark.parametrize(("dim", "popsize"), [(10, 100), (20, 192)])
def test_a_full_matrix_grows_little_by_chance(dim, popsize):
    """Equation (p) of "auto"; CR-FM-NES, with its distance weights, shows what it is against."""
    auto, other = (
        np.mean([growth(method, dim, popsize, seed) for seed in range(3)])
        for method in ("auto", "cr-fm-nes")
    )
    assert auto < other / 3
