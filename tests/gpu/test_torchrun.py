"""Searches on several processes that torchrun starts."""

import os
import subprocess
import sys

import numpy as np
import pytest

import fmnes
from gpu import under_torchrun as program

pytestmark = pytest.mark.arrays


@pytest.mark.skipif(sys.platform == "win32", reason="PyTorch for Windows has no libuv for torchrun")
def test_torchrun(tmp_path):
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *command, program.__file__, tmp_path],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    opt = fmnes.Optimizer(program.x0().numpy(), 1.0, method="cr-fm-nes", rng=1)
    for _ in range(program.GENERATIONS):
        opt.tell((opt.ask() ** 2).sum(axis=1))
    mean = opt.result.mean
    for rank, start in enumerate([0, 5]):
        found = np.load(tmp_path / f"{rank}.npz")
        np.testing.assert_allclose(found["whole"], mean, rtol=1e-12)
        np.testing.assert_allclose(found["part"], mean[start : start + 5], rtol=1e-12)
        assert found["start"] == start
