"""Evaluations survive what objectives and workers do: raise, hang, die, return nonsense."""

import os
import re
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from faults import objectives
from faults.common import (
    EXPECTED,
    INNOCENT,
    PROCESSES,
    X,
    assert_only_trouble_failed,
    wait_until_gone,
    warm_pool,
)
from fmnes.evaluate import (
    EvaluationError,
    Evaluator,
    _process,
)
from fmnes.kernels import available_cpus


@pytest.mark.parametrize("pool", PROCESSES)
def test_processes_give_the_values_of_the_serial_loop(pool):
    with Evaluator(pool) as evaluator:
        for shift in (0.0, 0.5):  # other args must not meet what the workers still hold
            values = evaluator.evaluate(objectives.shifted, (shift,), X).values
            assert values.tolist() == [objectives.shifted(row, shift) for row in X]
        for rows in (1, 0, len(X)):
            values = evaluator.evaluate(objectives.sphere, (), X[:rows]).values
            assert values.tolist() == EXPECTED[:rows]


def test_a_process_for_each_cpu():
    count = available_cpus()
    with Evaluator(-1, chunksize=1) as evaluator:
        values = evaluator.evaluate(objectives.process, (), objectives.population(count)).values
    assert len(set(values)) == count


@pytest.mark.parametrize("pool", PROCESSES)
@pytest.mark.parametrize("dim", [3, 30_000])  # the larger does not fit into a pipe's buffer
def test_a_worker_killed_once_costs_nothing_even_without_retries(pool, dim, log):
    x = objectives.population(dim=dim)
    with Evaluator(pool) as evaluator:
        outcome = evaluator.evaluate(objectives.killed_once, (log,), x)
    assert outcome.values.tolist() == [objectives.sphere(row) for row in x]
    assert outcome.nfailed == 0


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("pool", PROCESSES)
def test_a_candidate_that_always_kills_its_worker_fails_alone(pool, retries, log):
    with Evaluator(pool, retries=retries, on_error="penalize", chunksize=1) as evaluator:
        outcome = evaluator.evaluate(objectives.killed_always, (log,), X)
        assert_only_trouble_failed(outcome)
        assert evaluator.evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED
    if pool == 2:  # one process, one candidate: the blame is exact and nobody else runs twice
        attempts = max(retries, 1) + 1
        assert objectives.calls(log) == dict.fromkeys(INNOCENT, 1) | {3: attempts}
        assert "SIGKILL" in outcome.first_error


@pytest.mark.parametrize("pool", [2, pytest.param(warm_pool, id="factory")])
def test_a_hang_is_ended(pool, log):
    with Evaluator(pool, timeout=2.0, on_error="penalize", chunksize=1) as evaluator:
        outcome = evaluator.evaluate(objectives.hangs, (log,), X)
    assert_only_trouble_failed(outcome)
    assert outcome.first_error == "TimeoutError: no value within 2 seconds"
    assert objectives.calls(log)[objectives.TROUBLE] == 1


def test_a_hang_is_tried_again(log):
    with Evaluator(2, timeout=2.0, retries=1, chunksize=1) as evaluator:
        outcome = evaluator.evaluate(objectives.hangs_once, (log,), X)
    assert outcome.values.tolist() == EXPECTED
    assert objectives.calls(log) == dict.fromkeys(INNOCENT, 1) | {3: 2}


def test_a_timeout_also_ends_what_the_objective_started(log):
    with (
        Evaluator(1, timeout=2.0) as evaluator,
        pytest.raises(EvaluationError, match="no value within 2 seconds"),
    ):
        evaluator.evaluate(objectives.hangs_in_a_child, (log,), X[:1])
    (child,) = objectives.calls(log)
    wait_until_gone(child)


def test_an_objective_that_hangs_while_it_is_loaded_is_an_error(monkeypatch):
    monkeypatch.setattr(_process, "STARTUP_SECONDS", 0.25)
    with (
        Evaluator(2, timeout=0.25) as evaluator,
        pytest.raises(EvaluationError, match=r"timeout: .* 0\.5 seconds"),
    ):
        evaluator.evaluate(objectives.HangsWhileLoading(), (), X)


def test_a_worker_that_hangs_once_while_loading_is_replaced(monkeypatch, log):
    with Evaluator(1, timeout=0.5) as evaluator:
        assert evaluator.evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED
        monkeypatch.setattr(_process, "STARTUP_SECONDS", 1.5)
        outcome = evaluator.evaluate(objectives.HangsWhileLoading(log), (), X)
    assert outcome.values.tolist() == EXPECTED


def test_a_stopped_worker_does_not_stop_the_driver_that_sends_it_much(monkeypatch):
    large = np.zeros(2**22)  # more than any pipe holds
    with Evaluator(2, timeout=0.5) as evaluator:
        pids = set(evaluator.evaluate(objectives.process, (), X).values)
        monkeypatch.setattr(_process, "STARTUP_SECONDS", 1.0)
        os.kill(int(min(pids)), signal.SIGSTOP)
        outcome = evaluator.evaluate(objectives.shifted, (large[:3], large), X)
    assert outcome.values.tolist() == EXPECTED
    wait_until_gone(int(min(pids)))


def test_an_answer_that_is_not_the_workers_is_not_used():
    with Evaluator(2, on_error="penalize") as evaluator:
        outcome = evaluator.evaluate(objectives.answers_out_of_turn, (), X)
    assert_only_trouble_failed(outcome)


@pytest.mark.parametrize(
    "pool", [*PROCESSES, pytest.param(lambda: ThreadPoolExecutor(2), id="threads")]
)
def test_what_the_objective_raises_is_told_and_harms_nobody(pool):
    with Evaluator(pool, on_error="penalize") as evaluator:
        for fun, told in [
            (objectives.raises, "ValueError: the mesh is tangled"),
            (objectives.raises_unpicklable, "TwoArgumentsError: 17: diverged"),
            (objectives.raises_mute, "MuteError"),
            (objectives.exits, "SystemExit: the simulator gave up"),
        ]:
            outcome = evaluator.evaluate(fun, (), X)
            assert_only_trouble_failed(outcome)
            assert told in outcome.first_error
            assert f"in {fun.__name__}" in outcome.first_error


@pytest.mark.parametrize("pool", PROCESSES)
def test_an_interrupt_that_the_objective_raises_is_a_failure_like_others(pool):
    with Evaluator(pool, on_error="penalize") as evaluator:
        outcome = evaluator.evaluate(objectives.raises_an_interrupt, (), X)
    assert_only_trouble_failed(outcome)
    assert "KeyboardInterrupt: the simulator's own" in outcome.first_error


@pytest.mark.parametrize("pool", [None, *PROCESSES])
def test_a_value_that_cannot_be_fetched_is_a_failure_with_its_traceback(pool):
    with Evaluator(pool, on_error="penalize") as evaluator:
        outcome = evaluator.evaluate(objectives.fails_late, (), X)
    assert_only_trouble_failed(outcome)
    assert "RuntimeError: the device ran out of memory" in outcome.first_error
    assert "in __float__" in outcome.first_error


@pytest.mark.parametrize("pool", PROCESSES)
def test_what_the_objective_raises_ends_the_evaluation_by_default(pool):
    with Evaluator(pool, retries=1) as evaluator, pytest.raises(EvaluationError) as caught:
        evaluator.evaluate(objectives.raises_unpicklable, (), X)
    assert re.match(
        r"candidate 3 failed \(2 attempts\): .*TwoArgumentsError: 17: diverged\n", str(caught.value)
    )
    assert "in raises_unpicklable" in str(caught.value)


@pytest.mark.parametrize("pool", PROCESSES)
def test_retries_are_used_only_where_needed(pool, log):
    with Evaluator(pool, retries=3) as evaluator:
        assert evaluator.evaluate(objectives.raises_once, (log,), X).values.tolist() == EXPECTED
    assert objectives.calls(log) == dict.fromkeys(INNOCENT, 1) | {3: 2}


def test_the_exit_code_of_a_dead_worker_is_told():
    with Evaluator(2) as evaluator, pytest.raises(EvaluationError, match=r"3.*2 att.*exit code 7"):
        evaluator.evaluate(objectives.exits_hard, (), X)


@pytest.mark.parametrize("pool", [*PROCESSES, pytest.param("instance")])
def test_a_function_that_cannot_be_pickled_is_a_type_error(pool):
    with ProcessPoolExecutor(1) as instance:
        evaluator = Evaluator(instance if pool == "instance" else pool)
        with evaluator, pytest.raises(TypeError, match="fun: expected a function that can be pic"):
            evaluator.evaluate(objectives.Unpicklable(), (), X)
        with (
            evaluator,
            pytest.raises(TypeError, match="args: expected objects that can be pickled"),
        ):
            evaluator.evaluate(objectives.shifted, (threading.Lock(),), X)


def test_a_function_that_workers_cannot_load_is_a_type_error():
    with Evaluator(2) as evaluator:
        with pytest.raises(TypeError, match=r"fun: expected .* can import.*ImportError: no module"):
            evaluator.evaluate(objectives.CannotBeLoaded(), (), X)
        assert evaluator.evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED


def test_a_worker_that_dies_while_idle_is_replaced():
    with Evaluator(1) as evaluator:
        (pid,) = evaluator.evaluate(objectives.returns_own_pid, (), X[:1]).values
        os.kill(int(pid), signal.SIGKILL)
        wait_until_gone(int(pid))
        (other,) = evaluator.evaluate(objectives.returns_own_pid, (), X[:1]).values
        assert other != pid
    wait_until_gone(int(other))  # closing ends it


def test_a_worker_that_comes_up_late_does_not_mix_up_the_next_evaluation(log):
    with Evaluator(2) as evaluator:
        outcome = evaluator.evaluate(objectives.SlowToLoad(log), (), X)
        assert outcome.values.tolist() == EXPECTED
        for shift in (0.5, 1.5):  # the late answer comes in the midst of one of these
            outcome = evaluator.evaluate(objectives.shifted_slowly, (shift,), X)
            assert outcome.values.tolist() == [objectives.shifted(row, shift) for row in X]


def test_ctrl_c_goes_up_at_once_and_ends_the_workers(log):
    def interrupt():
        while not Path(log).exists() or len(objectives.calls(log)) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with Evaluator(2, on_error="penalize") as evaluator:
        with pytest.raises(KeyboardInterrupt):
            evaluator.evaluate(objectives.sleeps, (log,), X)
        for pid in objectives.calls(log):
            wait_until_gone(pid)
        assert evaluator.evaluate(objectives.sphere, (), X).values.tolist() == EXPECTED
    watcher.join()
