"""Kernels on the GPU if there is one, else in Triton's interpreter on the CPU.

`make test-arrays` and `make test-gpu` install PyTorch and Triton. Nothing is collected without.
"""

import importlib.metadata
import importlib.util
import os

import pytest

if not all(importlib.util.find_spec(name) for name in ("torch", "triton")):
    collect_ignore_glob = ["*.py"]
    GPU = False
else:
    import torch

    GPU = torch.cuda.is_available()
    # JAX would take three quarters of the GPU's memory when it starts.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if not GPU:
        os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined

from fmnes import engines

DEVICE = "cuda" if GPU else "cpu"
on_gpu = pytest.mark.skipif(not GPU, reason="needs a GPU; `make test-gpu` on a machine with one")


def pytest_terminal_summary(terminalreporter):
    """Say what the tests ran on; `pytest -q` shows no header."""
    name = torch.cuda.get_device_name() if GPU else "none; kernels ran in Triton's interpreter"
    terminalreporter.section("GPU")
    terminalreporter.line(f"GPU: {name}")
    for package in ("torch", "triton", "jax"):
        terminalreporter.line(f"{package}: {_version(package)}")
    if _version("jax"):
        import jax

        terminalreporter.line(f"devices of JAX: {', '.join(map(str, jax.devices()))}")


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@pytest.fixture(autouse=True)
def _triton_serves_every_device(monkeypatch):
    """Without a GPU, let the Triton engines serve tensors on the CPU."""
    rows = (row._replace(devices=None) for row in engines.ENGINES if row.name == "triton")
    monkeypatch.setattr(engines, "ENGINES", (*rows, *engines.ENGINES))
