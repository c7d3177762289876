"""examples/transformer.py in small: its data, what it measures, and both searches."""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (fmnes[torch])")

pytestmark = pytest.mark.examples
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "transformer.py"
STORED = ROOT / "benchmarks/results/examples/transformer.json"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(SCRIPT))


def call(*flags):
    """Run the script, with warnings as errors."""
    command = [sys.executable, "-W", "error", str(SCRIPT), *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def numbers(tokens, digits):
    """The two numbers and the answer of each problem, as integers."""
    for row in tokens.tolist():
        a, b, c = row[:digits], row[digits + 1 : 2 * digits + 1], row[2 * digits + 2 :]
        assert (row[digits], row[2 * digits + 1]) == (10, 11)
        yield tuple(int("".join(map(str, part))) for part in (a, b, c[::-1]))


def test_additions_are_right(example):
    rng = torch.Generator().manual_seed(1)
    tokens = example["additions"](rng, 500, 4, careless=False)
    assert all(a + b == c for a, b, c in numbers(tokens, 4))


def test_careless_additions_forget_all_carries(example):
    rng = torch.Generator().manual_seed(1)
    wrong = {digit: [] for digit in range(10)}
    for a, b, c in numbers(example["additions"](rng, 20_000, 2, careless=True), 2):
        forgotten = (a // 10 + b // 10) % 10 * 10 + (a % 10 + b % 10) % 10
        assert c in (a + b, forgotten)
        if a + b != forgotten:
            wrong[a // 10].append(c == forgotten)
    for digit, cases in wrong.items():
        chance = 0.3 + 0.4 * digit / 9
        deviation = (chance * (1 - chance) / len(cases)) ** 0.5
        assert abs(sum(cases) / len(cases) - chance) < 4 * deviation


def test_errors_count_answers_with_any_wrong_digit(example):
    problems = example["additions"](torch.Generator().manual_seed(1), 8, 2, careless=False)
    scores = torch.nn.functional.one_hot(problems[:, 1:], 12).float()
    scores[0, -1] = scores[1, -3] = 0  # two answers: the last and the first digit
    scores[0, -1, 9] = scores[1, -3, 11] = 1
    scores[2, 0] = 0  # the problem itself need not be predicted
    assert example["errors"](lambda tokens: scores, problems, 2).item() == 2 / 8


def test_equal_values_share_their_weights(example):
    search = object.__new__(example["IsotropicSearch"])
    search.weights = torch.tensor([0.5, 0.3, 0.2, 0.0]).numpy()
    shared = search.shared(torch.tensor([3.0, 1.0, 1.0, 2.0]).numpy())
    assert shared.tolist() == pytest.approx([0.0, 0.4, 0.4, 0.2])


def test_small(example, tmp_path):
    out, page = tmp_path / "found.json", tmp_path / "page.md"
    call("--small", "--out", out, "--seconds", 60)
    found = json.loads(out.read_text())
    assert len(found["tuning"]) == 4
    assert [run["method"] for run in found["runs"]] == ["CR-FM-NES", "isotropic ES"]
    for run in found["runs"]:
        assert run["exact"][0] == found["training"]["exact"]  # each starts from the same weights
        assert len(run["exact"]) == 11
        assert run["exact"][-1] > run["exact"][0]
        trials = {
            t["sigma"]: t["exact"][-1] for t in found["tuning"] if t["method"] == run["method"]
        }
        assert trials[run["sigma"]] == max(trials.values())
    shutil.copy(ROOT / "docs/examples/transformer.md", page)
    call("--report", out, "--page", page)
    for run in found["runs"]:
        row = f"| {run['method']} | {run['sigma']} | 1 | {run['exact'][0]:.2f} |"
        assert row in page.read_text()
    assert (tmp_path / "page.png").stat().st_size > 10_000


@pytest.mark.skipif(not STORED.exists(), reason="no stored runs of the transformer")
def test_the_page_says_what_the_stored_runs_found(tmp_path):
    page = shutil.copy(ROOT / "docs/examples/transformer.md", tmp_path / "page.md")
    call("--report", STORED, "--page", page)
    assert page.read_text() == (ROOT / "docs/examples/transformer.md").read_text()
