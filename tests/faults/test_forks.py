"""Objectives that fork, and searches in forked processes."""

import pytest
from faults import objectives
from faults.common import EXPECTED, PROCESSES, X

import fmnes
from fmnes.evaluate import Evaluator

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
