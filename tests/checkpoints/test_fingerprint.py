"""A checkpoint knows the code of its objective, and says if another one continues the search."""

import functools
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from checkpoints.common import search, sphere
from checkpoints.test_formats import STORED
from fmnes.storage.fingerprint import fingerprint

# All kinds of objectives; run twice, with constants whose order in memory differs.
PROGRAM = """
    import functools, logging, os, sys
    import fmnes

    logging.basicConfig(format="%(message)s")

    def function(x):
        def inner(y):
            return y * 2.0
        return float((inner(x)**2).sum()) if "a" in {"a", "b", "c", "d", "e"} else 1.0

    def shifted(shift, x):
        return float(((2.0 * x - shift)**2).sum())

    class Model:
        def __init__(self):
            self.created, self.calls = os.getpid(), []  # data may differ

        def loss(self, x):
            return float((x**2.0).sum())

        def __call__(self, x):
            self.calls.append(1)
            return float((x**2.0).sum())

    def noted(fun):
        @functools.wraps(fun)
        def wrapper(*args):
            return fun(*args)
        return wrapper

    @noted
    def decorated(x):
        return float((x**2.0).sum())

    objectives = {
        "function": function,
        "lambda": lambda x: float((x**2.0).sum()),
        "partial": functools.partial(shifted, float(os.getpid())),
        "method": Model().loss,
        "object": Model(),
        "decorated": decorated,
    }
    for name, fun in objectives.items():
        budget = {"maxiter": int(sys.argv[1]), "checkpoint": f"{name}.npz"}
        fmnes.minimize(fun, [3.0, 2.0], 1.0, rng=1, **budget)
"""
KINDS = 6


def warnings_of(folder, source, maxiter, seed):
    """The warnings of one run of a program."""
    (folder / "program.py").write_text(textwrap.dedent(source))
    command = [sys.executable, "program.py", str(maxiter)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stderr.splitlines()


def test_changed_code_is_noticed_and_the_same_code_never_is(tmp_path):
    assert warnings_of(tmp_path, PROGRAM, 2, seed=1) == []
    moved = PROGRAM.replace("    def function", "\n    # other lines\n\n    def function")
    assert warnings_of(tmp_path, moved, 4, seed=2) == []
    changed = PROGRAM.replace("2.0", "4.0").replace("[3.0, 4.0]", "[3.0, 2.0]")
    found = warnings_of(tmp_path, changed, 6, seed=3)
    assert len(found) == KINDS
    assert all("objective" in line for line in found)
    assert warnings_of(tmp_path, changed, 8, seed=4) == []  # once is enough


@pytest.mark.parametrize("builtin", [np.add, sum, functools.partial(sum), max])
def test_a_callable_without_code_has_no_fingerprint(builtin):
    assert fingerprint(builtin) is None


def test_a_callable_with_strange_attributes_has_no_fingerprint():
    class Strange:
        def __getattr__(self, name):
            raise OSError(name)

    assert fingerprint(Strange()) is None


def test_names_and_constants_count_and_line_numbers_do_not():
    def compiled(text):
        space = {"np": np}
        exec(text, space)
        return fingerprint(space["f"])

    here = compiled("def f(x):\n  return np.sin(x)")
    assert not here.differs_from(compiled("\n\n\ndef f(x):\n\n  # why\n  return np.sin( x )"))
    assert here.differs_from(compiled("def f(x):\n  return np.cos(x)"))
    assert here.differs_from(compiled("def f(x):\n  return np.sin(x) + 1"))
    assert not here._replace(python="cpython-3").differs_from(compiled("def f(x):\n  return 1"))


@pytest.mark.parametrize("format_", ["3", "4"])
def test_an_earlier_format_is_silent(format_, tmp_path, caplog):
    """Its files hold no fingerprint."""
    for file in (STORED / format_).iterdir():
        shutil.copy(file, tmp_path)
    options = {"method": "cr-fm-nes", "ftarget": 1e-8, "maxiter": 9, "resume": "must"}
    search(lambda x: 2 * sphere(x), tmp_path / "run.npz", **options)
    assert "objective" not in caplog.text
