"""Array libraries: NumPy's stand-in for the standard always, PyTorch and JAX where installed."""

import numpy as np
import pytest


class Library:
    """How to make an array of a library, and how to tell one."""

    def __init__(self, name, module, kind):
        self.name, self.module, self.kind = name, module, kind

    def array(self, value, dtype):
        return self.module.asarray(
            np.array(value), dtype=getattr(self.module, np.dtype(dtype).name)
        )

    def holds(self, value):
        return isinstance(value, self.kind)


def strict():
    module = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    return Library("array-api-strict", module, type(module.asarray(0.0)))


def torch():
    module = pytest.importorskip("torch", reason="PyTorch is not installed: make test-arrays")
    return Library("torch", module, module.Tensor)


def jax():
    module = pytest.importorskip("jax", reason="JAX is not installed: make test-arrays")
    module.config.update("jax_enable_x64", True)
    return Library("jax", module.numpy, module.Array)


LIBRARIES = {"array-api-strict": strict, "torch": torch, "jax": jax}


@pytest.fixture(
    scope="session",
    params=[
        "array-api-strict",
        pytest.param("torch", marks=pytest.mark.arrays),
        pytest.param("jax", marks=pytest.mark.arrays),
    ],
)
def library(request):
    """Every array library beside NumPy, in double precision unless asked for single."""
    return LIBRARIES[request.param]()


@pytest.fixture(scope="session")
def jax_library():
    """JAX in double precision."""
    return jax()
