"""examples/mjx_policy.py in small: the physics, the policy, and searches of both libraries."""

import json
import math
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

for package, extra in (("jax", "jax"), ("mujoco.mjx", "examples"), ("evosax", "examples")):
    pytest.importorskip(package, reason=f"{package} is not installed (fmnes[{extra}])")

pytestmark = pytest.mark.examples
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "mjx_policy.py"
STORED = ROOT / "benchmarks/results/examples/mjx-policy.json"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(SCRIPT))


def call(*flags):
    """Run the script."""
    command = [sys.executable, str(SCRIPT), *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_episode_is_that_of_mujoco(example):
    """MuJoCo in C, from the same start with the same forces, gives the same return."""
    import jax
    import mujoco

    key, steps = jax.random.key(3), 30
    policy = example["first_policy"](jax.random.key(1), 4)
    policy["w2"] = policy["w2"] + 2.0
    found = jax.jit(example["make_episode"](steps))(policy, key)

    model = mujoco.MjModel.from_xml_string(example["MODEL"])
    data = mujoco.MjData(model)
    noise = 0.2 * np.asarray(jax.random.uniform(key, (4,), minval=-1.0))
    data.qpos[:], data.qvel[:] = [noise[0], math.pi + noise[1]], noise[2:]
    total = 0.0
    for _ in range(steps):
        (x, angle), (speed, spin) = data.qpos, data.qvel
        y = np.array([x, math.cos(angle), math.sin(angle), speed, spin / 5])
        for i in range(3):
            w, b = np.asarray(policy[f"w{i}"]), np.asarray(policy[f"b{i}"])
            y = np.tanh(y @ w / math.sqrt(len(w)) + b)
        data.ctrl[:] = y
        mujoco.mj_step(model, data)
        total += (1 + math.cos(data.qpos[1])) / 2 * math.exp(-((data.qpos[0] / 2) ** 2))
    assert float(found) == pytest.approx(total, rel=1e-4)


def test_small(tmp_path):
    out, page = tmp_path / "found.json", tmp_path / "page.md"
    names = ["fmnes CR-FM-NES", "evosax Open_ES"]
    call("--small", "--out", out, "--seconds", 500, "--methods", *names)
    found = json.loads(out.read_text())
    assert list(found["methods"]) == names
    first = [run["curve"][0] for run in found["methods"][names[0]]["runs"]]
    for method in found["methods"].values():
        assert [(r["sigma"], r["seed"]) for r in method["runs"]] == [(0.3, 1), (1.0, 1)]
        assert [len(r["curve"]) for r in method["runs"]] == [4, 4]
        # The same policy in the same episodes at first.
        assert [r["curve"][0] for r in method["runs"]] == first
        assert all(0 <= value <= 10 for r in method["runs"] for value in [*r["curve"], r["test"]])
    shutil.copy(ROOT / "docs/examples/mjx-policy.md", page)
    call("--report", out, "--page", page)
    for name in names:
        assert f"| {name} | " in page.read_text()
    assert (tmp_path / "page.png").stat().st_size > 10_000


@pytest.mark.skipif(not STORED.exists(), reason="no stored runs of the policy in MJX")
def test_the_page_says_what_the_stored_runs_found(tmp_path):
    page = shutil.copy(ROOT / "docs/examples/mjx-policy.md", tmp_path / "page.md")
    call("--report", STORED, "--page", page)
    assert page.read_text() == (ROOT / "docs/examples/mjx-policy.md").read_text()
