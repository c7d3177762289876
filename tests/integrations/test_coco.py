"""`fmnes coco`: COCO's data from problems solved apart, killed and resumed; and cocopp's page."""

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest

from fmnes.cli import main
from fmnes.integrations import _coco_data as data
from fmnes.integrations import _coco_problems as problems
from fmnes.integrations import coco
from fmnes.integrations._coco_problems import SIGMA0, Task

pytestmark = pytest.mark.experiments

cocoex = pytest.importorskip("cocoex", reason="needs the extra coco: coco-experiment")

PAGE = Path(__file__).parents[2] / "docs/large-scale.md"
TINY = {"suite": "bbob", "dims": [2, 5], "functions": [1, 3], "instances": [1, 2], "budget": 100}
WORDS = ["--suite", "bbob", "--dims", "2", "5", "--functions", "1", "3", "--instances", "1-2"]

OWN_SOLVERS = """
import time
import numpy as np

class RandomSearch:
    def __init__(self, x0, sigma0, seed, restart):
        self.rng, self.left = np.random.default_rng(seed), 10
        self.x0, self.sigma0, self.popsize = x0, sigma0, 4 * (restart + 1)
    def ask(self):
        return self.x0 + self.sigma0 * self.rng.standard_normal((self.popsize, self.x0.size))
    def stop(self):
        return self.left == 0

class ByValues(RandomSearch):
    def tell(self, f):
        assert len(f) == self.popsize
        self.left -= 1

class ByPoints(RandomSearch):
    def tell(self, x, f, extra=None):
        assert x.shape == (len(f), self.x0.size)
        self.left -= 1

class Slow(ByValues):
    def tell(self, f):
        super().tell(f)
        time.sleep(0.004)

class Faulty(ByValues):
    def tell(self, f):
        raise ArithmeticError("no such luck")

class Idle(ByValues):
    def stop(self):
        return True

class ByName(ByValues):
    def __init__(self, *, restart, seed, sigma0, x0):
        super().__init__(x0, sigma0, seed, restart)

class Beside(ByValues):
    def __init__(self, x0, sigma0, popsize, seed):
        super().__init__(x0, sigma0, seed, 0)
"""


@pytest.fixture
def own_solvers(tmp_path, monkeypatch):
    (tmp_path / "own_solvers.py").write_text(OWN_SOLVERS)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("own_solvers", None)


def contents(archive):
    """The files of an archive, without the records, which hold times."""
    with tarfile.open(archive) as tar:
        names = [name for name in tar.getnames() if not name.endswith("records.jsonl")]
        return {name: tar.extractfile(name).read() for name in names}


def tree(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def solved_in(folder, label=None):
    """Return the folders and records of a run, of one solver or all."""
    return [
        (folder / task.folder, record)
        for task, record in problems.read_records(folder)
        if label in (None, task.label)
    ]


def test_merged_problems_are_what_coco_writes_in_one_go(tmp_path):
    """COCO's own observer, over the whole suite in one process, is the judge."""
    solver = "cr-fm-nes"
    coco.run([solver], tmp_path / "run", workers=2, **TINY)
    solved = solved_in(tmp_path / "run")
    assert len(solved) == 8
    data.merge(solved, tmp_path / "merged")
    (tmp_path / "merged/records.jsonl").unlink()

    suite = cocoex.Suite("bbob", "instances: 1-2", "dimensions: 2,5 function_indices: 1,3")
    first = Task(solver, "bbob", 1, 2, 1, 100.0)
    observer = cocoex.Observer("bbob", problems.observer_options(first, tmp_path / "by-coco"))
    for problem in suite:
        problem.observe_with(observer)
        task = Task(solver, "bbob", *(problem.id_triple[i] for i in (0, 1, 2)), 100.0)
        problems.solve(problem, task, observer)
        assert problem.evaluations <= 100 * problem.dimension
    assert tree(tmp_path / "merged") == tree(tmp_path / "by-coco")


def test_what_is_packed_is_what_cocopp_would_leave(tmp_path):
    found = importlib.util.find_spec("cocopp")
    if found is None:
        pytest.skip("needs the extra coco: cocopp")
    path = Path(found.submodule_search_locations[0], "reduce_size.py")  # without all of cocopp
    spec = importlib.util.spec_from_file_location("reduce_size", path)
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    coco.run(["cr-fm-nes"], tmp_path, workers=2, **TINY)
    data.merge(solved_in(tmp_path), tmp_path / "merged")
    files = list(tmp_path.glob("merged/data_*/*.tdat"))
    assert len(files) == 4
    for file in files:
        lines = file.read_text().splitlines(keepends=True)
        left = theirs.reduce_tdat(list(lines))
        assert len(left) == 2 * 3  # two instances: a title, the first and the last line
        assert data.first_and_last("".join(lines)) == "".join(left)


NAMES = ["own_solvers:Slow", "cr-fm-nes"]
LABELS = ["own_solvers-Slow", "cr-fm-nes"]
ONE_FUNCTION = ["--suite", "bbob", "--dims", "2", "5", "--functions", "3", "--instances", "1-2"]
RUN = ["coco", "run", *NAMES, *ONE_FUNCTION, "--budget", "100", "--no-page", "--workers", "2"]


@pytest.fixture
def begun(own_solvers, tmp_path):
    """A run that has some problems done and others begun, and its folder."""
    out = tmp_path / "killed"
    source = Path(coco.__file__).parents[2]
    path = os.pathsep.join([str(source), str(own_solvers)])
    process = subprocess.Popen(
        [sys.executable, "-m", "fmnes", *RUN, "--out", str(out)],
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
        stderr=subprocess.PIPE,  # the bar; its end comes when the last of the processes is gone
    )
    while not (solved := solved_in(out)) or len(list(out.glob("problems/*/f*"))) == len(solved):
        assert process.poll() is None
        time.sleep(0.01)
    yield process, out
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("kill", [os.killpg, os.kill], ids=["all of it", "the parent alone"])
def test_killed_and_resumed_it_writes_the_same_data(begun, tmp_path, kill):
    process, out = begun
    kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)  # workers that outlive their parent would hold it up for ever
    before = {path: path.stat().st_mtime_ns for path, _ in solved_in(out)}
    assert 1 <= len(before) < 8
    assert len(list(out.glob("problems/*/f*"))) > len(before)  # it was in the middle of something
    assert (out / "records.jsonl.lock").exists()  # but nobody holds it

    assert main([*RUN, "--out", str(out)]) == 0
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert len(solved_in(out)) == len(list(out.glob("problems/*/f*"))) == 8
    assert not (out / "records.jsonl.lock").exists()

    assert main([*RUN, "--out", str(tmp_path / "whole")]) == 0
    for label in LABELS:
        for folder in (out, tmp_path / "whole"):
            data.pack(solved_in(folder, label), folder / f"{label}.tgz")
        resumed = contents(out / f"{label}.tgz")
        assert len(resumed) == 1 + 2 * 4  # .info, and four kinds of data per dimension
        assert resumed == contents(tmp_path / "whole" / f"{label}.tgz")


def test_a_second_run_on_the_same_folder_is_refused(begun, capsys):
    process, out = begun
    assert main([*RUN, "--out", str(out)]) == 2
    assert f"used by process {process.pid} on " in capsys.readouterr().err
    assert process.poll() is None
    process.communicate(timeout=60)
    assert process.returncode == 0  # what it had begun was left to it
    assert len(solved_in(out)) == 8


def test_one_command_from_problems_to_the_page(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra coco: cocopp")
    out = tmp_path / "a folder"
    words = ["run", "cr-fm-nes:paper", "pycma:vd", "--suite", "bbob", "--dims", "5"]
    words += ["--functions", "1", "--instances", "1", "--budget", "50", "--out", str(out)]
    assert main(["coco", *words]) == 0
    assert capsys.readouterr().out == f"{out}/page/index.html\n"
    pages = "".join(path.read_text() for path in (out / "page").rglob("*.html"))
    assert "cr-fm-nes-paper" in pages
    assert "pycma-vd" in pages

    assert sorted(path.name for path in out.iterdir()) == [
        "cr-fm-nes-paper.tgz", "page", "problems", "pycma-vd.tgz", "records.jsonl",
    ]  # fmt: skip


def test_a_finished_run_says_so(tmp_path, capsys):
    run = ["coco", "run", "cr-fm-nes", "--suite", "bbob", "--dims", "2", "--functions", "1"]
    run += ["--instances", "1", "--budget", "20", "--no-page"]
    assert main([*run, "--out", str(tmp_path)]) == 0
    assert "already" not in capsys.readouterr().err
    assert main([*run, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "all 1 problems are solved already\n")


def test_restarts_until_the_budget_is_spent(own_solvers, tmp_path):
    """Both kinds of tell; ten generations a run of 4, 8, 12, ... evaluations each."""
    names = ["own_solvers:ByName", "own_solvers:ByPoints"]
    coco.run(names, tmp_path, suite="bbob", dims=[5], functions=[24], instances=[3], budget=101)
    infos = [
        (tmp_path / f"problems/own_solvers-{kind}/f024_d0005_i003/bbobexp_f24.info").read_text()
        for kind in ("ByName", "ByPoints")
    ]
    # 40 + 80 + 120 + 160 = 400 evaluations in four runs, then 5 * 20 of the fifth; 5 remain.
    assert " 3:500|" in infos[0]
    assert infos[0].partition("%")[2] == infos[1].partition("%")[2]
    restarts = tmp_path / "problems/own_solvers-ByName/f024_d0005_i003/data_f24"
    logged = (restarts / "bbobexp_f24_DIM5.rdat").read_text().splitlines()[1:]
    assert [int(line.split()[0]) for line in logged] == [41, 121, 241, 401]


@pytest.mark.parametrize("name", ["vd-cma", "fm-nes", "pycma", "pycma:vd"])
def test_populations_double(name):
    from fmnes.integrations._coco_solvers import factory_of

    start = factory_of(name)
    runs = [start(x0=np.zeros(20), sigma0=SIGMA0, seed=1, restart=restart) for restart in range(4)]
    sizes = [len(run.ask()) for run in runs]
    ratios = np.array(sizes[1:]) / sizes[:-1]
    np.testing.assert_allclose(ratios, 2, atol=0.1)  # pycma rounds 4 + 3 log d after doubling


def test_every_solver_starts_at_the_same_points():
    a = Task("cr-fm-nes", "bbob", 1, 5, 1, 10.0)
    seeds = {a._replace(**change).seeds(k) for k in (0, 1) for change in (
        {}, {"suite": "bbob-largescale"}, {"function": 2}, {"dim": 10}, {"instance": 2}
    )}  # fmt: skip
    assert len(seeds) == 10
    assert a._replace(solver="pycma", budget=20.0).seeds(1) == a.seeds(1)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nope"], ["solvers", "cr-fm-nes, ", "nope"]),
        (["sep-cma:paper"], ["solvers", "sep-cma", "'paper'"]),
        (["cr-fm-nes:new"], ["variant", "'safe'", "'paper'", "'new'"]),
        (["pycma:foo"], ["solvers", "pycma:foo"]),
        (["no_such_module:f"], ["solvers", "'no_such_module:f'"]),
        (["os:sep"], ["solvers", "os:sep", "'/'"]),
        (["os:getcwd"], ["solvers", "os:getcwd(x0, sigma0, seed, restart)", "TypeError"]),
        (["own_solvers:Beside", *WORDS, "--no-page"], ["unexpected keyword argument"]),
        (["own_solvers:RandomSearch"], ["RandomSearch", "tell"]),
        (["cr-fm-nes", "cr-fm-nes"], ["solvers", "once"]),
        (["cr-fm-nes", "--dims", "20", "21"], ["dims", "20, 40, 80, 160, 320, 640", "[21]"]),
        (["cr-fm-nes", "--functions", "25"], ["functions", "1 to 24", "[25]"]),
        (["cr-fm-nes", "--instances", "1-1000"], ["instances", "1 to 999", "[1000]"]),
        (["cr-fm-nes", "--budget", "0"], ["budget", "> 0", "0.0"]),
        (["cr-fm-nes", "--budget", "1e400"], ["budget", "finite", "inf"]),
        (["cr-fm-nes", "--workers", "0"], ["workers", "at least 1", "0"]),
    ],
)
def test_wrong_arguments_are_named(own_solvers, tmp_path, capsys, words, expected):
    assert main(["coco", "run", *words, "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("fmnes coco: ")
    assert all(part in message for part in expected), message
    assert not (tmp_path / "out").exists()


def test_words_that_are_no_numbers(capsys):
    with pytest.raises(SystemExit):
        main(["coco", "run", "cr-fm-nes", "--dims", "2O"])
    assert re.fullmatch(r"fmnes coco run: --dims: .*'2O'\n", capsys.readouterr().err)


def test_the_solver_that_the_page_makes_of_cmaes(tmp_path, monkeypatch):
    pytest.importorskip("cmaes", reason="needs the extra bench: cmaes")
    (source,) = re.findall(r"^```python\n(# mine\.py\n.*?)^```$", PAGE.read_text(), re.M | re.S)
    (tmp_path / "mine.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    coco.run(["mine:SepCMA"], tmp_path, **TINY | {"functions": [1], "budget": 1e3})
    records = [record for _, record in solved_in(tmp_path, "mine-SepCMA")]
    assert [record["hit"] for record in records] == [True] * 4  # spheres


def test_another_budget_is_another_run(tmp_path):
    one = {"suite": "bbob", "dims": [2], "functions": [1], "instances": [1]}
    coco.run(["cr-fm-nes"], tmp_path, budget=50, **one)
    with pytest.raises(ValueError, match=r"budget: .* 50.* 60"):
        coco.run(["cr-fm-nes"], tmp_path, budget=60, **one)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("Faulty", "ArithmeticError: no such luck"), ("Idle", "stopped before it asked")],
)
def test_a_solver_that_fails_is_named_with_its_problem(own_solvers, tmp_path, kind, message):
    one = {"suite": "bbob", "dims": [2], "functions": [1], "instances": [1]}
    where = f"own_solvers:{kind} on bbob f1, instance 1, 2 variables, .*: "
    with pytest.raises(RuntimeError, match=f"{where}.*{message}"):
        coco.run([f"own_solvers:{kind}"], tmp_path, **one)
    assert not solved_in(tmp_path)


def test_a_budget_below_one_generation(own_solvers, tmp_path):
    one = {"suite": "bbob", "dims": [3], "functions": [1], "instances": [1]}
    message = r"budget: expected at least 4 evaluations, .*, got 3 \(1 per variable\)"
    with pytest.raises(RuntimeError, match=message):
        coco.run(["own_solvers:ByValues"], tmp_path, budget=1, **one)
    assert not solved_in(tmp_path)
    coco.run(["own_solvers:ByValues"], tmp_path, budget=1.5, **one)
    ((_, record),) = solved_in(tmp_path)
    assert record["evaluations"] == 4


def test_a_missing_package_names_the_extra(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "cocoex", None)
    assert main(["coco", "run", "cr-fm-nes", "--out", str(tmp_path)]) == 2
    assert '"fmnes[coco]"' in capsys.readouterr().err
