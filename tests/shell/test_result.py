"""Result: what it shows, and the same numbers after a dict or a file."""

import json
import math
import pathlib

import numpy as np
import pytest

import fmnes
from fmnes import Result


def search(**options):
    """A search with an infeasible half, failures and restarts."""
    values = np.random.default_rng(0)

    def fun(x):
        failed = np.where(values.random(len(x)) < 0.1, np.nan, 0.0)
        return np.where(x[:, 0] > 2.5, np.inf, (x**2).sum(axis=1)) + failed

    options = {"x0": [3.0, 2.0, 1.0], "sigma0": 1.0, "restarts": 1, "maxfevals": 3000, **options}
    return fmnes.minimize(fun, vectorized=True, rng=1, **options)


def assert_same(mine, other):
    for name in ("fun", "nfev", "nit", "success", "status", "message", "sigma", "nfailed"):
        assert getattr(mine, name) == getattr(other, name), name
    assert (mine.restarts, mine.first_error) == (other.restarts, other.first_error)
    assert type(mine.status) is type(other.status)
    assert type(mine.shape) is type(other.shape)
    assert mine.history.to_array().tobytes() == other.history.to_array().tobytes()
    for a, b in zip(
        (mine.x, mine.mean, mine.stds, *mine.shape),
        (other.x, other.mean, other.stds, *other.shape),
        strict=True,
    ):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bounds", [None, [(None, None), (0, 5), (1, 1), (-40, 1), (None, 2)]])
@pytest.mark.parametrize("method", fmnes.METHODS)
def test_stds_are_the_standard_deviations_of_the_candidates(method, bounds):
    x0, scale = np.array([3.0, 0.2, 1.0, -1.0, 2.0]), np.array([1.0, 10.0, 1.0, 0.1, 1.0])
    opt = fmnes.Optimizer(x0, 0.3, popsize=2**14, method=method, bounds=bounds, rng=1)
    for _ in range(3):
        opt.tell(((scale * opt.ask()) ** 2).sum(axis=1))
    x, stds = opt.ask(), opt.result.stds
    assert stds.dtype == x.dtype
    # 2^14 samples are good for 1 %. A mirror is |y|: its deviation is 0.60, by three nodes 0.82.
    np.testing.assert_allclose(stds, x.std(axis=0), rtol=0.03 if bounds is None else 0.4)
    assert (stds[2] == 0) == (bounds is not None)  # a fixed variable
    later = stds.copy()
    opt.tell((x**2).sum(axis=1))
    np.testing.assert_array_equal(stds, later)  # a Result does not change with the search


def test_stds_inside_the_bounds_are_those_without_bounds():
    """To the last digit, also when the search has converged."""
    wide = [(-1e3, 1e3)] * 3
    results = [search(bounds=bounds, restarts=0, maxfevals=600) for bounds in (None, wide)]
    np.testing.assert_array_equal(results[0].stds, results[1].stds)


# === Dicts and files ===


@pytest.mark.parametrize("method", ["cr-fm-nes", "cma-es", "snes"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_result_is_the_same(method, dtype, tmp_path):
    result = search(method=method, x0=np.array([3.0, 2.0, 1.0], dtype))
    assert result.nfailed > 0
    assert_same(Result.from_dict(result.to_dict()), result)
    result.save(tmp_path / "result.json")
    assert_same(Result.load(tmp_path / "result.json"), result)


@pytest.mark.arrays
def test_arrays_of_other_libraries_become_numpy_arrays(tmp_path):
    torch = pytest.importorskip("torch", reason="needs the extra fmnes[torch]")
    x0 = torch.tensor([3.0, 2.0], dtype=torch.float32)
    result = fmnes.minimize(lambda x: (x**2).sum(), x0, 1.0, maxiter=5, rng=1)
    result.save(tmp_path / "result.json")
    again = Result.load(tmp_path / "result.json")
    for mine, other in ((again.x, result.x), (again.mean, result.mean)):
        assert mine.dtype == np.float32
        np.testing.assert_array_equal(mine, other.numpy())


def test_a_file_of_an_earlier_version_loads():
    """To be kept as long as we promise to read the format; written by fmnes 0.1."""
    result = Result.load(pathlib.Path(__file__).parent / "result-format-1.json")
    assert (result.nit, result.nfev, len(result.history)) == (2, 12, 2)
    assert result.fun == float((result.x**2).sum()) == result.history["best"][-1]
    assert result.status == "maxiter"
    assert np.isnan(result.history["norm_v"]).all()
    assert np.isnan(result.stds).all()  # format 1 does not say
    assert fmnes.minimize(lambda x: (x**2).sum(), result, ftarget=1e-8, rng=1).success


def test_numbers_that_are_not_finite_are_kept(tmp_path):
    result = fmnes.minimize(lambda x: math.inf, [3.0], 1.0, maxiter=3, rng=1, method="snes")
    assert result.fun == math.inf
    assert np.isnan(result.history["norm_v"]).all()
    result.save(tmp_path / "result.json")
    assert_same(Result.load(tmp_path / "result.json"), result)


def test_a_dict_is_json(tmp_path):
    """Any JSON parser reads the file: no NaN, no Infinity."""

    def refuse(word):
        raise AssertionError(word)

    result = search(method="snes")
    text = json.dumps(result.to_dict(), allow_nan=False)
    content = json.loads(text, parse_constant=refuse)
    assert content["x"] == result.x.tolist()
    assert content["status"] == str(result.status)
    assert content["history"]["nfev"] == result.history["nfev"].tolist()
    assert set(content["history"]["norm_v"]) == {"nan"}
    result.save(tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(text)


def test_bounds_and_fixed_variables_are_kept(tmp_path):
    bounds = [(0, 5), (2, 2), (None, 4)]
    result = search(bounds=bounds)
    result.save(tmp_path / "result.json")
    again = Result.load(tmp_path / "result.json")
    assert_same(again, result)
    assert again.shape.D.shape == (2,)


def test_a_loaded_result_continues_a_search_and_is_drawn(tmp_path):
    result = search()
    result.save(tmp_path / "result.json")
    again = Result.load(tmp_path / "result.json")
    after = [fmnes.minimize(lambda x: (x**2).sum(), r, maxiter=20, rng=2) for r in (result, again)]
    assert after[0].x.tolist() == after[1].x.tolist()
    lines = [fmnes.plot(r).axes[0].lines[0].get_ydata() for r in (result, again)]
    np.testing.assert_array_equal(*lines)


def test_a_result_does_not_overwrite_a_checkpoint(tmp_path):
    path = tmp_path / "run.npz"
    result = search(checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"path: .*JSON.*run\.npz"):
        result.save(path)
    assert path.read_bytes() == before
    assert search(checkpoint=path, resume="must").fun == result.fun


def test_a_file_of_another_kind_is_refused_with_the_function_that_reads_it(tmp_path):
    result = search(checkpoint=tmp_path / "run.npz")
    result.save(tmp_path / "result.json")
    opt = fmnes.Optimizer([3.0, 2.0, 1.0], 1.0)
    opt.save(tmp_path / "opt.npz")
    wrong = [
        (fmnes.Optimizer.load, "result.json", r"Result\.load"),
        (fmnes.Optimizer.load, "run.npz", r"minimize\(.*checkpoint="),
        (Result.load, "opt.npz", r"Optimizer\.load"),
        (Result.load, "run.npz", r"minimize\(.*checkpoint="),
        (lambda path: search(checkpoint=path), "opt.npz", r"Optimizer\.load"),
        (lambda path: search(checkpoint=path), "result.json", r"Result\.load"),
    ]
    for load, name, advice in wrong:
        with pytest.raises(ValueError, match=advice):
            load(tmp_path / name)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    search().save(path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        search(maxfevals=100).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


DAMAGE = {
    "length": lambda c: c["mean"].pop(),
    "missing": lambda c: c.pop("mean"),
    "word": lambda c: c.update(fun="low"),
    "status": lambda c: c.update(status="happy"),
    "shape": lambda c: c["shape"].update(D=[[1.0]]),
    "unknown": lambda c: c["shape"].update(Q=[1.0]),
    "column": lambda c: c["history"].pop("best"),
    "short": lambda c: c["history"]["best"].pop(),
    "run": lambda c: c["restarts"].append({}),
    "dtype": lambda c: c.update(dtype="object"),
    "none": lambda c: c.update(history=None),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_content_is_named(damage, tmp_path):
    content = search().to_dict()
    DAMAGE[damage](content)
    with pytest.raises(ValueError, match=r"^content: "):
        Result.from_dict(content)
    path = tmp_path / "result.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"^path: .*result\.json"):
        Result.load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"format": 99}', "\x00", "3"])
def test_other_files_are_refused(text, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"^path: .*result\.json"):
        Result.load(path)


def test_a_later_format_is_named():
    with pytest.raises(ValueError, match="99"):
        Result.from_dict({**search().to_dict(), "format": 99})


def test_paths_are_checked(tmp_path):
    with pytest.raises(TypeError, match=r"^path: "):
        search().save(3)
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "none.json")


# === On a screen ===


def test_html_is_escaped():
    result = search()
    html = Result(**{**vars(result), "message": "<script>"})._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    for figure in (f"{result.fun:.10g}", str(result.nfev), "<table "):
        assert figure in html


def test_history_shows_its_first_and_last_rows():
    history = search().history
    html = history._repr_html_()
    assert html.count("<tr>") == 1 + 5 + 1 + 5
    assert f"<td>{history['nfev'][-1]}</td>" in html
    assert search(maxfevals=50).history._repr_html_().count("<tr>") == 1 + 50 // 8
    assert str(history["nfev"][-1]) in repr(history)
    assert fmnes.History()._repr_html_().count("<tr>") == 1
    assert "0 generations" in repr(fmnes.History())


def test_results_can_be_compared_and_found_in_a_list():
    results = [
        fmnes.minimize(lambda x: (x**2).sum(), [1.0, 2.0], 0.5, maxiter=3, rng=seed)
        for seed in (1, 2)
    ]
    assert results[0] != results[1]
    assert results.index(results[1]) == 1
