"""Policies of an Evaluator: what is evaluated, reported, retried and refused."""

import contextlib
import functools
import math
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from faults import objectives
from faults.common import (
    EXPECTED,
    INNOCENT,
    Scheduler,
    X,
    assert_only_trouble_failed,
    process_pool,
)
from fmnes.evaluate import (
    EvaluationError,
    Evaluator,
    _launch,
)

# === Without a pool ===


def test_serial_values_are_those_of_a_plain_loop():
    outcome = Evaluator().evaluate(objectives.shifted, (0.5,), X)
    assert outcome.values.tolist() == [objectives.shifted(row, 0.5) for row in X]
    assert (outcome.nfailed, outcome.first_error) == (0, None)


@pytest.mark.parametrize("pool", [None, 1])
def test_rows_are_read_only(pool):
    before = X.copy()
    with (
        Evaluator(pool) as evaluator,
        pytest.raises((ValueError, EvaluationError), match="read-only"),
    ):
        evaluator.evaluate(objectives.writes_to_x, (), X)
    assert np.array_equal(X, before)
    assert X.flags.writeable


def test_serial_exceptions_go_up_unchanged():
    error = objectives.TwoArgumentsError(1, "mine")

    def fun(x):
        raise error

    with pytest.raises(objectives.TwoArgumentsError) as caught:
        Evaluator().evaluate(fun, (), X)
    assert caught.value is error


@pytest.mark.parametrize("on_error", ["raise", "penalize"])
def test_serial_keyboard_interrupt_is_nobodys_failure(on_error):
    with pytest.raises(KeyboardInterrupt):
        Evaluator(on_error=on_error, retries=2).evaluate(objectives.interrupts, (), X)


@pytest.mark.parametrize("make", [Evaluator, functools.partial(Evaluator.from_map, map)])
def test_policies_hold_without_a_pool(make, log):
    outcome = make(on_error="penalize").evaluate(objectives.raises, (), X)
    assert_only_trouble_failed(outcome)
    assert "ValueError: the mesh is tangled" in outcome.first_error
    assert "in raises" in outcome.first_error
    assert make(retries=1).evaluate(objectives.raises_once, (log,), X).values.tolist() == EXPECTED
    assert objectives.calls(log)[objectives.TROUBLE] == 2
    with pytest.raises(EvaluationError, match=r"candidate 3 failed \(3 attempts\): ValueError"):
        make(retries=2).evaluate(objectives.raises, (), X)


def test_an_empty_population_has_no_values():
    for pool in (None, 2):
        assert Evaluator(pool).evaluate(objectives.sphere, (), X[:0]).values.shape == (0,)


# === What is known already, and what is reported ===

EVERY_WAY = [
    pytest.param(Evaluator, id="serial"),
    pytest.param(lambda **policies: Evaluator(2, **policies), id="int"),
    pytest.param(lambda **policies: Evaluator(process_pool, **policies), id="factory"),
    pytest.param(functools.partial(Evaluator.from_map, map), id="map"),
]


@pytest.mark.parametrize("make", EVERY_WAY)
def test_what_is_known_is_not_evaluated_again_and_the_rest_is_reported_once(make, log):
    known = {0: -1.0, 2: math.inf, 5: math.nan}
    reports = []
    with make() as evaluator:
        outcome = evaluator.evaluate(
            objectives.noted, (log,), X, known, lambda *told: reports.append(told)
        )
    expected = np.array([known.get(i, EXPECTED[i]) for i in range(len(X))])
    assert np.array_equal(outcome.values, expected, equal_nan=True)
    unknown = [i for i in range(len(X)) if i not in known]
    assert objectives.calls(log) == dict.fromkeys(unknown, 1)
    assert sorted(reports) == [(i, EXPECTED[i], None) for i in unknown]


@pytest.mark.parametrize("make", EVERY_WAY)
def test_failures_are_reported_as_nan(make):
    reports = []
    with make(on_error="penalize") as evaluator:
        outcome = evaluator.evaluate(
            objectives.raises, (), X, report=lambda *told: reports.append(told)
        )
        assert_only_trouble_failed(outcome)
        again = evaluator.evaluate(objectives.raises, (), X, dict(enumerate(EXPECTED)))
        assert (again.values.tolist(), again.nfailed) == (EXPECTED, 0)
    (failure,) = [told for told in reports if told[0] == 3]
    assert math.isnan(failure[1])
    assert failure[2] == outcome.first_error
    assert sorted(told for told in reports if told[0] != 3) == [
        (i, EXPECTED[i], None) for i in INNOCENT
    ]


def test_a_known_candidate_that_is_none_is_refused():
    with pytest.raises(ValueError, match="known: expected candidates from 0 to 7, got 8"):
        Evaluator().evaluate(objectives.sphere, (), X, {8: 0.0})


# === Threads ===


def test_a_second_thread_is_refused_and_disturbs_nobody():
    def intrude(*_):
        with ThreadPoolExecutor(1) as thread:
            for use in (lambda: evaluator.evaluate(objectives.sphere, (), X), evaluator.close):
                errors.append(thread.submit(use).exception())

    errors = []
    with Evaluator(2) as evaluator:
        outcome = evaluator.evaluate(objectives.sphere, (), X, report=intrude)
        assert outcome.values.tolist() == EXPECTED
        assert len(errors) == 2 * len(X)
        assert {type(error) for error in errors} == {RuntimeError}
        with ThreadPoolExecutor(1) as thread:  # afterwards any thread may use it
            later = thread.submit(evaluator.evaluate, objectives.sphere, (), X).result()
    assert later.values.tolist() == EXPECTED


def test_threads_start_their_workers_one_after_the_other(monkeypatch):
    """A start changes the environment for a moment."""
    starting, together = [], []

    @contextlib.contextmanager
    def slow_start():
        starting.append(None)
        together.append(len(starting))
        time.sleep(0.1)
        starting.pop()
        yield

    def search(_):
        with Evaluator(1) as evaluator:
            return evaluator.evaluate(objectives.sphere, (), X).values.tolist()

    monkeypatch.setattr(_launch, "_one_thread_each", slow_start)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(search, range(3))) == [EXPECTED] * 3
    assert together == [1, 1, 1]


# === Arguments ===


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"workers": 0}, ValueError, "workers: .*got 0"),
        ({"workers": True}, TypeError, "workers: .*got bool: True"),
        ({"workers": "dask"}, TypeError, "workers: .*got str: 'dask'"),
        ({"workers": 2, "timeout": 0}, ValueError, "timeout: .*got 0"),
        ({"workers": 2, "timeout": math.nan}, ValueError, "timeout: .*got nan"),
        ({"workers": 2, "timeout": math.inf}, ValueError, "timeout: .*got inf"),
        ({"workers": 2, "timeout": "1"}, TypeError, "timeout: .*got '1'"),
        ({"timeout": 1.0}, ValueError, "timeout: .*workers is None"),
        ({"workers": Scheduler(), "timeout": 1.0}, ValueError, "timeout: expected None"),
        ({"retries": -1}, ValueError, "retries: .*got -1"),
        ({"retries": 1.5}, TypeError, "retries: .*got 1.5"),
        ({"on_error": "ignore"}, ValueError, "on_error: .*'raise', 'penalize', got 'ignore'"),
        ({"workers": 2, "fraction": 0.0}, ValueError, "fraction: .*got 0.0"),
        ({"workers": 2, "fraction": 1.5}, ValueError, "fraction: .*got 1.5"),
        ({"workers": 2, "fraction": "1"}, TypeError, "fraction: .*got '1'"),
        ({"workers": 2, "fraction": 0.9}, ValueError, "fraction: .*on_error='raise'"),
        ({"fraction": 0.9, "on_error": "penalize"}, ValueError, "fraction: expected workers"),
        ({"workers": 2, "chunksize": 0}, ValueError, "chunksize: .*got 0"),
        ({"chunksize": 2}, ValueError, "chunksize: expected workers"),
    ],
)
def test_arguments_are_checked_at_once(arguments, error, told):
    with pytest.raises(error, match=told):
        Evaluator(**arguments)


def test_other_bad_arguments():
    with pytest.raises(TypeError, match="map_like: expected a function, got 2"):
        Evaluator.from_map(2)
    with pytest.raises(
        TypeError, match=r"workers: expected a function that returns .* returned int"
    ):
        Evaluator(int).evaluate(objectives.sphere, (), X)


def test_its_repr_is_how_it_is_made():
    first = Evaluator(2, timeout=3.0, on_error="penalize", asynchronous=True)
    again = eval(repr(first))
    assert repr(again) == repr(first) != repr(Evaluator(2))
    assert (again.fixed_width, again.asynchronous) == (2, True)
