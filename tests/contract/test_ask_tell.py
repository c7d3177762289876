"""Optimizer: populations, told values, what belongs to whom, and seeds."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fmnes
from contract.common import assert_same_bits, drive, ellipsoid, sphere, start
from fmnes.algorithms import METHODS

BOUNDS = [(-4.0, 5.0)] * 4 + [(3.0, 3.0)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_shapes_and_dtypes(method, dtype):
    opt = start(method, dtype=dtype)
    x = opt.ask()
    assert x.shape == (opt.popsize, 5)
    assert x.dtype == dtype
    opt.tell(sphere(x).tolist())
    result = opt.result
    assert result.x.shape == result.mean.shape == (5,)
    assert result.x.dtype == result.mean.dtype == dtype
    assert (result.nfev, result.nit) == (opt.popsize, 1)
    assert isinstance(result.fun, float)
    assert isinstance(result.sigma, float)


@pytest.mark.parametrize("bounds", [None, BOUNDS])
def test_the_best_point_is_a_candidate_to_the_bit(method, bounds):
    """fun(result.x) is result.fun, whatever rounding the next evaluation would have."""
    opt = start(method, 5, bounds=bounds)
    seen = []
    for _ in range(30):
        x = opt.ask()
        seen.append(x)
        opt.tell(sphere(x))
    seen = np.concatenate(seen)
    best = np.argmin(sphere(seen))
    np.testing.assert_array_equal(opt.result.x, seen[best])
    assert opt.result.fun == sphere(seen)[best] == sphere(opt.result.x)


# --- The same population, whole or in parts -------------------------------------------------------


def test_until_tell_it_is_the_same_population(method):
    opt = drive(start(method), 3)
    x = opt.ask()
    x_kept = x.copy()
    again = opt.ask()
    assert again is not x
    assert not np.shares_memory(again, x)
    np.testing.assert_array_equal(again, x)
    x[:] = 0  # belongs to the caller now
    np.testing.assert_array_equal(opt.ask(), x_kept)
    opt.tell(ellipsoid(x_kept))
    assert not np.array_equal(opt.ask(), x_kept)


def test_asking_by_rows_changes_nothing(method):
    a, b = start(method), start(method)
    for _ in range(5):
        b.ask(rows=slice(1, 3))
        b.ask()
        b.ask(rows=slice(0, 1))
        drive(a, 1)
        drive(b, 1)
    assert_same_bits(a, b)


@given(data=st.data())
def test_rows_are_those_of_the_population(method, data):
    dim = data.draw(st.sampled_from([1, 2, 5, 16, 33]), "dim")
    dtype = data.draw(st.sampled_from([np.float64, np.float32]), "dtype")
    opt = drive(
        start(method, dim, dtype=dtype), data.draw(st.integers(0, 3), "generations"), sphere
    )
    n = opt.popsize
    bound = st.none() | st.integers(-n - 2, n + 2)
    rows = slice(data.draw(bound, "start"), data.draw(bound, "stop"))
    whole_first = data.draw(st.booleans(), "whole first")
    whole = opt.ask() if whole_first else None
    if rows.indices(n)[0] >= rows.indices(n)[1]:
        with pytest.raises(ValueError, match=r"^rows: .* got slice"):
            opt.ask(rows=rows)
        return
    part = opt.ask(rows=rows)
    whole = opt.ask() if whole is None else whole
    np.testing.assert_array_equal(part, whole[rows])


@pytest.mark.parametrize(
    ("rows", "error"),
    [(slice(0, 4, 2), ValueError), (slice(None, None, -1), ValueError), (0, TypeError)],
)
def test_rows_that_are_none(rows, error):
    with pytest.raises(error, match=r"^rows: "):
        start("cr-fm-nes").ask(rows=rows)


def test_a_population_in_pieces_takes_the_same_steps(method):
    whole, pieces = start(method), start(method)
    for _ in range(10):
        whole.tell(ellipsoid(whole.ask()))
        parts = [slice(0, 3), slice(3, pieces.popsize)]
        pieces.tell(np.concatenate([ellipsoid(pieces.ask(rows=rows)) for rows in parts]))
    assert_same_bits(whole, pieces)


def test_ask_fills_a_buffer(method):
    opt = start(method)
    out = np.full((opt.popsize, 5), np.nan)
    assert opt.ask(out=out) is out
    np.testing.assert_array_equal(out, opt.ask())
    part = np.full((2, 5), np.nan)
    assert opt.ask(out=part, rows=slice(1, 3)) is part
    np.testing.assert_array_equal(part, out[1:3])
    wide = np.full((opt.popsize, 9), np.nan)
    opt.ask(out=wide[:, 2:7])  # a view of something larger
    np.testing.assert_array_equal(wide[:, 2:7], out)
    assert np.isnan(wide[:, [0, 1, 7, 8]]).all()


def test_a_buffer_of_another_shape_is_refused():
    opt = start("cr-fm-nes")
    with pytest.raises(ValueError, match=r"^out: expected shape \(8, 5\), got shape \(5, 8\)"):
        opt.ask(out=np.empty((5, 8)))


# --- What is told ---------------------------------------------------------------------------------


def test_tell_takes_the_x_of_ask(method):
    a, b, c = (start(method) for _ in range(3))
    for _ in range(3):
        drive(a, 1)
        x = b.ask()
        b.tell(x, ellipsoid(x))
        x = c.ask()
        c.tell(x.tolist(), ellipsoid(x).tolist())  # equal is enough
    assert_same_bits(a, b)
    assert_same_bits(a, c)


def test_tell_refuses_another_x(method):
    opt = drive(start(method), 2)
    before = opt.result
    x = opt.ask()
    f = ellipsoid(x)
    other = x.copy()
    other[0, 0] = np.nextafter(other[0, 0], np.inf)
    for wrong, came in ((other, "other values"), (x[::-1], "other values"), (x[:-1], "shape")):
        with pytest.raises(ValueError, match=rf"^x: .*, got {came}"):
            opt.tell(wrong, f)
    assert opt.nit == before.nit
    opt.tell(x, f)  # nothing was lost
    assert opt.nit == before.nit + 1


@pytest.mark.parametrize("dtype", [np.int64, bool, object])
def test_a_buffer_that_cannot_hold_the_candidates(dtype):
    opt = start("cr-fm-nes")
    with pytest.raises(TypeError, match=r"^out: expected .* got"):
        opt.ask(out=np.zeros((opt.popsize, 5), dtype))


def test_telling_a_copy_leaves_the_original_alone(method):
    opt = drive(start(method), 3)
    before = opt.result
    drive(copy.copy(opt), 5)
    assert opt.nit == 3
    assert len(opt.result.history) == 3
    assert np.array_equal(opt.result.x, before.x)


def test_tell_without_ask(method):
    opt = start(method)
    with pytest.raises(RuntimeError, match=r"^tell: .* ask"):
        opt.tell(np.zeros(opt.popsize))
    drive(opt, 1)
    with pytest.raises(RuntimeError, match=r"^tell: .* ask"):
        opt.tell(np.zeros(opt.popsize))


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(7),
        np.zeros((8, 1)),
        np.zeros(8, complex),
        [0.0] * 7 + [None],
        [0.0] * 7 + [1j],
        ["1.0"] * 8,
        [[1.0], [1.0, 2.0]],
        None,
        3.0,
    ],
    ids=repr,
)
def test_values_that_are_none(values):
    opt = start("cr-fm-nes")
    x = opt.ask()
    with pytest.raises(TypeError, match=r"^f: expected"):
        opt.tell(values)
    assert opt.nit == 0
    opt.tell(sphere(x))  # the population is still there


# --- What belongs to the caller -------------------------------------------------------------------


def test_the_callers_arrays_are_untouched(method):
    mine = {
        "x0": np.full(5, 3.0),
        "sigma0": np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        "bounds": np.array([[-9.0, 9.0]] * 5),
    }
    kept = {name: value.copy() for name, value in mine.items()}
    opt = fmnes.Optimizer(**mine, method=method, rng=1)
    for _ in range(20):
        f = sphere(opt.ask())
        f_kept = f.copy()
        opt.tell(f)
        np.testing.assert_array_equal(f, f_kept)
        f[:] = np.nan  # and the search keeps no hold of them
    for name, value in mine.items():
        np.testing.assert_array_equal(value, kept[name], err_msg=name)
        value[:] = np.nan
    assert np.isfinite(opt.ask()).all()
    np.testing.assert_array_equal(opt.setup.mean, kept["x0"])


def test_settings_arrays_are_untouched():
    D, v, C = np.full(5, 2.0), np.ones(5), 2 * np.eye(5)
    for settings in (fmnes.CRFMNES(D=D, v=v), fmnes.CMAES(C=C), fmnes.FMNES(C=C)):
        drive(start(settings), 10)
    np.testing.assert_array_equal(D, np.full(5, 2.0))
    np.testing.assert_array_equal(v, np.ones(5))
    np.testing.assert_array_equal(C, 2 * np.eye(5))


def test_what_was_handed_out_is_not_changed_later(method):
    opt = drive(start(method), 5)
    x, result = opt.ask(), opt.result
    population = x.copy()
    kept = (
        result.x.copy(),
        result.mean.copy(),
        result.history.to_array().tobytes(),
        result.fun,
        result.nit,
    )
    shape = [None if part is None else part.copy() for part in result.shape]
    drive(opt, 100)
    np.testing.assert_array_equal(x, population)
    np.testing.assert_array_equal(result.x, kept[0])
    np.testing.assert_array_equal(result.mean, kept[1])
    assert result.history.to_array().tobytes() == kept[2]  # bytes: a NaN equals itself
    assert (result.fun, result.nit) == kept[3:]
    for part, before in zip(result.shape, shape, strict=True):
        np.testing.assert_array_equal(part, before)


def test_writing_to_a_result_does_not_reach_the_search(method):
    a, b = drive(start(method), 5), drive(start(method), 5)
    result = b.result
    for part in (result.x, result.mean, *(part for part in result.shape if part is not None)):
        if part.flags.writeable:
            part[...] = np.nan
    result.history.to_array()["best"] = np.nan
    result.history["sigma"][:] = np.nan
    drive(a, 5)
    drive(b, 5)
    assert_same_bits(a, b)


# --- Seeds ----------------------------------------------------------------------------------------


def test_a_seed_decides_everything(method):
    by_int = drive(start(method, rng=7), 20)
    assert_same_bits(by_int, drive(start(method, rng=7), 20))
    assert_same_bits(by_int, drive(start(method, rng=np.random.default_rng(7)), 20))
    other = drive(start(method, rng=8), 20)
    assert not np.array_equal(by_int.ask(), other.ask())


def test_a_generator_gives_another_seed_each_time(method):
    rng = np.random.default_rng(7)
    first, second = start(method, rng=rng), start(method, rng=rng)
    assert not np.array_equal(first.ask(), second.ask())


def test_no_seed_is_another_seed_each_time(method):
    assert not np.array_equal(start(method, rng=None).ask(), start(method, rng=None).ask())


def test_the_global_generator_is_left_alone(method):
    np.random.seed(3)  # noqa: NPY002  it is the one that must not move
    expected = np.random.RandomState(3).random(3)
    drive(start(method), 3)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002


# --- minimize is the same search ------------------------------------------------------------------


def test_minimize_takes_the_same_steps(method):
    opt = start(method, maxiter=20)
    while not opt.stop():
        opt.tell(ellipsoid(opt.ask()))
    options = {"method": method, "maxiter": 20, "rng": 1}
    result = fmnes.minimize(ellipsoid, np.full(5, 3.0), 2.0, **options)
    vectorized = fmnes.minimize(ellipsoid, np.full(5, 3.0), 2.0, vectorized=True, **options)
    for other in (result, vectorized):
        assert other.fun == opt.result.fun
        np.testing.assert_array_equal(other.x, opt.result.x)
        np.testing.assert_array_equal(other.mean, opt.result.mean)
        of_x0 = 2 if method == "auto" else 1  # auto looks whether the objective is noisy
        assert (other.nfev, other.nit, other.status) == (of_x0 + 20 * opt.popsize, 20, "maxiter")


def test_the_table_is_what_the_readme_says():
    assert list(METHODS) == [
        "auto",
        "cr-fm-nes",
        "fm-nes",
        "dx-nes-ic",
        "xnes",
        "snes",
        "r1-nes",
        "vd-cma",
        "sep-cma",
        "cma-es",
    ]


@pytest.mark.parametrize("method", [name for name in METHODS if not METHODS[name].LINEAR])
def test_candidates_one_by_one_cost_one_population(method, monkeypatch):
    """A method with a full matrix builds all of them at once, and only once in a generation."""
    opt = start(method)
    built, ask = [], METHODS[method].ask
    monkeypatch.setattr(METHODS[method], "ask", lambda *args: built.append(args) or ask(*args))
    for generation in range(2):
        x = np.concatenate([opt.ask(rows=slice(i, i + 1)) for i in range(opt.popsize)])
        assert len(built) == generation + 1
        x[:] = 0.0  # does not change what the search knows
        opt.tell(np.arange(opt.popsize, dtype=float))
        assert len(built) == generation + 1
        assert opt.result.x.any()
