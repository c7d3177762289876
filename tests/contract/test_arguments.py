"""Settings and population sizes, of every method."""

import dataclasses
import warnings

import numpy as np
import pytest
from contract.common import drive, sphere, start

import fmnes
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fmnes.CRFMNES(variant="fast"), "^variant: expected 'safe' or 'paper', got 'fast'"),
        (lambda: fmnes.CRFMNES(eta_B=-1), "^eta_B: expected a finite number >= 0, got -1"),
        (lambda: fmnes.CRFMNES(c_1=np.nan), "^c_1: expected a finite number >= 0, got nan"),
        (
            lambda: fmnes.CRFMNES(eta_sigma="1"),
            "^eta_sigma: expected a finite number >= 0, got '1'",
        ),
        (lambda: fmnes.CRFMNES(distance_weights=0), "^distance_weights: expected True or False"),
        (lambda: fmnes.SepCMA(rates="new"), "^rates: expected 'ros-hansen' or 'pycma', got 'new'"),
        (lambda: fmnes.SNES(eta_sigma=-1), "^eta_sigma: expected"),
        (lambda: fmnes.SNES(eta_sigma=np.nan), "^eta_sigma: expected"),
        (lambda: fmnes.R1NES(eta=2), "^eta: expected a number from 0 to 1, got 2"),
        (lambda: fmnes.XNES(eta_B=-1), "^eta_B: expected a finite number >= 0, got -1"),
        (lambda: fmnes.XNES(eta_sigma=np.inf), "^eta_sigma: expected a finite number >= 0"),
        (lambda: fmnes.DXNESIC(eta_B=np.nan), "^eta_B: expected a finite number >= 0"),
        (lambda: fmnes.FMNES(c_1=-0.1), "^c_1: expected a finite number >= 0, got -0.1"),
        (lambda: start(fmnes.CRFMNES(D=np.ones(4))), r"^D: expected .* \(5,\), got shape \(4,\)"),
        (lambda: start(fmnes.CRFMNES(D=np.zeros(5))), "^D: expected numbers > 0, got 0"),
        (lambda: start(fmnes.CRFMNES(D="abc")), r"^D: expected an array .* \(5,\), got 'abc'"),
        (lambda: start(fmnes.CMAES(C=[[1.0], []])), r"^C: expected an array .* got \[\[1.0\],"),
        (lambda: start(fmnes.VDCMA(v=np.zeros(5))), "^v: expected a vector that is not zero"),
        (lambda: start(fmnes.R1NES(v=[np.inf] * 5)), "^v: expected finite numbers"),
        (lambda: start(fmnes.SepCMA(D=np.ones((5, 5)))), r"^D: expected .* got shape \(5, 5\)"),
        (lambda: start(fmnes.CMAES(C=np.ones(5))), r"^C: expected .* \(5, 5\), got shape \(5,\)"),
        (lambda: start(fmnes.CMAES(C=-np.eye(5))), "^C: expected a positive definite matrix"),
        (lambda: start(fmnes.FMNES(C=np.triu(np.ones((5, 5))))), "^C: expected a symmetric matrix"),
        (lambda: fmnes.Stopping(tolx=-1), "^tolx: expected a number >= 0, got -1"),
        (lambda: fmnes.Stopping(tolfun=np.nan), "^tolfun: expected a number >= 0, got nan"),
        (lambda: fmnes.Stopping(flat="20"), "^flat: expected a number >= 0, got '20'"),
        (lambda: fmnes.IPOP(-1), "^n: expected at least 0, got -1"),
        (lambda: fmnes.IPOP(1, factor=0.5), "^factor: expected a number >= 1, got 0.5"),
        (lambda: fmnes.BIPOP(1.5), "^n: expected a whole number, got 1.5"),
    ],
)
def test_settings_out_of_range(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


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
        with pytest.raises(ValueError, match=rf"^popsize: expected an even number for {method}"):
            start(method, popsize=popsize)
    else:
        opt = drive(start(method, popsize=popsize), 20, sphere)
        assert opt.nfev == 20 * popsize
        assert np.isfinite(opt.ask()).all()


@pytest.mark.parametrize("popsize", [-2, 0, 1])
def test_a_popsize_that_is_none(method, popsize):
    with pytest.raises(ValueError, match=rf"^popsize: expected at least 2, got {popsize}"):
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
    with pytest.warns(fmnes.PopsizeWarning, match=r"^popsize=4 is far below the default"):
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
