"""A search on several processes of torch.distributed: the same search, also if one is killed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gpu import replicas as program

import fmnes
from fmnes import kernels
from fmnes.integrations.torch_distributed import Replicas, fingerprint

pytestmark = pytest.mark.arrays
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")


def expected(generations):
    """The fingerprint of the search in one process."""
    opt = program.new_search()
    for _ in range(generations):
        opt.tell([program.ellipsoid(x) for x in opt.ask()])
    return fingerprint(opt)


def start(folder, group, rank, size, until, kill=-1):
    arguments = map(str, [folder, group, rank, size, until, kill])
    return subprocess.Popen(
        [sys.executable, program.__file__, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(program.__file__).parent,
    )


def outcome(process):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return [int(word) for word in output.split()]


@pytest.mark.skipif(kernels.in_use != "native", reason="changes the memory of the compiled state")
def test_two_processes_and_a_damaged_state(tmp_path):
    """Process 1 changes its state by itself after generation 3; the check after 4 repairs it."""
    found = [outcome(p) for p in [start(tmp_path, 0, rank, 2, 8) for rank in range(2)]]
    assert [row[:2] for row in found] == [[8, expected(8)]] * 2
    assert [row[2] for row in found] == [0, 1]
    assert sum(row[3] for row in found) == 8 * 10  # no candidate is evaluated twice


@POSIX
def test_four_processes_of_which_one_is_killed(tmp_path):
    processes = [start(tmp_path, 0, rank, 4, 8, 3 if rank == 2 else -1) for rank in range(4)]
    assert processes[2].wait(timeout=120) == -9
    processes[2].communicate()
    processes[2] = start(tmp_path, 1, 2, 4, 8)  # the new group, from the beginning
    found = [outcome(process) for process in processes]
    assert [row[:2] for row in found] == [[8, expected(8)]] * 4
    assert [row[2] for row in found] == [0, 0, 1, 0]


def test_one_bit_changes_the_fingerprint():
    opt = program.new_search()
    before = fingerprint(opt)
    saved = opt.to_saved()
    mean = np.array(saved["state"].mean)
    mean.view(np.int64)[7] ^= 1
    opt.__setstate__({**saved, "state": saved["state"]._replace(mean=mean)})
    assert fingerprint(opt) != before


def test_what_is_refused():
    with pytest.raises(TypeError, match="opt: expected an fmnes"):
        Replicas(fmnes.minimize)
    with pytest.raises(RuntimeError, match="group: expected a process group, got none"):
        Replicas(program.new_search())
