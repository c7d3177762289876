"""Every solver runs, counts whole generations, and ends by the rules that all share."""

from pathlib import Path

import numpy as np
import pytest

from fmnes.benchmarking.loop import RunSpec
from fmnes.experiments import protocol
from fmnes.experiments.runner import run_trial
from fmnes.experiments.solvers import SOLVERS, solve, solver_of
from fmnes.problems import PROBLEMS, Problem

problem_of = PROBLEMS["sphere"]
USED = sorted({trial.solver for trial in protocol.trials_of(protocol.EXPERIMENTS)})


@pytest.mark.parametrize("solver", USED, ids=lambda solver: "-".join(solver))
def test_every_solver_reaches_the_target_on_the_sphere(solver):
    outcome = SOLVERS[solver](RunSpec(problem_of(80), 18, 1, 1e-2, 200_000))
    assert outcome.value <= 1e-2
    assert outcome.evaluations % 18 == 0


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: "-".join(solver))
def test_no_solver_goes_beyond_the_budget(solver):
    outcome = SOLVERS[solver](RunSpec(problem_of(20), 12, 1, -1.0, 123))
    assert outcome.evaluations == 120


@pytest.mark.parametrize(
    "solver",
    [
        protocol.SAFE,
        protocol.AUTHORS,
        protocol.VD_PYCMA_RATES,
        protocol.VD_PYCMA,
        protocol.SEP_CMAES,
    ],
    ids=lambda solver: "-".join(solver),
)
def test_a_local_minimum_above_the_target_ends_a_run(solver):
    sphere = problem_of(10)
    above = Problem(
        "above", 10, sphere.x0, sphere.sigma0, sphere.x_opt, lambda x: 1 + np.sum(x**2, axis=-1)
    )
    outcome = SOLVERS[solver](RunSpec(above, 10, 1, 0.5, 10**6))
    assert outcome.value == pytest.approx(1, abs=1e-9)
    assert outcome.evaluations < 20_000


def test_the_row_names_the_versions_that_had_a_part():
    row = run_trial(protocol.Trial("evaluations", "sphere", 10, 10, *protocol.AUTHORS, 0))
    assert "crfmnes 1.0.0" in row.versions
    assert f"numpy {np.__version__}" in row.versions
    assert row.success
    assert row.value <= 1e-10


def test_a_time_names_the_processor():
    info = Path("/proc/cpuinfo")
    if not info.exists() or "model name" not in info.read_text():
        pytest.skip("needs a /proc/cpuinfo with the name of the processor")
    row = run_trial(protocol.Trial("time", "sphere", 10, 20, *protocol.SAFE, 0))
    named = row.versions.split("; ")[-1]
    assert not named.startswith("python")
    assert f": {named}\n" in info.read_text()


# --- Those of --beside ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("cr-fm-nes", protocol.SAFE),
        ("cr-fm-nes:paper", protocol.PAPER),
        ("cr-fm-nes:authors", protocol.AUTHORS),
        ("snes", ("snes", "ours")),
        ("sep-cma", protocol.SEP_CMA),
        ("sep-cma:pycma", protocol.SEP_PYCMA),
        ("vd-cma", protocol.VD_CMA),
    ],
)
def test_a_method_and_its_variants_have_names(name, solver):
    assert solver_of(name) == solver
    assert solver in SOLVERS


def test_a_variant_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"--beside: .*ours.*'paper'"):
        solver_of("snes:paper")


OWN = """
import fmnes


def {name}({arguments}):
    return fmnes.Optimizer(x0, sigma0, popsize=popsize, rng=seed)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of a user's with a function that takes these arguments."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, arguments):
        (tmp_path / f"{name}.py").write_text(OWN.format(name=name, arguments=arguments))
        return f"{name}:{name}"

    return write


def test_the_order_of_the_arguments_does_not_matter(own):
    name = own("turned", "seed, popsize, sigma0, x0")
    trial = protocol.Trial("evaluations", "sphere", 10, 10, *solver_of(name), 0)
    assert solve(trial).value <= 1e-10


def test_a_solver_made_for_coco_is_refused(own):
    name = own("for_coco", "x0, sigma0, seed, restart")
    expected = (
        r"--beside: for_coco:for_coco\(x0, sigma0, popsize, seed\) fails: TypeError: .*popsize"
    )
    with pytest.raises(RuntimeError, match=expected):
        solver_of(name)
