"""What the tests of the command line share: objectives, and how the program is started."""

import csv
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[1]


def sphere(x):
    return float((x**2).sum())


def slow(x):
    time.sleep(0.004)
    return sphere(x)


def rows(X):
    return (X**2).sum(axis=1)


def holes(x):
    """Fails as the program of `PROGRAM` does."""
    return math.nan if x[0] > 3.5 else sphere(x)


def raises(x):
    raise ZeroDivisionError(f"at {len(x)} variables")


not_a_function = 3

PROGRAM = """\
import sys
with open(sys.argv[1]) if len(sys.argv) > 1 else sys.stdin as file:
    x = [float(line) for line in file]
if x[0] > 3.5:
    sys.exit("x[0] is too large")
print("some words")
print(repr(sum((v * v for v in x[1:]), x[0] * x[0])))
"""


def environment():
    """That of these tests: the fmnes that they import, which may be an installed one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}


def start(*arguments, cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    """`fmnes ...` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "fmnes", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdout=stdout,
        stderr=stderr,
        text=True,
    )


def end_of(process, number):
    """Send a signal, and wait for the end: the exit status and what was printed."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def until(condition, seconds=60):
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def history(folder):
    """The columns of history.csv."""
    with (folder / "history.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in table] for name in (table[0] if table else ())}


def nrows(folder):
    path = folder / "history.csv"
    return len(path.read_text().splitlines()) - 1 if path.exists() else 0


def result(folder):
    return json.loads((folder / "result.json").read_text())


def assert_same(folder, expected):
    """The folder holds the bits of a Result, seconds aside."""
    found = result(folder)
    assert found["x"] == expected.x.tolist()
    assert found["mean"] == expected.mean.tolist()
    for name in ("fun", "nfev", "nit", "success", "nfailed", "sigma", "message"):
        assert found[name] == getattr(expected, name), name
    columns = history(folder)
    for name in expected.history.to_array().dtype.names:
        if not name.startswith("seconds"):
            np.testing.assert_array_equal(columns[name], expected.history[name], err_msg=name)
    assert columns["nfailed"][-1] == expected.nfailed
