"""A tiny protocol through the whole pipeline: killed, resumed, verified, altered."""

import errno
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from fmnes.benchmarking import processes
from fmnes.experiments import protocol, runner
from fmnes.experiments.protocol import Trial
from fmnes.experiments.results import read

pytestmark = pytest.mark.experiments

TRIALS = [
    Trial("evaluations", "ellipsoid", 20, 12, *solver, number)
    for solver in (protocol.SAFE, protocol.SEP_CMA, protocol.AUTHORS)
    for number in range(3)
]
SCRIPT = """
import sys
from pathlib import Path
from fmnes.experiments.protocol import Trial
from fmnes.experiments.runner import run

if __name__ == "__main__":
    trials = [Trial(*fields) for fields in {fields}]
    run(trials, Path(sys.argv[1]), workers=2)
"""


def outcomes(path):
    return {trial: row[1:5] for trial, row in read(path).items()}  # all but seconds and versions


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("uninterrupted") / "results.csv"
    assert runner.run(TRIALS, path, workers=2) == len(TRIALS)
    return path


def test_every_trial_is_run_once(uninterrupted):
    assert set(read(uninterrupted)) == set(TRIALS)
    before = uninterrupted.read_bytes()
    assert runner.run(TRIALS, uninterrupted, workers=2) == 0
    assert uninterrupted.read_bytes() == before


def test_killed_at_any_moment_and_resumed_the_rows_are_the_same(uninterrupted, tmp_path):
    path, script = tmp_path / "results.csv", tmp_path / "script.py"
    script.write_text(SCRIPT.format(fields=[tuple(trial) for trial in TRIALS]))
    kept: dict[Trial, object] = {}
    kills, lines = 0, b""
    for rows_before_the_kill in (1, 5):
        process = subprocess.Popen([sys.executable, script, path], start_new_session=True)
        while process.poll() is None and len(read(path)) < rows_before_the_kill:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        _wait_until_gone(process.pid)
        now = outcomes(path)
        assert kept.items() <= now.items()  # nothing is lost, and nothing is run again
        kept = now
        assert path.read_bytes().startswith(lines)
        lines = path.read_bytes()
        lines = lines[: lines.rfind(b"\n") + 1]
    assert kills >= 1
    subprocess.run([sys.executable, script, path], check=True, timeout=600)
    assert path.read_bytes().startswith(lines)  # to the byte, seconds and versions too
    assert outcomes(path) == outcomes(uninterrupted)


def _wait_until_gone(group, seconds=60):
    """The processes of the pool end with the one that started them."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("processes of the pool live on")


def test_verify_finds_what_was_altered(uninterrupted, tmp_path):
    """A trial by itself gives the same row; of three rows one is altered."""
    altered = tmp_path / "altered.csv"
    header, *lines = uninterrupted.read_text().splitlines()
    lines = sorted(lines, key=lambda line: float(line.split(",")[11]))[:3]  # the shortest
    evaluations = lines[1].split(",")[8]
    lines[1] = lines[1].replace(f",{evaluations},", f",{int(evaluations) + 12},")
    altered.write_text("\n".join([header, *lines]) + "\n")
    pairs = runner.verify(altered, count=5, workers=1, below=1e9, seed=1)
    assert len(pairs) == 3
    ((kept, again),) = [pair for pair in pairs if not runner.same(*pair)]
    assert kept.evaluations == again.evaluations + 12


def test_verify_needs_the_packages_of_its_rows_before_it_begins(uninterrupted, monkeypatch):
    monkeypatch.setitem(sys.modules, "crfmnes", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "fmnes\[paper\]"'):
        runner.verify(uninterrupted, count=len(TRIALS), workers=1, below=1e9)


def test_without_a_terminal_there_are_lines_of_progress(monkeypatch, capsys):
    monkeypatch.setattr(processes, "SECONDS_BETWEEN_LINES", 0.0)
    ended = [("a", 1), ("b", 2)]
    assert list(processes.with_progress(ended, ["a", "b"], lambda task: 1.0)) == ended
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("1 of 2 ")
    assert last.startswith("2 of 2 ")


@pytest.mark.parametrize("tqdm", [True, False])
def test_a_terminal_shows_one_line_of_progress(tqdm, monkeypatch, capsys):
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    ended = [(0.1, "a"), (0.2, "b"), (0.3, "c")]  # floats whose sum depends on the order
    assert list(processes.with_progress(ended, [0.3, 0.2, 0.1], lambda task: task)) == ended
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    last = err.strip().split("\r")[-1]
    assert "3 of 3" in last
    assert ("100%" in last) == tqdm


def test_progress_that_cannot_be_shown_does_not_end_the_trials(monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    monkeypatch.setattr(processes, "SECONDS_BETWEEN_LINES", 0.0)
    assert list(processes.with_progress([("a", 1)], ["a"], lambda task: 1.0)) == [("a", 1)]


def test_trials_that_measure_time_are_not_verified(tmp_path):
    path = tmp_path / "results.csv"
    trial = Trial("time", "sphere", 10, 20, *protocol.SAFE, 0)
    runner.run([trial], path, workers=1)
    assert read(path)[trial].evaluations == 20_000  # 1000 iterations
    with pytest.raises(ValueError, match="no time"):
        runner.verify(path, count=5, workers=1, below=1e9)
