"""Files that were written earlier, and searches on arrays of other libraries."""

import importlib
import pathlib
import shutil

import numpy as np
import pytest

import fmnes
from checkpoints.common import Counted, digest, search, sphere, stairs
from fmnes import kernels

STORED = pathlib.Path(__file__).parent / "formats"
METHOD = "cr-fm-nes"  # the default at that time


@pytest.mark.parametrize("folder", sorted(STORED.iterdir()), ids=lambda folder: folder.name)
def test_what_was_written_by_an_earlier_version_goes_on(folder, tmp_path, caplog):
    """Made by make_format.py; to be kept as long as we promise to read the format."""
    opt = fmnes.Optimizer.load(folder / "search.npz")
    assert (opt.nit, opt.nfev, opt.popsize) == (3, 24, 8)
    assert opt.result.fun == sphere(opt.result.x)
    for file in folder.iterdir():
        shutil.copy(file, tmp_path)
    rest = Counted()
    result = search(rest, tmp_path / "run.npz", method=METHOD, ftarget=1e-8, resume="must")
    assert result.success
    known = result.nfev - len(rest.calls)
    if kernels.in_use == "native":
        assert known == 5 * 8 + 3  # 5 generations, and 3 values of the next
    else:  # they were written with the compiled kernels
        assert known == 5 * 8 + 3 or "holds values of other candidates" in caplog.text


@pytest.mark.skipif(kernels.in_use != "native", reason="written with the compiled kernels")
@pytest.mark.parametrize("folder", sorted(STORED.iterdir()), ids=lambda folder: folder.name)
def test_restarts_of_an_earlier_version_go_on(folder, tmp_path):
    """Format 3 has a history for each run, and no values for the stopping rules besides."""
    shutil.copy(folder / "restarts.npz", tmp_path)
    options = {"method": METHOD, "restarts": 2, "maxfevals": 6000}
    result = search(stairs, tmp_path / "restarts.npz", resume="must", **options)
    assert len(result.restarts) == 3
    if int(folder.name) >= 6:
        assert digest(result) == digest(search(stairs, **options))
        return
    # Earlier versions did not evaluate x0; the candidates are the same.
    expected = search(stairs, **options | {"maxfevals": 6001})
    assert result.nfev == expected.nfev - 1
    assert (result.fun, result.sigma, result.nit) == (expected.fun, expected.sigma, expected.nit)
    for name in ("x", "mean", "stds"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name))
    assert [run.nit for run in result.restarts] == [run.nit for run in expected.restarts]


@pytest.mark.arrays
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_searches_on_other_arrays_resume(library, tmp_path):
    module = pytest.importorskip(library, reason=f"needs the extra fmnes[{library}]")
    xp = module if library == "torch" else importlib.import_module("jax.numpy")

    def run(fun, path=None):
        x0 = xp.asarray(np.full(5, 3.0, np.float32))
        return fmnes.minimize(fun, x0, 1.0, rng=1, maxiter=10, checkpoint=path)

    def square(x):
        return float((x**2).sum())

    expected = run(square)
    left = [50]

    def broken(x):
        left[0] -= 1
        if not left[0]:
            raise RuntimeError("the end")
        return square(x)

    path = tmp_path / "run.npz"
    with pytest.raises(RuntimeError, match="the end"):
        run(broken, path)
    left[0] = 1000
    resumed = run(broken, path)
    assert 1000 - left[0] == 2 + 10 * 8 - 49  # x0 twice, to see whether the values are noisy
    assert type(resumed.x) is type(expected.x)
    assert digest(resumed) == digest(expected)
