"""Ctrl-C, SIGTERM and SIGKILL: what is on disk is right, and `fmnes resume` gives the same bits."""

import json
import os
import signal
import sys
import time

import pytest

import fmnes
from cli.common import assert_same, end_of, history, nrows, result, sphere, start, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")

RUN = ["run", "cli.common:slow", "--x0", "3", "--dim", "5", "--sigma0", "1", "--rng", "1"]
QUIET = ["--quiet", "--no-plot"]


def finish(*arguments, cwd):
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out, err


def test_kills_of_all_kinds_change_no_bit(tmp_path):
    folder = tmp_path / "out"
    process = start(*RUN, "--maxfevals", "480", *QUIET, "--out", "out", cwd=tmp_path)
    until(lambda: nrows(folder) >= 1)
    status, out, err = end_of(process, signal.SIGINT)
    assert (status, result(folder)["status"]) == (130, "interrupted")
    assert "status: interrupted" in out
    (line,) = err.splitlines()
    assert line.startswith("fmnes resume out ")

    seen = nrows(folder)
    process = start("resume", "out", *QUIET, cwd=tmp_path)
    until(lambda: nrows(folder) > seen)
    assert end_of(process, signal.SIGKILL)[0] == -signal.SIGKILL
    assert not (folder / "result.json").exists()

    seen = nrows(folder)
    process = start("resume", folder, *QUIET, cwd=tmp_path.parent)
    until(lambda: nrows(folder) > seen)
    assert end_of(process, signal.SIGTERM)[0] == 143
    assert result(folder)["status"] == "terminated"

    finish("resume", "out", *QUIET, cwd=tmp_path)
    assert_same(folder, fmnes.minimize(sphere, [3.0] * 5, 1.0, rng=1, maxfevals=480))

    finish("resume", "out", "--maxfevals", "560", *QUIET, cwd=tmp_path)
    assert_same(folder, fmnes.minimize(sphere, [3.0] * 5, 1.0, rng=1, maxfevals=560))
    assert json.loads((folder / "config.json").read_text())["maxfevals"] == 560


def test_a_run_that_goes_on_is_left_alone(tmp_path):
    process = start(*RUN, *QUIET, "--out", "out", cwd=tmp_path)
    until(lambda: nrows(tmp_path / "out") >= 1)
    other = start("resume", "out", cwd=tmp_path)
    _, err = other.communicate(timeout=60)
    assert other.returncode == 2
    (line,) = err.splitlines()
    assert line.startswith("fmnes resume: DIR: ")
    assert end_of(process, signal.SIGINT)[0] == 130


HANGS = """\
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
with open(f"pids/{child.pid}", "w"):
    pass
time.sleep(600)
"""


def is_gone(pid):
    try:
        os.kill(pid, 0)
        if not os.path.isdir("/proc/self"):  # not Linux
            return False
        with open(f"/proc/{pid}/stat") as file:
            return ") Z " in file.read()  # dead, but its parent has not waited for it yet
    except (ProcessLookupError, FileNotFoundError):
        return True


@pytest.mark.parametrize("way", ["timeout", "SIGINT", "SIGTERM", "SIGKILL"])
def test_programs_end_with_all_that_they_have_started(way, tmp_path):
    """Whatever ends them: their time, or the end of the search."""
    pids = tmp_path / "pids"
    pids.mkdir()
    (tmp_path / "hangs.py").write_text(HANGS)
    seconds = "2" if way == "timeout" else "600"
    words = ["--x0", "3", "--dim", "1", "--sigma0", "1", "--popsize", "2", "--workers", "2"]
    words += ["--evaluation-timeout", seconds]
    command = f"{sys.executable} -S hangs.py {{file}}"
    process = start("run", "--command", command, *words, *QUIET, "--out", "out", cwd=tmp_path)
    if way == "timeout":
        process.communicate(timeout=120)
        assert process.returncode == 1
        assert history(tmp_path / "out")["nfailed"] == [4.0]  # x0 twice, and two candidates
    else:
        until(lambda: list(pids.iterdir()))
        status = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}[way]
        assert end_of(process, signal.Signals[way])[0] == status
    children = [int(path.name) for path in pids.iterdir()]
    assert children
    until(lambda: all(is_gone(pid) for pid in children))
    assert (tmp_path / "out" / "evaluations").exists() == (way == "SIGKILL")


def test_a_second_interrupt_ends_it_at_once(tmp_path):
    """While an objective that takes no notice of the first is left to itself."""
    (tmp_path / "stubborn.py").write_text(
        "import time\n"
        "def f(x):\n"
        "    open('begun', 'w').close()\n"
        "    try: time.sleep(600)\n"
        "    except KeyboardInterrupt: open('asked', 'w').close()\n"
        "    time.sleep(600)\n"
    )
    words = ["run", "stubborn:f", "--x0", "3", "--dim", "1", "--sigma0", "1", "--out", "out"]
    process = start(*words, cwd=tmp_path)
    until((tmp_path / "begun").exists)
    process.send_signal(signal.SIGINT)
    until((tmp_path / "asked").exists)
    time.sleep(0.1)
    status, _, err = end_of(process, signal.SIGINT)
    assert status == 130
    assert "Traceback" not in err
