"""A real SLURM of one node, started here where its programs are installed."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

import pytest

from pools.common import Program, lacking
from pools.test_pools import check_all

pytestmark = pytest.mark.pools

CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The environment of a SLURM of our own."""
    programs = {
        name: shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        for name in ("munged", "slurmctld", "slurmd", "sinfo", "sbatch")
    }
    absent = [name for name, path in programs.items() if path is None]
    if absent:
        pytest.skip(f"needs {', '.join(absent)}: apt-get install slurm-wlm")
    if os.geteuid() != 0:
        pytest.skip("slurmd and munged of Debian start as root only")
    folder = tmp_path_factory.mktemp("slurm")
    folder.chmod(0o755)
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    host, user = socket.gethostname().split(".")[0], pwd.getpwuid(os.geteuid()).pw_name
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(host=host, user=user, folder=folder, ports=free_ports(2))
    )
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    daemons = [
        [
            programs["munged"],
            "--foreground",
            "--force",
            *(
                f"--{option}={folder}/{name}"
                for option, name in (
                    ("key-file", "munge.key"),
                    ("socket", "munge.socket"),
                    ("pid-file", "munged.pid"),
                    ("log-file", "munged.log"),
                    ("seed-file", "munged.seed"),
                )
            ),
        ],
        [programs["slurmctld"], "-D"],
        [programs["slurmd"], "-D"],
    ]
    running = []
    try:
        for command in daemons:
            running.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            time.sleep(0.5)
        wait_until_idle(programs["sinfo"], environment)
        yield {"SLURM_CONF": str(folder / "slurm.conf")}
    finally:
        for process in reversed(running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until_idle(sinfo, environment):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        told = subprocess.run(
            [sinfo, "-h", "-o", "%T"], env=environment, capture_output=True, text=True, check=False
        )
        if told.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    pytest.skip(f"SLURM cannot be started here: {told.stdout} {told.stderr}")


@pytest.mark.parametrize(
    ("pool", "scenarios"),
    [
        ("slurm-submitit", ["raise-in-jobs", "optimize-in-jobs"]),
        (
            "slurm-dask",
            ["killed-once", "hang", "raise", "unpicklable", "exit", "memory", "optimize"],
        ),
    ],
)
def test_on_slurm(pool, scenarios, slurm, tmp_path):
    if reason := lacking(pool):
        pytest.skip(reason)
    check_all(Program(pool, tmp_path, *scenarios, environment=slurm), scenarios)
