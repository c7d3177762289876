"""The compiled auto equals its pure functions at every level, number of threads and layout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fmnes
from auto_states import assert_close, some_state, values_of
from fmnes.algorithms import auto
from fmnes.algorithms._records import Shape
from fmnes.draws import Address
from fmnes.engines import EngineSpec, registration
from fmnes.engines.array import ArrayEngine
from fmnes.engines.compiled_auto import CompiledAutoEngine
from fmnes.kernels import _native
from property_tests import examples

ADDRESS = Address(seed=7, stream=4, generation=3)


def engines(state, popsize, address=ADDRESS, **settings):
    """The compiled engine and the array engine, for the same state."""
    params = auto.params(len(state.mean), popsize, fmnes.Auto(**settings))
    spec = EngineSpec(auto, params, state, address, tolx=1e-3)
    return [CompiledAutoEngine(spec), ArrayEngine(spec)]


def ask(engine):
    return engine.ask(0, engine.params.popsize)


def bits(engine, generations, kind="plain"):
    """All bits that an engine gives in some generations, and those of its last state."""
    shown = []
    for generation in range(generations):
        x = ask(engine)
        shown += [x, np.array(engine.tell(values_of(x, kind, generation), np.inf))]
    return [part.tobytes() for part in (*shown, *engine.state)]


def test_the_registry_has_it():
    assert registration("auto", np.zeros(3)).engine is CompiledAutoEngine


# --- The same numbers as the pure functions -------------------------------------------------------


KINDS = ["plain", "ties", "infeasible", "failed", "flat", "hopeless"]


@examples(100)
@given(
    dim=st.integers(3, 300) | st.integers(4090, 4105) | st.integers(8185, 8200),  # 1 to 3 blocks
    popsize=st.integers(2, 20).map(lambda half: 2 * half) | st.just(70),
    kind=st.sampled_from(KINDS),
    axes=st.sampled_from([(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 3), (5, 4), (9, 0)]),
    path=st.sampled_from([0.03, 0.5, 2.0]),
    adapt=st.sampled_from(["rates", None]),
    thorough=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_one_generation(dim, popsize, kind, axes, path, adapt, thorough, seed):
    long, short = axes if sum(axes) < dim - 2 else (1, 0)
    state = some_state(dim, long, short, seed=seed, path=path)
    native, agnostic = engines(state, popsize, adapt=adapt, thorough=thorough)
    x, expected = ask(native), ask(agnostic)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
    f = values_of(expected, kind, seed)
    told, wanted = native.tell(f, np.inf), agnostic.tell(f, np.inf)
    assert type(told) is type(wanted)
    for name, value in wanted._asdict().items():
        np.testing.assert_allclose(getattr(told, name), value, rtol=1e-9, err_msg=name)
    assert_close(native.state, agnostic.state, 1e-9)
    if np.isfinite(wanted.least):
        np.testing.assert_allclose(
            native.best, agnostic.best, rtol=0, atol=1e-12 * np.max(np.abs(x))
        )


def problem(name, dim):
    Q, _ = np.linalg.qr(np.random.default_rng(dim).normal(size=(dim, dim)))
    return {
        "sphere": lambda x: np.sum(x**2, axis=1),
        "ellipsoid": lambda x: x**2 @ 10.0 ** (6 * np.arange(dim) / (dim - 1)),
        "three long": lambda x: (
            np.sum((x @ Q[:3].T) ** 2, axis=1) + 1e4 * np.sum((x @ Q[3:].T) ** 2, axis=1)
        ),
        "short": lambda x: 1e6 * (x @ Q[0]) ** 2 + np.sum(x**2, axis=1),
        "steps": lambda x: np.round(np.sum(x**2, axis=1), 1),
        "wall": lambda x: np.where(x[:, 0] > 0.5, np.inf, np.sum((x - 0.5) ** 2, axis=1)),
    }[name]


@pytest.mark.parametrize("dim", [12, 40])
@pytest.mark.parametrize("name", ["sphere", "ellipsoid", "three long", "short", "steps", "wall"])
def test_every_generation_of_a_run(name, dim):
    """From each state that the pure functions reach: axes come, go, and are handed to D."""
    popsize, f = auto.default_popsize(dim), problem(name, dim)
    params = auto.params(dim, popsize)
    start = auto.init(
        params, np.full(dim, 3.0), np.asarray(2.0), Shape(D=np.ones(dim)), np.zeros(dim)
    )
    array = ArrayEngine(EngineSpec(auto, params, start, Address(1, 0, 0), tolx=0.0))
    numbers = set()
    for generation in range(120):
        before = array.state
        address = Address(1, 0, generation)
        spec = EngineSpec(auto, params, before, address, tolx=0.0, initial=array.initial)
        native = CompiledAutoEngine(spec)
        values = f(ask(array))
        native.tell(values, np.inf)
        array.tell(values, np.inf)
        if array.state.B.shape[0]:
            break
        assert_close(native.state, array.state, 1e-8)
        numbers.add(int(np.sum(array.state.S != 1)))
    assert len(numbers) > 1


@pytest.mark.parametrize(("dim", "popsize"), [(10, 10), (80, 18), (1000, 24)])
def test_fifty_generations(dim, popsize):
    """Rounding grows, but not much: the steps are small against the state."""
    native, agnostic = engines(some_state(dim, path=0.1), popsize, axes=4)
    for _ in range(50):
        f = values_of(ask(agnostic), "plain")
        assert native.tell(f, np.inf).phase == agnostic.tell(f, np.inf).phase
    assert_close(native.state, agnostic.state, 1e-7)


def test_the_phase_may_change_either_way():
    """The sums are computed again if the phase changes, from draws that are made again."""
    seen = set()
    for path in (0.03, 0.5, 0.95, 1.05, 2.0):
        for seed in range(6):
            for popsize in (6, 40):  # sums in place of all draws, and of some
                state = some_state(60, seed=seed, path=path)
                native, agnostic = engines(state, popsize)
                before = auto.summary(agnostic.params, state).phase
                f = values_of(ask(agnostic), "plain")
                after = agnostic.tell(f, np.inf).phase
                native.tell(f, np.inf)
                assert_close(native.state, agnostic.state, 1e-9)
                seen.add((int(before), after))
    assert seen >= {(1, 1), (1, 2), (2, 1), (2, 2), (3, 2)}, seen


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("room", [4, 2])
def test_a_scout_becomes_an_axis_where_there_is_room(who, room):
    evidence = np.where(np.arange(2) == who, 30.0, 0.0)
    state = some_state(30, room=room, evidence=evidence, D_signal=0.0)
    native, agnostic = engines(state, 12)
    f = values_of(ask(agnostic), "plain")
    for engine in (native, agnostic):
        engine.tell(f, np.inf)
    assert np.sum(agnostic.state.S != 1) == min(3, room)
    assert agnostic.state.evidence[who] == 0
    assert_close(native.state, agnostic.state, 1e-9)


def test_an_axis_along_a_coordinate_becomes_a_scale():
    state = some_state(30)
    directions = np.column_stack([state.V[:, [0, -1]], state.scouts])
    directions[:, 0] = np.eye(30)[4] + 0.1 * directions[:, 0]
    frame, _ = np.linalg.qr(directions)
    V = state.V.copy()
    V[:, [0, -1]] = frame[:, :2]
    native, agnostic = engines(state._replace(V=V, scouts=frame[:, 2:]), 12)
    f = values_of(ask(agnostic), "plain")
    native.tell(f, np.inf)
    agnostic.tell(f, np.inf)
    assert agnostic.state.D[4] > 1.2 * state.D[4]
    assert_close(native.state, agnostic.state, 1e-8)


def test_room_grows_and_a_full_matrix_takes_over():
    """Every ten generations, as in the array engine; the result of a search goes on from there."""
    wide = engines(some_state(100, 2, 2, room=4), 16, Address(7, 4, 9))
    full = engines(some_state(16, 2, 2, room=4), 16, Address(7, 4, 9))
    for native, agnostic in (wide, full):
        for _ in range(3):
            f = values_of(ask(agnostic), "plain")
            native.tell(f, np.inf)
            agnostic.tell(f, np.inf)
            assert_close(native.state, agnostic.state, 1e-8)
        np.testing.assert_allclose(ask(native), ask(agnostic), atol=1e-8)
    assert wide[0].state.V.shape == (100, 8)
    assert full[0].state.B.shape == (16, 16)


@pytest.mark.parametrize("dim", [7, 80, 5000])
def test_float32_is_as_good_as_float32_can_be(dim):
    """Some roundings to float32 away from the same generation in float64."""
    narrow = some_state(dim, dtype=np.float32)
    wide = auto.State(*(part.astype(np.float64) for part in narrow))
    _, exact = engines(wide, 20)
    native, _ = engines(narrow, 20)
    x = ask(native)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, ask(exact), rtol=0, atol=3e-7 * np.max(np.abs(x)))
    f = values_of(ask(exact), "plain")
    native.tell(f, np.inf)
    exact.tell(f, np.inf)
    assert all(part.dtype == np.float32 for part in native.state)
    assert_close(native.state, exact.state, 1e-5)


# --- The same bits --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("dim", "popsize", "axes"),
    [(5, 6, (1, 1)), (131, 18, (3, 2)), (5000, 24, (5, 6)), (40, 90, (1, 0))],
)
def test_every_level_gives_the_same_bits(dim, popsize, axes, dtype):
    results = []
    for level in _native.levels_here():
        _native.set_level(level)
        native, _ = engines(some_state(dim, *axes, dtype=dtype), popsize)
        results.append(bits(native, 10, "infeasible"))
    assert len(results) > 1
    assert all(result == results[0] for result in results)


def test_every_number_of_threads_gives_the_same_bits():
    results = []
    for threads in (1, 2, 3, 7):
        _native.set_num_threads(threads)
        native, _ = engines(some_state(200_001), 6)
        results.append(bits(native, 3))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [6, 100, 5003])
def test_a_saved_state_goes_on_with_the_same_bits(dim, dtype):
    first, _ = engines(some_state(dim, dtype=dtype), 14)
    bits(first, 3)
    second, _ = engines(first.state, 14, ADDRESS._replace(generation=6))
    assert bits(first, 3) == bits(second, 3)


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


# --- What crosses the border ----------------------------------------------------------------------


def arguments():
    params = auto.params(10, 10)
    constants, rates = auto.tables(params)
    return {
        "dim": 10,
        "popsize": 10,
        "constants": constants,
        "noise": params.rates._asdict(),
        "w_hat": params.phase.w_hat,
        "scores": params.scores,
        "rates": rates,
        **ADDRESS._asdict(),
        "record": fmnes.engines.Generation,
    }


@pytest.mark.parametrize("which", ["constants", "noise"])
def test_constants_cross_by_name(which):
    plain = arguments()
    for name in plain[which]:
        renamed = {("x" if key == name else key): v for key, v in plain[which].items()}
        with pytest.raises(ValueError, match=rf"^constants: .*'{name}'"):
            _native.Auto64(**plain | {which: renamed})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 0}, "^dim: expected"),
        ({"popsize": 9}, "^popsize: expected"),
        ({"w_hat": np.ones(9)}, "^w_hat: expected 10 weights, got 9$"),
        ({"scores": np.ones(9)}, "^scores: expected 10 weights, got 9$"),
    ],
    ids=str,
)
def test_sizes_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        _native.Auto64(**arguments() | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": np.ones(9)}, "^mean: expected 10 numbers, got 9$"),
        ({"V": np.ones((9, 4))}, "^V: expected 10 rows, got 9$"),
        ({"V": np.ones((10, 5))}, "^V: expected 4 columns, got 5$"),
        ({"scouts": np.ones((10, 3))}, "^scouts: expected 2 columns, got 3$"),
        ({"evidence": np.ones(3)}, "^evidence: expected 2 numbers, got 3$"),
        ({"m_averages": np.ones(2)}, "^m_averages: expected 3 numbers, got 2$"),
        ({"sigma_averages": np.ones(3)}, "^sigma_averages: expected 2 numbers, got 3$"),
        ({"V": np.ones((10, 0)), "S": np.ones(0)}, "^S: expected at least one number, got none$"),
    ],
    ids=str,
)
def test_a_state_that_does_not_fit_is_refused(change, message):
    search = _native.Auto64(**arguments())
    state = some_state(10)._asdict()
    del state["B"], state["axis_ratio"]
    numbers = {name: float(state[name]) for name in ("sigma", "D_signal", "D_noise", "eta")}
    with pytest.raises(ValueError, match=message):
        search.set_state(**state | numbers | change, initial=None, tolx=0.0)
