"""The same search on NumPy arrays, and on tensors by the Triton engine."""

import numpy as np
import torch

import fmnes
from fmnes.engines.triton_engine import TritonEngine
from gpu.conftest import DEVICE

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
