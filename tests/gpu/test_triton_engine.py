"""The Triton engine: the candidates and states of the CPU's engines, computed on the device."""

import copy
import json
import pickle

import numpy as np
import pytest
import torch

import fmnes
from fmnes import draws, engines
from fmnes.engines import triton_base
from fmnes.engines.triton_engine import TritonEngine
from gpu.conftest import DEVICE, GPU, on_gpu
from gpu.searches import DIM, assert_same_state, ellipsoid, on_host, pair, run

pytestmark = pytest.mark.arrays


@pytest.mark.parametrize("settings", [{}, {"variant": "paper"}, {"store_draws": False}])
def test_float64_follows_the_cpu(settings):
    ours, theirs = pair(**settings)
    for _ in range(100 if GPU else 3):
        x = ours.ask()
        np.testing.assert_allclose(on_host(theirs.ask()), x, rtol=0, atol=1e-9 * np.abs(x).max())
        f = ellipsoid(x)
        ours.tell(f)
        theirs.tell(f)
    assert_same_state(ours, theirs, 1e-9)
    assert theirs.result.fun == ours.result.fun
    np.testing.assert_allclose(on_host(theirs.result.x), ours.result.x, rtol=0, atol=1e-8)
    for column in ("sigma", "deviation_min", "deviation_max", "condition", "phase"):
        np.testing.assert_allclose(
            theirs.result.history[column], ours.result.history[column], rtol=1e-8
        )


@pytest.mark.parametrize("store_draws", [True, False])
def test_float32(store_draws):
    ours, theirs = pair(np.float32, store_draws=store_draws)
    for _ in range(3):
        x, y = ours.ask(), theirs.ask()
        assert y.dtype == torch.float32
        np.testing.assert_allclose(on_host(y), x, rtol=1e-5, atol=1e-5)
        f = ellipsoid(x)
        ours.tell(f)
        theirs.tell(f)


def test_the_phase_is_known_before_the_sums_if_d_is_large():
    """Every phase, with and without a pass over the draws for the length of p_sigma."""
    engine = pair(store_draws=False)[1]._engine
    kernels, numbers, inbox = engine._kernels, engine._numbers, engine._exchange.inbox
    inbox[4:] = torch.arange(2.0 * engine._half)
    chi2 = float(engine._constants[2]) ** 2
    for length2, phase in ((4e6 * chi2, 1), (0.5 * chi2, 2), (1e-4 * chi2, 3)):
        engine._constants[4] = 1e-9  # a path that hardly moves
        numbers[3] = length2
        kernels.weigh[(1,)](
            inbox[4:].to(DEVICE), engine._w_hat, engine._pairs, numbers,
            engine._constants, engine._rates, engine._half, 256,
        )  # fmt: skip
        assert (numbers[9], numbers[10]) == (1, phase)
    engine._constants[4] = 10.0
    numbers[3] = chi2
    kernels.weigh[(1,)](
        inbox[4:].to(DEVICE), engine._w_hat, engine._pairs, numbers, engine._constants,
        engine._rates, engine._half, 256,
    )  # fmt: skip
    assert numbers[9] == 0


def test_infeasible_and_equal_values():
    ours, theirs = pair()
    n = np.arange(ours.popsize)
    for f in (np.full(n.size, 1.0), np.where(n % 3, np.inf, 1.0), np.where(n % 4, 2.0, np.nan)):
        for opt in (ours, theirs):
            opt.ask()
            opt.tell(f)
        np.testing.assert_allclose(on_host(theirs.ask()), ours.ask(), rtol=1e-11, atol=1e-11)
    assert theirs.result.nfailed == ours.result.nfailed


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_on_the_device_are_surveyed_and_ranked_there(dtype):
    """The figures and the best candidate of the host, also for values that are not finite."""
    ours, theirs = pair()
    n = np.arange(ours.popsize)
    for f in (
        np.full(n.size, np.nan),
        np.full(n.size, 1.0),
        n[::-1] / 4 - 1.0,
        np.where(n % 3, np.inf, 0.5),
        np.where(n % 4, 2.0, np.nan),
        np.where(n == 3, -np.inf, 1.0),
    ):
        values = torch.tensor(f, dtype=dtype, device=DEVICE)
        assert theirs._stays(values)
        for opt, told in ((ours, f), (theirs, values)):
            opt.ask()
            opt.tell(told)
        for name, value in ours.record.last._asdict().items():
            np.testing.assert_allclose(getattr(theirs.record.last, name), value, rtol=1e-12)
        np.testing.assert_allclose(on_host(theirs.result.x), ours.result.x, rtol=1e-12)
        np.testing.assert_allclose(on_host(theirs.ask()), ours.ask(), rtol=1e-11, atol=1e-11)
    assert theirs.result.nfailed == ours.result.nfailed
    assert not theirs._stays(torch.arange(n.size, device=DEVICE))
    assert not theirs._stays(torch.zeros(n.size + 2, device=DEVICE))
    assert not pair(store_draws=False)[1]._stays(values)  # its best candidate is on the host


@pytest.mark.parametrize("store_draws", [True, False])
def test_some_candidates_are_rows_of_all(store_draws):
    _, opt = pair(store_draws=store_draws)
    x, last = on_host(opt.ask()), opt.popsize
    for rows in (slice(0, 1), slice(1, last - 1), slice(last - 1, last)):
        assert np.array_equal(on_host(opt.ask(rows=rows)), x[rows])
    filled = np.empty((last, DIM))
    assert np.array_equal(opt.ask(out=filled), x)
    opt.tell(opt.ask(), ellipsoid(x))  # which compares them with those that it proposed
    best = np.argmin(ellipsoid(x))
    assert np.array_equal(on_host(opt.result.x), x[best])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))])
def test_a_copy_goes_its_own_way_to_the_same_end(again):
    _, opt = pair()
    run(opt, 3)
    opt.ask()
    other = again(opt)
    for search in (opt, other):
        run(search, 3)
    assert np.array_equal(on_host(other.result.x), on_host(opt.result.x))
    assert np.array_equal(on_host(other.ask()), on_host(opt.ask()))


def test_the_rows_of_a_large_population():
    """More candidates than a tile of the ranking holds."""
    x0 = np.linspace(1, 3, 5)
    ours, theirs = (
        fmnes.Optimizer(x, 1.0, method="cr-fm-nes", popsize=600 if GPU else 70, rng=1)
        for x in (x0, torch.tensor(x0, device=DEVICE))
    )
    for _ in range(2):
        f = ellipsoid(ours.ask()).round(1)  # with ties
        theirs.ask()
        ours.tell(f)
        theirs.tell(f)
    assert_same_state(ours, theirs, 1e-11)


def test_two_candidates_and_one_variable():
    x0 = np.array([3.0])
    for popsize in (2, 4):
        ours, theirs = (
            fmnes.Optimizer(x, 1.0, method="cr-fm-nes", popsize=popsize, rng=1)
            for x in (x0, torch.tensor(x0, device=DEVICE))
        )
        for _ in range(3):
            x = ours.ask()
            np.testing.assert_allclose(on_host(theirs.ask()), x, rtol=1e-12)
            ours.tell(x[:, 0] ** 2)
            theirs.tell(x[:, 0] ** 2)


def test_triton_missing_is_said_once(monkeypatch):
    monkeypatch.setattr(triton_base.importlib.util, "find_spec", lambda name: None)
    triton_base.available.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="Triton is not installed"):
            assert not triton_base.available()
        assert not triton_base.available()  # warnings are errors in tests
    finally:
        triton_base.available.cache_clear()
    rows = [row for row in engines.ENGINES if row.name in ("triton", "array")]
    assert [row.name for row in rows][-1] == "array"  # the next row serves


@on_gpu
def test_the_registry_chooses_it_on_a_gpu():
    mean = torch.zeros(3, device="cuda")
    assert engines.registration("cr-fm-nes", mean).engine is TritonEngine
    engines._say_what_computes.cache_clear()
    with pytest.warns(RuntimeWarning, match="'snes' is computed by the array engine"):
        assert engines.registration("snes", mean).name == "array"


@pytest.mark.parametrize("method", ["xnes", "snes"])
def test_a_method_without_kernels_is_named_once(monkeypatch, method):
    monkeypatch.setattr(engines, "device", lambda array: torch.device("cuda"))
    mean = torch.zeros(3)
    engines._say_what_computes.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"'auto' only, so '{method}' is computed") as said:
        assert engines.registration(method, mean).name == "array"
    assert len(said) == 1
    assert engines.registration(method, mean).name == "array"  # warnings are errors in tests
    assert engines.registration("cr-fm-nes", mean).name == "triton"


@on_gpu
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")  # of PyTorch
@pytest.mark.parametrize("dim", [100, 100_000])
@pytest.mark.parametrize(("method", "figures"), [("cr-fm-nes", 15), ("auto", 16)])
def test_a_generation_copies_a_number_of_bytes_that_does_not_depend_on_d(
    dim, method, figures, tmp_path
):
    x0 = torch.full((dim,), 3.0, device="cuda")
    opt = fmnes.Optimizer(x0, 1.0, method=method, popsize=24, rng=1)
    x = None
    for _ in range(3):
        x = opt.ask()
        opt.tell((x * x).sum(dim=1))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        x = opt.ask()
        opt.tell((x * x).sum(dim=1))
    seen.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    copied = [
        (event["name"].split()[1], event["args"]["bytes"])
        for event in events
        if event.get("name", "").startswith("Memcpy") and "DtoD" not in event["name"]
    ]
    # The next address and the best value so far to the device, the figures to the host.
    assert sorted(copied) == [("DtoH", figures * 8), ("HtoD", 4 * 8)]


@on_gpu
def test_every_method_draws_with_triton():
    like = torch.zeros(50, dtype=torch.float64, device="cuda")
    found = draws.normals_like(like, draws.Address(1, 2, 3), 0, 4).cpu().numpy()
    assert np.array_equal(found, draws.normals(1, 2, 3, 0, 4, 50))


def test_checkpoints_move_between_the_device_and_the_cpu(tmp_path):
    """Each side writes a file, the other side reads it, and the two searches stay the same."""
    ours, theirs = pair()
    for opt in (ours, theirs):
        for _ in range(3):
            opt.ask()
            opt.tell(np.arange(opt.popsize, dtype=float))
    ours.save(tmp_path / "cpu.npz")
    theirs.save(tmp_path / "gpu.npz")
    on_device = fmnes.Optimizer.load(tmp_path / "cpu.npz", like=torch.empty(0, device=DEVICE))
    on_cpu = fmnes.Optimizer.load(tmp_path / "gpu.npz", like=np.empty(0))
    assert isinstance(on_device._engine, TritonEngine)
    assert type(on_cpu._engine) is type(ours._engine)
    for _ in range(2):
        x = on_cpu.ask()
        f = ellipsoid(x)
        np.testing.assert_allclose(on_host(on_device.ask()), x, rtol=0, atol=1e-10)
        on_cpu.tell(f)
        on_device.tell(f)
    assert_same_state(on_cpu, on_device, 1e-10)


def test_out_of_memory_in_the_objective_of_a_search_that_resumes(tmp_path):
    """The error comes out as it is, and the next call continues on the device of x0."""
    x0 = torch.linspace(1, 3, 5, dtype=torch.float64, device=DEVICE)
    fails_at = 0

    def sphere(x):
        nonlocal fails_at
        assert x.device == x0.device
        fails_at -= 1
        if fails_at == 0:
            if GPU:
                torch.empty(2**50, device="cuda")
            raise torch.OutOfMemoryError("out of memory")
        return (x * x).sum(dim=1)

    options = {"method": "cr-fm-nes", "rng": 1, "maxiter": 4, "vectorized": True}
    whole = fmnes.minimize(sphere, x0, 1.0, **options)
    options["checkpoint"] = tmp_path / "search.npz"
    fails_at = 3
    with pytest.raises(torch.OutOfMemoryError):
        fmnes.minimize(sphere, x0, 1.0, **options)
    resumed = fmnes.minimize(sphere, x0, 1.0, **options)
    assert resumed.nfev == whole.nfev
    assert torch.equal(resumed.x, whole.x)


def test_a_hundred_generations_in_double_precision():
    """Of a small problem, also in the interpreter: within 1e-9 of the CPU's."""
    x0 = np.array([1.0, 2.0, 3.0])
    ours, theirs = (
        fmnes.Optimizer(x, 1.0, method="cr-fm-nes", rng=3, popsize=4)
        for x in (x0, torch.tensor(x0, device=DEVICE))
    )
    for _ in range(100):
        f = ellipsoid(ours.ask())
        theirs.ask()
        ours.tell(f)
        theirs.tell(f)
    assert_same_state(ours, theirs, 1e-9)


def test_like_has_to_be_an_array(tmp_path):
    pair()[0].save(tmp_path / "cpu.npz")
    with pytest.raises(TypeError, match="like: expected an array or a tensor, got 'cuda'"):
        fmnes.Optimizer.load(tmp_path / "cpu.npz", like="cuda")
