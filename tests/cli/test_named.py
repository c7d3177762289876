"""`fmnes run` with named variables, with constraints, and with asynchronous workers."""

import json
import sys

import numpy as np
import pytest

import fmnes
from cli.common import result, sphere
from fmnes.cli import main
from fmnes.cli._folder import Folder
from fmnes.cli._view import View

VARIABLES = {
    "lr": {"type": "log", "low": 1e-5, "high": 1.0},
    "act": {"type": "choice", "options": ["relu", "gelu", "tanh"]},
    "w": {"type": "real", "low": -1, "high": 1, "shape": [4]},
}
PROGRAM = """\
import sys
x = [float(line) for line in sys.stdin]
print(sum(v * v for v in x), 1 - x[0], 1 - x[1], sep=sys.argv[1])
"""


def loss(p):
    return (np.log10(p["lr"]) + 2) ** 2 + (p["act"] != "gelu") + float((p["w"] ** 2).sum())


def at_least_1(x):
    return 1 - x[:2]


def at_least_a_tenth(p):
    return 0.1 - p["lr"]


scipy_dict = {"type": "ineq", "fun": lambda x: x[:2] - 1}


def with_constraints(x):
    return sphere(x), at_least_1(x)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "space.json").write_text(json.dumps(VARIABLES))


def run(*words, out="out"):
    return main(["run", *words, "--quiet", "--no-plot", "--rng", "1", "--out", out])


def named(*words, out="out"):
    return run("cli.test_named:loss", "--space", "space.json", *words, out=out)


def test_the_best_candidate_is_shown_and_kept_by_name(tmp_path, capsys):
    assert named("--maxiter", "30") == 0
    expected = fmnes.minimize(loss, fmnes.Space.from_dict(VARIABLES), maxiter=30, rng=1)
    best = json.loads((tmp_path / "out" / "best.json").read_text())
    assert best == {**expected.best, "w": expected.best["w"].tolist()}
    assert not (tmp_path / "out" / "best.txt").exists()
    printed = capsys.readouterr().out
    assert printed.index(" best: ") < printed.index(" x: ")
    assert "6 coordinates" in printed
    data = View(Folder(tmp_path / "out")).data()
    assert {name: json.loads(text) for name, text in data["named"]} == best
    assert (data["x"], data["dim"]) == (None, 3)
    assert named("--x0", "@out/best.json", "--maxiter", "1", out="more") == 0
    assert result(tmp_path / "more")["fun"] <= result(tmp_path / "out")["fun"]


@pytest.mark.parametrize("x0", [["1", "2"], ["@space.json"], ["@missing.json"], ["@start.txt"]])
def test_wrong_starts_of_named_variables_are_refused(x0, tmp_path, capsys):
    (tmp_path / "start.txt").write_text("1 2 3\n")
    assert named("--x0", *x0) == 2
    assert "--x0: expected" in capsys.readouterr().err


CONSTRAINTS = {
    "a function": ("cli.common:sphere", "cli.test_named:at_least_1"),
    "an object": ("cli.common:sphere", "cli.test_named:scipy_dict"),
    "a number": ("cli.test_named:with_constraints", "2"),
}


@pytest.mark.parametrize("case", CONSTRAINTS)
def test_constraints(case, tmp_path):
    fun, constraints = CONSTRAINTS[case]
    words = f"{fun} --x0 3 --dim 4 --sigma0 1 --constraints {constraints}"
    assert run(*words.split()) == 0
    found = result(tmp_path / "out")
    expected = fmnes.minimize(with_constraints, [3.0] * 4, 1.0, constraints=2, rng=1)
    assert (found["x"], found["constr_violation"]) == (expected.x.tolist(), 0.0)
    assert found["multipliers"] == expected.multipliers.tolist()
    best = [float(line) for line in (tmp_path / "out" / "best.txt").read_text().split()]
    assert best == expected.x.tolist()


@pytest.mark.parametrize("separator", [" ", ", "])
def test_a_program_prints_its_constraints_after_the_value(separator, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = f"{sys.executable} program.py '{separator}'"
    words = "--x0 3 --dim 3 --sigma0 1 --maxiter 3 --constraints 2"
    assert run("--command", command, *words.split()) == 0
    expected = fmnes.minimize(with_constraints, [3.0] * 3, 1.0, constraints=2, rng=1, maxiter=3)
    assert result(tmp_path / "out")["constr"] == expected.constr.tolist()
    assert run("--command", command, *words.replace("2", "3").split(), out="wrong") == 1
    assert "3 constraints" in (tmp_path / "wrong" / "first_error.txt").read_text()
    assert run("--command", command, "--x0", "1", "1", out="none") == 1
    assert "--constraints 2" in (tmp_path / "none" / "first_error.txt").read_text()


def of_a_vector(x):
    return sphere(x)


def test_an_objective_that_takes_named_values_for_a_vector(capsys):
    assert run("cli.test_named:of_a_vector", "--space", "space.json") == 1
    error = capsys.readouterr().err
    assert all(f"'{name}'" in error for name in VARIABLES)


def test_constraints_of_named_variables(tmp_path):
    assert named("--constraints", "cli.test_named:at_least_a_tenth", "--maxfevals", "2000") == 0
    found = result(tmp_path / "out")
    assert found["constr_violation"] == 0.0
    assert 0.1 <= found["best"]["lr"] + 1e-7 < 0.11


WRONG = {
    "no such name": ("--constraints cli.test_named:missing", "--constraints"),
    "no constraint": ("--constraints cli.common:TESTS", "--constraints"),
    "other numbers": ("--constraints cli.test_named:VARIABLES", "--constraints"),
    "asynchronous without workers": ("--asynchronous", "--workers"),
    "asynchronous and vectorized": ("--asynchronous --vectorized", "--asynchronous"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_flags_are_refused_before_anything_is_written(case, tmp_path, capsys):
    words, flag = WRONG[case]
    assert run(*f"cli.common:sphere --x0 3 --dim 4 --sigma0 1 {words}".split()) == 2
    assert f"fmnes run: {flag}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_asynchronous_workers(tmp_path):
    words = "cli.common:sphere --x0 3 --dim 3 --sigma0 1 --workers 2 --asynchronous --maxiter 5"
    assert run(*words.split()) == 0
    assert result(tmp_path / "out")["nit"] == 5
    assert main(["resume", "out", "--maxiter", "8", "--quiet", "--no-plot"]) == 0
    assert result(tmp_path / "out")["nit"] == 8


@pytest.mark.parametrize(
    "command",
    ["cat > log", "cat {file} | tail", "cat {file", "cat {FILE}", "cat >log", "true; true",
     "true && true", "cat 2>log"],
)  # fmt: skip
def test_what_only_a_shell_does_is_refused(command, tmp_path, capsys):
    assert run("--command", command, "--x0", "1", "--dim", "2", "--sigma0", "1") == 2
    assert "--command: expected" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_program_that_is_not_found(tmp_path, capsys):
    (tmp_path / "program").write_text("")
    for word, hint in (("program", "./program"), ("./program", "chmod"), ("missing", "'missing'")):
        assert run("--command", word, "--x0", "1", "1") == 2
        assert hint in capsys.readouterr().err


def test_a_shell_may_be_asked_for(tmp_path):
    command = "sh -c 'awk \"{ s += \\$1 * \\$1 } END { print s }\" {file} | tail -n 1'"
    assert run("--command", command, "--x0", "1", "1", "--maxiter", "1") == 0
    assert result(tmp_path / "out")["nfailed"] == 0


def test_a_folder_in_use_is_named(tmp_path, capsys):
    folder = Folder(tmp_path / "out")
    folder.path.mkdir()
    with folder.claimed("--out"):
        assert run("cli.common:sphere", "--x0", "1", "2", "--sigma0", "1") == 2
    assert "got out, used by" in capsys.readouterr().err


def test_a_plot_of_rows_that_no_checkpoint_has(tmp_path):
    words = "cli.common:sphere --x0 3 --dim 3 --sigma0 1"
    assert run(*words.split(), "--maxiter", "4") == 0
    history = (tmp_path / "out" / "history.csv").read_text()
    run(*words.split(), "--maxiter", "1", out="new")
    folder = Folder(tmp_path / "new")
    begun = fmnes.minimize  # a checkpoint as it is before the first generation
    for path in tmp_path.glob("new/checkpoint*"):
        path.unlink()

    def interrupt(x):
        raise KeyboardInterrupt

    begun(interrupt, [3.0] * 3, 1.0, rng=1, checkpoint=folder.path / "checkpoint.npz")
    folder.history.write_text(history)
    folder.result.unlink()
    assert main(["plot", "new"]) == 0
    assert folder.plot.exists()
