"""How often values are synced to the disk, and checkpoints written."""

import os

import numpy as np
import pytest

import fmnes
from checkpoints.common import Clock, search, sphere

METHOD = "cr-fm-nes"  # which evaluates x0 once


class Timed(Clock):
    """Time that evaluations, and calls of fsync, take."""

    def __init__(self, monkeypatch, *, sync, evaluation):
        super().__init__(monkeypatch)
        self.syncs, self._evaluation, self._sync = 0, evaluation, sync
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, file):
        self.now += self._sync
        self.syncs += 1

    def fun(self, x):
        self.now += self._evaluation
        return sphere(x)


def syncs(monkeypatch, path, fsync, *, evaluation):
    """Calls of fsync in 10 generations of 8, without those of checkpoints."""
    clock = Timed(monkeypatch, sync=1 / 256, evaluation=evaluation)
    counts = []
    for maxiter in (5, 15):
        clock.syncs = 0
        checkpoint = fmnes.Checkpoint(path, every=1e6, fsync=fsync)
        search(clock.fun, checkpoint, method=METHOD, resume="never", maxiter=maxiter)
        counts.append(clock.syncs)
    return counts[1] - counts[0]


@pytest.mark.parametrize("evaluation", [1e-6, 1.0])
@pytest.mark.parametrize(
    ("fsync", "number"), [("evaluation", 80), ("generation", 10), ("never", 0)]
)
def test_syncing_by_the_word(monkeypatch, path, fsync, number, evaluation):
    assert syncs(monkeypatch, path, fsync, evaluation=evaluation) == number


@pytest.mark.parametrize(
    ("evaluation", "number"),
    [
        (1e-6, 0),
        # A fiftieth of the time: k syncs take k/256 of (n evaluation + k/256) seconds.
        (1 / 64, 121 * 4 // 49 - 41 * 4 // 49),
        (1 / 8, 121 * 32 // 49 - 41 * 32 // 49),
        (1.0, 80),
    ],
)
def test_syncing_by_the_measured_cost(monkeypatch, path, evaluation, number):
    assert syncs(monkeypatch, path, "auto", evaluation=evaluation) == number


def test_all_values_that_arrive_together_are_synced(monkeypatch, path):
    """Eight workers answer at once, every hour."""
    clock = Timed(monkeypatch, sync=1 / 256, evaluation=0.0)
    calls, synced = [], []

    def fun(x):
        calls.append(None)
        clock.now += 3600.0 * (len(calls) % 8 == 1)
        synced.append(clock.syncs)
        return sphere(x)

    search(fun, fmnes.Checkpoint(path, every=1e9), method=METHOD, maxiter=5)
    assert np.diff(synced).tolist() == [1] * 40


def test_checkpoints_come_every_so_often(monkeypatch, path):
    """By seconds, and never for more than a twentieth of the time."""
    clock = Timed(monkeypatch, sync=0.0, evaluation=0.125)  # a second for each generation
    x0 = 0.125  # is evaluated with the first one
    replace, saved, seconds = os.replace, [], 0.0

    def watched(source, target):
        replace(source, target)
        if str(target) == str(path):
            clock.now += seconds
            saved.append(clock.now)

    monkeypatch.setattr(os, "replace", watched)
    search(clock.fun, fmnes.Checkpoint(path, every=5), method=METHOD, maxiter=20)
    assert saved == [0.0, 5.0 + x0, 10.0 + x0, 15.0 + x0, 20.0 + x0, 20.0 + x0]
    saved.clear()
    clock.now, seconds = 0.0, 0.5
    keep = fmnes.Checkpoint(path, every=5)
    search(clock.fun, keep, method=METHOD, maxiter=25, resume="never")
    assert saved == [0.5, 11.0 + x0, 21.5 + x0, 26.5 + x0 + 0.5]


def test_a_long_journal_is_cut(monkeypatch, path):
    """At 64 MiB, which are 8 generations here: a checkpoint replaces it, however slow the disk."""
    clock, fsync = Clock(monkeypatch), os.fsync

    def slow(file):
        clock.now += 1e6
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow)
    options = {"x0": [3.0], "popsize": 2**20, "vectorized": True, "maxiter": 10, "method": METHOD}
    search(lambda x: x[:, 0] ** 2, fmnes.Checkpoint(path, every=1e6), **options)
    sizes = [f.stat().st_size for f in path.parent.iterdir() if "journal" in f.name]
    assert len(sizes) == 2
    assert max(sizes) < 2**26
