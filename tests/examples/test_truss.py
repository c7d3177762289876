"""The bridge: forces against statics, and the design against the closed form."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cma")
pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[2]
EXAMPLE = runpy.run_path(str(ROOT / "examples" / "truss.py"))
SOLVERS = ["cr-fm-nes", "auto", "sep-cma"]


@pytest.fixture(scope="module")
def truss():
    return EXAMPLE["Truss"](panels=6)


def test_forces_are_those_of_the_method_of_sections(truss):
    """Cut through the third panel: moments about the joint above give its lower bar."""
    load, span, height = 1 / 6, 6, np.sqrt(3) / 2
    reaction = load * (span - 1) / 2
    moment = reaction * 2.5 - load * (1.5 + 0.5)  # about x = 2.5, loads at 1 and 2
    np.testing.assert_allclose(abs(truss.force[2]), moment / height)


def test_no_bar_of_the_optimum_can_be_made_lighter(truss):
    """Shifting material between any two bars at the same deflection costs weight."""
    area = truss.optimum()
    weight, excess = truss(np.log(area))
    assert excess == pytest.approx(0, abs=1e-9)
    rng = np.random.default_rng(1)
    for _ in range(200):
        other = np.maximum(truss.weakest, area * np.exp(0.1 * rng.normal(size=len(area))))
        other *= 1 + truss(np.log(other))[1]  # scaled until the deflection is the limit
        if (other >= truss.weakest).all():
            assert truss(np.log(other))[0] >= weight * (1 - 1e-9)


def test_the_design_is_the_optimum(truss):
    result = EXAMPLE["design"](truss, seed=1)
    assert result.success
    assert result.constr_violation == 0
    np.testing.assert_allclose(np.exp(result.x), truss.optimum(), rtol=1e-3)


@pytest.mark.filterwarnings("ignore:.*moarchiving:UserWarning")  # of pycma
def test_small_budget(tmp_path, monkeypatch, capsys):
    arguments = ["--panels", "4", "--seeds", "1", "--budget", "1500", "--out", str(tmp_path)]
    solvers = [*SOLVERS, "pycma"]
    monkeypatch.setattr(sys, "argv", ["truss.py", *arguments, "--solvers", *solvers])
    EXAMPLE["main"]()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]] == solvers
    groups = json.loads((tmp_path / "truss.json").read_text())
    truss = EXAMPLE["Truss"](panels=4)
    for (run,) in groups.values():
        check(truss, run, most=1500)
    assert (tmp_path / "truss.png").stat().st_size > 20_000


def check(truss, run, most):
    """The design that is stored is feasible, and as heavy as is stored."""
    area = np.array(run["area"])
    weight, excess = truss(np.log(area))
    assert excess <= 1e-12
    assert (area >= truss.weakest * (1 - 1e-12)).all()
    least = truss.length @ truss.optimum()
    assert weight / least - 1 == pytest.approx(run["above"][-1], rel=1e-3, abs=1e-12)
    assert run["nfevs"][-1] <= most


def test_the_page_says_what_the_stored_runs_found():
    groups = json.loads((ROOT / "benchmarks/results/examples/truss.json").read_text())
    page = (ROOT / "docs/examples/truss.md").read_text().splitlines()
    table = page.index("solver          above the least weight, median") + 1
    truss = EXAMPLE["Truss"](panels=100)
    for line, (solver, runs) in zip(page[table:], groups.items(), strict=False):
        middle = np.median([run["above"][-1] for run in runs])
        assert line.split() == [solver, f"{middle:.1e}"]
        for run in runs:
            check(truss, run, most=150 * 399)
    assert list(groups) == SOLVERS
