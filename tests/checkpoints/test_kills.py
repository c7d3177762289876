"""SIGKILL at random times: the results are identical, and no value is lost or told twice."""

import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import pytest

import fmnes
from checkpoints import driver
from checkpoints.common import digest
from fmnes.storage import journal, npz
from fmnes.storage.contents import RUNS

pytestmark = pytest.mark.pools

LIMIT = 300  # seconds for one test: it needs 30, but machines are busy at times
SEARCHES = {
    "serial": ("cr-fm-nes", "rastrigin", None, 0.003),
    "faulty": ("cma-es", "faulty", None, 0.003),
    "workers": ("cr-fm-nes", "faulty", 2, 0.006),
}
# At the most: each of two workers has a candidate at hand and another one in its pipe.
IN_FLIGHT = {None: 1, 2: 4}


class Reference:
    """The search that nothing disturbs: its digest, and its candidates in order."""

    def __init__(self, method, fun, folder):
        log = folder / "reference"
        result = fmnes.minimize(**driver.options(method, fun, None, str(log)))
        self.digest, self.runs = digest(result), result.restarts
        content = log.read_bytes()
        self.marks = [content[i : i + 4] for i in range(0, len(content), 4)]
        assert len(self.marks) == len(set(self.marks)) == result.nfev
        assert len(self.runs) > 1

    def number(self, run, generation, candidate=0):
        """Which evaluation of the whole search that is."""
        before = sum(ended.nfev for ended in self.runs[:run])
        if run == 0 and generation > 0:
            before += 1  # x0, which is evaluated with the first generation
        return before + generation * self.runs[run].popsize + candidate

    def on_disk(self, path):
        """Marks of the candidates whose values the files know, as a dead process left them."""
        if not path.exists():
            return set()
        saved = npz.read(path, RUNS)
        current = saved["current"]
        position = journal.Position(current["run"], current["tally"].generation)
        found = [
            journal.read(f"{path}.journal{end}", bytes.fromhex(saved["search"]))
            for end in (".previous", "")
        ]
        known = journal.chain([segment for segment in found if segment], position)
        assert known.whole  # a kill tears no record: the system finishes a write
        numbers = set(range(self.number(*position)))
        for entry in known.entries:
            candidates = range(entry.popsize) if entry.complete else entry.known
            numbers.update(self.number(*entry.position, i) for i in candidates)
        return {self.marks[number] for number in numbers}


def start(arguments, output):
    """A driver; its output goes to a file, because workers that outlive it would hold a pipe."""
    tests = pathlib.Path(__file__).parents[1]
    with output.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "checkpoints.driver", json.dumps(arguments)],
            stdout=file,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])},
        )


def size(log):
    return log.stat().st_size // 4 if log.exists() else 0


def killed_again_and_again(reference, folder, search, wait):
    """The search, killed whenever ``wait`` returns until it ends; its digest and logs."""
    method, fun, workers, seconds = search
    path, logs, told = folder / "run.npz", [], []
    deadline = time.monotonic() + LIMIT
    while True:
        logs.append(folder / f"log{len(logs)}")
        process = start(
            {
                "method": method,
                "fun": fun,
                "workers": workers,
                "seconds": seconds,
                "log": str(logs[-1]),
                "checkpoint": str(path),
            },
            folder / "output",
        )
        try:
            wait(process, logs[-1])
            assert time.monotonic() < deadline
        finally:
            process.kill()
            process.wait()
        if process.returncode == 0:
            return (folder / "output").read_text().strip(), logs, told
        assert process.returncode == -9
        told.append(reference.on_disk(path))


def check(reference, ended, logs, told, *, in_flight):
    """The same bits; no value that was on disk computed again; only what was in flight repeated."""
    assert ended == reference.digest
    calls = []
    for log in logs:
        content = log.read_bytes() if log.exists() else b""
        calls.append([content[i : i + 4] for i in range(0, len(content), 4)])
    for i, known in enumerate(told):
        later = {mark for attempt in calls[i + 1 :] for mark in attempt}
        assert not known & later, f"computed again after kill {i}"
        before = {mark for attempt in calls[: i + 1] for mark in attempt}
        assert known <= before
        assert len(before - known) <= in_flight * (i + 1), f"lost in kill {i}"
    everything = [mark for attempt in calls for mark in attempt]
    assert set(everything) == set(reference.marks)
    repeated = len(everything) - len(reference.marks)
    print(f"{len(told)} kills, {repeated} of {len(reference.marks)} evaluations repeated")
    assert repeated <= in_flight * len(told)


@pytest.mark.parametrize("name", SEARCHES)
def test_kills_while_evaluating(tmp_path, name):
    """A random number of evaluations, some microseconds more, and a kill."""
    method, fun, workers, _ = SEARCHES[name]
    reference = Reference(method, fun, tmp_path)
    luck = random.Random(name)
    parts = 10 if workers is None else 6  # starting workers takes long
    share = len(reference.marks) // parts

    def wait(process, log):
        goal = luck.randint(1, share)
        while process.poll() is None and size(log) < goal:
            time.sleep(0.0005)
        time.sleep(luck.uniform(0, 0.003))

    ended, logs, told = killed_again_and_again(reference, tmp_path, SEARCHES[name], wait)
    assert len(told) > parts  # by all tests of this file: more than 40
    check(reference, ended, logs, told, in_flight=IN_FLIGHT[workers])


@pytest.mark.parametrize("name", SEARCHES)
def test_kills_at_any_time(tmp_path, name):
    """While it starts, reads its files, evaluates, saves: whenever the clock says."""
    method, fun, workers, _ = SEARCHES[name]
    reference = Reference(method, fun, tmp_path)
    luck = random.Random(name)
    kills = []

    def wait(process, log):
        seconds = luck.uniform(0, 2.0) if len(kills) < 10 else LIMIT
        kills.append(seconds)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)

    ended, logs, told = killed_again_and_again(reference, tmp_path, SEARCHES[name], wait)
    assert len(told) > 4
    check(reference, ended, logs, told, in_flight=IN_FLIGHT[workers])
