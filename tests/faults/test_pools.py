"""Pools that somebody else made, or makes for us."""

import multiprocessing
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from faults import objectives
from faults.common import (
    EXPECTED,
    Scheduler,
    X,
    assert_only_trouble_failed,
    process_pool,
)
from fmnes.evaluate import (
    EvaluationError,
    Evaluator,
)


def test_a_pool_of_the_caller_stays_open():
    with ThreadPoolExecutor(2) as threads:
        with Evaluator(threads) as evaluator:
            values = evaluator.evaluate(lambda x: objectives.sphere(x), (), X).values
        assert values.tolist() == EXPECTED
        with Evaluator(threads) as evaluator, pytest.raises(EvaluationError):
            evaluator.evaluate(objectives.raises, (), X)
        assert threads.submit(int, "7").result() == 7


def test_a_pool_that_we_made_is_shut_down():
    made = []

    def make():
        made.append(ThreadPoolExecutor(2))
        return made[-1]

    with Evaluator(make) as evaluator:
        for _ in range(2):
            assert evaluator.evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED
    assert len(made) == 1
    with pytest.raises(RuntimeError, match="after shutdown"):
        made[0].submit(int)


def test_a_factory_is_called_again_after_a_break(log):
    made = []

    def make():
        made.append(process_pool())
        return made[-1]

    with Evaluator(make) as evaluator:
        outcome = evaluator.evaluate(objectives.killed_once, (log,), X)
    assert outcome.values.tolist() == EXPECTED
    assert len(made) == 2


def test_a_class_of_executors_is_a_factory():
    with Evaluator(ThreadPoolExecutor) as evaluator:
        assert evaluator.evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED


def test_a_pool_of_the_caller_that_breaks_cannot_be_rebuilt(log):
    with process_pool() as pool, Evaluator(pool, on_error="penalize") as evaluator:
        for _ in range(2):  # it is still broken the second time
            with pytest.raises(EvaluationError, match=r"workers: .* broke .* pass a function"):
                evaluator.evaluate(objectives.killed_always, (log,), X)


@pytest.mark.parametrize("pool", [lambda: ThreadPoolExecutor(1), process_pool])
def test_a_pool_that_was_shut_down(pool):
    executor = pool()
    executor.shutdown()
    with (
        Evaluator(executor) as evaluator,
        pytest.raises(EvaluationError, match=r"^workers: expected .* got one .* \(cannot schedule"),
    ):
        evaluator.evaluate(objectives.sphere, (), X)


def test_jobs_with_nothing_but_done_and_result():
    with Evaluator(Scheduler()) as evaluator:
        assert evaluator.evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED


def test_a_hang_in_a_pool_of_unknown_width_charges_only_the_one_that_hangs():
    release = threading.Event()

    def fun(x):
        if x[0] == objectives.TROUBLE:
            release.wait()
        return objectives.sphere(x)

    with Evaluator(lambda: Scheduler(1), timeout=1.0, on_error="penalize") as evaluator:
        outcome = evaluator.evaluate(fun, (), X)
    release.set()
    assert_only_trouble_failed(outcome)


def test_a_task_that_the_pool_itself_gives_up_is_tried_once_more():
    class Forgetful:
        """Loses the first attempt at candidate 3 and says so, as Dask and Ray do."""

        lost = False

        def submit(self, function, task, candidates, rows, seconds):
            future = Future()
            if objectives.TROUBLE in candidates and not self.lost:
                self.lost = True
                future.set_exception(OSError("worker lost"))
            else:
                future.set_result(function(task, candidates, rows, seconds))
            return future

    assert Evaluator(Forgetful()).evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED


def test_a_map_given_as_workers_is_told_how_to_pass_it():
    """As SciPy's differential_evolution accepts it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(TypeError, match=r"workers: .*Evaluator\.from_map"):
            Evaluator(pool)
        for function in (pool.map, map):
            with pytest.raises(TypeError) as raised:
                Evaluator(function).evaluate(objectives.sphere, (), X)
            assert "Evaluator.from_map" in raised.value.__notes__[0]


def test_from_map():
    with ThreadPoolExecutor(2) as threads:
        evaluator = Evaluator.from_map(threads.map)
        assert evaluator.evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED
        with pytest.raises(EvaluationError, match="candidate 3"):
            evaluator.evaluate(objectives.raises, (), X)
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        values = Evaluator.from_map(pool.map).evaluate(objectives.sphere, (), X).values
    assert values.tolist() == EXPECTED
    with pytest.raises(ValueError, match=r"map_like: expected one result for each of 8 .* got 0"):
        Evaluator.from_map(lambda function, items: []).evaluate(objectives.sphere, (), X)
