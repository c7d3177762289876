"""Settings and population sizes, of every method."""

import dataclasses
import warnings

import numpy as np
import pytest

import fmnes
from contract.common import drive, sphere, start
from fmnes.algorithms import METHODS

ANTITHETIC = [name for name, module in METHODS.items() if module.ANTITHETIC]


# --- Settings -------------------------------------------------------------------------------------


def test_a_setting_that_does_not_exist_is_a_type_error(method):
    settings = METHODS[method].Settings
    with pytest.raises(TypeError, match="unexpected keyword argument 'learning_rate'"):
        settings(learning_rate=0.1)
    with pytest.raises(TypeError, match="positional"):
        settings(0.1)


def test_settings_are_frozen_and_have_defaults(method):
    settings = METHODS[method].Settings()
    for field in dataclasses.fields(settings):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(settings, field.name, None)


def test_a_name_means_the_default_settings(method):
    by_name, by_settings = drive(start(method), 10), drive(start(METHODS[method].Settings()), 10)
    np.testing.assert_array_equal(by_name.ask(), by_settings.ask())
    assert by_settings.setup.method == method


def test_every_setting_is_documented(method):
    settings = METHODS[method].Settings
    for field in dataclasses.fields(settings):
        assert f"\n    {field.name} : " in settings.__doc__, field.name


# --- Population sizes -----------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 40, 1000])
def test_the_default_popsize_works(method, dim):
    popsize = METHODS[method].default_popsize(dim)
    assert popsize >= 4
    assert not (METHODS[method].ANTITHETIC and popsize % 2)
    if dim <= 40:
        assert start(method, dim).popsize == popsize


@pytest.mark.parametrize("popsize", [3, 5, 9, 101])
def test_an_odd_popsize(method, popsize):
    """Refused by the methods that sample in pairs, and by no other."""
    if method in ANTITHETIC:
        with pytest.raises(ValueError, match=rf"^popsize: .*{method}.* got {popsize}"):
            start(method, popsize=popsize)
    else:
        opt = drive(start(method, popsize=popsize), 20, sphere)
        assert opt.nfev == 20 * popsize
        assert np.isfinite(opt.ask()).all()


@pytest.mark.parametrize("popsize", [-2, 0, 1])
def test_a_popsize_that_is_none(method, popsize):
    with pytest.raises(ValueError, match=rf"^popsize: .* 2, got {popsize}"):
        start(method, popsize=popsize)


def test_the_smallest_popsize(method):
    """Two candidates say little; but what they say does no harm."""
    for dim in (1, 2, 5):
        opt = drive(start(method, dim, popsize=2), 200, sphere)
        assert np.isfinite(opt.ask()).all()


def test_a_large_popsize(method):
    opt = drive(start(method, 3, popsize=300), 40, sphere)
    assert opt.result.fun < 1e-2


@pytest.mark.parametrize("dim", [40, 200])
def test_a_popsize_far_below_the_default_warns(method, dim):
    popsize = METHODS[method].default_popsize(dim)
    with pytest.warns(fmnes.PopsizeWarning, match="popsize=4"):
        start(method, dim, popsize=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start(method, dim, popsize=popsize)
        start(method, 20, popsize=4)  # few variables: no word


def test_the_warning_points_at_the_callers_line():
    with pytest.warns(fmnes.PopsizeWarning) as caught:
        fmnes.Optimizer(np.zeros(100), 1.0, popsize=4)
    assert caught[0].filename == __file__
    with pytest.warns(fmnes.PopsizeWarning) as caught:
        fmnes.minimize(sphere, np.zeros(100), 1.0, popsize=4, maxiter=1)
    assert caught[0].filename == __file__
