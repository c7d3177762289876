"""Rows: a run that is killed and resumed has the same ones, and a changed one is found."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from benchmark_modules import BENCHMARKS
from leaderboard import commands, opponents, rows
from leaderboard.suites import SUITES
from leaderboard.trials import Trial

pytestmark = pytest.mark.experiments

COMMAND = [
    *(sys.executable, str(BENCHMARKS / "leaderboard"), "run", "--suite", "rotated", "--dims", "20"),
    *("--problem", "sphere", "cigar", "--solver", "cr-fm-nes", "sep-cma", "--trials", "2"),
    *("--budget", "300", "--workers", "1", "--results"),
]


def without_seconds(folder):
    found = rows.stored("rotated", folder)
    return {rows.trial_of(row): {k: v for k, v in row.items() if k != "seconds"} for row in found}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    subprocess.run([*COMMAND, folder], check=True, capture_output=True)
    return folder


def test_a_killed_run_resumes_with_the_same_rows(uninterrupted, tmp_path):
    file = tmp_path / "rotated.jsonl"
    process = subprocess.Popen(
        [*COMMAND, tmp_path], start_new_session=True, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not (file.exists() and b"\n" in file.read_bytes()):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = file.read_bytes()
    subprocess.run([*COMMAND, tmp_path], check=True, capture_output=True)
    assert file.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert len(rows.stored("rotated", tmp_path)) == 8
    assert without_seconds(tmp_path) == without_seconds(uninterrupted)


def test_verify_finds_a_changed_row(uninterrupted, tmp_path, capsys):
    kept = rows.stored("rotated", uninterrupted)
    chosen = [row for row in kept if row["problem"] == "sphere" and row["seed"] == 1]
    file = tmp_path / "rotated.jsonl"
    arguments = ["verify", "--suite", "rotated", "--workers", "1", "--results", str(tmp_path)]
    file.write_text("".join(json.dumps(row) + "\n" for row in chosen))
    assert commands.main(arguments) == 0
    chosen[1]["hits"][-1] += 1
    chosen[0]["seconds"] += 1
    file.write_text("".join(json.dumps(row) + "\n" for row in chosen))
    assert commands.main(arguments) == 1
    assert capsys.readouterr().out.count("DIFFERENT") == 1


def test_verify_runs_rows_of_other_benchmarks_again(tmp_path, capsys):
    pytest.importorskip("cocoex", reason="needs the extra coco")
    given = ["--dims", "20", "--workers", "1", "--results", str(tmp_path), "--rows", "1"]
    chosen = ["verify", "--suite", "bbob-largescale", "--solver", "cr-fm-nes", "--problem", "f1"]
    assert commands.main([*chosen, *given]) == 0
    assert "the same   bbob-largescale f1 20 cr-fm-nes" in capsys.readouterr().out


def test_verify_runs_the_other_benchmark_as_it_is_stored(tmp_path, capsys, monkeypatch):
    # The stored rows of other benchmarks may come from another version of NumPy: one is made here.
    pytest.importorskip("cocoex", reason="needs the extra coco")
    suite = SUITES["bbob-constrained"]
    trial = Trial(suite.name, "f1", 2, "auto", 1, suite.budget("f1", 2))
    ((_, row),) = rows.run_all(rows.run_again, [(trial, True)], 1)
    stored = next(row for row in suite.stored() if rows.trial_of(row) == trial)
    assert row["hits"][:5] == stored["hits"][:5]
    monkeypatch.setattr(suite, "stored", lambda: [row])
    chosen = ["verify", "--suite", suite.name, "--workers", "1", "--results", str(tmp_path)]
    assert commands.main(chosen) == 0
    assert "the same   bbob-constrained f1 2 auto" in capsys.readouterr().out
    other = {"hits": [1], "versions": {}}
    monkeypatch.setattr(rows, "run_all", lambda function, tasks, workers: [(tasks[0], other)])
    assert commands.main(chosen) == 1


def test_stored_rows_are_unique_and_of_known_suites():
    for name, suite in SUITES.items():
        found = rows.stored(name)
        trials = [rows.trial_of(row) for row in found]
        assert len(set(trials)) == len(trials)
        for row in found:
            assert row["problem"] in suite.problems(row["dim"])
            assert row["solver"] in suite.solvers
            assert row["evaluations"] <= row["budget"]
            hits = row.get("hits", [])
            assert hits == sorted(hits)


@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--suite", "rotatde"], "suite: .* got 'rotatde' (did you mean 'rotated'?)"),
        (["--suite", "rotated", "--dims", "7"], "dims: expected some of 20, 200, 2000, got 7"),
        (["--problem", "elipsoid"], "problem: .* (did you mean 'ellipsoid'?)"),
        (["--suite", "lsgo", "--problem", "sphere"], "problem: expected some of f1, .* 'sphere'"),
        (["--solver", "pycma VDD"], "solver: .* (did you mean 'pycma VD'?)"),
        (["--suite", "bbob-mixint", "--solver", "random"], "solver: .* got 'random'"),
        (["--workers", "0"], "workers: expected at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(command, arguments, words, capsys, tmp_path):
    given = [command, *arguments, "--results", str(tmp_path / "none")]
    assert commands.main(given) == 2
    begin, _, end = words.partition(".*")
    error = capsys.readouterr().err
    assert error.startswith(f"leaderboard: {begin.strip()}")
    assert end.strip() in error
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("argument", "value"), [("--budget", "0"), ("--budget", "nan"), ("--trials", "0")]
)
def test_a_run_needs_trials_and_evaluations(argument, value, capsys):
    assert commands.main(["run", "--suite", "rotated", argument, value]) == 2
    assert f"{argument[2:]}: expected" in capsys.readouterr().err


def test_a_damaged_row_is_named_with_its_line(uninterrupted, tmp_path, capsys):
    whole = (uninterrupted / "rotated.jsonl").read_bytes().splitlines(keepends=True)
    file = tmp_path / "rotated.jsonl"
    arguments = ["--suite", "rotated", "--workers", "1", "--results", str(tmp_path)]
    for damaged in (b'{"suite": "rota\n', b"<<<<<<< ours\n", b'{"suite": "rotated"}\n', b"3\n"):
        file.write_bytes(b"".join([*whole[:2], damaged, *whole[2:]]))
        for command in (["verify"], ["run", "--problem", "sphere", "--dims", "20"]):
            assert commands.main([*command, *arguments]) == 2
            assert f"{file}, line 3: expected a JSON object" in capsys.readouterr().err
    file.write_bytes(b"".join(whole) + b'{"suite": "rota')  # of a process that was killed
    assert len(rows.stored("rotated", tmp_path)) == len(whole)


def without(monkeypatch, *names):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        opponents.importlib.util, "find_spec", lambda name: None if name in names else found(name)
    )


def test_a_package_that_is_missing_is_named(capsys, monkeypatch):
    without(monkeypatch, "cec2013lsgo", "cma")
    options = commands._parser().parse_args(["run", "--suite", "lsgo", "--solver", "auto"])
    assert commands.plan(options) == []
    assert "cec2013lsgo is not installed: docs/leaderboard.md" in capsys.readouterr().err
    given = ["run", "--suite", "rotated", "--dims", "20", "--solver", "pycma VD", "auto"]
    planned = commands.plan(commands._parser().parse_args(given))
    assert {trial.solver for trial in planned} == {"auto"}
    assert "cma is not installed: pip install 'fmnes[leaderboard]'" in capsys.readouterr().err


def test_rows_of_a_package_that_is_missing_are_not_verified(
    uninterrupted, tmp_path, capsys, monkeypatch
):
    row = rows.stored("rotated", uninterrupted)[0] | {"solver": "pycma VD"}
    (tmp_path / "rotated.jsonl").write_text(json.dumps(row) + "\n")
    without(monkeypatch, "cma")
    given = ["verify", "--suite", "rotated", "--workers", "1", "--results", str(tmp_path)]
    assert commands.main(given) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("not verified: rotated, pycma VD: cma is not installed")


def test_ctrl_c_says_how_to_continue(capsys, monkeypatch, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(rows, "run_all", interrupted)
    given = [*COMMAND[2:], str(tmp_path)]
    assert commands.main(given) == 130
    assert "repeat a run to continue it" in capsys.readouterr().err


def test_a_solver_that_fails_is_named_and_not_stored(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        rows, "run_all", lambda function, tasks, workers: [(t, function(t)) for t in tasks]
    )

    def fails(start):
        raise ZeroDivisionError("of the package")

    solvers = SUITES["rotated"].solvers
    monkeypatch.setitem(solvers, "random", solvers["random"]._replace(run=fails))
    trials = [Trial("rotated", "sphere", 20, name, 1, 100) for name in ("random", "cr-fm-nes")]
    assert rows.run(trials, 1, tmp_path) == 1
    assert [row["solver"] for row in rows.stored("rotated", tmp_path)] == ["cr-fm-nes"]
    assert "ZeroDivisionError: of the package" in capsys.readouterr().err


def test_rows_are_forgotten_trial_by_trial(uninterrupted, tmp_path):
    file = tmp_path / "rotated.jsonl"
    file.write_bytes((uninterrupted / "rotated.jsonl").read_bytes())
    before = rows.stored("rotated", tmp_path)
    rows.forget([rows.trial_of(before[2])], tmp_path)
    assert rows.stored("rotated", tmp_path) == before[:2] + before[3:]
