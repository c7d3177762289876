"""The compiled CR-FM-NES equals its pure functions at every level, number of threads and layout."""

import math
import sys
import threading
import tracemalloc

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fmnes
from fmnes.algorithms import METHODS, cr_fm_nes
from fmnes.draws import Address
from fmnes.engines import EngineSpec
from fmnes.engines.array import ArrayEngine
from fmnes.engines.compiled import CompiledEngine
from fmnes.kernels import _native
from property_tests import examples

ADDRESS = Address(seed=7, stream=4, generation=3)
VARIANTS = ["safe", "paper"]


def some_state(dim, *, seed=0, length=1.0, path=1.0, dtype=np.float64):
    """A state with |v| = `length`, and with p_sigma `path` times as long as expected."""
    rng = np.random.default_rng([dim, seed])
    mean, D, v, p_sigma, p_c = rng.normal(size=(5, dim))
    v *= length / math.sqrt(dim)
    parts = mean, np.asarray(0.3), np.exp(D), v, path * p_sigma, p_c
    return cr_fm_nes.State(*(part.astype(dtype) for part in parts))


def engines(state, popsize, variant="safe", **settings):
    """The compiled engine and the array engine, for the same state."""
    params = cr_fm_nes.params(len(state.mean), popsize, fmnes.CRFMNES(variant=variant, **settings))
    spec = EngineSpec(cr_fm_nes, params, state, ADDRESS, tolx=1e-3)
    return [CompiledEngine(spec), ArrayEngine(spec)]


def ask(engine):
    return engine.ask(0, engine.params.popsize)


def values_of(x, kind, seed=0):
    """Values of rows: plain, with ties, some infeasible or failed, all equal, all infeasible."""
    with np.errstate(over="ignore"):
        f = np.sum(x.astype(np.float64) ** 2 * np.arange(1, x.shape[1] + 1), axis=1)
    out = np.random.default_rng(seed).random(len(f))
    if kind == "ties":
        return np.round(4 * f / np.median(f))
    if kind == "infeasible":
        return np.where(out < 0.4, np.inf, f)
    if kind == "failed":
        return np.where(out < 0.2, np.nan, f)
    return {"flat": np.full_like(f, 2.5), "hopeless": np.full_like(f, np.inf)}.get(kind, f)


def assert_close(native, agnostic, tolerance, mean_size=0.0):
    """Compare relative to the largest entry; the mean had entries up to `mean_size` before."""
    for name, a, b in zip(cr_fm_nes.State._fields, native, agnostic, strict=True):
        size = max(np.max(np.abs(b)), mean_size if name == "mean" else 0.0)
        error = np.max(np.abs(a.astype(np.float64) - b))
        assert error <= tolerance * size, (name, error, size)


def bits(engine, generations, kind="plain"):
    """All bits that an engine gives in some generations, and those of its last state."""
    shown = []
    for generation in range(generations):
        x = ask(engine)
        shown += [x, np.array(engine.tell(values_of(x, kind, generation), np.inf))]
    return [part.tobytes() for part in (*shown, *engine.state)]


# --- The same numbers as the pure functions -------------------------------------------------------


KINDS = ["plain", "ties", "infeasible", "failed", "flat", "hopeless"]


@examples(150)
@given(
    dim=st.integers(1, 600) | st.integers(4090, 4105) | st.integers(8185, 8200),  # 1 to 3 blocks
    popsize=st.integers(2, 20).map(lambda half: 2 * half) | st.just(70),  # 32 rows at a time
    variant=st.sampled_from(VARIANTS),
    store_draws=st.booleans(),
    kind=st.sampled_from(KINDS),
    length=st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
    path=st.sampled_from([0.03, 0.5, 2.0]),
    seed=st.integers(0, 1000),
)
def test_one_generation(dim, popsize, variant, store_draws, kind, length, path, seed):
    hypothesis.assume(dim >= 5 or variant == "safe")  # the paper's c_1 < 0 there
    hypothesis.assume(length <= 30 or variant == "safe")  # the paper's step breaks up beyond
    state = some_state(dim, seed=seed, length=length, path=path)
    native, agnostic = engines(state, popsize, variant, store_draws=store_draws)
    x, expected = ask(native), ask(agnostic)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
    f = values_of(expected, kind, seed)
    told, wanted = native.tell(f, np.inf), agnostic.tell(f, np.inf)
    assert type(told) is type(wanted)
    for name, value in wanted._asdict().items():
        np.testing.assert_allclose(getattr(told, name), value, rtol=1e-12, err_msg=name)
    assert_close(native.state, agnostic.state, 1e-12)
    if np.isfinite(wanted.least):
        np.testing.assert_allclose(
            native.best, agnostic.best, rtol=0, atol=1e-12 * np.max(np.abs(x))
        )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "settings",
    [
        {"eta_B": 0.03},
        {"eta_B": 0.0},
        {"c_1": 0.02},
        {"c_1": 0.0},
        {"eta_sigma": 0.4},
        {"distance_weights": False},
    ],
    ids=str,
)
def test_rates_of_ones_own(settings, variant):
    """In each phase, with and without infeasible candidates; and each setting changes something."""
    phases, differ = set(), False
    for path in (0.03, 0.5, 2.0):
        for kind in ("plain", "infeasible"):
            state = some_state(3000, path=path)
            native, agnostic = engines(state, 14, variant, **settings)
            default, _ = engines(state, 14, variant)
            f = values_of(ask(agnostic), kind)
            phases.add(agnostic.tell(f, np.inf).phase)
            native.tell(f, np.inf)
            default.tell(f, np.inf)
            assert_close(native.state, agnostic.state, 1e-12)
            differ |= any(map(np.any, map(np.not_equal, native.state, default.state)))
    assert phases == {1, 2, 3}
    assert differ


def test_the_phase_may_change_either_way():
    """The sums are computed again if the phase changes, with rows 0 to 2 drawn again."""
    seen = set()
    for path in (0.03, 0.12, 0.5, 0.95, 1.05, 2.0):
        for seed in range(12):
            state = some_state(60, seed=seed, path=path)
            native, agnostic = engines(state, 14)
            before = cr_fm_nes.summary(agnostic.params, state).phase
            f = values_of(ask(agnostic), "plain")
            after = agnostic.tell(f, np.inf).phase
            native.tell(f, np.inf)
            assert_close(native.state, agnostic.state, 1e-12)
            seen.add((int(before), after))
    assert seen >= {(1, 1), (1, 2), (2, 1), (2, 2), (3, 2)}, seen


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("dim", "popsize"), [(2, 6), (10, 10), (80, 18), (1000, 24), (5000, 6)])
def test_a_hundred_generations(variant, dim, popsize):
    if dim < 5 and variant == "paper":
        dim = 5
    state = some_state(dim, path=0.1)
    native, agnostic = engines(state, popsize, variant)
    for _ in range(100):
        f = values_of(ask(agnostic), "plain")
        assert native.tell(f, np.inf).phase == agnostic.tell(f, np.inf).phase
    assert_close(native.state, agnostic.state, 1e-9, np.max(np.abs(state.mean)))


@examples(6)
@given(log_dim=st.floats(1, 5.5), numbers=st.integers(10**5, 10**6))
@hypothesis.example(log_dim=5.5, numbers=2 * 10**6)
@hypothesis.example(log_dim=2, numbers=10**6)
def test_one_large_generation(log_dim, numbers):
    dim = int(10**log_dim)
    popsize = 2 * min(max(2, numbers // dim // 2), 10_000)
    native, agnostic = engines(some_state(dim), popsize)
    expected = ask(agnostic)
    np.testing.assert_allclose(ask(native), expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
    f = values_of(expected, "infeasible")
    native.tell(f, np.inf)
    agnostic.tell(f, np.inf)
    assert_close(native.state, agnostic.state, 1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dim", [7, 80, 5000])
def test_float32_is_as_good_as_float32_can_be(variant, dim):
    """A few roundings to float32 away from the same generation in float64."""
    wide = some_state(dim)
    narrow = cr_fm_nes.State(*(part.astype(np.float32) for part in wide))
    wide = cr_fm_nes.State(*(part.astype(np.float64) for part in narrow))
    _, exact = engines(wide, 20, variant)
    native, _ = engines(narrow, 20, variant)
    x = ask(native)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, ask(exact), rtol=0, atol=3e-7 * np.max(np.abs(x)))
    f = values_of(ask(exact), "plain")
    native.tell(f, np.inf)
    exact.tell(f, np.inf)
    assert all(part.dtype == np.float32 for part in native.state)
    assert_close(native.state, exact.state, 1e-6)


# --- The same bits --------------------------------------------------------------------------------


CASES = [(3, 6), (10, 10), (131, 18), (5000, 24), (40, 300)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("dim", "popsize"), CASES)
def test_every_level_gives_the_same_bits(dim, popsize, variant, dtype):
    results = []
    for level in _native.levels_here():
        _native.set_level(level)
        native, _ = engines(some_state(dim, dtype=dtype), popsize, variant)
        results.append(bits(native, 10, "infeasible"))
    assert len(results) > 1
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("store_draws", [True, False])
def test_every_number_of_threads_gives_the_same_bits(store_draws):
    """A pass over the coordinates uses four threads from 400,000 coordinates on."""
    results = []
    for threads in (1, 2, 3, 7):
        _native.set_num_threads(threads)
        native, _ = engines(some_state(400_001), 6, store_draws=store_draws)
        results.append(bits(native, 2))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [1, 10, 80, 5003])
@pytest.mark.parametrize("popsize", [4, 6, 22, 90])
def test_draws_that_are_not_kept_are_made_again(dim, popsize, dtype):
    state = some_state(dim, path=0.9, dtype=dtype)
    kept, made = (engines(state, popsize, store_draws=kept)[0] for kept in (True, False))
    assert bits(kept, 8, "ties") == bits(made, 8, "ties")


@pytest.mark.parametrize("dim", [3, 16, 100, 4099])
def test_a_candidate_built_alone_is_its_row(dim):
    native, _ = engines(some_state(dim), 14)
    alone, _ = engines(some_state(dim), 14)
    population = ask(native)
    for first, last in ((0, 1), (6, 8), (13, 14), (2, 11)):
        np.testing.assert_array_equal(alone.ask(first, last), population[first:last])
    f = values_of(population, "plain")
    native.tell(f, np.inf)
    np.testing.assert_array_equal(native.best, population[np.argmin(f)])


# --- Memory, and who may touch it -----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_buffers_of_any_layout(dtype):
    def start():
        return fmnes.Optimizer(np.full(33, 3.0, dtype), 2.0, rng=3)

    expected = start().ask()
    rows = expected.shape[0]
    layouts = {
        "plain": np.empty((rows, 33), dtype),
        "columns first": np.empty((rows, 33), dtype, order="F"),
        "every other row": np.empty((2 * rows, 33), dtype)[::2],
        "every other column": np.empty((rows, 66), dtype)[:, ::2],
        "backwards": np.empty((rows, 33), dtype)[::-1],
        "wide": np.empty((rows, 33), np.float64),
    }
    for name, out in layouts.items():
        assert start().ask(out=out) is out
        np.testing.assert_array_equal(out, expected, err_msg=name)


def test_values_of_any_layout():
    f = np.random.default_rng(0).random(20)
    read_only = f.copy()
    read_only.flags.writeable = False
    ends = []
    for values in (f, read_only, np.repeat(f, 2)[::2], f[::-1][::-1], f.tolist()):
        opt = fmnes.Optimizer(np.zeros(12), 1.0, popsize=20, rng=1)
        opt.ask()
        opt.tell(values)
        ends.append(opt.ask().tobytes())
    assert len(set(ends)) == 1


def largest_allocation(run):
    """The most bytes that NumPy allocated at one time during run()."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


LINEAR = [name for name, module in METHODS.items() if module.LINEAR]


@pytest.mark.parametrize("bounds", [None, [(-5.0, 5.0)] * 12_000])
@pytest.mark.parametrize("method", LINEAR)
def test_no_population_is_allocated_after_the_first(method, bounds):
    dim, popsize = 12_000, 150
    opt = fmnes.Optimizer(np.ones(dim), 1.0, method=method, popsize=popsize, bounds=bounds, rng=1)
    out, f = np.empty((popsize, dim)), np.random.default_rng(0).random(popsize)

    def generations():
        for _ in range(3):
            opt.ask(out=out)
            opt.tell(f)

    generations()
    assert largest_allocation(generations) < 0.5 * out.nbytes


def test_minimize_uses_one_population():
    dim, popsize = 20_000, 40
    seen, peaks = set(), []

    def fun(x):
        seen.add(x.__array_interface__["data"][0])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
        return np.arange(float(len(x)))

    tracemalloc.start()
    try:
        fmnes.minimize(fun, np.ones(dim), 1.0, popsize=popsize, vectorized=True, maxiter=5, rng=1)
    finally:
        tracemalloc.stop()
    assert len(seen) == 1
    assert max(peaks[2:]) < 1.5 * 8 * dim * popsize  # the population itself, and no second one


def peak_memory():
    """Of this process so far, in KiB."""
    resource = pytest.importorskip("resource", reason="Windows has no getrusage")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform == "darwin" else peak


def test_no_leak_over_1e5_generations():
    native, _ = engines(some_state(10), 10)
    out, f = np.empty((10, 10)), np.random.default_rng(0).random(10)

    def generations(count):
        for _ in range(count):
            native.ask(0, 10, out)
            native.ask(0, 10)
            native.tell(f, np.inf)
        return peak_memory()

    before = generations(1000)
    assert generations(100_000) - before < 1024  # KiB: a leak of 11 bytes a generation would show


def test_searches_come_and_go_without_a_leak():
    def come_and_go(count):
        for _ in range(count):
            native, _ = engines(some_state(1000), 24)
            ask(native)
            native.tell(np.arange(24.0), np.inf)
        return peak_memory()

    before = come_and_go(20)
    assert come_and_go(200) - before < 2048  # KiB, of 200 times some 180


def test_views_outlive_the_search():
    native, _ = engines(some_state(1000), 24)
    best, x = native.best, ask(native)
    native.tell(np.arange(24.0), np.inf)
    del native
    np.testing.assert_array_equal(best, x[0])


def test_other_threads_go_on_and_a_second_user_is_refused():
    native, _ = engines(some_state(1_000_000), 24)
    out = np.empty((24, 1_000_000))
    refused, rounds = 0, 0
    worker = threading.Thread(target=lambda: [native.ask(0, 24, out) for _ in range(3)])
    worker.start()
    while worker.is_alive():
        rounds += 1
        try:
            native.ask(0, 1)
        except RuntimeError as error:
            refused += "expected one thread at a time" in str(error)
    worker.join()
    assert rounds > 100  # with the GIL held throughout there would be a handful
    assert refused
