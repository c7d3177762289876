"""examples/half_cheetah.py with a small budget."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mujoco", reason="MuJoCo is not installed (fmnes[examples])")
pytest.importorskip("gymnasium", reason="Gymnasium is not installed (fmnes[gymnasium])")
pytest.importorskip("cma", reason="pycma is not installed (fmnes[examples])")

pytestmark = pytest.mark.examples
SCRIPT = Path(__file__).parents[2] / "examples" / "half_cheetah.py"


def test_a_small_budget(tmp_path):
    flags = "--budget", 120, "--steps", 20, "--tests", 1, "--seeds", 1, "--out", tmp_path
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *map(str, flags)],
        cwd=tmp_path,  # MuJoCo writes a log there
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in ("auto", "cr-fm-nes", "pycma-vd"):
        run = json.loads((tmp_path / f"{name}-1.json").read_text())
        assert run["train"] == run["return"][-1] > run["return"][0]
        assert run["return"] == sorted(run["return"])
        assert 100 < run["evaluations"][-1] <= 120
        best, mean = ("{:.0f} ± {:.0f}".format(*run["test"][key]) for key in ("best", "mean"))
        assert f"\n{name:<12}{1:>5}{run['train']:>8.0f}{best:>20}{mean:>16}" in done.stdout
    assert (tmp_path / "half-cheetah.png").stat().st_size > 10_000


def test_the_page_says_what_the_stored_runs_found():
    page = (SCRIPT.parents[1] / "docs/examples/half-cheetah.md").read_text().splitlines()
    folder = SCRIPT.parents[1] / "benchmarks/results/examples/half-cheetah"
    stored = sorted(folder.glob("*.json"))
    assert len(stored) >= 2
    for path in stored:
        name, _, seed = path.stem.rpartition("-")
        run = json.loads(path.read_text())
        best, mean = ("{:.0f} ± {:.0f}".format(*run["test"][key]) for key in ("best", "mean"))
        assert f"{name:<12}{seed:>5}{run['train']:>8.0f}{best:>20}{mean:>16}" in page
