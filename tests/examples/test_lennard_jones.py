"""Lennard-Jones clusters: the energy against what is known, and the script with a small budget."""

import json
import runpy
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "lennard_jones.py"
pytestmark = pytest.mark.examples


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("cma", reason="pycma is not installed (fmnes[examples])")
    return runpy.run_path(str(SCRIPT))


def icosahedron(radius: float) -> np.ndarray:
    """An atom amid twelve, which sit at (0, +-1, +-golden ratio) and its rotations."""
    golden = (1 + 5**0.5) / 2
    corners = [np.roll([0, a, b * golden], k) for a in (-1, 1) for b in (-1, 1) for k in range(3)]
    shell = np.asarray(corners) / np.hypot(1, golden)
    return radius * np.concatenate([[[0.0, 0.0, 0.0]], shell])


def test_energy_of_two_and_three_atoms(example):
    energy = example["energy"]
    # Two atoms rest at distance 2^(1/6) with energy -1, and at distance 1 there is none.
    pair = [[0.0, 0, 0, 2 ** (1 / 6), 0, 0], [0.0, 0, 0, 0, 1, 0]]
    np.testing.assert_allclose(energy(np.array(pair)), [-1, 0], atol=1e-14)
    triangle = 2 ** (1 / 6) * np.array([0.0, 0, 0, 1, 0, 0, 0.5, 0.75**0.5, 0])
    np.testing.assert_allclose(energy(triangle[None]), [-3], rtol=1e-14)


def test_the_least_energy_known_of_13_atoms_is_that_of_the_icosahedron(example):
    radii = np.linspace(1.05, 1.1, 20_001)  # one number describes it: all twelve are alike
    rows = np.stack([icosahedron(r).ravel() for r in radii])
    assert example["energy"](rows).min() == pytest.approx(example["KNOWN"][13], abs=1e-6)


def test_recorder_counts_within_the_budget_only(example):
    recorder = example["Recorder"](3)
    near, far = [0.0, 0, 0, 1.2, 0, 0], [0.0, 0, 0, 2, 0, 0]
    rest = [0.0, 0, 0, 2 ** (1 / 6), 0, 0]
    recorder(np.array([far, far]))
    recorder(np.array([near, rest]))  # the second is the fourth evaluation
    assert recorder.nfevs == [2, 3]
    assert recorder.bests == [4 * (2.0**-12 - 2.0**-6), pytest.approx(4 * (1.2**-12 - 1.2**-6))]
    assert recorder.x.tolist() == near


def test_small_budget(example, tmp_path, monkeypatch, capsys):
    arguments = ["--atoms", "13", "--seeds", "1", "--budget", "6000", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    example["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["auto", "cr-fm-nes", "pycma"]
    (groups,) = json.loads((tmp_path / "lennard_jones.json").read_text()).values()
    for (run,) in groups.values():
        assert run["nfev"] <= 6000
        assert run["bests"][-1] < -30  # a liquid drop at the least; random starts have +1e4
        (value,) = example["energy"](np.array([run["x"]]))
        assert value == pytest.approx(run["bests"][-1], rel=1e-12)
    assert (tmp_path / "lennard_jones.png").stat().st_size > 20_000


def test_the_page_says_what_the_stored_runs_found(example):
    runs = json.loads((ROOT / "benchmarks/results/examples/lennard_jones.json").read_text())
    page = (ROOT / "docs/examples/lennard-jones.md").read_text().splitlines()
    table = page.index("atoms  solver      solved   best gap  median gap  median evaluations") + 1
    for atoms, groups in runs.items():
        for solver, group in groups.items():
            gaps = [run["bests"][-1] - example["KNOWN"][int(atoms)] for run in group]
            solved = sum(gap <= example["SOLVED"] for gap in gaps)
            median = statistics.median(run["nfev"] for run in group)
            assert page[table].split() == [
                *f"{atoms} {solver} {solved} of {len(group)}".split(),
                f"{min(gaps):.6f}",
                f"{statistics.median(gaps):.6f}",
                f"{median:.0f}",
            ]
            for run in group:
                (value,) = example["energy"](np.array([run["x"]]))
                assert value == pytest.approx(run["bests"][-1], rel=1e-12)
            table += 1
