"""One search at a time on one path."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time

import pytest

from checkpoints.common import Counted, digest, names, search, sphere
from fmnes.storage.lock import Lock, is_locked

OTHER = "import sys, fmnes; fmnes.minimize(sum, [3.0] * 5, 1.0, checkpoint=sys.argv[1])"

HOLD = """
import sys, fmnes
def fun(x):
    print("go", flush=True)
    sys.stdin.read()
    return float((x**2).sum())
fmnes.minimize(fun, [3.0] * 5, 1.0, rng=1, checkpoint=sys.argv[1])
"""


def test_a_second_search_on_the_same_path_is_refused(path):
    def nested(x):
        with pytest.raises(RuntimeError, match=r"^checkpoint: .*run.npz, .*this process"):
            search(sphere, path, maxiter=5)
        return sphere(x)

    search(nested, path, maxiter=1)
    search(sphere, path, maxiter=2)  # it was given back
    assert "run.npz.lock" not in names(path.parent)


def test_a_second_process_is_refused_and_a_dead_one_does_not_block(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "go\n"
        with pytest.raises(RuntimeError, match=f"process {process.pid} "):
            search(sphere, path, maxiter=5)
    finally:
        process.kill()
        process.communicate()
    assert "run.npz.lock" in names(path.parent)
    assert digest(search(sphere, path, maxiter=5)) == digest(search(sphere, maxiter=5))
    assert "run.npz.lock" not in names(path.parent)


def test_a_lock_is_given_back_whatever_ends_the_search(path):
    with pytest.raises(RuntimeError, match="the end"):
        search(Counted(end_at=3), path)
    with pytest.raises(ValueError, match=r"^checkpoint: .*popsize"):
        search(sphere, path, popsize=20)
    search(sphere, path, maxiter=5)
    assert "run.npz.lock" not in names(path.parent)


FORKING = """
import os, sys, fmnes
children = []
def fun(x):
    if not children:
        children.append(os.fork())
        if children == [0]:
            sys.stdin.read()  # until the test closes it
            os._exit(0)
        print("go", flush=True)
    os._exit(9)
fmnes.minimize(fun, [3.0] * 5, 1.0, rng=1, checkpoint=sys.argv[1])
"""


def test_a_forked_worker_that_lives_on_does_not_hold_the_lock(path):
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "go\n"
        assert process.wait() == 9
        assert "run.npz.lock" in names(path.parent)
        assert search(sphere, path, maxiter=5).nit == 5
    finally:
        process.communicate()


def test_a_copy_of_the_folder_does_not_release_the_lock(path, tmp_path_factory):
    """As record locks did: they end when the process closes any descriptor of the file."""
    refused = []

    def fun(x):
        if not refused:
            shutil.copytree(path.parent, tmp_path_factory.mktemp("copy") / "folder")
            assert is_locked(f"{path}.lock")
            done = subprocess.run(
                [sys.executable, "-c", OTHER, path], capture_output=True, text=True, check=False
            )
            refused.append(done.stderr)
        return sphere(x)

    search(fun, path, maxiter=1)
    assert f"used by process {os.getpid()} " in refused[0]
    assert not is_locked(f"{path}.lock")


def test_a_look_at_the_lock_does_not_take_it(path, monkeypatch):
    """`is_locked` locks the file for a moment; whoever comes then tries again."""
    with open(f"{path}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        monkeypatch.setattr(time, "sleep", lambda _: file.close())
        with Lock(f"{path}.lock"):
            assert is_locked(f"{path}.lock")


def test_without_locks_there_is_a_warning(path, monkeypatch, caplog):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert search(sphere, path, maxiter=2).nit == 2
    assert "No locks available" in caplog.text
    (path.parent / "other.lock").touch()
    assert not is_locked(path.parent / "other.lock")


# The child of a fork ends in some way while its parent goes on; then it has seen its child end.
ENDS = {
    "exit": "sys.exit(5)",
    "error": "raise ValueError('of the child')",
    "return": "return 0.0",
}
CHILD = """
import os, sys, fmnes
calls, children = [], []
def fun(x):
    calls.append(x)
    if len(calls) == 13:
        children.append(os.fork())
        if children == [0]:
            {end}
        os.waitpid(children[0], 0)
        print(*sorted(os.listdir()), flush=True)
    return float((x**2).sum())
fmnes.minimize(fun, [3.0] * 5, 1.0, rng=1, maxiter=10, checkpoint="run.npz")
"""


@pytest.mark.parametrize("end", ENDS)
def test_a_forked_child_leaves_the_files_alone(path, end):
    """Whether it ends, or goes on with a search that is not its own."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(end=ENDS[end])],
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "run.npz run.npz.journal run.npz.lock"
    counted = Counted()
    assert digest(search(counted, path, maxiter=10)) == digest(search(sphere, maxiter=10))
    assert counted.calls == []
