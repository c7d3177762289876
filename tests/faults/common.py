"""What the tests of evaluations share: pools, and what a population comes to."""

import math
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from faults import objectives

X = objectives.population()
EXPECTED = [objectives.sphere(row) for row in X]
INNOCENT = [i for i in range(len(X)) if i != objectives.TROUBLE]


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
