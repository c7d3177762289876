"""Processes of a torch.distributed group, for tests: how to start one, and how it joins a group."""

import datetime
import os
import subprocess
import sys
from pathlib import Path

import torch.distributed as dist

_started = []


def start(program, *arguments):
    """Start a module of this package; the test process is no member of its group."""
    process = subprocess.Popen(
        [sys.executable, "-m", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # so that several processes share the cores
    )
    _started.append(process)
    return process


def outcome(process):
    """What a process printed; it must not fail."""
    return outcome_and_errors(process)[0]


def outcome_and_errors(process):
    """What a process wrote on both streams; it must not fail."""
    output, errors = _ended(process)
    assert process.returncode == 0, errors
    return output, errors


def was_killed(process):
    _ended(process)
    return process.returncode == -9


def _ended(process):
    try:
        return process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        for other in _started:  # they wait for each other
            other.kill()
            other.communicate()
        raise


def join(folder, group, rank, size):
    """Form group number ``group`` of a test, also after an earlier one."""
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group(
        "gloo",
        init_method=(folder / f"group{group}").as_uri(),
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=60),
    )
