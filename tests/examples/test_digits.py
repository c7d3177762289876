"""examples/digits.py with a small budget: every solver learns, from the same network."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (fmnes[examples])")
pytest.importorskip("torch", reason="PyTorch is not installed (fmnes[torch])")
pytest.importorskip("cma", reason="pycma is not installed (fmnes[examples])")

pytestmark = pytest.mark.examples
SCRIPT = Path(__file__).parents[2] / "examples" / "digits.py"


def run(*flags):
    """Standard output of the script, in which warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *map(str, flags)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_small_budget(tmp_path):
    flags = "--budget", 300, "--widths", 8, "--seeds", 1, "--out", tmp_path
    table = run(*flags)
    runs = {
        p.name.removesuffix("-8-1.json"): json.loads(p.read_text()) for p in tmp_path.glob("*.json")
    }
    assert set(runs) == {"auto", "fmnes", "pycma-vd", "sgd", "adam"}
    for name, found in runs.items():
        passes, errors = found["curve"]
        train, test = 100 * found["train"], 100 * found["test"]
        assert f"\n{name:<12}{610:>10}{train:>24.2f}{test:>24.2f}" in table
        assert passes == sorted(passes)
        if name in ("sgd", "adam"):
            assert found["train"] < 0.02  # cross-entropy has gradients
            assert passes[-1] == 200
        else:
            assert found["train"] < errors[0]
            assert found["train"] == pytest.approx(min(errors), abs=1e-6)  # what was loaded
            assert passes[-1] <= 300
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert run(*flags) == table  # nothing is run again


STORED = SCRIPT.parents[1] / "benchmarks/results/examples/digits"


def stored(name, width):
    return [json.loads((STORED / f"{name}-{width}-{seed}.json").read_text()) for seed in (1, 2, 3)]


def test_the_page_says_what_the_stored_runs_found():
    page = (SCRIPT.parents[1] / "docs/examples/digits.md").read_text().splitlines()
    for width in (32, 134):
        for name in ("auto", "fmnes", "pycma-vd", "sgd", "adam"):
            runs = stored(name, width)
            errors = (" ".join(f"{100 * r[key]:.2f}" for r in runs) for key in ("train", "test"))
            line = f"{name:<12}{75 * width + 10:>10}{next(errors):>24}{next(errors):>24}"
            assert line in page
