"""Evaluations survive what objectives and workers do: raise, hang, die, return nonsense."""

import functools
import math
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from faults import objectives

from fmnes.evaluate import (
    EvaluationError,
    Evaluator,
    evaluate_vectorized,
    to_value,
    to_values,
)
from fmnes.evaluate._guard import Task, evaluate_chunk
from fmnes.evaluate._pace import Pace

X = objectives.population()
EXPECTED = [objectives.sphere(row) for row in X]
INNOCENT = [i for i in range(len(X)) if i != objectives.TROUBLE]


@pytest.fixture(autouse=True)
def _hard_limit():
    """A hang must fail, not block."""

    def give_up(*_):
        raise RuntimeError("the test hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(40)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "calls")


def process_pool():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver"))


def warm(pool):
    """Wait until both workers are up: the time that a pool takes to start counts as anybody's."""
    for future in [pool.submit(time.sleep, 0.5) for _ in range(2)]:
        future.result()
    return pool


def warm_pool():
    return warm(process_pool())


# Pools that a worker's death must not disturb: our own processes, and somebody's pool of them.
PROCESSES = [pytest.param(2, id="int"), pytest.param(process_pool, id="factory")]


def assert_only_trouble_failed(outcome):
    assert outcome.nfailed == 1
    assert math.isnan(outcome.values[objectives.TROUBLE])
    assert outcome.values[INNOCENT].tolist() == [EXPECTED[i] for i in INNOCENT]


# === Values ===


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (1.5, 1.5),
        (3, 3.0),
        (True, 1.0),
        (np.bool_(False), 0.0),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.longdouble(2), 2.0),
        (np.int8(-7), -7.0),
        (np.array(2.5), 2.5),
        (np.array([2.5]), 2.5),
        (np.array([[2.5]]), 2.5),
        (Fraction(1, 4), 0.25),
        (Decimal("0.25"), 0.25),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
    ],
)
def test_real_numbers_are_values(raw, value):
    got = to_value(raw, 0)
    assert type(got) is float
    assert got == value


def test_nan_is_a_value():
    assert math.isnan(to_value(math.nan, 0))
    assert math.isnan(to_value(np.float32("nan"), 0))


@pytest.mark.arrays
@pytest.mark.parametrize("name", ["torch", "jax.numpy"])
def test_arrays_of_other_libraries_are_values(name):
    xp = pytest.importorskip(name)
    assert to_value(xp.asarray(0.5), 0) == 0.5
    assert to_value(xp.asarray([0.5]), 0) == 0.5
    assert to_values(xp.asarray([0.5, 1.5]), 2).tolist() == [0.5, 1.5]
    with pytest.raises(TypeError, match=r"candidate 4.*shape \(2,\)"):
        to_value(xp.asarray([0.5, 1.5]), 4)


BAD_VALUES = [
    (None, "NoneType: None"),
    (1 + 2j, "complex"),
    (np.complex128(1), "complex128"),
    (np.array([1j]), "ndarray"),
    ("1.0", "str: '1.0'"),
    (b"1.0", "bytes"),
    (np.str_("1.0"), "str_"),
    (np.array([1.0, 2.0, 3.0]), r"shape \(3,\)"),
    (np.array([]), r"shape \(0,\)"),
    ([1.0], "list"),
    ({}, "dict"),
    pytest.param(10**5000, "int beyond the range of float", id="too many digits to print"),
]


@pytest.mark.parametrize(("raw", "named"), BAD_VALUES)
def test_all_else_is_a_type_error_that_names_the_candidate(raw, named):
    with pytest.raises(
        TypeError, match=f"fun: expected a real number for candidate 5, got.*{named}"
    ):
        to_value(raw, 5)


@pytest.mark.parametrize("pool", [None, 2])
def test_a_bad_value_is_a_type_error_with_and_without_a_pool(pool):
    told = "fun: expected a real number for candidate 3, got NoneType: None"
    with Evaluator(pool) as evaluator, pytest.raises(TypeError, match=told):
        evaluator.evaluate(objectives.returns_none, (), X)
    with Evaluator(pool, retries=1, on_error="penalize") as evaluator:
        outcome = evaluator.evaluate(objectives.returns_none, (), X)
    assert_only_trouble_failed(outcome)
    assert told in outcome.first_error


@pytest.mark.parametrize(
    "raw",
    [[1, 2.5], (1.0, 2.5), np.array([1, 2.5], dtype=np.float32), [Fraction(1), Decimal("2.5")]],
)
def test_a_vectorized_objective_returns_one_number_for_each_row(raw):
    values = to_values(raw, 2)
    assert values.dtype == np.float64
    assert values.tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (None, r"shape \(\)"),
        (1.0, r"shape \(\)"),
        ([1.0], r"shape \(1,\)"),
        ([[1.0], [2.0]], r"shape \(2, 1\)"),
        ([[1.0], [2.0, 3.0]], "inhomogeneous"),
        ([1.0, 2j], "dtype complex128"),
        (["1", "2"], "dtype <U1"),
        ([1.0, None], "candidate 1, got NoneType"),
        ([1.0, "2"], "dtype <U32"),
    ],
)
def test_a_vectorized_objective_that_does_not_is_a_type_error(raw, named):
    with pytest.raises(TypeError, match=named):
        to_values(raw, 2)


def test_vectorized_calls_once_with_a_read_only_array_and_keeps_no_hold_of_the_answer():
    seen, buffer = [], np.zeros(len(X))

    def fun(x, shift):
        seen.append(x)
        assert not x.flags.writeable
        return np.add(x[:, 0], shift, out=buffer)

    outcome = evaluate_vectorized(fun, (1.0,), X)
    buffer[:] = np.nan
    assert len(seen) == 1
    assert outcome.values.tolist() == (X[:, 0] + 1.0).tolist()
    assert X.flags.writeable


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


# === With processes ===


@pytest.mark.parametrize("pool", PROCESSES)
def test_processes_give_the_values_of_the_serial_loop(pool):
    with Evaluator(pool) as evaluator:
        for shift in (0.0, 0.5):  # other args must not meet what the workers still hold
            values = evaluator.evaluate(objectives.shifted, (shift,), X).values
            assert values.tolist() == [objectives.shifted(row, shift) for row in X]
        for rows in (1, 0, len(X)):
            values = evaluator.evaluate(objectives.sphere, (), X[:rows]).values
            assert values.tolist() == EXPECTED[:rows]


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


# === Stragglers ===


@pytest.mark.parametrize("pool", PROCESSES)
def test_a_share_of_the_population_is_enough(pool, log):
    with Evaluator(pool, on_error="penalize", fraction=0.8, chunksize=1) as evaluator:
        outcome = evaluator.evaluate(objectives.hangs, (log,), X)  # 7 of 8 come back
        assert_only_trouble_failed(outcome)
        assert "no value when the share `fraction` had come back" in outcome.first_error
        if pool == 2:  # others are left to end by themselves, and this one never does
            values = evaluator.evaluate(objectives.sphere, (), X).values
            assert sum(a == b for a, b in zip(values, EXPECTED, strict=True)) >= 7
        else:
            evaluator._slots[0].kill()


def test_what_comes_late_is_not_mixed_up_with_the_next_population():
    release = threading.Event()

    def fun(x, shift):
        if shift == 0.0 and x[0] == objectives.TROUBLE:
            release.wait()
        return objectives.shifted(x, shift)

    with (
        ThreadPoolExecutor(2) as threads,
        Evaluator(threads, on_error="penalize", fraction=0.8, chunksize=1) as evaluator,
    ):
        assert_only_trouble_failed(evaluator.evaluate(fun, (0.0,), X))
        timer = threading.Timer(0.1, release.set)
        timer.start()
        for shift in (0.5, 1.5):
            values = evaluator.evaluate(fun, (shift,), np.repeat(X, 20, axis=0)).values
            expected = [objectives.shifted(row, shift) for row in np.repeat(X, 20, axis=0)]
            assert np.isnan(values).sum() <= 0.2 * len(values)
            assert all(a == b for a, b in zip(values, expected, strict=True) if a == a)
        timer.join()


# === Chunks ===


@pytest.mark.parametrize("pool", PROCESSES)
@pytest.mark.parametrize("fun", [objectives.killed_always, objectives.hangs])
def test_the_one_to_blame_in_a_chunk_is_found(pool, fun, log):
    if fun is objectives.hangs and pool != 2:
        pool = warm_pool
    timeout = 2.0 if fun is objectives.hangs else None
    with Evaluator(pool, timeout=timeout, on_error="penalize", chunksize=4) as evaluator:
        assert_only_trouble_failed(evaluator.evaluate(fun, (log,), X))
    if pool == 2:  # those before it in its chunk run twice, those after it once
        attempts = 2 if fun is objectives.hangs else 3
        assert objectives.calls(log) == dict.fromkeys(range(8), 1) | dict.fromkeys(range(3), 2) | {
            3: attempts
        }


def test_a_chunk_comes_back_when_its_time_is_over():
    def row(k):
        return X[k]

    task = Task(objectives.sphere, ())
    answer = evaluate_chunk(task, [0, 1, 2], row, 0.0)
    assert list(answer.results) == EXPECTED[:1]
    answer = evaluate_chunk(task, [0, 1, 2], row, math.inf)
    assert list(answer.results) == EXPECTED[:3]
    assert answer.seconds > 0


class TestPace:
    def test_one_at_a_time_until_a_cost_is_known(self):
        assert Pace(None).size(64, 2) == 1

    def test_a_fixed_size(self):
        pace = Pace(5)
        assert [pace.size(n, 2) for n in (64, 3)] == [5, 3]
        assert pace.limit == math.inf
        assert not pace.is_quick

    def test_small_evaluations_go_in_chunks_and_the_last_ones_in_smaller_ones(self):
        pace = Pace(None)
        for _ in range(100):
            pace.note(1, 0.001, 0.0012)
        assert pace.is_quick
        sizes, waiting = [], 64
        while waiting:
            sizes.append(pace.size(waiting, 2))
            waiting -= sizes[-1]
        assert sizes[0] == 10  # hundredths of a second
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] == 1

    def test_slow_round_trips_make_larger_chunks(self):
        pace = Pace(None)
        for _ in range(100):
            pace.note(1, 0.001, 0.005)
        assert pace.seconds == pytest.approx(0.1, rel=0.01)
        assert pace.size(10_000, 2) in (99, 100)

    def test_long_evaluations_go_one_by_one(self):
        pace = Pace(None)
        pace.note(1, 60.0, 60.1)
        assert pace.size(64, 2) == 1
        assert not pace.is_quick

    def test_what_costs_nothing_is_not_cut_to_pieces(self):
        pace = Pace(None)
        for _ in range(100):
            pace.note(100, 1e-5, 1e-4)
        assert pace.size(64, 2) == 64


# === Pools of the caller ===


class Job:
    """All that some schedulers offer: `done` and `result`."""

    def __init__(self, future):
        self._future = future

    def done(self):
        return self._future.done()

    def result(self):
        return self._future.result()


class Scheduler:
    """An executor that does not say how wide it is and whose jobs are not Futures."""

    def __init__(self, width=2):
        self._threads = ThreadPoolExecutor(width)

    def submit(self, function, *args):
        return Job(self._threads.submit(function, *args))


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
            with pytest.raises(
                EvaluationError, match=r"workers: it broke .* pass a function that makes"
            ):
                evaluator.evaluate(objectives.killed_always, (log,), X)


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


# === Arguments ===


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"workers": 0}, ValueError, "workers: expected at least 1 process, got 0"),
        ({"workers": True}, TypeError, "workers: expected None, a number.*got bool: True"),
        ({"workers": "dask"}, TypeError, "workers: expected None, a number.*got str: 'dask'"),
        ({"workers": 2, "timeout": 0}, ValueError, "timeout: expected a positive .* got 0"),
        ({"workers": 2, "timeout": math.nan}, ValueError, "timeout: expected a positive"),
        ({"workers": 2, "timeout": "1"}, TypeError, "timeout: expected seconds or None, got str"),
        ({"timeout": 1.0}, ValueError, "timeout: expected None.*workers is None"),
        ({"workers": Scheduler(), "timeout": 1.0}, ValueError, "timeout: expected None"),
        ({"retries": -1}, ValueError, "retries: expected 0 or more, got -1"),
        ({"retries": 1.5}, TypeError, "retries: expected an int, got float: 1.5"),
        ({"on_error": "ignore"}, ValueError, "on_error: expected 'raise' or 'penalize', got 'ig"),
        ({"workers": 2, "fraction": 0.0}, ValueError, "fraction: expected a share above 0"),
        ({"workers": 2, "fraction": "1"}, TypeError, "fraction: expected a number, got str"),
        ({"workers": 2, "fraction": 0.9}, ValueError, "fraction: expected 1 with on_error='rai"),
        ({"fraction": 0.9, "on_error": "penalize"}, ValueError, "fraction: expected workers"),
        ({"workers": 2, "chunksize": 0}, ValueError, "chunksize: expected 1 or more, got 0"),
        ({"chunksize": 2}, ValueError, "chunksize: expected workers .* got 2 without"),
    ],
)
def test_arguments_are_checked_at_once(arguments, error, told):
    with pytest.raises(error, match=told):
        Evaluator(**arguments)


def test_other_bad_arguments():
    with pytest.raises(TypeError, match="map_like: expected a callable, got int"):
        Evaluator.from_map(2)
    with pytest.raises(
        TypeError, match=r"workers: expected a function that returns .* returned int"
    ):
        Evaluator(int).evaluate(objectives.sphere, (), X)


# === Whole programs ===


def wait_until_gone(pid):
    """Until the process has ended; one that its parent has yet to bury has ended, too."""
    while True:
        try:
            os.kill(pid, 0)
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.01)


HEADER = """
import os
from faults import objectives
from fmnes.evaluate import Evaluator
x = objectives.population()
"""


@pytest.fixture
def program(tmp_path):
    """Start a program of its own that can import what we can."""
    started = []

    def start(text):
        script = tmp_path / "script.py"
        script.write_text(HEADER + textwrap.dedent(text))
        environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        started.append(
            subprocess.Popen(
                [sys.executable, str(script)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_program_that_does_not_close_its_evaluator_still_ends(program):
    process = program("""
        if __name__ == "__main__":
            evaluator = Evaluator(2)
            print(evaluator.evaluate(objectives.sphere, (), x).values.tolist())
    """)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.strip() == str(EXPECTED)


def test_a_script_without_main_part_is_told_what_it_lacks(program):
    process = program("Evaluator(1).evaluate(objectives.sphere, (), x)")
    _, err = process.communicate()
    assert process.returncode == 1
    assert "3 worker processes in a row died while starting" in err
    assert 'under `if __name__ == "__main__":`' in err.splitlines()[-1]


LOCAL_FUNCTION = """
    import sys
    if __name__ == "__main__":
        def fun(x):
            return x[0]
        {first}
        print(Evaluator(2).evaluate(fun, (), x).values.tolist())
"""


def test_a_function_that_exists_in_the_driver_only_is_sent_by_value(program):
    pytest.importorskip("cloudpickle", reason="needs the extra fmnes[workers]")
    out, err = program(LOCAL_FUNCTION.format(first="")).communicate()
    assert (out.strip(), err) == (str(X[:, 0].tolist()), "")


def test_without_cloudpickle_a_function_has_to_be_importable(program):
    process = program(LOCAL_FUNCTION.format(first='sys.modules["cloudpickle"] = None'))
    _, err = process.communicate()
    assert process.returncode == 1
    assert "TypeError: fun: expected a function that worker processes can import" in err
    assert "Can't get attribute 'fun'" in err


def test_workers_do_not_outlive_a_driver_that_was_killed(program):
    process = program("""
        if __name__ == "__main__":
            values = Evaluator(2).evaluate(objectives.returns_own_pid, (), x).values
            print(*sorted(set(values.astype(int))), flush=True)
            input()
    """)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert pids
    process.kill()
    for pid in pids:
        wait_until_gone(pid)


def test_not_even_workers_that_hang_outlive_a_driver_that_was_killed(program, log):
    process = program(f"""
        if __name__ == "__main__":
            Evaluator(2).evaluate(objectives.sleeps, ({log!r},), x)
    """)
    while not Path(log).exists() or len(objectives.calls(log)) < 2:
        time.sleep(0.01)
    process.kill()
    for pid in objectives.calls(log):
        wait_until_gone(pid)


def test_workers_keep_blas_to_one_thread_unless_told_otherwise(program):
    process = program("""
        if __name__ == "__main__":
            os.environ["MKL_NUM_THREADS"] = "3"
            with Evaluator(1) as evaluator:
                for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
                    print(evaluator.evaluate(objectives.environment, (name,), x[:1]).values)
            print("OPENBLAS_NUM_THREADS" in os.environ)
    """)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.split("\n")[:3] == ["[1.]", "[3.]", "False"]


def test_pools_are_imported_only_when_asked_for(program):
    process = program("""
        import sys
        Evaluator().evaluate(objectives.sphere, (), x)
        print([name for name in ("multiprocessing", "concurrent.futures") if name in sys.modules])
    """)
    out, err = process.communicate()
    assert (out.strip(), err) == ("[]", "")
