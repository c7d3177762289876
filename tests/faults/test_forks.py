"""Objectives that fork, and searches in forked processes."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest

import fmnes
from faults import objectives
from faults.common import EXPECTED, PROCESSES, X
from fmnes.evaluate import EvaluationError, Evaluator

WAYS = list(objectives.EXIT_CODES)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pool", [None, *PROCESSES])
def test_a_child_that_leaves_the_objective_ends(pool, way, capfd):
    with Evaluator(pool) as evaluator:
        for _ in range(3):
            values = evaluator.evaluate(objectives.forks, (way,), X).values
            assert values.tolist() == EXPECTED
    if pool is None:  # worker processes have the standard error of their fork server
        assert ("the child failed" in capfd.readouterr().err) == (way == "raise")


@pytest.mark.parametrize("way", WAYS)
def test_a_child_that_leaves_a_vectorized_objective_or_a_callback_ends(way):
    calls = []

    def fun(x):
        objectives.forks(x, way)
        return (x**2).sum(axis=1)

    def callback(result):
        calls.append(objectives.forks(result.x, way))

    result = fmnes.minimize(fun, X[0], 1.0, vectorized=True, callback=callback, maxiter=3, rng=1)
    assert result.fun == objectives.sphere(result.x)
    assert len(calls) == 3


# === Searches in processes that somebody forked ===


def in_a_forked_process(function, *, daemon=False):
    """What a function returns in a forked process, or the text of its exception."""

    def call():
        try:
            theirs.send(function())
        except EvaluationError as error:
            theirs.send(str(error))

    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=call, daemon=daemon)
    process.start()
    theirs.close()
    returned = ours.recv()
    process.join()
    assert process.exitcode == 0
    return returned


def workers_and_values(evaluator):
    workers = evaluator.evaluate(objectives.returns_own_pid, (), X).values
    values = evaluator.evaluate(objectives.sphere, (), X).values.tolist()
    evaluator.close()
    return set(workers), values


def test_a_forked_process_starts_workers_of_its_own():
    with Evaluator(1) as evaluator:
        ours = set(evaluator.evaluate(objectives.returns_own_pid, (), X).values)
        theirs, values = in_a_forked_process(lambda: workers_and_values(evaluator))
        assert values == EXPECTED
        assert not ours & theirs
        assert workers_and_values(evaluator) == (ours, EXPECTED)


def test_a_forked_process_is_told_that_it_cannot_use_the_pool_of_its_parent():
    with ThreadPoolExecutor(1) as pool, Evaluator(pool) as evaluator:
        evaluator.evaluate(objectives.sphere, (), X)
        told = in_a_forked_process(lambda: workers_and_values(evaluator))
    assert "workers: expected a pool that was made in this process" in told


def test_a_daemon_process_is_told_that_it_cannot_have_workers():
    told = in_a_forked_process(lambda: workers_and_values(Evaluator(1)), daemon=True)
    assert "workers: expected None in a daemon process" in told
