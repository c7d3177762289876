"""`fmnes paper` as a user types it: list, run, report, verify, and mistakes."""

import base64
import os
import re
import subprocess
import sys

import pytest

from fmnes.cli import main
from fmnes.experiments import figures, protocol, runner
from fmnes.experiments.cases import Table
from fmnes.experiments.results import HEADER, TrialResult, read

pytestmark = pytest.mark.experiments


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
    words = ["--functions", "sphere", "--dims", "10", "80"]
    done = paper("run", "fm-nes", "time", *words, "--results", path)
    assert done.returncode == 0, done.stderr
    return path


def test_other_commands_load_neither_experiments_nor_coco():
    script = (
        "import sys; from fmnes.cli import main; main(['methods']); "
        "print([name for name in sys.modules if 'experiments' in name or 'coco' in name])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_run_takes_the_quick_version_by_default(quick):
    trials = set(read(quick))
    assert trials == {
        trial
        for trial in protocol.trials_of(["fm-nes", "time"], protocol.quick)
        if trial.function == "sphere" and trial.dim in (10, 80)
    }
    assert len(trials) == 3 * 2 + 3 * 2


def test_list_says_what_is_there_and_what_is_left(quick, capsys):
    assert main(["paper", "list", "--results", str(quick)]) == 0
    printed = capsys.readouterr().out
    for name, experiment in protocol.EXPERIMENTS.items():
        assert name in printed
        assert experiment.about in printed
    assert re.search(r"^fm-nes\s+6 of 1050\s+6 of 1050", printed, re.MULTILINE)
    assert re.search(r"^time\s+6 of 900\s+6 of 900", printed, re.MULTILINE)


def test_verify_runs_rows_again(quick):
    done = paper("verify", "--rows", "3", "--results", quick)
    assert done.stdout == "3 of 3 rows came out the same\n"
    assert done.returncode == 0


def test_report_is_one_page_that_needs_nothing_else(quick, capsys):
    assert main(["paper", "report", "--results", str(quick)]) == 0
    page = quick.parent / "report.html"
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text()
    table = Table(read(quick).values())
    image = base64.b64encode(figures.save("against-fm-nes", table, quick.parent)).decode()
    assert image in text  # the same rows give the same bytes
    assert text.count("<img") == len(figures.FIGURES)
    assert not re.search(r"""(src|href)=(?!["']?(#|data:))""", text)
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names))
    # The table of contents and the summary: every address in the page is linked, and the reverse.
    assert set(re.findall(r'href="#([^"]+)"', text)) == set(names) - {"summary"}
    assert "@import" not in text
    for name in figures.FIGURES:
        for ending in ("png", "svg"):
            assert (quick.parent / f"{name}.{ending}").stat().st_size > 2000
    # Two of the ten trials at one of the five sizes, three solvers.
    assert "<tr><td>fm-nes<td>80<td>6<td>1050<td>sphere: 6 at λ = 18\n" in text
    assert "<tr><td>time<td>10 to 100<td>6<td>900" in text
    assert "<tr><td>high-dimensional<td>600<td>0<td>1400" in text
    assert "Trials of each: 2 (d = 80)." in text


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
    done = paper("verify", "--results", "results.csv")
    assert done.stdout == "8 of 8 rows came out the same\n", done.stderr
    assert main(["paper", "report", "--results", "results.csv"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "<th>own:RandomWalk" in page
    assert "no success in 2" in page
    assert "<tr><td>beside<td><td>2<td><td>own:RandomWalk" in page
    assert "<tr><td>beside<td><td>2<td><td>snes" in page
    table = Table(read("results.csv").values())
    for name, beside in (("against-fm-nes", 2), ("high-dimensional", 0)):
        (legend,) = figures.FIGURES[name](table).legends
        named = {text.get_text() for text in legend.get_texts()}
        assert len(named & {"own:RandomWalk", "snes"}) == beside


def test_the_trial_is_named_in_which_a_method_of_ones_own_raises(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN.replace("self._left -= 1", "self._left /= 0"))
    monkeypatch.chdir(tmp_path)
    words = ["fm-nes", "--functions", "sphere", "--methods", "cr-fm-nes"]
    done = paper("run", *words, "--beside", "own:RandomWalk", "--results", "results.csv")
    assert done.returncode == 2
    assert re.fullmatch(
        r"fmnes paper: Trial\(.*method='own:RandomWalk'.*\): ZeroDivisionError: .*\n", done.stderr
    )


def error_of(words, capsys):
    """Return the exit status of a command, and what it prints on standard error."""
    try:
        status = main(["paper", *words])
    except SystemExit as error:  # of the parser
        status = error.code
    return status, capsys.readouterr().err


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
def test_a_missing_package_names_the_extra(words, module, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(runner, "run_trial", None)  # not even one is begun
    status, message = error_of(words, capsys)
    assert status == 2
    assert module in message
    assert '"fmnes[paper]"' in message


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "--beside", "snez"], ["--beside", "cr-fm-nes, fm-nes", "snez"]),
        (["run", "--beside", "cr-fm-nes:papr"], ["--beside", "safe, paper, ", "papr"]),
        (["run", "--beside", "os:getcwd"], ["--beside", "os:getcwd(x0, sigma0, popsize, seed)"]),
        (["run", "--beside", "none:of"], ["--beside", "none:of"]),
        (["run", "--beside", "os:sep"], ["--beside", "os:sep", "function", "'/'"]),
        (["run", "fmnes"], ["EXPERIMENT", "ablation", "fmnes"]),
        (["run", "fm-nes", "--functions", "spheer"], ["--functions", "ellipsoid", "spheer"]),
        (["run", "fm-nes", "--dims", "81"], ["--dims", "80", "81"]),
        (["run", "high-dimensional", "--dims", "200"], ["--dims", "--kept selects 1400"]),
        (["run", "fm-nes", "--dims", "10"], ["--dims", "none", "--full 0"]),
        (["run", "--workers", "0"], ["--workers", "at least 1", "0"]),
        (["verify", "--rows", "-3"], ["--rows", "at least 1", "-3"]),
        (["verify", "--below", "1e-9", "--results", "one.csv"], ["--below", "0.25", "1e-09"]),
        (["report", "--results", "none.csv"], ["none.csv", "at least one trial", "no such file"]),
        (["list", "--results", "wrong.csv"], ["wrong.csv", "experiment,function", "a,b"]),
    ],
)
def test_mistakes_are_one_line(words, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.csv").write_text("a,b\n")
    trial = protocol.Trial("evaluations", "sphere", 80, 18, *protocol.SAFE, 0)
    row = TrialResult(trial, trial.seed, 1, True, 0.0, 0.25, "")
    (tmp_path / "one.csv").write_text(f"{HEADER}{row.to_line()}\n")
    status, message = error_of(words, capsys)
    assert status == 2
    assert all(part in message for part in expected), message
    assert message.count("\n") == 1
