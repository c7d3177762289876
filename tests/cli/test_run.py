"""`fmnes run` and its relatives: the bits of `fmnes.minimize`, and errors in one line."""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import fmnes
from cli.common import PROGRAM, assert_same, history, holes, result, rows, sphere
from fmnes.cli import main
from fmnes.cli._program import ExternalProgram


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())


def run(*arguments, out="out"):
    """The exit status of a quiet run in a folder of that name."""
    return main(["run", *map(str, arguments), "--quiet", "--no-plot", "--out", out])


CASES = {
    "numbers": (
        "--x0 3 -1e-1 2,1 --sigma0 1 --maxfevals 400",
        {"x0": [3, -0.1, 2, 1], "sigma0": 1.0, "maxfevals": 400},
    ),
    "one number": (
        "--x0=-3 --dim 20 --sigma0 2 --ftarget 1e-3 --rng 7",
        {"x0": [-3.0] * 20, "sigma0": 2.0, "ftarget": 1e-3, "rng": 7},
    ),
    "bounds": (
        "--x0 3 --dim 4 --sigma0 1 --bounds -4,5.5 --maxiter 30",
        {"x0": [3.0] * 4, "sigma0": 1.0, "bounds": [(-4, 5.5)] * 4, "maxiter": 30},
    ),
    "sigma0 from bounds": (
        "--x0 3 --dim 4 --bounds -4 5 --maxiter 30",
        {"x0": [3.0] * 4, "bounds": [(-4, 5)] * 4, "maxiter": 30},
    ),
    "half bounds": (
        "--x0 3 --dim 4 --sigma0 1 --bounds -inf 4 --maxiter 30",
        {"x0": [3.0] * 4, "sigma0": 1.0, "bounds": [(None, 4)] * 4, "maxiter": 30},
    ),
    "method": (
        "--x0 3 --dim 5 --sigma0 1 2 1 2 1 --method vd-cma --popsize 12 --maxfevals 1e3",
        {"x0": [3.0] * 5, "sigma0": [1, 2, 1, 2, 1], "method": "vd-cma", "popsize": 12}
        | {"maxfevals": 1000},
    ),
    "settings": (
        "--x0 3 --dim 5 --sigma0 1 --method cr-fm-nes --set variant=paper --set eta_B=0.25 "
        "--maxfevals 400",
        {"x0": [3.0] * 5, "sigma0": 1.0, "maxfevals": 400}
        | {"method": fmnes.CRFMNES(variant="paper", eta_B=0.25)},
    ),
    "restarts": (
        "--x0 3 --dim 3 --sigma0 1 --restarts bipop:2 --maxfevals 5000",
        {"x0": [3.0] * 3, "sigma0": 1.0, "restarts": fmnes.BIPOP(2), "maxfevals": 5000},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_gives_the_bits_of_minimize(case, tmp_path):
    words, arguments = CASES[case]
    seed = [] if "rng" in arguments else ["--rng", "1"]
    assert run("cli.common:sphere", *words.split(), *seed) == 0
    assert_same(tmp_path / "out", fmnes.minimize(sphere, **{"rng": 1, **arguments}))


def test_a_vectorized_run_gives_the_bits_of_minimize(tmp_path):
    words = "--x0 3 --dim 30 --sigma0 2 --vectorized --rng 1 --maxfevals 3000"
    assert run("cli.common:rows", *words.split()) == 0
    expected = fmnes.minimize(rows, [3.0] * 30, 2.0, vectorized=True, rng=1, maxfevals=3000)
    assert_same(tmp_path / "out", expected)


@pytest.mark.parametrize("suffix", ["txt", "npy", "json"])
def test_vectors_come_from_files(suffix, tmp_path):
    x0, sigma0 = np.array([3.0, -2.0, 1 / 3]), np.array([1.0, 0.1, 2.0])
    bounds = np.array([[-4.0, 4.0], [-3.0, np.inf], [-np.inf, 2.0]])
    for name, array in {"x0": x0, "sigma0": sigma0, "bounds": bounds}.items():
        if suffix == "npy":
            np.save(name, array)
        elif suffix == "json":
            values = np.where(np.isfinite(array), array, None).tolist()
            (tmp_path / f"{name}.json").write_text(json.dumps(values))
        else:
            lines = [" ".join(map(repr, np.ravel(row).tolist())) for row in array]
            (tmp_path / f"{name}.txt").write_text("# a comment\n" + "\n".join(lines) + "\n")
    flags = [f"--{name}=@{name}.{suffix}" for name in ("x0", "sigma0", "bounds")]
    assert run("cli.common:sphere", *flags, "--rng", 1, "--maxiter", 20) == 0
    expected = fmnes.minimize(sphere, x0, sigma0, bounds=bounds, rng=1, maxiter=20)
    assert_same(tmp_path / "out", expected)


def test_without_a_seed_the_one_that_was_drawn_is_kept(tmp_path):
    for out in ("a", "b"):
        assert (
            run("cli.common:sphere", "--x0", 1, "--dim", 1, "--sigma0", 1, "--maxiter", 3, out=out)
            == 0
        )
    seeds = [json.loads((tmp_path / out / "config.json").read_text())["rng"] for out in "ab"]
    assert seeds[0] != seeds[1]
    for out, seed in zip("ab", seeds, strict=True):
        assert_same(tmp_path / out, fmnes.minimize(sphere, [1.0], 1.0, maxiter=3, rng=seed))


def test_a_new_folder_is_named_after_the_function(tmp_path, capsys):
    words = ["--x0", "1", "--dim", "1", "--sigma0", "1", "--maxiter", "2", "--no-plot"]
    for _ in range(2):
        assert main(["run", "cli.common:sphere", *words]) == 0
    folders = sorted(tmp_path.glob("fmnes-sphere-*"))
    assert len(folders) == 2
    out, err = capsys.readouterr()
    assert out.count("status: maxiter") == 2
    assert all(folder.name in err for folder in folders)


# --- Programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["program.py {file}", "program.py", "program.py --workers 2"])
def test_a_program_gives_the_bits_of_the_function(way, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command, _, workers = way.partition(" --workers ")
    flags = ["--workers", workers] if workers else []
    words = ["--x0", "3", "--dim", "3", "--sigma0", "1", "--rng", "1", "--maxfevals", "28", *flags]
    assert run("--command", f"{sys.executable} -S {command}", *words) == 0
    expected = fmnes.minimize(holes, [3.0] * 3, 1.0, rng=1, maxfevals=28)
    assert expected.nfailed > 0
    assert_same(tmp_path / "out", expected)
    error = (tmp_path / "out" / "first_error.txt").read_text()
    assert "program.py exited with status 1: x[0] is too large" in error
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "best.txt",
        "checkpoint.npz",
        "checkpoint.npz.journal",
        "checkpoint.npz.journal.previous",
        "checkpoint.npz.previous",
        "config.json",
        "first_error.txt",
        "history.csv",
        "log.txt",
        "result.json",
    ]


def test_a_shell_runs_what_it_is_given(tmp_path):
    """Words with pipes and variables are refused only where no shell would read them."""
    words = ["--x0", 3, "--dim", 1, "--sigma0", 1, "--rng", 1, "--maxiter", 2]
    assert run("--command", "sh -c 'N=1; cat {file}|tail -n $N'", *words) == 0
    assert_same(tmp_path / "out", fmnes.minimize(lambda x: x[0], [3.0], 1.0, rng=1, maxiter=2))


def test_a_process_that_a_program_leaves_behind_is_not_waited_for(tmp_path):
    code = "import subprocess as s; print(s.Popen(['sleep', '20']).pid, file=open('pid', 'w'))"
    (tmp_path / "program.py").write_text(f"{code}; print(1.5)")
    program = ExternalProgram.parse(f"{sys.executable} program.py", str(tmp_path), str(tmp_path))
    assert program(np.zeros(2)) == 1.5
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # an error if it has ended


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('no number')", "got 'no number'"),
        ("pass", "got ''"),
        ("import os; os.abort()", "SIGABRT"),
        ("import time; time.sleep(60)", "TimeoutError"),
    ],
)
def test_a_program_that_fails_always(code, why, tmp_path, capsys):
    (tmp_path / "program.py").write_text(code)
    words = [
        "--x0",
        "3",
        "--dim",
        "1",
        "--sigma0",
        "1",
        "--popsize",
        "2",
        "--evaluation-timeout",
        "0.2",
    ]
    if "sleep" not in code:
        words[-1] = "60"
    assert run("--command", f"{sys.executable} -S program.py", *words) == 1
    assert result(tmp_path / "out")["status"] == "infeasible"
    assert history(tmp_path / "out")["nfailed"] == [4.0]  # x0 twice, and two candidates
    assert why in capsys.readouterr().err


def test_a_failing_program_is_tried_again(tmp_path):
    """The first call of all fails."""
    (tmp_path / "program.py").write_text(
        "import os, sys\n"
        "try: os.mkdir('called')\n"
        "except FileExistsError: print(float(sys.stdin.readline()) ** 2)\n"
        "else: sys.exit(3)\n"
    )
    words = ["--x0", 3, "--dim", 1, "--sigma0", 1, "--rng", 1, "--maxiter", 2, "--retries", 1]
    assert run("--command", f"{sys.executable} -S program.py", *words) == 0
    assert_same(tmp_path / "out", fmnes.minimize(lambda x: x[0] ** 2, [3.0], 1.0, rng=1, maxiter=2))


def test_a_failure_may_end_the_search(tmp_path, capsys):
    words = ["--x0", 3, "--dim", 1, "--sigma0", 1, "--on-error", "raise"]
    assert run("--command", "false", *words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes run: EvaluationError: ")
    assert "false exited with status 1" in line
    assert not (tmp_path / "out" / "result.json").exists()


# --- Errors ---------------------------------------------------------------------------------------

START = ["--x0", "3", "--dim", "1", "--sigma0", "1"]
PLANE = ["--x0", "3", "3"]
SPHERE = ["cli.common:sphere"]
# The argument that the message begins with, what came, and the words after `fmnes run`.
WRONG = [
    ("--x0", "'a'", [*SPHERE, "--x0", "a", "--sigma0", "1"]),
    ("--x0", "''", [*SPHERE, "--x0", "", "--sigma0", "1"]),
    ("--x0", "2", [*SPHERE, *START, "--x0", "1", "2", "--dim=3"]),
    ("--x0", "gone.txt", [*SPHERE, "--x0", "@gone.txt", "--sigma0", "1"]),
    ("--x0", "x0[0] = nan", [*SPHERE, *START, "--x0", "nan"]),
    ("--x0", "x0[0] = 3.0 outside [4.0, 5.0]", [*SPHERE, *START, "--bounds", "4", "5"]),
    ("--bounds", "'4'", [*SPHERE, *START, "--bounds", "4"]),
    ("--bounds", "'4 5 6'", [*SPHERE, *START, "--bounds", "4", "5", "6"]),
    ("--bounds", "nan", [*SPHERE, *START, "--bounds", "nan", "5"]),
    ("--bounds: expected LOW <= HIGH", "5 4", [*SPHERE, *START, "--bounds", "5", "4"]),
    ("--sigma0: expected one number or 2", "3", [*SPHERE, *PLANE, "--sigma0", "1", "2", "3"]),
    ("--sigma0", "-1", [*SPHERE, *START, "--sigma0", "-1"]),
    ("--dim", "none", [*SPHERE, "--x0", "3", "--sigma0", "1"]),
    ("--dim", "0", [*SPHERE, *START, "--dim", "0"]),
    ("--dim", "1.5", [*SPHERE, *START, "--dim", "1.5"]),
    ("--maxfevals", "1.5", [*SPHERE, *START, "--maxfevals", "1.5"]),
    ("--maxfevals", "3", [*SPHERE, *START, "--maxfevals", "3"]),
    ("--popsize", "5", [*SPHERE, *START, "--popsize", "5"]),
    ("--rng: expected a number", "'x'", [*SPHERE, *START, "--rng", "x"]),
    ("--rng: expected at least 0", "-1", [*SPHERE, *START, "--rng=-1"]),
    ("--checkpoint: expected a folder", "gone", [*SPHERE, *START, "--checkpoint", "gone/run.npz"]),
    ("--method", "nelder-mead", [*SPHERE, *START, "--method", "nelder-mead"]),
    ("--method", "'cma-es'?", [*SPHERE, *START, "--method", "cmaes"]),
    ("unrecognized arguments: --seed", "'--rng'?", [*SPHERE, *START, "--seed", "3"]),
    ("unrecognized arguments: --seed=3", "'--rng'?", [*SPHERE, *START, "--seed=3"]),
    ("unrecognized arguments: --comand", "'--command'?", [*START, "--comand", "true"]),
    ("--on-error", "'penalize'?", [*SPHERE, *START, "--on-error", "penalise"]),
    ("--set adapt", "'x'", [*SPHERE, *START, "--set", "adapt=x"]),
    ("--set", "'eta=1'", [*SPHERE, *START, "--method", "vd-cma", "--set", "eta=1"]),
    ("--restarts", "'many'", [*SPHERE, *START, "--restarts", "many"]),
    ("--workers", "0", [*SPHERE, *START, "--workers", "0"]),
    ("--workers", "2", [*SPHERE, *START, "--workers", "2", "--vectorized"]),
    ("--vectorized", "", [*START, "--command=true", "--vectorized"]),
    ("--retries", "-1", [*SPHERE, *START, "--retries=-1"]),
    ("--evaluation-timeout", "0", [*SPHERE, *START, "--evaluation-timeout", "0"]),
    ("--evaluation-timeout", "inf", [*SPHERE, *START, "--evaluation-timeout", "inf"]),
    ("function", "neither", START),
    ("function", "both", [*SPHERE, *START, "--command", "true"]),
    ("function", "'cli.gone:f'", ["cli.gone:f", *START]),
    ("function", "'cli.common:gone'", ["cli.common:gone", *START]),
    ("function", "int", ["cli.common:not_a_function", *START]),
    ("function", "model:f", ["model.py:f", *START]),
    ("function", "':f'", [":f", *START]),
    ("--command", "'no-such-program'", [*START, "--command", "no-such-program {file}"]),
    ("--command", "it's", [*START, "--command", "it's"]),
    ("--command", "'{x}'", [*START, "--command", "true {x}"]),
    ("--command", "'--in={input}'", [*START, "--command", "true --in={input}"]),
    ("--command", "'{file}|sort'", [*START, "--command", "true {file}|sort"]),
    ("--command", "use sh -c", [*START, "--command", "~/simulate {file}"]),
    ("--command", "use sh -c", [*START, "--command", "$HOME/simulate {file}"]),
    ("--command", "use sh -c", [*START, "--command", "N=1 true {file}"]),
    ("--command", "without --command", [*START, "--command", "cli.common:sphere"]),
    ("function", "needs quotes", [*START, "--command", "true", "{file}"]),
    ("unrecognized arguments: --fast", "quotes", [*START, "--command", "true", "--fast"]),
    ("function", "--command 'true {file}'", ["true {file}", *START]),
    ("function", "'cli.common:sphere'?", ["cli.common.sphere", *START]),
    ("--x0", "--x0", [*SPHERE, "--sigma0", "3"]),
]


@pytest.mark.parametrize(("name", "came", "words"), WRONG, ids=[" ".join(w[2]) for w in WRONG])
def test_a_wrong_argument_is_named_in_one_line(name, came, words, tmp_path, capsys):
    """And nothing is written."""
    try:
        status = run(*words)
    except SystemExit as end:  # by the parser
        status = end.code
    assert status == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fmnes run: {name}")
    assert came.lower() in line.lower()
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_with_a_file_is_said(tmp_path, capsys):
    (tmp_path / "pairs.txt").write_text("0 1\n0 2\n")
    three = [*SPHERE, "--x0", "0", "0", "0"]
    assert run(*three, "--bounds", "@pairs.txt") == 2
    assert run(*three, "--bounds", "pairs.txt") == run(*SPHERE, "--x0", "pairs.txt") == 2
    of_count, *of_names = capsys.readouterr().err.splitlines()
    assert "with 2 pairs" in of_count
    assert len(of_names) == 2
    assert all("@pairs.txt" in line for line in of_names)
    (tmp_path / "best.json").write_text('{"lr": 0.1}')
    assert run(*SPHERE, "--x0", "@best.json") == 2
    assert "--space" in capsys.readouterr().err
    (tmp_path / "words.txt").write_text("1 2 three")
    (tmp_path / "empty.txt").touch()
    assert run(*SPHERE, "--x0", "@words.txt") == run(*SPHERE, "--x0", "@empty.txt") == 2
    of_words, of_empty = capsys.readouterr().err.splitlines()
    assert "got words.txt (" in of_words
    assert "'three'" in of_words
    assert "got empty.txt (it is empty)" in of_empty


CHANGES = {  # of config.json, and what the message says
    "an unknown name": ({"methd": "auto"}, "methd: expected no such name (did you mean 'method'?)"),
    "a number that is text": ({"maxfevals": "many"}, "maxfevals: expected int | None, got 'many'"),
    "text that is a number": ({"checkpoint": 7}, "checkpoint: expected str | None, got 7"),
    "an unknown method": ({"method": "auto "}, "method: expected Literal["),
    "a number that is a truth value": ({"dim": True}, "dim: expected int, got True"),
    "too many variables": ({"dim": 7}, "x0: expected 7 numbers (dim), got 2"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_wrong_entry_of_the_configuration_is_named(case, tmp_path, capsys):
    """And the folder stays as it is."""
    change, message = CHANGES[case]
    assert run(*SPHERE, *PLANE, "--maxfevals", "50", "--rng", "1") == 0
    config = tmp_path / "out" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    capsys.readouterr()
    assert main(["resume", "out", "--quiet", "--no-plot"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes resume: DIR: ")
    assert f"(config.json: {message}" in line
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_configuration_that_lacks_an_entry(tmp_path, capsys):
    assert run(*SPHERE, *PLANE, "--maxfevals", "50", "--rng", "1") == 0
    config = tmp_path / "out" / "config.json"
    content = json.loads(config.read_text())
    del content["x0"]
    config.write_text(json.dumps(content))
    assert main(["resume", "out", "--quiet"]) == 2
    config.write_text("[]")
    assert main(["resume", "out", "--quiet"]) == 2
    of_x0, of_list = capsys.readouterr().err.splitlines()
    assert "(config.json: x0: expected a value, got none)" in of_x0
    assert "(config.json: expected names and values, got list)" in of_list


def test_a_name_without_a_function_that_is_a_file(tmp_path, capsys):
    (tmp_path / "model.py").touch()
    (tmp_path / "program").touch()
    assert run("model", *START) == run("./program", *START) == 2
    of_model, of_program = capsys.readouterr().err.splitlines()
    assert "model:function" in of_model
    assert "--command ./program" in of_program


def test_a_run_without_any_value_cannot_be_continued(capsys):
    assert run("--command", "false", *START) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("fmnes resume out would evaluate nothing again")
    assert main(["resume", "out", "--quiet", "--no-plot", "--maxfevals", "1000"]) == 1
    assert result(Path("out"))["nfev"] == history(Path("out"))["nfev"][0]


def test_an_objective_that_raises(tmp_path, capsys):
    assert run("cli.common:raises", *START) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes run: ZeroDivisionError: at 1 variables (--debug ")
    assert "fmnes resume out" in line
    with pytest.raises(ZeroDivisionError):
        run("cli.common:raises", *START, "--debug", out="other")


def test_a_module_with_a_syntax_error(tmp_path, capsys):
    (tmp_path / "unclosed.py").write_text("def f(x:\n")
    assert run("unclosed:f", *START) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes run: SyntaxError: ")
    assert "unclosed.py, line 1" in line


def test_a_command_that_is_misspelt(capsys):
    with pytest.raises(SystemExit) as end:
        main(["runn"])
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith(" (did you mean 'run'?)\n")


def test_a_folder_holds_one_run(capsys):
    words = [*SPHERE, *START, "--maxiter", "2"]
    assert run(*words) == 0
    assert run(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes run: --out: ")
    assert "fmnes resume out" in line


@pytest.mark.parametrize("command", ["resume", "plot"])
def test_a_folder_without_a_run(command, capsys):
    assert main([command, "gone"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fmnes {command}: DIR: ")
    assert "gone" in line


def test_a_small_population_is_warned_of_once(capsys):
    words = ["--x0", "3", "--dim", "100", "--sigma0", "1", "--popsize", "4", "--maxiter", "2"]
    assert run(*SPHERE, *words) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes: popsize=4 ")


# --- The other commands ---------------------------------------------------------------------------


def test_plot_draws_the_run(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra fmnes[plot]")
    assert run(*SPHERE, *START, "--maxiter", "5") == 0
    assert main(["plot", "out"]) == 0
    assert main(["plot", "out", "--out", "picture.svg"]) == 0
    assert (tmp_path / "out" / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "picture.svg").read_text()
    assert capsys.readouterr().out.endswith("plot.png\npicture.svg\n")


def test_methods_are_those_of_the_table(capsys):
    assert main(["methods"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["method", "covariance", "cost", "settings"]
    assert [line.split()[0] for line in lines] == list(fmnes.METHODS)
    covariances = {line[:11].strip(): line[11:36].strip() for line in lines}
    assert covariances == {
        "auto": "sigma^2 D R D",
        "cr-fm-nes": "sigma^2 D (I + v v^T) D",
        "fm-nes": "sigma^2 B B^T",
        "dx-nes-ic": "sigma^2 B B^T",
        "xnes": "sigma^2 B B^T",
        "snes": "diag(s*s)",
        "r1-nes": "sigma^2 (I + v v^T)",
        "vd-cma": "sigma^2 D (I + v v^T) D",
        "sep-cma": "sigma^2 D^2",
        "cma-es": "sigma^2 C",
    }
    costs = {line.split()[0] for line in lines if line[36:44].strip() == "O(d)"}
    assert costs == {"auto", "cr-fm-nes", "snes", "r1-nes", "vd-cma", "sep-cma"}
    assert "variant=safe" in lines[1]


def test_doctor_says_what_is_installed(capsys):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert f"numpy                   {np.__version__}\n" in text
    assert "FAILED" not in text
    assert ": ok, " in text


@pytest.mark.parametrize("command", ["run", "resume", "plot", "watch", "methods", "doctor"])
def test_help_is_there(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text or command == "doctor"
    assert max(map(len, text.splitlines())) <= 100


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 2
    assert "fmnes resume DIR" in capsys.readouterr().err


def test_a_quiet_run_says_where_its_files_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "run cli.common:sphere --x0 1 --dim 2 --sigma0 1 --rng 1 --maxiter 3 --quiet --no-plot"
    assert main(words.split()) == 0
    (folder,) = tmp_path.iterdir()  # a new one, because there is no --out
    assert capsys.readouterr().out.split()[-2:] == ["folder:", folder.name]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    above = f"../{folder.name}"  # as seen from where the command is given
    assert main(["resume", above, "--maxiter", "4", "--quiet", "--no-plot"]) == 0
    assert capsys.readouterr().out.split()[-2:] == ["folder:", above]
    with pytest.raises(ValueError, match=r"json\.load"):  # a summary, not a file of Result.save
        fmnes.Result.load(folder / "result.json")
