"""A generation that fails on the device: the state stays as it was, or the search says it."""

import contextlib
import pickle

import numpy as np
import pytest
import torch

import fmnes
from fmnes import engines, kernels
from fmnes.engines.triton_base import available
from fmnes.engines.triton_graph import Recorded
from gpu.conftest import DEVICE, on_gpu

pytestmark = pytest.mark.arrays


METHODS = [fmnes.CRFMNES(), fmnes.CRFMNES(store_draws=False), fmnes.Auto()]
methods = pytest.mark.parametrize("method", METHODS, ids=str)


def search(method=METHODS[0]):
    x0 = torch.linspace(1, 3, 7, dtype=torch.float64, device=DEVICE)
    return fmnes.Optimizer(x0, 1.0, method=method, popsize=4, rng=3)


def kernels_of(opt):
    """What launches the kernels: auto can go over to another engine."""
    return getattr(opt._engine, "_engine", opt._engine)


def sphere(x):
    return (x * x).sum(dim=1).cpu().numpy()


def fails(*args):
    raise torch.OutOfMemoryError("out of memory")


def test_kernels_can_be_turned_off(monkeypatch):
    """With FMNES_KERNELS=agnostic the array engine serves what the kernels would."""
    mean = torch.zeros(3, device=DEVICE)
    for method in ("auto", "cr-fm-nes"):
        assert engines.registration(method, mean).name == "triton"
    available.cache_clear()
    monkeypatch.setattr(kernels, "wanted", "agnostic")
    try:
        for method in ("auto", "cr-fm-nes"):
            assert engines.registration(method, mean).name == "array"
    finally:
        available.cache_clear()


class Cuda:
    """What `Recorded` uses of torch.cuda; the first recording fails."""

    def __init__(self):
        self.recordings, self.replays, self.streams = 0, 0, []

    def CUDAGraph(self):
        return self

    def Stream(self, device):
        self.streams.append(device)
        return device

    @contextlib.contextmanager
    def graph(self, graph, *, stream, capture_error_mode):
        yield
        self.recordings += 1
        if self.recordings == 1:
            raise torch.OutOfMemoryError("out of memory")

    def replay(self):
        self.replays += 1


def test_a_recording_that_fails_is_made_again(monkeypatch):
    fake, done, device = Cuda(), [], torch.device("cuda", 1)
    for name in ("CUDAGraph", "Stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, getattr(fake, name))
    recorded = Recorded(device)

    def work():
        done.append(1)

    recorded(work)  # compiles
    with pytest.raises(torch.OutOfMemoryError):
        recorded(work)
    assert fake.replays == 0  # half a graph is never run
    recorded(work)
    recorded(work)
    assert (fake.recordings, fake.replays) == (2, 2)
    assert fake.streams == [device, device]  # of its own device, whichever device came first


def test_a_kernel_that_does_not_compile_is_not_recorded():
    recorded, device = Recorded(torch.device("cuda")), []
    with pytest.raises(torch.OutOfMemoryError):
        recorded(fails)
    recorded(lambda: device.append(1))  # runs, as nothing was compiled yet
    assert device == [1]


@methods
def test_a_failure_before_the_update_changes_nothing(monkeypatch, method):
    whole, opt = search(method), search(method)
    f = sphere(whole.ask())
    whole.tell(f)
    opt.ask()
    for where in (kernels_of(opt)._tell, kernels_of(opt)._sample):
        with monkeypatch.context() as patch:
            patch.setattr(where, "record", fails)
            with pytest.raises(torch.OutOfMemoryError):
                opt.tell(f)
    opt.tell(f)
    assert torch.equal(opt.ask(), whole.ask())
    assert torch.equal(opt.result.x, whole.result.x)
    assert (opt.nit, opt.nfev, opt.result.fun) == (whole.nit, whole.nfev, whole.result.fun)


@methods
def test_a_failure_within_the_update_is_said(monkeypatch, tmp_path, method):
    """And nothing of it can be used or saved: a checkpoint would replace a good one."""
    whole, opt = search(method), search(method)
    opt.save(tmp_path / "search.npz")
    f = sphere(opt.ask())
    with monkeypatch.context() as patch:
        patch.setattr(kernels_of(opt), "_settle", fails)
        with pytest.raises(torch.OutOfMemoryError):
            opt.tell(f)
    for use in (
        opt.ask,
        lambda: opt.tell(f),
        lambda: opt.write_candidate(0, [torch.zeros(7)]),
        lambda: opt.write_mean([torch.zeros(7)]),
        lambda: opt.result,
        lambda: opt.save(tmp_path / "search.npz"),
        lambda: pickle.dumps(opt),
    ):
        with pytest.raises(RuntimeError, match="state is incomplete; continue from a checkpoint"):
            use()
    again = fmnes.Optimizer.load(tmp_path / "search.npz", like=torch.empty(0, device=DEVICE))
    for other in (whole, again):
        other.ask()
        other.tell(f)
    np.testing.assert_array_equal(again.ask().cpu(), whole.ask().cpu())


@on_gpu
def test_a_recording_that_fails_on_a_gpu_changes_nothing(monkeypatch):
    """The second generation records a graph; half of it is thrown away."""
    whole, opt = search(), search()
    for other in (whole, opt):
        other.tell(sphere(other.ask()))
    f = sphere(opt.ask())
    with monkeypatch.context() as patch:
        patch.setattr(kernels_of(opt), "_settle", fails)
        with pytest.raises(torch.OutOfMemoryError):
            opt.tell(f)
    whole.ask()
    for other in (whole, opt):
        other.tell(f)
        other.tell(sphere(other.ask()))
    assert torch.equal(opt.ask(), whole.ask())
    assert opt._engine._tell._graph is not None
