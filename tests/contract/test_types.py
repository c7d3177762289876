"""The type hints: a type checker accepts right calls and rejects wrong arguments."""

import contextlib
import dataclasses
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import fmnes
from fmnes.algorithms import METHODS, MethodName, MethodSettings

ROOT = Path(__file__).parents[2]
RIGHT = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from numpy.typing import NDArray
import fmnes

def f(x: NDArray[np.float64]) -> float:
    return float(x.sum())

fmnes.minimize(f, [1.0, 2.0], 1.0, method="cma-es", bounds=[(0, None), (None, 9.5)], rng=1)
fmnes.minimize(f, np.ones(3), np.ones(3), method=fmnes.CRFMNES(variant="paper"), workers=4)
fmnes.minimize(f, np.ones(3), bounds=fmnes.Bounds(0, [1, 2, 3]), workers=fmnes.Evaluator(2))
fmnes.minimize(f, np.ones(3), bounds=np.array([[0, 1]] * 3), restarts=fmnes.IPOP(2))
fmnes.minimize(f, np.ones(2), bounds=[[-1, 1], [0, 2]], resume="never", workers=-1)
pairs = [(0.0, 1.0)] * 3
with ThreadPoolExecutor() as pool:
    result = fmnes.minimize(f, np.ones(3), bounds=pairs, workers=pool)
for name in fmnes.METHODS:
    fmnes.Optimizer(result, 2, method=name, bounds=pairs)
"""

# Each line is one mistake.
WRONG = """
fmnes.minimize(f, [1.0], 1.0, method="nope")
fmnes.Optimizer([1.0], 1.0, method="crfmnes")
fmnes.minimize(f, [1.0], 1.0, method=fmnes.CRFMNES)
fmnes.minimize(f, [1.0], 1.0, workers="4")
fmnes.minimize(f, [1.0], 1.0, bounds=3)
fmnes.Optimizer([1.0], 1.0, bounds="abc")
fmnes.minimize(f, [1.0], 1.0, bounds=[0, 2])
fmnes.minimize(f, [1.0], 1.0, seed=1)
fmnes.minimize(f, [1.0], 1.0, maxiter="9")
fmnes.minimize(f, [1.0], 1.0, resume="yes")
"""


def test_mypy_accepts_right_calls_and_rejects_wrong_ones(tmp_path, request):
    pytest.importorskip("mypy", reason="needs mypy: pip install 'fmnes[dev]'")
    program, wrong = tmp_path / "program.py", WRONG.strip().splitlines()
    program.write_text(RIGHT + "\n".join(wrong) + "\n")
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--no-error-summary", program),
            *("--config-file", ROOT / "pyproject.toml"),  # leaves out packages that take minutes
            *("--cache-dir", request.config.cache.mkdir("mypy")),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},  # mypy does not see editable installs
    )
    # Errors elsewhere are those of `make types`, with the newest NumPy. Not the whole path: mypy's
    # cache repeats the folder of an earlier run.
    found = re.findall(rf"{re.escape(program.name)}:(\d+): error: ", answer.stdout)
    first = RIGHT.count("\n") + 1
    assert sorted({int(line) for line in found}) == list(range(first, first + len(wrong))), answer


def test_the_types_list_all_methods():
    assert get_args(MethodName) == tuple(METHODS)
    settings = {method.Settings for method in METHODS.values()}
    assert settings == set(MethodSettings.__subclasses__())
    assert all(dataclasses.is_dataclass(one) for one in settings)


PUBLIC = [name for name, value in vars(fmnes).items() if name[0] != "_" and callable(value)]


@pytest.mark.parametrize("name", PUBLIC)
def test_the_signature_that_help_shows_is_short(name):
    """It has the names of types as we write them: ArrayLike alone expands to 300 letters."""
    with contextlib.suppress(ValueError):  # a class of exceptions has none
        assert "numpy._typing" not in str(inspect.signature(getattr(fmnes, name)))
