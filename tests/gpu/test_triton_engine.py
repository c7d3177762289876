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
from fmnes.storage.move import moved
from gpu.conftest import DEVICE, GPU, on_gpu

pytestmark = pytest.mark.arrays
DIM = 37  # two tiles of draws, the last one not full


def ellipsoid(x):
    """On the host, so that two searches rank equal candidates alike."""
    x = np.asarray(x, np.float64)
    return np.sum(10 ** (3 * np.arange(x.shape[1]) / (x.shape[1] - 1)) * x * x, axis=1)


def pair(dtype=np.float64, dim=DIM, **settings):
    """The same search on NumPy arrays, and on tensors by the Triton engine."""
    x0 = np.linspace(1, 3, dim).astype(dtype)
    options = {"sigma0": np.linspace(0.5, 2, dim), "method": fmnes.CRFMNES(**settings), "rng": 3}
    theirs = fmnes.Optimizer(torch.tensor(x0, device=DEVICE), **options)
    assert isinstance(theirs._engine, TritonEngine)
    return fmnes.Optimizer(x0, **options), theirs


def on_host(x):
    return x.cpu().numpy()


def run(opt, generations):
    for _ in range(generations):
        opt.tell(ellipsoid(on_host(opt.ask())))


def assert_same_state(ours, theirs, rtol):
    for name, value in ours._state._asdict().items():
        other = on_host(theirs._state._asdict()[name])
        scale = np.max(np.abs(value))
        np.testing.assert_allclose(other, value, rtol=0, atol=rtol * scale, err_msg=name)


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


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        pytest.param(
            torch.bfloat16,
            marks=pytest.mark.skipif(not GPU, reason="Triton's interpreter truncates to bfloat16"),
        ),
    ],
)
@pytest.mark.parametrize("store_draws", [True, False])
def test_candidates_are_written_in_the_dtype_of_their_tensors(dtype, store_draws):
    _, opt = pair(np.float32, store_draws=store_draws)
    x = opt.ask()
    target = [
        torch.zeros(3, 5, dtype=dtype, device=DEVICE),
        torch.zeros(6, 2, dtype=dtype, device=DEVICE).T,  # not contiguous
        torch.zeros(10, dtype=torch.float64),  # on the CPU
    ]
    last = opt.popsize - 1
    for i in (0, last):
        opt.write_candidate(i, target)
        assert torch.equal(target[0].flatten(), x[i, :15].to(dtype))
        assert torch.equal(target[1].flatten(), x[i, 15:27].to(dtype))
        assert torch.equal(target[2], x[i, 27:].cpu().double())
    opt.write_mean(target)
    assert torch.equal(target[0].flatten(), opt.result.mean[:15].to(dtype))


def test_a_search_that_streams_changes_neither_x0_nor_its_copies():
    """The engine computes in the arrays of the first state, and x0 waits on the host."""
    x0 = torch.linspace(1, 3, DIM, device=DEVICE)
    mine = x0.clone()
    streaming = fmnes.CRFMNES(store_draws=False)
    opt = fmnes.Optimizer(x0, 1.0, method=streaming, rng=3)
    first = on_host(opt.ask())
    run(opt, 2)
    assert torch.equal(x0, mine)
    assert opt.setup.mean.device.type == "cpu"
    for _ in range(2):  # the same start twice: a run does not change what the next one starts from
        again = opt.rescaled(1.0)
        assert np.array_equal(on_host(again.ask()), first)
        run(again, 1)
    given = fmnes.CRFMNES(store_draws=False, v=np.linspace(0.1, 0.2, DIM))
    opt = fmnes.Optimizer(x0, 1.0, method=given, rng=3)
    first = on_host(opt.ask())
    run(opt, 1)
    assert np.array_equal(on_host(opt.rescaled(1.0).ask()), first)
    result = fmnes.minimize(
        lambda x: float((x * x).sum()), x0, 1.0, method=streaming, rng=3, maxiter=2
    )
    assert torch.equal(x0, mine)
    assert result.x.device == x0.device


@on_gpu
def test_a_search_that_streams_takes_eight_vectors():
    """The caller's x0 and seven vectors at the start, then seven vectors and one in bfloat16."""
    dim = 2**28  # many pieces of those that are looked at together
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()

    def vectors():
        most = (torch.cuda.max_memory_allocated() - before) / (4 * dim)
        torch.cuda.reset_peak_memory_stats()
        return most

    x0 = torch.full((dim,), 3.0, device="cuda")
    opt = fmnes.Optimizer(x0, 1.0, method=fmnes.CRFMNES(store_draws=False), rng=1)
    assert vectors() < 8.1
    del x0
    candidate = torch.empty(dim, dtype=torch.bfloat16, device="cuda")
    vectors()
    for generation in range(3):
        for i in range(opt.popsize):
            opt.write_candidate(i, [candidate])
        opt.tell(np.arange(opt.popsize) - float(generation))  # a new best one each time
    assert vectors() < 7.6


@on_gpu
def test_a_search_that_streams_is_loaded_into_seven_vectors(tmp_path):
    dim = 2**24
    x0 = torch.full((dim,), 3.0, device="cuda")
    opt = fmnes.Optimizer(x0, 1.0, method=fmnes.CRFMNES(store_draws=False), rng=1)
    opt.write_candidate(0, [x0])
    opt.tell(np.arange(opt.popsize, dtype=float))
    opt.save(tmp_path / "search.npz")
    del opt, x0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    fmnes.Optimizer.load(tmp_path / "search.npz", like=torch.empty(0, device="cuda"))
    assert (torch.cuda.max_memory_allocated() - before) / (4 * dim) < 7.6


def test_only_the_state_of_a_search_that_streams_goes_to_the_device():
    """The device "meta" stands for a GPU, and the engine computes in the arrays it is given."""
    opt = pair(np.float32, store_draws=False)[1]
    run(opt, 1)
    before, kept = copy.deepcopy(opt.to_saved()), opt.like.device
    saved = moved(before, torch.empty(0, device="meta"))
    assert {x.device.type for x in saved["state"]} == {"meta"}
    rest = saved["setup"].mean, saved["setup"].shape.D, saved["initial"], saved["best"]
    assert {x.device.type for x in rest} == {"cpu"}
    shards = moved(before, torch.empty(0, device="meta"), may_stream=False)
    assert shards["setup"].mean.device.type == "meta"
    back = moved(before, torch.empty(0, device=kept))
    again = fmnes.Optimizer.from_saved(back)
    assert again._engine._vectors["D"] is back["state"].D
    for search in (opt, again, again.rescaled(1.0), opt.rescaled(1.0)):
        run(search, 2)
    assert np.array_equal(on_host(again.ask()), on_host(opt.ask()))
    assert torch.equal(again.result.x, opt.result.x)


def test_points_from_elsewhere_are_refused_by_a_search_that_streams():
    opt = pair(store_draws=False)[1]
    with pytest.raises(ValueError, match=r"x: expected no points .* store_draws=False"):
        opt.inject(np.ones(DIM))
    stored = pair()[1]
    stored.inject(torch.ones(DIM, dtype=torch.float64, device=DEVICE))
    assert torch.equal(stored.ask()[0].cpu(), torch.ones(DIM, dtype=torch.float64))


def test_a_module_keeps_nothing_of_the_candidates():
    """The mean is written again, exactly, whatever was written before it."""
    module = torch.nn.Linear(36, 1, dtype=torch.bfloat16, device=DEVICE)
    _, opt = pair(np.float32, store_draws=False)
    opt.write_mean(module)
    before = [p.clone() for p in module.parameters()]
    for i in range(opt.popsize):
        opt.write_candidate(i, module)
    assert not torch.equal(module.weight, before[0])
    opt.write_mean(module)
    assert all(torch.equal(p, q) for p, q in zip(module.parameters(), before, strict=True))
