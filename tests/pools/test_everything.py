"""Everything together: integers, constraints, asynchronous, on Dask, killed and resumed."""

import json
import signal
import time

import numpy as np
import pytest

from fmnes.storage import journal, npz
from fmnes.storage.contents import RUNS
from pools import everything
from pools.common import Program, lacking

pytestmark = pytest.mark.pools


def lines(folder):
    log = folder / "log"
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("]")]


def kill_after(folder, generation):
    """Run the search until it has logged a generation, and kill all of its processes."""
    program = Program("dask", folder, "everything")
    try:
        deadline = time.monotonic() + 200
        while max((nit for nit, _ in lines(folder)), default=0) < generation:
            assert program.process.poll() is None, program.errors()
            assert time.monotonic() < deadline, program.errors()
            time.sleep(0.01)
    finally:
        program.close()
        program.signal(signal.SIGKILL)


def test_a_killed_search_on_dask_equals_one_that_follows_its_order_of_arrival(tmp_path):
    if reason := lacking("dask"):
        pytest.skip(reason)
    for generation in (4, 9, 15):
        kill_after(tmp_path, generation)
    seen = {}
    for nit, state in lines(tmp_path):
        assert seen.setdefault(nit, state) == state  # repeated generations have the same bits
    assert max(seen) >= 15

    saved = npz.read(tmp_path / "run.npz", RUNS, "checkpoint")
    path, search = str(tmp_path / "run.npz.journal"), bytes.fromhex(saved["search"])
    entries = [e for e in journal.read(path, search, constraints=1).entries if e.complete]
    origins = [origin for entry in entries for origin in entry.origins]
    assert origins != sorted(origins)  # in another order than they were handed out

    undisturbed = {}

    def note(result):
        undisturbed[result.nit] = everything.state(result)
        return result.nit == max(seen)

    result = everything.search(workers=everything.Follower(entries), callback=note)
    assert undisturbed == seen
    assert (result.x[:2] == np.round(result.x[:2])).all()
