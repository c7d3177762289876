"""Every field of every method's settings refuses what it cannot be, and says so by name.

The fields come from the settings themselves: a new field without a check fails here.
"""

import dataclasses
import math

import numpy as np
import pytest

import fmnes
from fmnes import METHODS

FIELDS = [
    (method, field.name)
    for method, module in METHODS.items()
    for field in dataclasses.fields(module.Settings)
]
# Wrong types and wrong values that no flag, word, learning rate or array of shape (3,) may be.
WRONG = [object(), "no such value", "0.1", ["a", "b", "c"], -1.0, math.nan, math.inf]


@pytest.mark.parametrize(("method", "field"), FIELDS)
def test_a_wrong_setting_is_refused_by_name(method, field):
    for wrong in WRONG:
        with pytest.raises((TypeError, ValueError), match=rf"^{field}: expected .*, got "):
            fmnes.Optimizer(
                np.zeros(3), 1.0, method=METHODS[method].Settings(**{field: wrong}), rng=1
            )


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (fmnes.CMAES(active=np.bool_(False)), "active"),
        (fmnes.R1NES(eta=np.float32(0.5)), "eta"),
        (fmnes.R1NES(eta=np.asarray(0.5)), "eta"),
        (fmnes.SNES(eta_sigma=1), "eta_sigma"),
    ],
)
def test_numbers_of_numpy_become_python_numbers(settings, field):
    """So that a checkpoint gives back what was set."""
    assert type(getattr(settings, field)) in (bool, float)


@pytest.mark.parametrize("axes", [0, -1, 2.5, "3", True, math.nan])
def test_the_number_of_axes_is_a_positive_integer(axes):
    with pytest.raises((TypeError, ValueError), match=r"^axes: expected .*, got "):
        fmnes.Auto(axes=axes)


@pytest.mark.parametrize("adapt", ["rate", "popsizes", True, 1, ("rates",)])
def test_what_auto_adapts_is_refused_if_unknown(adapt):
    with pytest.raises(ValueError, match=r"^adapt: expected 'noise', 'rates', 'popsize' or None"):
        fmnes.Auto(adapt=adapt)


@pytest.mark.parametrize("axes", [1, 5, np.int64(5)])
def test_as_many_axes_as_variables_are_allowed(axes):
    opt = fmnes.Optimizer(np.zeros(5), 1.0, method=fmnes.Auto(axes=axes), rng=1)
    assert opt.ask().shape == (opt.popsize, 5)


def test_more_axes_than_variables_are_refused_before_the_first_evaluation():
    def fun(x):
        raise AssertionError("evaluated")

    method = fmnes.Auto(axes=6)
    with pytest.raises(ValueError, match=r"^axes: expected at most .* 5, got 6$"):
        fmnes.minimize(fun, np.zeros(5), 1.0, method=method, rng=1, maxfevals=100)
    with pytest.raises(ValueError, match=r"^axes: expected at most .* 5, got 6$"):
        fmnes.Optimizer(np.zeros(5), 1.0, method=method, rng=1)


@pytest.mark.parametrize("eta", [1.5, 1.0 + 1e-9])
def test_the_rate_of_r1_nes_is_at_most_1(eta):
    with pytest.raises(ValueError, match=r"^eta: "):
        fmnes.R1NES(eta=eta)
