"""SIGKILL in an asynchronous search with worker processes: it goes on from the same state."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from checkpoints import asynchronous_driver as driver

pytestmark = pytest.mark.pools


def start(path, log):
    tests = pathlib.Path(__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-m", "checkpoints.asynchronous_driver", str(path), str(log)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])},
    )


def lines(log):
    return log.read_text().splitlines() if log.exists() else []


def test_a_killed_search_repeats_the_order_of_arrival(tmp_path):
    """All generations of a process are repeated by the next one, and then it goes on."""
    path, seen = tmp_path / "run.npz", {}
    for attempt in range(4):
        log = tmp_path / f"log{attempt}"
        process = start(path, log)
        try:
            deadline = time.monotonic() + 120
            while len(lines(log)) < 4 + attempt and time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        for line in lines(log):
            nit, state = json.loads(line)
            assert seen.setdefault(nit, state) == state  # of the journal: told again, same bits
    result = driver.search(path, maxiter=max(seen))
    assert driver.state(result) == seen[max(seen)]
    assert max(seen) >= 7
