"""How often values are synced to the disk, and checkpoints written."""

import os

import numpy as np
import pytest
from checkpoints.common import search, sphere

import fmnes
from fmnes.storage import checkpoint


class Clock:
    """Time that passes only where it is told to."""

    def __init__(self, monkeypatch, *, sync, evaluation):
        self.now, self.syncs, self._evaluation, self._sync = 0.0, 0, evaluation, sync
        monkeypatch.setattr(checkpoint.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, file):
        self.now += self._sync
        self.syncs += 1

    def fun(self, x):
        self.now += self._evaluation
        return sphere(x)


def syncs(monkeypatch, path, fsync, *, evaluation):
    """Calls of fsync in 10 generations of 8, without those of checkpoints."""
    clock = Clock(monkeypatch, sync=1 / 256, evaluation=evaluation)
    counts = []
    for maxiter in (5, 15):
        clock.syncs = 0
        checkpoint = fmnes.Checkpoint(path, every=1e6, fsync=fsync)
        search(clock.fun, checkpoint, resume="never", maxiter=maxiter)
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
        (1 / 64, 120 * 4 // 49 - 40 * 4 // 49),
        (1 / 8, 120 * 32 // 49 - 40 * 32 // 49),
        (1.0, 80),
    ],
)
def test_syncing_by_the_measured_cost(monkeypatch, path, evaluation, number):
    assert syncs(monkeypatch, path, "auto", evaluation=evaluation) == number


def test_all_values_that_arrive_together_are_synced(monkeypatch, path):
    """Eight workers answer at once, every hour."""
    clock = Clock(monkeypatch, sync=1 / 256, evaluation=0.0)
    calls, synced = [], []

    def fun(x):
        calls.append(None)
        clock.now += 3600.0 * (len(calls) % 8 == 1)
        synced.append(clock.syncs)
        return sphere(x)

    search(fun, fmnes.Checkpoint(path, every=1e9), maxiter=5)
    assert np.diff(synced).tolist() == [1] * 39


def test_checkpoints_come_every_so_often(monkeypatch, path):
    """By seconds, and never for more than a twentieth of the time."""
    saved = []
    monkeypatch.setattr(checkpoint.CheckpointFiles, "_write", lambda *_: saved.append(clock.now))
    clock = Clock(monkeypatch, sync=0.0, evaluation=0.125)  # a second for each generation
    search(clock.fun, fmnes.Checkpoint(path, every=5), maxiter=20)
    assert saved == [0.0, 5.0, 10.0, 15.0, 20.0, 20.0]

    def slow(*_):
        clock.now += 0.5
        saved.append(clock.now)

    saved.clear()
    clock.now = 0.0
    monkeypatch.setattr(checkpoint.CheckpointFiles, "_write", slow)
    search(clock.fun, fmnes.Checkpoint(path, every=5), maxiter=25)
    assert saved == [0.5, 11.0, 21.5, 26.5 + 0.5]


def test_a_long_journal_is_cut(monkeypatch, path):
    monkeypatch.setattr(checkpoint, "_LARGEST_JOURNAL", 2000)
    monkeypatch.setattr(checkpoint, "_SHARE_OF_SAVING", 0)
    search(sphere, fmnes.Checkpoint(path, every=1e6), maxiter=200)
    sizes = [f.stat().st_size for f in path.parent.iterdir() if "journal" in f.name]
    assert len(sizes) == 2
    assert max(sizes) < 3000
