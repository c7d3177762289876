"""`fmnes paper` as a user types it: list, run, report, verify, and mistakes."""

import os
import re
import subprocess
import sys

import pytest

from fmnes.cli import main
from fmnes.experiments import figures, protocol, runner
from fmnes.experiments.results import read
from fmnes.experiments.statistics import Table


def paper(*words):
    return subprocess.run(
        [sys.executable, "-m", "fmnes", "paper", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    path = tmp_path_factory.mktemp("paper") / "results.csv"
    done = paper("run", "fm-nes", "time", "--functions", "sphere", "--results", path)
    assert done.returncode == 0, done.stderr
    return path


def test_run_takes_the_quick_version_by_default(quick):
    trials = set(read(quick))
    assert trials == {
        trial
        for trial in protocol.trials_of(["fm-nes", "time"], protocol.quick)
        if trial.function == "sphere"
    }
    assert len(trials) == 3 * 2 + 3 * 3 * 2


def test_list_says_what_is_there_and_what_is_left(quick, capsys):
    assert main(["paper", "list", "--results", str(quick)]) == 0
    printed = capsys.readouterr().out
    for name, experiment in protocol.EXPERIMENTS.items():
        assert name in printed
        assert experiment.__doc__.partition("\n")[0] in printed
    assert re.search(r"^fm-nes\s+6 of 1050\s+6 of 1050", printed, re.MULTILINE)
    assert re.search(r"^time\s+18 of 900\s+18 of 900", printed, re.MULTILINE)


def test_verify_runs_rows_again(quick):
    done = paper("verify", "--rows", "3", "--results", quick)
    assert done.stdout == "3 of 3 rows came out the same\n"
    assert done.returncode == 0


def test_verify_says_that_no_row_took_so_little(quick):
    words = ["paper", "verify", "--below", "0.0001", "--results", str(quick)]
    with pytest.raises(SystemExit, match=r"--below: expected more than the \S+ s .*, got 0\.0001$"):
        main(words)


def test_report_is_one_page_that_needs_nothing_else(quick, capsys):
    assert main(["paper", "report", "--results", str(quick)]) == 0
    page = quick.parent / "report.html"
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text()
    assert text.count("<svg") == len(figures.FIGURES)
    assert not re.search(r"""(src|href)=(?!["']?#)""", text.replace("xlink:href", "href"))
    assert "@import" not in text
    for name in figures.FIGURES:
        for ending in ("png", "svg"):
            assert (quick.parent / f"{name}.{ending}").stat().st_size > 2000
    # What was run, and what not: two of the ten trials at one of the five sizes, three solvers.
    assert "<tr><td>fm-nes<td>80<td class=number>6<td class=number>1050" in text
    assert "<tr><td>time<td>10 to 100<td class=number>18<td class=number>900" in text
    assert "<li>d = 600: high-dimensional not run.</li>" in text
    assert "fm-nes in part (6 of 1050 trials: sphere 2 of 10 at λ = 18, none at λ = 36" in text
    assert "Trials of each: 2 (d = 80)." in text


def test_the_same_rows_give_the_same_page(quick, tmp_path):
    for folder in ("a", "b"):
        main(["paper", "report", "--results", str(quick), "--out", str(tmp_path / folder)])
    assert (tmp_path / "a/report.html").read_bytes() == (tmp_path / "b/report.html").read_bytes()


OWN = """
import numpy as np


class RandomWalk:
    def __init__(self, x0, sigma0, popsize, seed):
        self._rng = np.random.default_rng(seed)
        self._x, self._sigma, self._popsize = x0, sigma0 / x0.size, popsize
        self._left = 50

    def ask(self):
        steps = self._rng.standard_normal((self._popsize, self._x.size))
        return self._x + self._sigma * steps

    def tell(self, x, f):
        self._x = x[np.argmin(f)]
        self._left -= 1

    def stop(self):
        return self._left == 0
"""


def test_a_method_of_ones_own_beside_the_others(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    words = ["fm-nes", "--functions", "sphere", "--methods", "cr-fm-nes"]
    done = paper("run", *words, "--beside", "own:RandomWalk", "snes", "--results", "results.csv")
    assert done.returncode == 0, done.stderr
    solved = {}
    for trial, row in read("results.csv").items():
        solved.setdefault(trial.solver, []).append(row.success)
    assert solved == {
        protocol.SAFE: [True, True],
        protocol.PAPER: [True, True],
        ("own:RandomWalk", "yours"): [False, False],
        ("snes", "ours"): [True, True],
    }
    assert main(["paper", "report", "--results", "results.csv"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "<th>own:RandomWalk" in page
    assert "no success in 2" in page
    assert "<li>Beside the protocol: own:RandomWalk 2 trials, snes 2 trials.</li>" in page
    table = Table(read("results.csv").values())
    for draw, beside in ((figures.against_fm_nes, 2), (figures.high_dimensional, 0)):
        (legend,) = draw(table).legends
        named = {text.get_text() for text in legend.get_texts()}
        assert len(named & {"own:RandomWalk", "snes"}) == beside


def test_rows_of_a_method_of_ones_own_are_verified(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    words = ["fm-nes", "--functions", "sphere", "--methods", "cr-fm-nes"]
    paper("run", *words, "--beside", "own:RandomWalk", "--results", "results.csv")
    done = paper("verify", "--results", "results.csv")
    assert done.stdout == "6 of 6 rows came out the same\n", done.stderr


def test_the_trial_is_named_in_which_a_method_of_ones_own_raises(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN.replace("self._left -= 1", "self._left /= 0"))
    monkeypatch.chdir(tmp_path)
    words = ["fm-nes", "--functions", "sphere", "--methods", "cr-fm-nes"]
    done = paper("run", *words, "--beside", "own:RandomWalk", "--results", "results.csv")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.fullmatch(
        r"fmnes paper: Trial\(.*method='own:RandomWalk'.*\): ZeroDivisionError: .*\n", done.stderr
    )


def help_of(action, capsys, monkeypatch):
    """What --help says, on a terminal so wide that no line is broken."""
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit, match="0"):
        main(["paper", action, "--help"])
    return " ".join(capsys.readouterr().out.split())


def test_help_says_what_can_be_run(capsys, monkeypatch):
    said = help_of("run", capsys, monkeypatch)
    assert f"EXPERIMENT of {', '.join(protocol.EXPERIMENTS)} (default: all)" in said


def test_help_says_which_rows_are_verified(capsys, monkeypatch):
    said = help_of("verify", capsys, monkeypatch)
    assert "--below SECONDS only rows whose trial took less than this" in said
    assert "(default: 60)" in said


@pytest.mark.parametrize("name", protocol.EXPERIMENTS)
def test_kept_is_empty_for_no_filter_of_the_whole_protocol(name):
    """So that only --quick can be: its message is for it alone."""
    kept, full = (
        {(trial.dim, trial.function, trial.method) for trial in protocol.trials_of([name], size)}
        for size in (protocol.kept, protocol.full)
    )
    assert kept == full


@pytest.mark.parametrize(("words", "workers"), [([], 1), (["--workers", "3"], 3)])
def test_a_process_for_each_core_that_we_may_use(words, workers, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(runner, "run", lambda trials, path, workers: asked.append(workers))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)  # of the machine that a container is on
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {5}, raising=False)
    main(["paper", "run", "fm-nes", *words, "--results", str(tmp_path / "results.csv")])
    assert asked == [workers]


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["report"], "matplotlib"),
        (["report"], "scipy"),
        (["run", "witnesses", "--kept"], "crfmnes"),
        (["run", "--kept", "--workers", "1"], "cmaes"),
    ],
)
def test_a_missing_package_names_the_extra(words, module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(runner, "run_trial", None)  # not even one is begun
    with pytest.raises(SystemExit) as raised:
        main(["paper", *words])
    message = f'fmnes paper: {module} is not installed: pip install "fmnes[paper]"'
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--beside", "snez"], "--beside: expected one of cr-fm-nes, fm-nes"),
        (["run", "--beside", "cr-fm-nes:papr"], "expected a variant of cr-fm-nes: safe, paper, "),
        (["run", "--beside", "os:getcwd"], "os:getcwd(x0, sigma0, popsize, seed) fails: TypeError"),
        (["run", "--beside", "none:of"], "--beside: 'none:of' cannot be imported"),
        (["run", "--beside", "os:sep"], "--beside: expected a function os:sep, got '/'"),
        (["run", "fmnes"], "EXPERIMENT: expected one of ablation, constants"),
        (["run", "fm-nes", "--functions", "spheer"], "--functions: expected one of ellipsoid"),
        (["run", "fm-nes", "--dims", "81"], "--dims: expected one of 80; got 81"),
        (
            ["run", "high-dimensional"],
            "--quick, the default: expected at least one trial, got none",
        ),
        (["run", "high-dimensional", "--dims", "200"], "; --kept has 1400, --full has 1400"),
        (
            ["run", "high-dimensional", "--dims", "80"],
            "--dims: expected one of 200, 600, 1000; got",
        ),
        (["run", "witnesses", "--functions", "sphere"], "; --kept has 260, --full has 260"),
        (
            ["run", "fm-nes", "time", "--dims", "10", "--functions", "rastrigin"],
            "--dims, --functions, --methods: expected at least one trial that meets them all, got",
        ),
        (["run", "--workers", "0"], "--workers: expected a number >= 1, got 0"),
        (["verify", "--rows", "-3"], "--rows: expected a number >= 1, got -3"),
        (
            ["report", "--results", "none.csv"],
            "none.csv: expected at least one trial, got no such file",
        ),
        (["list", "--results", "wrong.csv"], "wrong.csv: expected a file that begins with"),
        (
            ["verify", "--results", "none.csv"],
            "none.csv: expected at least one trial, got no such file",
        ),
    ],
)
def test_mistakes_are_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.csv").write_text("a,b\n")
    with pytest.raises(SystemExit) as raised:
        main(["paper", *words])
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
