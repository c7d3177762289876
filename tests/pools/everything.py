"""Integers, constraints and an asynchronous search on Dask; and a pool that follows its journal."""

import json
import time

import numpy as np

import fmnes
from fmnes.engines.asynchronous import X0

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
    """A pool of this process that completes its jobs in the order of the entries of a journal.

    It has as many workers as it takes to hand out every candidate in the generation in which the
    journal says that it was handed out.
    """

    def __init__(self, entries):
        self._values = [list(entry.values) for entry in entries]  # by generation
        origins = [origin for entry in entries for origin in entry.origins if origin != X0]
        self._rows = [  # how many candidates a generation has to hand out
            max((row + 1 for made, row in origins if made == nit), default=0)
            for nit in range(len(entries))
        ]
        self._rows[0] += any(X0 in entry.origins for entry in entries)
        self._jobs, self._handed_out, self._max_workers = [], 0, 1
        self._deadline = time.monotonic() + 100

    def submit(self, function, /, *args):
        job = Job(self, function(*args))
        self._jobs.append(job)
        self._handed_out += job.value is not None
        self._max_workers = max(self._max_workers, len(self._jobs))
        return job

    def is_next(self, job):
        if job.value is None:
            return True
        is_last = len(self._values[0]) == 1
        is_early = is_last and self._handed_out < self._rows[0]
        if is_early or not any(map(self.matches, self._jobs)):
            assert time.monotonic() < self._deadline, "the next value is that of no candidate"
            self._max_workers = len(self._jobs) + 1
            return False
        return self.matches(job)

    def matches(self, job):
        return np.array_equal(job.value, self._values[0][0])

    def complete(self, job):
        self._jobs.remove(job)
        if job.value is not None:
            del self._values[0][0]
            if not self._values[0]:
                del self._values[0], self._rows[0]
                self._handed_out = 0


class Job:
    def __init__(self, pool, chunk):
        self._pool, self._chunk = pool, chunk
        self.value = chunk.results[0] if getattr(chunk, "results", None) else None

    def done(self):
        return self._pool.is_next(self)

    def result(self):
        self._pool.complete(self)
        return self._chunk
