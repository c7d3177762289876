"""Each method gives the same results on every array library: one generation, and a hundred.

array-api-strict computes with NumPy, so its results are equal to the last bit. Other libraries add
in another order and fuse operations. One generation then differs by some units in the last place of
the largest entry of a field: 64 eps is twenty times what was seen. The difference grows over a
hundred generations: 1e-11 is a hundred times what was seen. In much longer runs two candidates
change their ranks at some point, and the runs have only their distribution in common.
"""

import numpy as np
import pytest

from backends.common import (
    Search,
    assert_close,
    ellipsoid,
    numpy_array,
    to_numpy,
    with_signs_of,
)
from fmnes import kernels
from fmnes.kernels import agnostic

GENERATIONS = 100
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@pytest.fixture(autouse=True)
def agnostic_kernels(monkeypatch):
    """NumPy uses them too; tests/native compares them with the compiled ones."""
    monkeypatch.setattr(kernels, "select", lambda xp, dtype: agnostic)


def tolerance(library, dtype, looser=1):
    return 0.0 if library.name == "array-api-strict" else looser * 64 * np.finfo(dtype).eps


def moved(state, array, dtype):
    """A state in another library."""
    return type(state)(*(array(value, dtype) for value in state))


def told(x, generation):
    """Values, with infeasible candidates in some generations and ties in others."""
    f = ellipsoid(x)
    if generation % 5 == 3:
        f = np.where(np.arange(len(f)) % 3 == 1, np.inf, f)
    if generation % 5 == 4:
        f = np.floor(f / np.median(f))
    return f


def compare_each_generation(search, library, dtype):
    """Every generation from NumPy's own state, so that differences cannot add up."""
    theirs = search.compiled() if library.name == "jax" else search.module
    step = tolerance(library, dtype)
    state = search.first(numpy_array)
    for generation in range(15):
        z = search.draws(generation).astype(dtype)
        same, same_z = moved(state, library.array, dtype), library.array(z, dtype)
        x, y = search.module.ask(search.params, state, z), theirs.ask(search.params, same, same_z)
        assert library.holds(y)
        np.testing.assert_allclose(to_numpy(y), x, rtol=0, atol=step * np.max(np.abs(x), initial=0))
        f = told(x, generation).astype(dtype)
        state = search.module.tell(search.params, state, z, f)
        same = theirs.tell(search.params, same, same_z, library.array(f, dtype))
        state, same = search.refreshed(state, generation), search.refreshed(same, generation)
        for name, value in same._asdict().items():
            assert library.holds(value), name
            assert np.dtype(dtype).name in str(value.dtype), name
        assert_close(state, same, step)


@dtypes
def test_each_generation_of_a_run(method, library, dtype):
    compare_each_generation(Search(method, dtype=dtype), library, dtype)


@dtypes
def test_cr_fm_nes_with_rates_of_ones_own(library, dtype):
    own = {"eta_B": 0.05, "c_1": 0.01, "eta_sigma": 0.5, "distance_weights": False}
    compare_each_generation(Search("cr-fm-nes", dtype=dtype, **own), library, dtype)


@dtypes
def test_reports_and_shapes(method, library, dtype):
    search = Search(method, dtype=dtype)
    state, z = search.first(numpy_array), search.draws(0).astype(dtype)
    f = told(search.module.ask(search.params, state, z), 0).astype(dtype)
    state = search.module.tell(search.params, state, z, f)
    same = moved(state, library.array, dtype)
    rtol = tolerance(library, dtype, looser=10)
    for function in (search.module.summary, search.module.shape):
        ours, theirs = function(search.params, state), function(search.params, same)
        for name, value in ours._asdict().items():
            other = getattr(theirs, name)
            assert (value is None) == (other is None), name
            if value is not None:
                assert library.holds(other), name
                scale = 0 if np.isnan(value).any() else np.max(np.abs(value), initial=0)
                np.testing.assert_allclose(
                    to_numpy(other), value, rtol=0, atol=rtol * scale, err_msg=name
                )


def test_a_hundred_generations(method, library):
    """On their own way, from the same draws; JAX without jit."""
    search = Search(method)
    state, same = search.first(numpy_array), search.first(library.array)
    for generation in range(GENERATIONS):
        z = search.draws(generation)
        theirs = library.array(z, np.float64)
        x = search.module.ask(search.params, state, z)
        y = search.module.ask(search.params, same, theirs)
        state = search.module.tell(search.params, state, z, told(x, generation))
        f = library.array(told(y, generation), np.float64)
        same = search.module.tell(search.params, same, theirs, f)
        state, same = search.refreshed(state, generation), search.refreshed(same, generation)
        same = with_signs_of(same, state, library.array)
    assert_close(state, same, 0.0 if library.name == "array-api-strict" else 1e-11)


@pytest.mark.arrays
def test_a_hundred_generations_under_jit(method, jax_library):
    """And no call after the first compiles anything."""
    import jax

    search = Search(method)
    compiled = search.compiled()
    state = search.first(numpy_array)
    # On a device by name, as is what the methods make themselves: a change of that compiles again.
    same = jax.device_put(search.first(jax_library.array), jax.devices("cpu")[0])
    for generation in range(GENERATIONS):
        z = search.draws(generation)
        x, y = search.module.ask(search.params, state, z), compiled.ask(search.params, same, z)
        state = search.module.tell(search.params, state, z, told(x, generation))
        same = compiled.tell(search.params, same, z, told(y, generation))
        state = search.refreshed(state, generation)
        same = search.refreshed(same, generation, compiled.refresh)
        same = with_signs_of(same, state, jax_library.array)
    assert_close(state, same, 1e-11)
    assert compiled.ask_jitted._cache_size() == 1
    assert compiled.tell_jitted._cache_size() == 1


@pytest.mark.arrays
def test_jax_in_single_precision_as_it_comes():
    """Without x64, which is how JAX starts: float32 throughout, and no warning about it."""
    jax = pytest.importorskip("jax", reason="JAX is not installed: make test-arrays")
    with jax.enable_x64(False):
        search = Search("cr-fm-nes", dtype=np.float32)
        compiled = search.compiled()
        state = search.first(lambda value, dtype: jax.numpy.asarray(np.array(value), dtype=dtype))
        for generation in range(10):
            z = jax.numpy.asarray(search.draws(generation).astype(np.float32))
            x = compiled.ask(search.params, state, z)
            f = jax.numpy.asarray(told(x, generation).astype(np.float32))
            state = compiled.tell(search.params, state, z, f)
        assert {value.dtype.name for value in state} == {"float32"}
        assert all(np.isfinite(value).all() for value in state)
