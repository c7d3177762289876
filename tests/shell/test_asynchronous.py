"""Asynchronous searches: no worker waits, and the order of arrival decides everything."""

import importlib
import math
import shutil

import numpy as np
import pytest

import fmnes
from checkpoints.common import digest
from fmnes.algorithms._records import Shape
from fmnes.arguments.start import read_start
from fmnes.benchmarking.simulated_workers import SimulatedWorkers


def sphere(x):
    return float((x**2).sum())


def pool(count=4, seed=0):
    """Workers that take lognormal times with coefficient of variation 1."""
    luck = np.random.default_rng(seed)
    return SimulatedWorkers(count, lambda: luck.lognormal(-math.log(2) / 2, math.sqrt(math.log(2))))


def search(fun=sphere, *, workers=None, x0=(3.0,) * 6, sigma0=2.0, rng=1, **options):
    workers = pool() if workers is None else workers
    options |= {"workers": workers, "asynchronous": True, "rng": rng}
    return fmnes.minimize(fun, x0, sigma0, **options)


# === The update ===


@pytest.mark.parametrize(
    "name", [name for name, method in fmnes.METHODS.items() if method.ANTITHETIC]
)
def test_single_candidates_of_complete_pairs_are_told_like_pairs(name):
    """A sum over candidates is the same sum, whether its terms come in pairs or one by one.

    The scouts of `auto` compare a sum with its deviation, which is another one for single draws.
    """
    dim, popsize, method = 7, 12, fmnes.METHODS[name]
    params, luck = method.params(dim, popsize), np.random.default_rng(1)
    start = method.init(
        *(params, np.full(dim, 2.0), np.asarray(1.0)),
        Shape(D=np.ones(dim)),
        luck.standard_normal(dim),
    )
    in_pairs = one_by_one = start
    for _ in range(5):
        z = luck.standard_normal((popsize // 2, dim))
        f = (method.ask(params, in_pairs, z) ** 2).sum(axis=1)
        in_pairs = method.tell(params, in_pairs, z, f)
        one_by_one = method.tell(params, one_by_one, np.concatenate([z, -z]), f)
    for field in set(method.State._fields) - {"scouts", "evidence"}:
        one, other = getattr(in_pairs, field), getattr(one_by_one, field)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert np.abs(in_pairs.mean - start.mean).max() > 0.1


# === The search ===


@pytest.mark.parametrize("method", fmnes.METHODS)
def test_every_method_converges(method):
    result = search(method=method, ftarget=1e-6)
    assert result.success
    assert sphere(result.x) == result.fun <= 1e-6


def test_workers_never_wait():
    """A barrier idles while the slowest of a generation works."""
    waiting, busy = pool(16), pool(16)
    options = {"x0": (3.0,) * 20, "popsize": 16, "maxfevals": 1600}
    fmnes.minimize(
        sphere, [3.0] * 20, 2.0, popsize=16, maxfevals=1600, rng=1,
        workers=fmnes.Evaluator(waiting, chunksize=1),
    )  # fmt: skip
    search(workers=busy, **options)
    assert waiting.utilisation < 0.5
    assert busy.utilisation > 0.95


def test_the_same_order_of_arrival_gives_the_same_bits():
    one, same, other = (search(workers=pool(seed=seed), maxiter=30) for seed in (5, 5, 6))
    assert digest(one) == digest(same) != digest(other)


def test_bounds_float32_and_infeasible_points():
    def fun(x):
        assert (x >= -1).all()
        return math.inf if x[0] < 0.5 else sphere(x)

    result = search(
        fun, x0=np.full(5, 2.0, np.float32), sigma0=0.5, bounds=[(-1, 3)] * 5, maxiter=150
    )
    assert result.x.dtype == np.float32
    assert fun(result.x) == result.fun == pytest.approx(0.25, abs=1e-3)


def test_the_evaluator_may_say_so():
    with fmnes.Evaluator(pool(), asynchronous=True) as evaluator:
        result = fmnes.minimize(sphere, [3.0] * 6, 2.0, workers=evaluator, rng=1, maxiter=20)
    assert digest(result) == digest(search(maxiter=20))


@pytest.mark.parametrize("limit", [{"maxfevals": 205}, {"maxiter": 20}])
def test_no_evaluation_beyond_the_budget(limit):
    calls = []
    result = search(lambda x: calls.append(1) or sphere(x), popsize=10, **limit)
    assert len(calls) == result.nfev == 201  # x0 and 20 generations


def test_restarts():
    result = search(lambda x: sphere(np.floor(3 * x)) + 1, restarts=2, maxfevals=5000)
    assert [run.popsize for run in result.restarts] == [10, 20, 40]
    assert result.nfev == sum(run.nfev for run in result.restarts)


@pytest.mark.parametrize(("count", "popsize"), [(3, 10), (11, 12), (16, 16)])
def test_a_generation_is_at_least_as_large_as_the_number_of_workers(count, popsize):
    assert fmnes.Evaluator(count, asynchronous=True).fixed_width == count
    for workers in (pool(count), lambda: pool(count)):
        assert search(workers=workers, maxiter=2).restarts[0].popsize == popsize


def test_a_generation_stays_within_the_budget():
    assert read_start([3.0] * 6, 2.0, maxfevals=20).enlarged(30).popsize == 10


# === Failures ===


def test_failures_are_counted_and_told():
    def fun(x):
        if x[0] < 2.9:
            raise ArithmeticError("no value")
        return sphere(x)

    evaluator = fmnes.Evaluator(pool(), on_error="penalize", asynchronous=True)
    result = search(fun, workers=evaluator, maxiter=10)
    assert 0 < result.nfailed < result.nfev
    assert "no value" in result.first_error


def test_an_error_has_the_candidate_and_the_result_so_far():
    calls = []

    def fun(x):
        calls.append(sphere(x))
        if len(calls) == 25:
            raise ArithmeticError("no value")
        return calls[-1]

    with pytest.raises(fmnes.EvaluationError, match="no value") as caught:
        search(fun, popsize=10)
    assert sphere(caught.value.x) == calls[-1]
    result = caught.value.result
    assert (result.nfev, result.nit) == (24, 2)
    assert result.fun == sphere(result.x) == min(calls[:-1])


# === Checkpoints ===


def bits(result):
    figures = result.fun, result.sigma, result.nfev, result.nit, result.nfailed, result.first_error
    return result.x.tobytes(), result.mean.tobytes(), *figures


class Copies:
    """A callback that keeps the files of a checkpoint and the result of each generation."""

    def __init__(self, path, folder):
        self.path, self.folder, self.results = path, folder, []

    def __call__(self, result):
        self.results.append(bits(result))
        place = self.folder / str(result.nit)
        place.mkdir()
        for file in self.path.parent.iterdir():
            if not file.name.endswith(".lock"):
                shutil.copy(file, place)


def faulty(x):
    """A tenth of the points fail."""
    if int(1000 * abs(x[0])) % 10 == 0:
        raise ArithmeticError(f"no value at {x[0]}")
    return sphere(x)


@pytest.mark.parametrize("every", [0, 1000], ids=["checkpoints", "journal"])
def test_a_search_that_resumes_repeats_the_order_of_arrival(tmp_path, every):
    """Resumed from the files of any generation, the search arrives at the same bits."""
    (tmp_path / "run").mkdir()
    copies = Copies(tmp_path / "run" / "run.npz", tmp_path)

    def run(path, seed, **options):
        evaluator = fmnes.Evaluator(pool(seed=seed), on_error="penalize", asynchronous=True)
        keep = fmnes.Checkpoint(path, every=every)
        return search(faulty, workers=evaluator, checkpoint=keep, **options)

    ended = run(copies.path, 0, maxiter=12, callback=copies)
    assert ended.nfailed > 0
    for generation in (1, 2, 7, 12):
        path = tmp_path / str(generation) / "run.npz"
        assert (
            bits(run(path, 9, maxiter=generation, resume="must")) == copies.results[generation - 1]
        )
        assert bits(run(path, 9, maxiter=12)) != bits(ended) or generation == 12


def test_values_of_an_unfinished_generation_are_not_computed_again(tmp_path):
    calls = []

    def fun(x):
        calls.append(x.tobytes())
        if len(calls) == 37:
            raise KeyboardInterrupt
        return sphere(x)

    first = search(fun, checkpoint=tmp_path / "run.npz", popsize=10, maxiter=6)
    assert (first.status, first.nfev, first.nit) == ("interrupted", 36, 3)
    told = set(calls[:36])
    result = search(fun, checkpoint=tmp_path / "run.npz", popsize=10, maxiter=6)
    assert (result.nfev, len(calls)) == (61, 62)  # with x0
    assert not told & set(calls[37:])
    assert calls[36] in calls[37:]  # what was running is computed again


def test_a_search_that_is_not_asynchronous_is_another_one(tmp_path):
    path = tmp_path / "run.npz"
    search(maxiter=2, checkpoint=path)
    with pytest.raises(ValueError, match=r"asynchronous \(True there\)"):
        fmnes.minimize(sphere, [3.0] * 6, 2.0, rng=1, checkpoint=path)


def test_a_search_that_resumes_on_more_workers_keeps_its_popsize(tmp_path):
    path = tmp_path / "run.npz"
    first = search(maxiter=5, checkpoint=path, workers=pool(12))
    again = search(maxiter=9, checkpoint=path, workers=pool(30), resume="must")
    assert first.restarts[0].popsize == again.restarts[0].popsize == 12
    assert again.nit == 9
    with pytest.raises(ValueError, match=r"popsize \(12 there\)"):
        search(maxiter=9, checkpoint=path, workers=pool(12), popsize=14)


@pytest.mark.arrays
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_searches_on_other_arrays_resume(library, tmp_path):
    module = pytest.importorskip(library, reason=f"needs the extra fmnes[{library}]")
    xp = module if library == "torch" else importlib.import_module("jax.numpy")
    x0 = xp.asarray(np.full(5, 3.0, np.float32))

    def run(generations, **options):
        return search(lambda x: float((x**2).sum()), x0=x0, maxiter=generations, **options)

    first = run(6, checkpoint=tmp_path / "run.npz")
    again = run(6, checkpoint=tmp_path / "run.npz", resume="must", workers=pool(seed=7))
    assert type(first.x) is type(again.x) is type(x0)
    assert (again.fun, again.sigma, again.nfev) == (first.fun, first.sigma, 6 * 8 + 1)
    assert np.array_equal(np.asarray(again.mean), np.asarray(first.mean))
    assert run(8, checkpoint=tmp_path / "run.npz").nit == 8


def test_integers():
    def fun(x):
        assert (x[:4] == np.round(x[:4])).all()
        return sphere(x - [2, -3, 0, 5, 0.5, -0.5])

    result = search(
        fun, x0=(0.0,) * 6, bounds=[(-9, 9)] * 6, integrality=[1, 1, 1, 1, 0, 0], ftarget=1e-6
    )
    assert result.success
    assert result.x[:4].tolist() == [2, -3, 0, 5]
    assert fun(result.x) == result.fun
