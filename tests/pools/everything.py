"""Integers, constraints and an asynchronous search on Dask; and a pool that follows its journal."""

import json
import time

import numpy as np

import fmnes

POPSIZE = 8
TARGET = np.array([3, -2, 0.3, -0.4])


def fun(x):
    """Times differ from point to point, so that values arrive in another order than candidates."""
    time.sleep(0.01 * (1 + abs(37 * x[2]) % 3))
    return float(((x - TARGET) ** 2).sum()), [x[0] + x[1] - 0.5]


def search(**options):
    return fmnes.minimize(
        fun, [0.0] * 4, 2.0, bounds=[(-9, 9)] * 4, integrality=[1, 1, 0, 0], constraints=1,
        popsize=POPSIZE, asynchronous=True, rng=1, **options,
    )  # fmt: skip


def state(result):
    """The state after a generation, as text."""
    arrays = result.mean, result.x, result.stds
    numbers = result.fun, result.sigma, result.constr_violation, *result.multipliers
    return [*(a.tobytes().hex() for a in arrays), *map(float.hex, map(float, numbers)), result.nfev]


def to_be_killed(workers, folder):
    """A search that writes a line for each generation, and does not end by itself."""
    with open(folder / "log", "a", encoding="utf-8") as file:

        def note(result):
            file.write(json.dumps([result.nit, state(result)]) + "\n")
            file.flush()

        keep = fmnes.Checkpoint(folder / "run.npz", every=1e6)  # the journal has all values
        search(workers=workers, checkpoint=keep, callback=note, stopping=fmnes.Stopping(tolx=0))
    return {}


class Follower:
    """A pool of this process that completes its jobs in the order of given values.

    It has as many workers as it takes until the candidate with the next value is handed out.
    """

    def __init__(self, values):
        self._values, self._jobs, self._max_workers = list(values), [], 1

    def submit(self, function, /, *args):
        job = Job(self, function(*args))
        self._jobs.append(job)
        self._max_workers = max(self._max_workers, len(self._jobs))
        return job

    def is_next(self, job):
        if not any(self.matches(other) for other in self._jobs):
            self._max_workers = len(self._jobs) + 1
        return self.matches(job)

    def matches(self, job):
        return job.value is None or np.array_equal(job.value, self._values[0])

    def complete(self, job):
        self._jobs.remove(job)
        if job.value is not None:
            del self._values[0]


class Job:
    def __init__(self, pool, chunk):
        self._pool, self._chunk = pool, chunk
        self.value = chunk.results[0] if getattr(chunk, "results", None) else None

    def done(self):
        return self._pool.is_next(self)

    def result(self):
        self._pool.complete(self)
        return self._chunk
