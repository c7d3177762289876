"""`reevaluate` says how noisy the objective is, and which of mean and best point is better."""

import math

import numpy as np
import pytest

import fmnes
from fmnes._reevaluate import noise_of


class Noisy:
    """The sphere with noise of a known size."""

    def __init__(self, std, seed=1):
        self.std, self.rng, self.calls = std, np.random.default_rng(seed), 0

    def __call__(self, x):
        x = np.asarray(x)
        self.calls += 1 if x.ndim == 1 else len(x)
        return (x**2).sum(axis=-1) + self.std * self.rng.standard_normal(x.shape[:-1])


def search(fun, **options):
    return fmnes.minimize(fun, [3.0] * 5, 2.0, maxfevals=2001, popsize=40, rng=1, **options)


def test_the_standard_deviation_and_the_values_are_found():
    fun = Noisy(0.5)
    result = search(fun)
    again = fmnes.reevaluate(fun, result, 400)
    noise = again.noise
    assert noise.std == pytest.approx(0.5, rel=0.15)
    assert noise.mean_error == pytest.approx(noise.std / 20)
    assert abs(noise.mean_fun - (result.mean**2).sum()) < 4 * noise.mean_error
    assert abs(noise.x_fun - (result.x**2).sum()) < 4 * noise.x_error
    assert result.fun < noise.x_fun - 10 * noise.x_error  # it was selected
    assert (noise.is_noisy, noise.better, noise.n) == (True, "mean", 400)
    assert noise.certainty > 0.99
    assert again.nfev == result.nfev + 800 == fun.calls
    np.testing.assert_array_equal(again.x, result.x)
    assert result.noise is None


def test_a_function_without_noise():
    result = fmnes.reevaluate(Noisy(0.0), search(Noisy(0.0)), 3)
    assert (result.noise.std, result.noise.is_noisy) == (0.0, False)
    assert result.noise.x_fun == result.fun
    assert result.noise.certainty == 1.0


def test_vectorized_and_workers():
    result = search(Noisy(0.5), vectorized=True)
    assert fmnes.reevaluate(Noisy(0.5), result, 50, vectorized=True).noise.std > 0.2
    assert fmnes.reevaluate(Noisy(0.5), result, 5, workers=fmnes.Evaluator(retries=1)).noise.n == 5


def test_values_that_are_not_finite_are_left_out():
    noise = noise_of(np.array([1.0, np.nan, 3.0, np.inf]), np.full(4, np.nan))
    assert (noise.mean_fun, noise.std) == (2.0, math.sqrt(2.0))
    assert noise.mean_error == 1.0
    assert (noise.x_fun, noise.better) == (math.inf, "mean")
    assert math.isnan(noise.certainty)


def test_it_is_saved_shown_and_resumed(tmp_path):
    result = fmnes.reevaluate(Noisy(0.5), search(Noisy(0.5)), 10)
    result.save(tmp_path / "result.json")
    assert fmnes.Result.load(tmp_path / "result.json").noise == result.noise
    assert f"{result.noise.std:.4g}" in str(result)
    assert "f(mean)" in result._repr_html_()
    assert fmnes.minimize(Noisy(0.5), result, maxiter=3, rng=1).noise is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 1}, "n: expected .* 2, got 1"),
        ({"result": 3}, "result: expected a fmnes.Result, got int"),
        ({"fun": 3}, "fun: expected"),
        ({"vectorized": True, "workers": 2}, "workers: expected None"),
    ],
)
def test_wrong_arguments(wrong, message):
    arguments = {"fun": Noisy(0.0), "result": search(Noisy(0.0)), **wrong}
    with pytest.raises((TypeError, ValueError), match=message):
        fmnes.reevaluate(**arguments)
