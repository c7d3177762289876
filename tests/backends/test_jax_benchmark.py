"""The JAX rows of benchmarks/gpu.py: each of them runs, here on a small problem."""

import numpy as np
import pytest

from benchmark_modules import load

pytestmark = pytest.mark.arrays


@pytest.mark.parametrize("name", ["fmnes JAX", "fmnes.jax", "fmnes.jax in a scan"])
def test_a_generation_of_each_row_runs(jax_library, name):
    gpu = load("gpu")
    function, dims = gpu.SOLVERS[name]
    assert {10**3, 10**5, 10**6, 10**7} <= set(dims)
    generation = function(10, 6)
    for _ in range(2):
        generation()
    row = gpu.measured(name, 10)
    assert row["solver"] == name
    assert np.isfinite(row["ms"])
