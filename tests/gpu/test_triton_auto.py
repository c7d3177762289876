"""The Triton engine of auto: candidates, states and figures of the CPU's engines."""

import numpy as np
import pytest
import torch

import fmnes
from auto_states import assert_close, some_state, values_of
from fmnes import engines
from fmnes.algorithms import auto
from fmnes.draws import Address
from fmnes.engines import EngineSpec, triton_auto
from fmnes.engines.array import ArrayEngine
from fmnes.engines.triton_auto import TritonAutoEngine
from gpu.conftest import DEVICE, GPU, on_gpu
from gpu.searches import on_host

pytestmark = pytest.mark.arrays
ADDRESS = Address(seed=7, stream=4, generation=3)


def host_state(engine):
    return auto.State(*(on_host(field) for field in engine.state))


def spec_of(state, popsize, address=ADDRESS, *, store_draws=True, **settings):
    params = auto.params(len(state.mean), popsize, fmnes.Auto(**settings))
    params = params._replace(store_draws=store_draws)
    return EngineSpec(auto, params, state, address, tolx=1e-3)


def on_device(spec):
    """The Triton engine for a state in NumPy arrays."""
    tensors = (torch.tensor(np.asarray(field), device=DEVICE) for field in spec.state)
    return TritonAutoEngine(spec._replace(state=auto.State(*tensors)))


def one_generation(spec, kind="plain", seed=0):
    """The same generation by the array engine on NumPy arrays, and on the device."""
    ours, theirs = ArrayEngine(spec), on_device(spec)
    popsize = spec.params.popsize
    x = ours.ask(0, popsize)
    np.testing.assert_allclose(on_host(theirs.ask(0, popsize)), x, rtol=0, atol=1e-13)
    f = values_of(x, kind, seed)
    told, wanted = theirs.tell(f, np.inf), ours.tell(f, np.inf)
    for name, value in wanted._asdict().items():
        np.testing.assert_allclose(getattr(told, name), value, rtol=1e-11, err_msg=name)
    if np.isfinite(wanted.least):
        np.testing.assert_allclose(on_host(theirs.best), ours.best, rtol=0, atol=1e-13)
    assert_close(host_state(theirs), ours.state, 1e-11)
    return ours


@pytest.mark.parametrize(
    ("dim", "popsize", "kind", "axes", "path", "adapt"),
    [
        (40, 12, "plain", (2, 3), 0.5, "rates"),
        (40, 12, "ties", (5, 4), 2.0, None),
        (300, 20, "infeasible", (9, 0), 0.03, "rates"),
        (600, 6, "plain", (1, 2), 2.0, None),  # vectors of more than one tile
        (7, 6, "failed", (1, 1), 0.5, "rates"),
        (30, 6, "flat", (0, 1), 0.5, None),
        (30, 70, "hopeless", (1, 1), 0.5, None),
        (3, 2, "plain", (0, 0), 0.5, None),
    ],
)
def test_one_generation(dim, popsize, kind, axes, path, adapt):
    state = some_state(dim, *axes, seed=popsize, path=path)
    one_generation(spec_of(state, popsize, adapt=adapt, thorough=popsize == 12), kind)


@pytest.mark.parametrize(
    ("path", "seed", "phases"), [(0.03, 0, (3, 2)), (0.95, 2, (2, 1)), (1.05, 1, (1, 1))]
)
def test_the_phase_may_change(path, seed, phases):
    state = some_state(60, path=path, seed=seed)
    before = auto.summary(auto.params(60, 40), state).phase
    after = auto.summary(auto.params(60, 40), one_generation(spec_of(state, 40)).state).phase
    assert (before, after) == phases


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("room", [4, 2])
def test_a_scout_becomes_an_axis_where_there_is_room(who, room):
    evidence = np.where(np.arange(2) == who, 30.0, 0.0)
    state = some_state(30, room=room, evidence=evidence, D_signal=0.0)
    after = one_generation(spec_of(state, 12)).state
    assert np.sum(after.S != 1) == min(3, room)
    assert after.evidence[who] == 0


def test_an_axis_along_a_coordinate_becomes_a_scale():
    state = some_state(30)
    directions = np.column_stack([state.V[:, [0, -1]], state.scouts])
    directions[:, 0] = np.eye(30)[4] + 0.1 * directions[:, 0]
    frame, _ = np.linalg.qr(directions)
    V = state.V.copy()
    V[:, [0, -1]] = frame[:, :2]
    after = one_generation(spec_of(state._replace(V=V, scouts=frame[:, 2:]), 12)).state
    assert after.D[4] > 1.2 * state.D[4]


def test_room_grows_and_a_full_matrix_takes_over():
    """Every ten generations; the other engine goes on with the same address."""
    for dim, room, full in ((100, 8, 0), (16, 0, 16)):
        spec = spec_of(some_state(dim, 2, 2, room=4), 16, Address(7, 4, 9))
        ours, theirs = ArrayEngine(spec), on_device(spec)
        for _ in range(3):
            f = values_of(ours.ask(0, 16), "plain")
            for engine in (ours, theirs):
                engine.tell(f, np.inf)
            assert_close(host_state(theirs), ours.state, 1e-9)
        np.testing.assert_allclose(on_host(theirs.ask(0, 16)), ours.ask(0, 16), atol=1e-9)
        assert theirs.state.S.shape == (room,)
        assert theirs.state.B.shape == (full, full)
        row = torch.zeros(dim - 3, dtype=torch.float64, device=DEVICE)
        theirs.write(5, 2, row)
        np.testing.assert_allclose(on_host(row), ours.ask(5, 6)[0, 2 : dim - 1], atol=1e-9)
        assert theirs.reads(torch.zeros(16, device=DEVICE)) == (not full)


def about_to_grow():
    """An engine whose next generation asks for more room, and what it is told."""
    spec = spec_of(some_state(100, 2, 2, room=4), 16, Address(7, 4, 9))
    return on_device(spec), values_of(ArrayEngine(spec).ask(0, 16), "plain")


def test_without_memory_for_more_axes_a_search_goes_on(monkeypatch):
    engine, f = about_to_grow()
    other, _ = about_to_grow()
    other.tell(f, np.inf)

    def fails(spec):
        raise torch.OutOfMemoryError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(triton_auto, "_chosen", fails)
        with pytest.warns(RuntimeWarning, match="for more axes"):
            engine.tell(f, np.inf)
    assert (engine.state.S.shape, other.state.S.shape) == ((4,), (8,))
    assert torch.equal(engine.ask(0, 16), other.ask(0, 16))
    for _ in range(10):
        engine.tell(values_of(on_host(engine.ask(0, 16)), "plain"), np.inf)
    assert engine.state.S.shape == (8,)


def test_a_search_that_is_interrupted_while_it_grows_says_so(monkeypatch):
    engine, f = about_to_grow()

    def interrupted(params, state):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(auto, "resized", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.tell(f, np.inf)
    for use in (
        lambda: engine.ask(0, 16),
        lambda: engine.tell(f, np.inf),
        lambda: engine.state,
        lambda: engine.best,
    ):
        with pytest.raises(RuntimeError, match="state is incomplete; continue from a checkpoint"):
            use()


@pytest.mark.parametrize(
    ("dim", "adapt"), [(7, "rates"), (80, None), (3000 if GPU else 600, "rates")]
)
def test_float32(dim, adapt):
    """Within 32 roundings of the same generation in float64.

    The longest sums have ten pairs, five axes and the path; each number is rounded once or twice.
    """
    narrow = some_state(dim, 3, 2, dtype=np.float32)
    wide = auto.State(*(part.astype(np.float64) for part in narrow))
    exact = ArrayEngine(spec_of(wide, 20, adapt=adapt))
    theirs = on_device(spec_of(narrow, 20, adapt=adapt))
    rounding = np.finfo(np.float32).eps
    x, y = exact.ask(0, 20), theirs.ask(0, 20)
    assert y.dtype == torch.float32
    np.testing.assert_allclose(on_host(y), x, rtol=0, atol=4 * rounding * np.max(np.abs(x)))
    f = values_of(x, "plain")
    exact.tell(f, np.inf)
    theirs.tell(f, np.inf)
    assert all(part.dtype == torch.float32 for part in theirs.state)
    assert_close(host_state(theirs), exact.state, 32 * rounding)


def test_draws_that_are_made_again_give_the_same_bits():
    state = some_state(37, 3, 2, path=1.02)
    stored, again = (on_device(spec_of(state, 14, store_draws=keep)) for keep in (True, False))
    for _ in range(2):
        x = on_host(stored.ask(0, 14))
        assert np.array_equal(on_host(again.ask(0, 14)), x)
        f = values_of(x, "infeasible")
        told, wanted = again.tell(f, np.inf), stored.tell(f, np.inf)
        assert np.array_equal(told, wanted, equal_nan=True)
        assert np.array_equal(on_host(stored.best), on_host(again.best))
        for one, other in zip(host_state(stored), host_state(again), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("store_draws", [True, False])
def test_some_candidates_are_rows_of_all(store_draws):
    engine = on_device(spec_of(some_state(37, 3, 2), 14, store_draws=store_draws))
    x = on_host(engine.ask(0, 14))
    for first, last in ((0, 1), (6, 8), (13, 14), (2, 11)):
        assert np.array_equal(on_host(engine.ask(first, last)), x[first:last])
    for candidate, start, stop in ((0, 0, 37), (13, 5, 6), (8, 17, 37)):
        out = torch.zeros(stop - start, dtype=torch.float64, device=DEVICE)
        engine.write(candidate, start, out)
        assert np.array_equal(on_host(out), x[candidate, start:stop])
    f = torch.tensor(values_of(x, "plain"), device=DEVICE)
    assert engine.reads(f)  # a search without stored draws keeps its best candidate here, too
    engine.tell(f, np.inf)
    assert np.array_equal(on_host(engine.best), x[on_host(f).argmin()])


# === Searches ===


def problem(name, dim):
    Q, _ = np.linalg.qr(np.random.default_rng(dim).normal(size=(dim, dim)))
    return {
        "ellipsoid": lambda x: x**2 @ 10.0 ** (6 * np.arange(dim) / (dim - 1)),
        "long": lambda x: (
            np.sum((x @ Q[:3].T) ** 2, axis=1) + 1e4 * np.sum((x @ Q[3:].T) ** 2, axis=1)
        ),
        "short": lambda x: 1e6 * (x @ Q[0]) ** 2 + np.sum(x**2, axis=1),
        "wall": lambda x: np.where(x[:, 0] > 0.5, np.inf, np.round(np.sum(x**2, axis=1), 1)),
    }[name]


def search(x0, **settings):
    bounds = settings.pop("bounds", None)
    method = fmnes.Auto(axes=settings.pop("axes", 3), **settings)
    opt = fmnes.Optimizer(x0, 2.0, method=method, rng=3, bounds=bounds, popsize=8)
    if not isinstance(x0, np.ndarray):
        assert isinstance(opt._engine, TritonAutoEngine)
    return opt


def assert_same_search(ours, theirs, tolerance):
    assert_close(auto.State(*map(on_host, theirs._state)), ours._state, tolerance)
    np.testing.assert_allclose(on_host(theirs.result.x), ours.result.x, rtol=0, atol=tolerance)
    for column in ("sigma", "deviation_min", "deviation_max", "condition", "phase"):
        np.testing.assert_allclose(
            theirs.result.history[column], ours.result.history[column], rtol=tolerance
        )


@pytest.mark.parametrize("bounds", [None, fmnes.Bounds(-1.0, 3.5)])
@pytest.mark.parametrize("name", ["ellipsoid", "long", "short", "wall"])
def test_generations_of_a_search(name, bounds, tmp_path):
    """Axes come, go and become scales. Without a GPU, single generations of a search on the CPU.

    The state goes to the device in a checkpoint.
    """
    dim, f = 24, problem(name, 24)
    ours = search(np.linspace(1.0, 3.0, dim), bounds=bounds)
    used = set()
    for generation in range(100):
        if generation in (0, 13, 35, 60, 95) or (GPU and generation % 5 == 0):
            ours.save(tmp_path / "cpu.npz")
            theirs = fmnes.Optimizer.load(tmp_path / "cpu.npz", like=torch.empty(0, device=DEVICE))
            x = ours.ask()
            np.testing.assert_allclose(on_host(theirs.ask()), x, rtol=0, atol=1e-11)
            for opt in (ours, theirs):
                opt.tell(f(x))
            assert_same_search(ours, theirs, 1e-9)
        else:
            ours.tell(f(ours.ask()))
        used.add(int(np.sum(ours._state.S != 1)))
    assert used >= {0, 1} or name == "wall"


def test_a_hundred_generations_in_double_precision():
    """On a small problem, also in the interpreter: within 1e-9 of the CPU's."""
    dim = 37 if GPU else 6
    x0, f = np.linspace(1.0, 3.0, dim), problem("ellipsoid", dim)
    ours, theirs = search(x0, axes=1), search(torch.tensor(x0, device=DEVICE), axes=1)
    for _ in range(100):
        x = ours.ask()
        np.testing.assert_allclose(on_host(theirs.ask()), x, rtol=0, atol=1e-9)
        ours.tell(f(x))
        theirs.tell(f(x))
    assert_same_search(ours, theirs, 1e-9)


def test_a_population_that_grows_and_a_checkpoint_that_goes_back(tmp_path):
    """Values are noise, so that the population grows; the file of the device goes to the CPU."""
    noise, x0 = np.random.default_rng(2), np.linspace(1.0, 3.0, 24)
    method = fmnes.Auto(axes=2, adapt="popsize")
    ours = fmnes.Optimizer(x0, 1.0, method=method, rng=2, popsize=6)
    for _ in range(26):
        ours.ask()
        ours.tell(noise.normal(size=ours.popsize))
    ours.save(tmp_path / "cpu.npz")
    theirs = fmnes.Optimizer.load(tmp_path / "cpu.npz", like=torch.empty(0, device=DEVICE))
    for _ in range(4):
        f = noise.normal(size=ours.popsize)
        for opt in (ours, theirs):
            opt.ask()
            opt.tell(f)
        assert theirs.popsize == ours.popsize
    assert ours.popsize == 12
    assert_same_search(ours, theirs, 1e-9)
    theirs.save(tmp_path / "gpu.npz")
    back = fmnes.Optimizer.load(tmp_path / "gpu.npz", like=np.empty(0))
    assert type(back._engine) is type(ours._engine)
    np.testing.assert_allclose(back.ask(), ours.ask(), rtol=0, atol=1e-10)


@on_gpu
def test_the_registry_chooses_it_on_a_gpu():
    mean = torch.zeros(3, device="cuda")
    assert engines.registration("auto", mean).engine is TritonAutoEngine
