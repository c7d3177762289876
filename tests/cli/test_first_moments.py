"""The first moments of a run: Ctrl-C before anything has begun, and a run without a generation."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.common import end_of, environment, start, until
from fmnes import cli
from fmnes.cli import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")

WORDS = ["--x0", "3", "--dim", "5", "--sigma0", "1", "--quiet", "--no-plot", "--out", "out"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.fixture
def interrupting(tmp_path):
    """A module of the standard library, which `fmnes` imports, sends Ctrl-C."""
    (tmp_path / "difflib.py").write_text("import signal; signal.raise_signal(signal.SIGINT)")


@pytest.mark.usefixtures("interrupting")
def test_ctrl_c_while_the_command_line_is_imported(tmp_path):
    process = start("run", "cli.common:sphere", *WORDS, cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "fmnes: interrupted\n")


@pytest.mark.usefixtures("interrupting")
def test_other_programs_handle_ctrl_c_themselves(tmp_path):
    words = [sys.executable, "-c", "import fmnes"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGINT
    assert done.stderr.endswith("KeyboardInterrupt\n")


def test_ctrl_c_before_the_search(monkeypatch, capsys):
    def interrupted(parsed):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(cli._methods, "methods", interrupted)
    interrupted.__name__ = "methods"
    assert main(["methods"]) == 130
    assert capsys.readouterr().err == "fmnes methods: interrupted\n"


# --- fmnes plot -----------------------------------------------------------------------------------

PLOTS = """\
import contextlib, io
from fmnes.cli import main
calls = []
def f(x):
    calls.append(1)
    with open("seen.txt", "a") as file, contextlib.redirect_stderr(file), \\
            contextlib.redirect_stdout(file):
        if len(calls) in (2, 40):
            print(main(["plot", "out"]))
    if len(calls) == STOP:
        raise KeyboardInterrupt
    return float((x**2).sum())
"""


def test_plot_before_and_after_the_first_generation(tmp_path):
    """Long before the checkpoint has the rows: it is written every ten seconds."""
    pytest.importorskip("matplotlib", reason="needs the extra fmnes[plot]")
    (tmp_path / "early.py").write_text(PLOTS.replace("STOP", "0"))
    assert main(["run", "early:f", "--maxfevals", "60", *WORDS]) == 0
    before, *after = (tmp_path / "seen.txt").read_text().splitlines()
    assert re.fullmatch(r"fmnes plot: DIR: .* got none in out \(.*evaluated\)", before)
    assert after == ["2", "out/plot.png", "0"]


def test_plot_after_the_first_generation_was_interrupted(tmp_path, capsys):
    (tmp_path / "stopped.py").write_text(PLOTS.replace("STOP", "5"))
    assert main(["run", "stopped:f", *WORDS]) == 130
    capsys.readouterr()
    assert main(["plot", "out"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes plot: DIR: ")
    assert "fmnes resume out" in line


def test_plot_of_a_run_that_was_killed_at_once(tmp_path, capsys):
    """Also before it wrote its first checkpoint."""
    (tmp_path / "hangs.py").write_text(
        "import time\ndef f(x): open('begun', 'w').close(); time.sleep(600)\n"
    )
    process = start("run", "hangs:f", *WORDS, cwd=tmp_path)
    until(Path("begun").exists)
    assert end_of(process, signal.SIGKILL)[0] == -signal.SIGKILL
    assert main(["plot", "out"]) == 2
    Path("out", "checkpoint.npz").unlink()
    assert main(["plot", "out"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("fmnes plot: DIR: ")
        assert "fmnes resume out" in line


def test_plot_without_matplotlib(monkeypatch, capsys):
    assert main(["run", "cli.common:sphere", "--maxiter", "2", *WORDS]) == 0
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["plot", "out"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes plot: ")
    assert "pip install 'fmnes[plot]'" in line


def test_watch_waits_for_its_folder(tmp_path):
    process = start("watch", "later", cwd=tmp_path)
    line = process.stdout.readline()
    assert line.startswith("http://127.0.0.1:")
    assert "later once there is a run in it" in line
    assert end_of(process, signal.SIGINT)[::2] == (0, "")
    assert not Path("later").exists()
