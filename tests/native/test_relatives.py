"""Every method gives the same results with the compiled and with the array-agnostic kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fmnes
from fmnes import kernels
from fmnes.algorithms import METHODS, Shape
from fmnes.kernels import _native, agnostic
from property_tests import examples

DTYPES = [np.float64, np.float32]
SETTINGS = [
    fmnes.CRFMNES(),
    fmnes.CRFMNES(variant="paper"),
    fmnes.VDCMA(),
    fmnes.SepCMA(),
    fmnes.SepCMA(rates="pycma"),
    fmnes.SNES(),
    fmnes.R1NES(),
]
# The paper's c_1 is negative for d < 5, and its covariance breaks up by itself.
CASES = [
    (settings, dim)
    for settings in SETTINGS
    for dim in (1, 2, 10, 300)
    if dim >= 5 or settings != fmnes.CRFMNES(variant="paper")
]
MODULES = {module.Settings: module for module in METHODS.values()}


class PureRun:
    """The pure functions of a method with constants, draws and a first state."""

    def __init__(self, settings, dim, dtype=np.float64):
        self.module, self.dim, self.dtype = MODULES[type(settings)], dim, dtype
        popsize = self.module.default_popsize(dim)
        self.params = self.module.params(dim, popsize, settings)
        self.rows = popsize // 2 if self.module.ANTITHETIC else popsize
        D = np.exp(np.linspace(0, 1, dim)).astype(dtype)
        v = np.random.default_rng(0).normal(size=dim).astype(dtype)
        mean = np.full(dim, 3.0, dtype)
        self.state = self.module.init(self.params, mean, np.asarray(2.0, dtype), Shape(D=D), v)

    def draws(self, generation):
        z = np.random.default_rng([1, generation]).normal(size=(self.rows, self.dim))
        return z.astype(self.dtype)


def ellipsoid(x):
    """Condition 1e4. Its minimum is not at 0, where the mean would have no digits to compare."""
    x = np.asarray(x, np.float64) - 1
    return np.sum(1e4 ** np.linspace(0, 1, x.shape[1]) * x * x, axis=1)


def assert_close(ours, theirs, tolerance):
    """Compare each field, relative to its largest entry."""
    for name, value in theirs._asdict().items():
        value = np.asarray(value, np.float64)
        atol = tolerance * np.max(np.abs(value))
        np.testing.assert_allclose(getattr(ours, name), value, rtol=0, atol=atol, err_msg=name)


def with_agnostic(monkeypatch):
    monkeypatch.setattr(kernels, "select", lambda xp, dtype: agnostic)


@pytest.mark.parametrize(("settings", "dim"), CASES, ids=repr)
def test_a_hundred_generations(settings, dim, monkeypatch):
    """From the same state one step to 1e-12; with the same draws and ranks a hundred to 1e-9."""
    search = PureRun(settings, dim)
    module, params = search.module, search.params
    ours = theirs = search.state
    for generation in range(100):
        z = search.draws(generation)
        x = module.ask(params, ours, z)
        f = ellipsoid(x)
        after = module.tell(params, ours, z, f)
        with monkeypatch.context() as patch:
            with_agnostic(patch)
            size = np.max(np.abs(x - ours.mean))
            expected = module.ask(params, ours, z)
            np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-12 * size)
            assert_close(after, module.tell(params, ours, z, f), 1e-12)
            theirs = module.tell(params, theirs, z, f)
        ours = after
        assert_close(ours, theirs, 1e-9)


@pytest.mark.parametrize(("settings", "dim"), CASES, ids=repr)
def test_float32(settings, dim, monkeypatch):
    """One step from states along a run, beside the same step in float64."""
    search = PureRun(settings, dim, np.float32)
    module, params, state = search.module, search.params, search.state
    for generation in range(30):
        z = search.draws(generation)
        x = module.ask(params, state, z)
        assert x.dtype == np.float32
        f = ellipsoid(x).astype(np.float32)
        after = module.tell(params, state, z, f)
        assert {np.asarray(field).dtype for field in after} == {np.dtype(np.float32)}
        wide = type(state)(*(np.asarray(field, np.float64) for field in state))
        with monkeypatch.context() as patch:
            with_agnostic(patch)
            expected = module.tell(params, wide, z.astype(np.float64), f.astype(np.float64))
        assert_close(after, expected, 2e-5)
        state = after


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_a_method_gives_the_same_bits_at_every_level_and_number_of_threads(settings, dtype):
    """Also where a sum is left to NumPy."""
    states = []
    for level in _native.levels_here():
        for threads in (1, 3):
            _native.set_level(level)
            _native.set_num_threads(threads)
            search = PureRun(settings, 6000, dtype)
            state = search.state
            for generation in range(3):
                z = search.draws(generation)
                x = search.module.ask(search.params, state, z)
                state = search.module.tell(search.params, state, z, ellipsoid(x).astype(dtype))
            states.append(state)
    for other in states[1:]:
        for name, value in states[0]._asdict().items():
            np.testing.assert_array_equal(getattr(other, name), value, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_candidates_built_alone(settings, dtype):
    """The population, its rows one by one, and mean plus step: the same bits."""
    search = PureRun(settings, 77, dtype)
    module, params, state, z = search.module, search.params, search.state, search.draws(0)
    x = module.ask(params, state, z)
    step = module.transform(params, state, z)
    signs = (1, -1) if module.ANTITHETIC else (1,)
    np.testing.assert_array_equal(x, np.concatenate([state.mean + sign * step for sign in signs]))
    for i in range(search.rows):
        alone = module.ask(params, state, z[i : i + 1])
        np.testing.assert_array_equal(alone[0], x[i])


# --- Full matrices: LAPACK through NumPy both times, the ranks compiled or not --------------------


FULL = [fmnes.FMNES(), fmnes.DXNESIC(), fmnes.XNES(), fmnes.CMAES()]


@pytest.mark.parametrize("settings", FULL, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
@examples(25)
@given(dim=st.integers(2, 200), seed=st.integers(0, 100), share=st.sampled_from([0.0, 0.3, 1.0]))
def test_full_matrices(settings, dtype, dim, seed, share):
    """Three generations, some of the candidates infeasible: the same ranks, and the same steps."""
    search = PureRun(settings, dim, dtype)
    module, params = search.module, search.params
    ours = theirs = search.state
    for generation in range(3):
        z = search.draws(generation)
        f = ellipsoid(module.ask(params, ours, z)).astype(dtype)
        f[np.random.default_rng([seed, generation]).random(len(f)) < share] = np.inf
        ours = module.tell(params, ours, z, f)
        with pytest.MonkeyPatch.context() as patch:
            with_agnostic(patch)
            theirs = module.tell(params, theirs, z, f)
    finite = [np.all(np.isfinite(np.asarray(part, np.float64))) for part in theirs]
    assert all(finite), theirs._fields
    assert_close(ours, theirs, 1e-12 if dtype == np.float64 else 1e-4)
