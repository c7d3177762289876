"""The process dies in each of its file operations in turn, and no value is lost.

`test_kills.py` kills real processes, at random times.
"""

import os

import pytest

import fmnes
from checkpoints.common import Clock, Counted, digest, search, stairs
from fmnes.storage import lock

OPERATIONS = ("open", "write", "fsync", "replace", "link", "unlink", "ftruncate")


class Crash(BaseException):
    """The process is dead: nothing can be done any more."""


class Disk:
    """Counts operations on files, and lets the process die in one of them, before or after it.

    The disk keeps what was written: it is the process that dies here, not the machine.
    """

    def __init__(self, monkeypatch, die_at, after):
        self.count, self._die_at, self._after = 0, die_at, after
        for name in OPERATIONS:
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name, operation):
        def watched(*args, **options):
            self.count += 1
            alive = self._die_at is None or self.count < self._die_at
            done = None
            if (alive or (self.count == self._die_at and self._after)) and name != "fsync":
                done = operation(*args, **options)
            if not alive:
                raise Crash
            return done

        return watched


def run(fun, path, die_at=None, *, after=False, vectorized=False):
    """A search of two runs; its Result and how many operations it took, None if it died."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk, clock = Disk(monkeypatch, die_at, after), Clock(monkeypatch)

        def callback(intermediate_result):  # a checkpoint after every other generation
            clock.now += intermediate_result.nit % 2

        try:
            result = search(
                fun,
                fmnes.Checkpoint(path, every=1, fsync="generation"),
                x0=[3.0] * 2,
                method="cr-fm-nes",  # which evaluates each x once
                restarts=1,
                stopping=fmnes.Stopping(tolx=0.3),
                maxiter=3,
                popsize=4,
                vectorized=vectorized,
                callback=callback,
            )
        except Crash:
            lock._guard.acquire()
            lock._leave_locks_to_the_parent()  # closes their files, as the end of a process does
            return None, disk.count
        return result, disk.count


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("vectorized", [False, True])
def test_a_crash_in_any_operation(tmp_path, vectorized, after):
    whole = Counted(stairs)
    expected, count = run(whole, tmp_path / "whole.npz", vectorized=vectorized)
    assert len(expected.restarts) == 2
    assert count > 60
    for die_at in range(1, count + 1):
        path = tmp_path / f"{die_at}.npz"
        first, rest = Counted(stairs), Counted(stairs)
        died, _ = run(first, path, die_at, after=after, vectorized=vectorized)
        resumed, _ = run(rest, path, vectorized=vectorized)
        assert died is None, die_at
        assert digest(resumed) == digest(expected), die_at
        # What died with the process was on its way to the journal, if anything was.
        calls = first.calls + rest.calls
        repeated = [call for call in set(calls) if calls.count(call) > 1]
        assert len(repeated) <= (0 if after else 1), die_at
        assert set(calls) == set(whole.calls)


@pytest.mark.parametrize("second", [1, 5, 20, 35, 50, 65])
def test_crashes_while_resuming(tmp_path, second):
    """A crash, a crash while its traces are read, and another one."""
    expected, count = run(stairs, tmp_path / "whole.npz")
    for first in range(1, count, 11):
        path = tmp_path / f"{first}.npz"
        for die_at in (first, second, second + 1):
            run(stairs, path, die_at)
        resumed, _ = run(stairs, path)
        assert digest(resumed) == digest(expected)
