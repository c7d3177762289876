"""The crane of examples/: its physics against formulas, its faults, and the script as a whole."""

import json
import math
import re
import runpy
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from cli.common import environment

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.examples


@pytest.fixture(scope="module")
def crane():
    return runpy.run_path(str(EXAMPLES / "crane.py"))


def run(controls):
    """What the program prints, its exit status and its last words."""
    done = subprocess.run(
        [sys.executable, "-S", EXAMPLES / "crane.py"],
        input="\n".join(map(repr, controls)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout, done.returncode, done.stderr


def test_a_crane_at_rest_is_as_far_from_the_goal_as_before():
    out, status, _ = run([0.0] * 40)
    # 4^2 on the way and 10 times that at the end.
    assert (float(out), status) == (pytest.approx(176), 0)


def test_small_swings_are_those_of_a_damped_pendulum(crane):
    """From rest, with a small constant acceleration: x = a t^2/2, and a linear pendulum."""
    a, g, length, c = 1e-4, crane["GRAVITY"], crane["CABLE"], crane["DAMPING"]
    *way, _ = crane["simulate"]([a] * 40)
    t, trolley, load = np.array(way).T
    np.testing.assert_allclose(trolley, a * t**2 / 2, rtol=1e-9)
    rate, decay = math.sqrt(g / length - c**2 / 4), c / 2
    free = np.exp(-decay * t) * (np.cos(rate * t) + decay / rate * np.sin(rate * t))
    # What Runge and Kutta's method leaves: (rate h)^5/120 of the amplitude for each of T/h steps.
    left = 2 * a / g * (rate * crane["STEP"]) ** 4 / 120 * rate * crane["SECONDS"]
    angle = np.arcsin((load - trolley) / length)
    np.testing.assert_allclose(angle, -a / g * (1 - free), rtol=0, atol=left)


def test_by_the_book_the_load_comes_to_rest_at_the_goal(crane, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    pytest.importorskip("cma", reason="needs the extra fmnes[examples]")
    controls = runpy.run_path(str(EXAMPLES / "simulator.py"))["by_the_book"]()
    *way, cost = crane["simulate"](controls)
    assert (
        f"| by the book | {cost:.3f} |"
        in (EXAMPLES.parent / "docs" / "examples" / "simulator.md").read_text()
    )
    assert way[-1][2] == pytest.approx(crane["GOAL"], abs=0.02)


def test_it_stops_where_the_load_swings_too_far():
    out, status, err = run([3.0] * 5 + [-3.0] * 35)
    assert (out, status) == ("", 1)
    assert err.splitlines()[-1].startswith("RuntimeError: the load swings by ")


def test_it_hangs_where_the_trolley_leans_against_the_end(crane):
    """Time stands still: ten thousand steps later it is where it was."""
    steps = crane["simulate"]([-0.2] * 40)
    assert max(step[0] for step in islice(steps, 10_000)) < crane["SECONDS"]
    before, after = next(steps), next(steps)
    assert before == after
    assert before[1] == crane["RAIL"][0]


def test_the_script_with_a_small_budget(tmp_path):
    pytest.importorskip("cma", reason="needs the extra fmnes[examples]")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "simulator.py", "--evaluations", "96", "--seeds", "1"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "killed after 1 generations; exit status -9" in done.stdout
    assert done.stdout.endswith("the same after a kill: True\n")
    found = json.loads((tmp_path / "simulator" / "runs.json").read_text())
    assert list(found["runs"]) == ["auto", "CR-FM-NES", "pycma, VD", "pycma, separable"]
    for ((nfev, best),) in found["runs"].values():
        assert 80 <= nfev[-1] <= 96
        assert best == sorted(best, reverse=True)
    assert found["killed"]["fun"] == found["runs"]["auto"][0][1][-1]
    out, _, _ = run(found["killed"]["x"])
    assert float(out) == found["killed"]["fun"]
    assert (tmp_path / "simulator" / "simulator.png").stat().st_size > 10_000


def test_the_page_has_the_figures_of_the_stored_runs(crane):
    root = EXAMPLES.parent
    page = (root / "docs" / "examples" / "simulator.md").read_text()
    stored = json.loads((root / "benchmarks/results/examples/simulator.json").read_text())
    book = float(page.split("| by the book | ")[1].split(" |")[0])
    for name, runs in stored["runs"].items():
        ends = [best[-1] for _, best in runs]
        figures = " | ".join(f"{value:.3f}" for value in (np.median(ends), min(ends), max(ends)))
        better = sum(end < book for end in ends)
        assert f"| {name} | {figures} | {better} of {len(ends)} |" in page
    killed = stored["killed"]
    assert killed["fun"] == stored["runs"]["auto"][0][1][-1]
    for number in (f"{killed['fun']:.3f}", str(killed["nfev"]), str(killed["nfailed"])):
        assert re.search(rf"\b{re.escape(number)}\b", page)
    *_, cost = crane["simulate"](killed["x"])
    assert cost == killed["fun"]
