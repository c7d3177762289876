"""Candidates go out in chunks, and those that come late are left behind."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from faults import objectives
from faults.common import (
    EXPECTED,
    PROCESSES,
    X,
    assert_only_trouble_failed,
)
from fmnes.evaluate import Evaluator
from fmnes.evaluate._call import ObjectiveCall, evaluate_chunk
from fmnes.evaluate._chunks import ChunkSizer

# === Stragglers ===


@pytest.mark.parametrize("pool", PROCESSES)
def test_a_share_of_the_population_is_enough(pool, log):
    with Evaluator(pool, on_error="penalize", fraction=0.8, chunksize=1) as evaluator:
        outcome = evaluator.evaluate(objectives.hangs_until_released, (log,), X)
        assert_only_trouble_failed(outcome)  # 7 of 8 came back
        assert "`fraction`" in outcome.first_error
        values = evaluator.evaluate(objectives.sphere, (), X).values
        assert sum(a == b for a, b in zip(values, EXPECTED, strict=True)) >= 7
        objectives.release(log)  # workers of other pools end by themselves


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
    timeout = 1.0 if fun is objectives.hangs else None
    with Evaluator(pool, timeout=timeout, on_error="penalize", chunksize=4) as evaluator:
        evaluator.evaluate(objectives.sphere, (), X)  # workers of others get time to start
        assert_only_trouble_failed(evaluator.evaluate(fun, (log,), X))
    if pool == 2:  # those before it in its chunk run twice, those after it once
        attempts = 2 if fun is objectives.hangs else 3
        twice = dict.fromkeys(range(3), 2)
        assert objectives.calls(log) == dict.fromkeys(range(8), 1) | twice | {3: attempts}


def test_a_chunk_comes_back_when_its_time_is_over():
    def row(k):
        return X[k]

    call = ObjectiveCall(objectives.sphere, ())
    answer = evaluate_chunk(call, [0, 1, 2], row, 0.0)
    assert list(answer.results) == EXPECTED[:1]
    answer = evaluate_chunk(call, [0, 1, 2], row, math.inf)
    assert list(answer.results) == EXPECTED[:3]
    assert answer.seconds > 0


def seen(sizer, done, seconds, round_trip):
    sizer.note(done, seconds)
    sizer.note_trip(round_trip - seconds)


class TestChunkSizer:
    def test_one_at_a_time_until_a_cost_is_known(self):
        assert ChunkSizer(None).size(64, 2, 64) == 1

    def test_a_fixed_size(self):
        sizer = ChunkSizer(5)
        assert [sizer.size(n, 2, 64) for n in (64, 3)] == [5, 3]
        assert sizer.limit == math.inf
        assert not sizer.is_quick

    def test_small_evaluations_go_in_chunks_and_the_last_ones_in_smaller_ones(self):
        sizer = ChunkSizer(None)
        for _ in range(100):
            seen(sizer, 1, 0.001, 0.0012)  # a trip of a fifth
        assert sizer.is_quick
        sizes, waiting = [], 64
        while waiting:
            sizes.append(sizer.size(waiting, 2, 64))
            waiting -= sizes[-1]
        assert sizes[0] == 10  # hundredths of a second
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] == 1

    def test_slow_round_trips_make_larger_chunks(self):
        sizer = ChunkSizer(None)
        for _ in range(100):
            seen(sizer, 1, 0.001, 0.005)
        assert sizer.seconds == pytest.approx(0.1, rel=0.01)
        assert sizer.size(10_000, 2, 10_000) in (99, 100)

    def test_where_a_trip_is_long_each_worker_gets_its_share_at_once(self):
        sizer = ChunkSizer(None)
        for _ in range(100):
            seen(sizer, 1, 0.001, 0.011)
        assert [sizer.size(n, 2, 64) for n in (64, 32)] == [32, 32]

    def test_long_evaluations_go_one_by_one(self):
        sizer = ChunkSizer(None)
        seen(sizer, 1, 60.0, 60.1)
        assert sizer.size(64, 2, 64) == 1
        assert not sizer.is_quick

    def test_what_costs_nothing_is_not_cut_to_pieces(self):
        sizer = ChunkSizer(None)
        for _ in range(100):
            seen(sizer, 100, 1e-5, 1e-4)
        assert [sizer.size(n, 2, 64) for n in (64, 32)] == [32, 32]
