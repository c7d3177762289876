"""The wind farm: energy and rules against the case study, and the script with a small budget."""

import json
import runpy
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "wind_farm.py"
pytestmark = pytest.mark.examples


@pytest.fixture(scope="module")
def example():
    for package in ("cma", "py_wake"):
        pytest.importorskip(package, reason=f"{package} is not installed (fmnes[examples])")
    return runpy.run_path(str(SCRIPT))


def test_energy_of_the_layout_of_the_case_study(example):
    """366941.57116 MWh is written in the file of the case study that holds the layout."""
    given = example["GIVEN"].ravel() / example["DIAMETER"]
    assert example["energy"](given) == pytest.approx(366941.57116, abs=1e-3)


def test_rules(example):
    violation, start = example["violation"], example["START"]
    assert violation(start) < 0
    close = start.copy()
    close[2:4] = close[0:2] + np.array([1.5, 0])  # diameters
    assert violation(close) == pytest.approx(0.5)
    outside = start.copy()
    outside[0:2] = [0, 1430 / 130]  # a diameter beyond 1300 m
    assert violation(outside) == pytest.approx(1.0)


def test_small_budget(example, tmp_path, monkeypatch, capsys):
    arguments = ["--seeds", "1", "--budget", "300", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    example["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:10].strip() for line in lines[1:]] == [
        "auto",
        "cr-fm-nes",
        "dx-nes-ic",
        "pycma VD",
        "pycma full",
    ]
    groups = json.loads((tmp_path / "wind_farm.json").read_text())
    for (run,) in groups.values():
        x = np.array(run["x"])
        assert example["violation"](x) <= 0
        assert -example["energy"](x) == run["bests"][-1] < -example["energy"](example["START"])
        assert 0 < run["infeasible"] < 1
        assert run["nfevs"][-1] <= 300
    assert (tmp_path / "wind_farm.png").stat().st_size > 20_000


def test_the_page_says_what_the_stored_runs_found(example):
    runs = json.loads((ROOT / "benchmarks/results/examples/wind_farm.json").read_text())
    page = (ROOT / "docs/examples/wind-farm.md").read_text().splitlines()
    table = page.index("solver      median MWh  best MWh  above the given layout  infeasible") + 1
    for line, (solver, group) in zip(page[table:], runs.items(), strict=False):
        found = [-run["bests"][-1] for run in group]
        middle = statistics.median(found)
        assert line.split() == [
            *solver.split(),
            f"{middle:.0f}",
            f"{max(found):.0f}",
            f"{middle / 366941.57116 - 1:.1%}",
            f"{statistics.median(run['infeasible'] for run in group):.0%}",
        ]
        for run in group:
            assert example["violation"](np.array(run["x"])) <= 0
            assert example["energy"](np.array(run["x"])) == pytest.approx(-run["bests"][-1])
    assert len(runs) == 5
