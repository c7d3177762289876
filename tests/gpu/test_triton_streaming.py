"""Candidates written into the tensors of a module, and searches that keep no draws."""

import copy

import numpy as np
import pytest
import torch

import fmnes
from fmnes.storage.move import moved
from gpu.conftest import DEVICE, GPU, on_gpu
from gpu.searches import DIM, on_host, pair, run

pytestmark = pytest.mark.arrays


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
