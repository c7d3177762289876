"""Runs that share a folder, full disks, forks, and texts that are no Unicode: nothing is lost."""

import json
import os
import re
import subprocess
import sys

import pytest

import fmnes
from cli.common import assert_same, history, result, sphere, start
from fmnes.cli import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs the processes of POSIX")

WORDS = ["--x0", "3", "--dim", "5", "--sigma0", "1", "--maxfevals", "242"]
QUIET = ["--quiet", "--no-plot"]


def expected(rng=1):
    return fmnes.minimize(sphere, [3.0] * 5, 1.0, rng=rng, maxfevals=242)


def finished(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


# --- One folder -----------------------------------------------------------------------------------


def test_of_several_runs_into_one_folder_one_is_made(tmp_path):
    """The others change nothing: neither the seed nor anything else is theirs."""
    run = ["run", "cli.common:sphere", *WORDS, *QUIET, "--out", "out"]
    runs = [start(*run, "--rng", seed, cwd=tmp_path) for seed in range(4)]
    ends = [finished(process) for process in runs]
    (seed,) = [seed for seed, (status, _, _) in enumerate(ends) if status == 0]
    for status, out, err in ends[:seed] + ends[seed + 1 :]:
        assert (status, out) == (2, "")
        assert err.startswith("fmnes run: --out: ")
    assert_same(tmp_path / "out", expected(seed))
    assert json.loads((tmp_path / "out" / "config.json").read_text())["rng"] == seed
    assert finished(start("resume", "out", *QUIET, cwd=tmp_path))[0] == 0
    assert_same(tmp_path / "out", expected(seed))


NESTED = """\
import os
from fmnes.cli import main
def f(x):
    if not os.path.exists("status"):
        before = {name: open(name, "rb").read() for name in os.listdir() + ["out/config.json"]
                  if os.path.isfile(name)}
        words = "run cli.common:sphere --x0 1 --dim 2 --sigma0 1 --rng 5 --quiet --no-plot"
        statuses = [main([*words.split(), "--out", "out"]),
                    main([*words.split(), "--out", "other", "--checkpoint", "out/checkpoint.npz"]),
                    main(["resume", "out", "--maxfevals", "8", "--quiet", "--no-plot"])]
        assert all(open(name, "rb").read() == content for name, content in before.items())
        with open("status", "w") as file:
            print(*statuses, file=file)
    return float((x**2).sum())
"""


def test_a_run_is_refused_while_another_one_works_in_the_folder(tmp_path):
    """Also one that would share its checkpoint, and one that would resume it."""
    (tmp_path / "nested.py").write_text(NESTED)
    run = ["run", "nested:f", *WORDS, *QUIET, "--rng", "1", "--out", "out"]
    status, _, err = finished(start(*run, cwd=tmp_path))
    assert (status, (tmp_path / "status").read_text()) == (0, "2 2 2\n")
    refusals = [line.split(": ")[1] for line in err.splitlines()]
    assert refusals == ["--out", "--checkpoint", "DIR"]
    assert_same(tmp_path / "out", expected())


# --- Full disks -----------------------------------------------------------------------------------

FULL = """\
import os, resource
calls = [0]
def fill():
    with open("out/filler", "wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                pass
def f(x):
    calls[0] += 1
    if calls[0] == 100:
        FILL
    return float((x**2).sum())
"""
LIMIT = "resource.setrlimit(resource.RLIMIT_FSIZE, (0, -1))"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 200 kB at `out`."""
    (tmp_path / "out").mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=200k", "fmnes-test", str(tmp_path / "out")]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path / "out")], check=True)


def assert_nothing_is_lost(folder):
    """The run ends with a message, prints its result, and can be resumed."""
    run = ["run", "full:f", *WORDS, "--rng", "1", "--out", "out"]
    status, out, err = finished(start(*run, cwd=folder))
    assert status == 1
    assert "Traceback" not in err
    assert "Logging error" not in err
    assert err.splitlines()[-1].startswith("fmnes run: out/result.json was not written (")
    assert "status: maxfevals" in out
    printed = json.loads(out[out.index("{") :])
    assert printed["x"] == expected().x.tolist()
    assert not (folder / "out" / "result.json").exists()
    assert not list((folder / "out").glob("*.tmp"))
    (folder / "out" / "filler").unlink(missing_ok=True)
    (folder / "full.py").write_text("from cli.common import sphere as f")
    assert finished(start("resume", "out", *QUIET, cwd=folder))[0] == 0
    assert_same(folder / "out", expected())


def test_a_limit_on_the_size_of_files(tmp_path):
    (tmp_path / "full.py").write_text(FULL.replace("FILL", LIMIT))
    assert_nothing_is_lost(tmp_path)


def test_a_disk_that_fills_up(small_disk):
    (small_disk / "full.py").write_text(FULL.replace("FILL", "fill()"))
    assert_nothing_is_lost(small_disk)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_that_cannot_be_written(stream, tmp_path):
    words = ["run", "cli.common:sphere", *WORDS, "--rng", "1", "--out", "out", "--no-plot"]
    with open("/dev/full", "w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        process = start(*words, cwd=tmp_path, **streams)
        status, out, err = finished(process)
    if stream == "stdout":
        assert (status, "Traceback" in err) == (1, False)
        assert "status: maxfevals" in err
        assert err.splitlines()[-1].startswith("fmnes run: standard output ")
    else:
        assert (status, "status: maxfevals" in out) == (0, True)
    assert_same(tmp_path / "out", expected())


@pytest.mark.parametrize("command", ["methods", "doctor"])
def test_a_reader_that_has_seen_enough_of_a_table(tmp_path, command):
    reading, writing = os.pipe()
    os.close(reading)
    process = start(command, cwd=tmp_path, stdout=writing)
    os.close(writing)
    status, _, err = finished(process)
    assert (status, err) == (0, "")


def test_a_reader_that_has_seen_enough(tmp_path):
    words = ["run", "cli.common:sphere", *WORDS, *QUIET, "--rng", "1", "--out", "out"]
    reading, writing = os.pipe()
    os.close(reading)
    process = start(*words, cwd=tmp_path, stdout=writing)
    os.close(writing)
    status, _, err = finished(process)
    assert (status, err) == (0, "")
    assert_same(tmp_path / "out", expected())


def test_a_run_that_cannot_be_resumed_keeps_its_result(tmp_path):
    words = ["run", "cli.common:sphere", *WORDS, *QUIET, "--rng", "1", "--out", "out"]
    assert finished(start(*words, cwd=tmp_path))[0] == 0
    (tmp_path / "out" / "checkpoint.npz").unlink()
    status, _, err = finished(start("resume", "out", *QUIET, cwd=tmp_path))
    assert status == 1
    assert "checkpoint.npz.previous" in err
    assert "resume=" not in err  # that is Python
    assert "continues" not in err
    assert_same(tmp_path / "out", expected())


# --- Forks ----------------------------------------------------------------------------------------

FORKING = """\
import os, sys
calls = [0]
def f(x):
    calls[0] += 1
    if calls[0] == 100:
        child = os.fork()
        if child == 0:
            END
        with open("status", "w") as file:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=file)
    return float((x**2).sum())
"""
ENDS = {"sys.exit(5)": 5, "raise ValueError": 1, "return 1e-9": 0, "os._exit(7)": 7}


@pytest.mark.parametrize("end", ENDS)
def test_a_forked_child_has_no_part_in_the_run(end, tmp_path):
    """Whether it ends or returns: it neither writes files nor prints a result."""
    (tmp_path / "forking.py").write_text(FORKING.replace("END", end))
    run = ["run", "forking:f", *WORDS, *QUIET, "--rng", "1", "--out", "out"]
    status, out, _ = finished(start(*run, cwd=tmp_path))
    assert (status, out.count("status: ")) == (0, 1)
    assert int((tmp_path / "status").read_text()) == ENDS[end]
    assert_same(tmp_path / "out", expected())
    assert history(tmp_path / "out")["generation"] == list(range(1, 31))


# --- Texts that are no Unicode --------------------------------------------------------------------


def test_an_error_that_is_no_unicode(tmp_path, monkeypatch, capsys):
    """It counts as any other failure, and is shown with escapes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "surrogate.py").write_text(
        "def f(x):\n"
        "    if x[0] > 3.5: raise ValueError('name \\udcff')\n"
        "    return float((x**2).sum())\n"
    )
    words = ["run", "surrogate:f", *WORDS, *QUIET, "--rng", "1", "--out", "out"]
    assert main([*words, "--on-error", "penalize"]) == 0
    assert result(tmp_path / "out")["nfailed"] > 0
    assert "name \\udcff" in result(tmp_path / "out")["first_error"]
    assert r"name \udcff" in (tmp_path / "out" / "first_error.txt").read_text(encoding="utf-8")
    assert re.search(r"first failure: ValueError: name .*udcff", capsys.readouterr().err)
    assert main(["resume", "out", "--maxfevals", "300", *QUIET]) == 0
    assert "name \\udcff" in result(tmp_path / "out")["first_error"]
