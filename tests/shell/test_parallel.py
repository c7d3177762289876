"""Several runs of a restart schedule at once share the workers of an asynchronous search."""

import itertools
import math
import shutil

import numpy as np
import pytest

import fmnes
from fmnes import IPOP
from fmnes.benchmarking.simulated_workers import SimulatedWorkers
from fmnes.runs.parallel import read_result


def pool(count=8, seed=0):
    """Workers that take lognormal times with coefficient of variation 1."""
    luck = np.random.default_rng(seed)
    return SimulatedWorkers(count, lambda: luck.lognormal(-math.log(2) / 2, math.sqrt(math.log(2))))


def sphere(x):
    return float((x**2).sum())


def steps(x):
    """A staircase: every run ends soon, on a flat step."""
    return sphere(np.floor(3 * x)) + 1


def search(fun=sphere, *, workers=None, restarts=IPOP(3, parallel=2), **options):
    workers = pool() if workers is None else workers
    options = {"rng": 1, "asynchronous": True} | options
    return fmnes.minimize(fun, [3.0] * 6, 2.0, workers=workers, restarts=restarts, **options)


def bits(result):
    runs = [(run.popsize, run.nfev, run.nit, run.fun, run.status) for run in result.restarts]
    figures = result.fun, result.sigma, result.nfev, result.nit, result.nfailed
    return result.x.tobytes(), result.mean.tobytes(), runs, *figures


def test_runs_are_in_progress_at_the_same_time_and_all_of_them_are_made():
    at_once = []

    def callback(result):
        at_once.append(sum(run.status == "running" for run in result.restarts))

    calls = []
    result = search(lambda x: calls.append(1) or steps(x), callback=callback, maxfevals=20_000)
    assert [run.popsize for run in result.restarts] == [10, 20, 40, 80]
    assert max(at_once) == 2
    assert result.nfev == len(calls) == sum(run.nfev for run in result.restarts)
    assert steps(result.x) == result.fun
    generations = result.history["generation"]
    assert generations.tolist() == list(range(1, result.nit + 1))


def test_no_value_is_lost_when_a_run_ends():
    """The candidates of the run that ends are still evaluated, and count."""
    seen = []
    result = search(lambda x: seen.append(steps(x)) or seen[-1], maxfevals=3000)
    assert result.fun == min(seen)
    assert result.nfev == len(seen) <= 3000
    # x0 and generations alone would be a multiple of the population size.
    assert any((run.nfev - (i == 0)) % run.popsize for i, run in enumerate(result.restarts))


def test_the_target_ends_all_runs():
    result = search(ftarget=1e-6)
    assert result.success
    assert sphere(result.x) == result.fun <= 1e-6
    assert len(result.restarts) == 2


def test_the_message_has_the_first_error_if_every_evaluation_failed():
    def broken(x):
        raise ZeroDivisionError("the mesh is tangled")

    with fmnes.Evaluator(pool(), on_error="penalize") as evaluator:
        result = search(broken, workers=evaluator, maxfevals=400)
    assert (result.status, result.nfailed) == ("infeasible", result.nfev)
    assert "ZeroDivisionError: the mesh is tangled" in result.message


@pytest.mark.parametrize("limit", [{"maxfevals": 405}, {"maxfevals": 41}, {"maxiter": 7}])
def test_no_evaluation_beyond_the_budget(limit):
    calls = []
    result = search(lambda x: calls.append(1) or sphere(x), **limit)
    assert len(calls) == result.nfev <= limit.get("maxfevals", math.inf)
    if "maxiter" in limit:
        assert max(run.nit for run in result.restarts) <= 8  # runs end after a batch


def test_workers_never_wait():
    workers = pool(16)
    search(steps, workers=workers, maxfevals=4000)
    assert workers.utilisation > 0.95


def test_a_generation_needs_only_its_share_of_the_workers():
    assert search(workers=pool(32), maxfevals=500).restarts[0].popsize == 16


class Copies:
    """A callback that keeps the files of a checkpoint and the result after each batch."""

    def __init__(self, path, folder):
        self.path, self.folder, self.results = path, folder, {}

    def __call__(self, result):
        self.results[result.nfev] = bits(result)
        place = self.folder / str(result.nfev)
        place.mkdir()
        for file in self.path.parent.iterdir():
            if not file.name.endswith(".lock"):
                shutil.copy(file, place)


def constrained(x):
    if int(1000 * abs(x[1])) % 10 == 0:
        raise ArithmeticError("no value")
    return steps(x), [2.2 - x[0]]  # within a step, so that runs end


@pytest.mark.parametrize("every", [0, 1000], ids=["checkpoints", "journal"])
@pytest.mark.parametrize(
    ("fun", "options"),
    [(steps, {}), (constrained, {"constraints": 1, "method": "cr-fm-nes"})],
    ids=["plain", "g"],
)
def test_a_search_that_resumes_repeats_the_order_of_arrival(tmp_path, every, fun, options):
    """Resumed from the files after any batch, on other workers, the search has the same bits."""
    (tmp_path / "run").mkdir()
    copies = Copies(tmp_path / "run" / "run.npz", tmp_path)

    def run(path, seed, **more):
        evaluator = fmnes.Evaluator(pool(seed=seed), on_error="penalize", asynchronous=True)
        keep = fmnes.Checkpoint(path, every=every)
        return search(fun, workers=evaluator, checkpoint=keep, **options, **more)

    ended = run(copies.path, 0, maxfevals=2500, callback=copies)
    assert len(ended.restarts) > 2
    moments, lengths = sorted(copies.results), []
    for moment in moments[:: len(moments) // 6]:
        path = tmp_path / str(moment) / "run.npz"
        stops = []

        def stop(result, moment=moment, stops=stops):
            stops.append(result)
            return result.nfev >= moment

        run(path, 9, maxfevals=2500, resume="must", callback=stop)
        repeated = {result.nfev: bits(result) for result in stops}
        assert moment in repeated or every == 0  # a checkpoint may already be there
        assert all(
            copies.results[nfev] == found for nfev, found in repeated.items() if nfev <= moment
        )
        lengths.append(len(repeated))
    assert max(lengths) > (50 if every else 0)


def generations_of_runs(result):
    """The generations that have a row in the history, run by run."""
    ends = np.cumsum([0, *(run.nit for run in result.restarts)])
    rows = result.history["generation"]
    return [rows[(rows > a) & (rows <= b)] - a for a, b in itertools.pairwise(ends)]


def test_the_history_of_each_run_is_thinned_out(tmp_path):
    whole = search(steps, history_size=math.inf, maxfevals=2000)
    assert len(whole.history) == whole.nit
    options = {"history_size": 8, "checkpoint": tmp_path / "run.npz"}
    search(steps, **options, maxfevals=1000)
    thin = search(steps, **options, maxfevals=2000)
    for run, rows in zip(thin.restarts, generations_of_runs(thin), strict=True):
        assert rows[:8].tolist() == list(range(1, min(run.nit, 8) + 1))
        assert (rows[8:-1] % 2 == 1).sum() <= 1  # the best value of the run may be there
        assert rows[-1] == run.nit
    assert len(thin.history) < len(whole.history)


def test_the_result_of_a_file(tmp_path):
    path = tmp_path / "run.npz"
    result = search(steps, checkpoint=path, maxfevals=1500)
    assert bits(read_result(path, result.status)) == bits(result)


def test_a_search_goes_on_after_an_interrupt_with_the_values_that_it_had(tmp_path):
    calls = []

    def fun(x):
        calls.append(x.tobytes())
        if len(calls) == 157:
            raise KeyboardInterrupt
        return sphere(x)

    first = search(fun, checkpoint=tmp_path / "run.npz", maxfevals=400)
    assert (first.status, first.nfev) == ("interrupted", 156)
    told = set(calls[:156])
    result = search(fun, checkpoint=tmp_path / "run.npz", maxfevals=400)
    assert result.nfev > 380
    assert not told & set(calls[157:])


def test_parallel_runs_need_an_asynchronous_search():
    with pytest.raises(ValueError, match="restarts: expected asynchronous=True with IPOP"):
        search(asynchronous=False)
    with pytest.raises(ValueError, match="parallel: expected at least 1, got 0"):
        IPOP(3, parallel=0)
    assert repr(IPOP(9)) == "IPOP(n=9, factor=2.0)"  # as checkpoints hold it
    assert repr(IPOP(9, parallel=2)) == "IPOP(n=9, factor=2.0, parallel=2)"
