"""The same on Ray actors and Dask actors, with real processes that die, differ and come late."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from cluster import program

pytestmark = pytest.mark.pools

HERE = Path(__file__).parent
LIMIT = 400  # seconds for everything that one program does
MODULES = {"dask": "distributed", "ray": "ray"}
SCENARIOS = [name for name in program.SCENARIOS if name != "is_interrupted"]


@contextlib.contextmanager
def started(pool, folder, *scenarios):
    """A running program in a process group of its own, none of which is left."""
    if find_spec(MODULES[pool]) is None:
        pytest.skip(f"needs {MODULES[pool]}: pip install 'fmnes[{pool}]'")
    path = os.pathsep.join([str(HERE.parent), *(p for p in sys.path if p)])
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "start.py"), pool, str(folder), *scenarios],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        process.errors = errors
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def answers_of(process, limit=LIMIT):
    """What each scenario printed, and the end of what went wrong."""
    try:
        out, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
    process.errors.seek(0)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {line["scenario"]: line for line in lines}, process.errors.read()[-3000:]


@pytest.fixture(
    scope="module", params=[pytest.param(e, marks=pytest.mark.xdist_group(e)) for e in MODULES]
)
def answers(request, tmp_path_factory):
    with started(request.param, tmp_path_factory.mktemp("cluster"), *SCENARIOS) as process:
        return answers_of(process)


@functools.cache
def serial():
    return program.hashed(program.search(None))


def get(answers, scenario):
    found, errors = answers
    assert scenario in found, errors
    return found[scenario]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_search_has_the_bits_of_a_serial_one(answers, n):
    assert get(answers, f"bits-{n}")["result"] == serial()


def test_a_killed_workers_candidates_are_done_elsewhere(answers):
    answer = get(answers, "killed")
    assert answer["happened"]
    assert answer["processes"] >= 2  # a third may come too late to have anything to do
    assert [line for line in answer["warnings"] if "workers: lost process" in line]
    assert answer["result"] == serial()


@pytest.mark.parametrize(
    ("scenario", "told"),
    [
        ("raises", "ValueError: the mesh is tangled"),
        ("exits", "SystemExit: the simulator gave up"),
        ("kills-always", ""),  # each pool has its own words
        ("hangs", "TimeoutError: no value within 3 seconds"),
    ],
)
def test_candidates_that_fail_harm_nobody_else(answers, scenario, told):
    answer = get(answers, scenario)
    expected = program.search(None, program.has_no_value, maxiter=3)
    assert answer["nfailed"] == expected.nfailed >= 1
    assert told in answer["error"]
    assert answer["result"] == program.hashed(expected)


def test_an_altered_worker_is_found_and_begins_anew(answers):
    answer = get(answers, "altered")
    assert answer["happened"]
    assert [line for line in answer["warnings"] if "its state has changed" in line]
    assert answer["result"] == serial()


def test_a_generation_takes_less_than_one_vector(answers):
    assert 0 < get(answers, "traffic")["bytes"] < 8 * program.DIM


def test_a_worker_that_comes_late_takes_part(answers):
    answer = get(answers, "late")
    assert answer["before"] < answer["n"] == answer["after"]
    assert answer["same"]


def test_another_kind_of_kernels_is_refused(answers):
    answer = get(answers, "refused")
    text = " ".join([answer["text"], *answer["warnings"]])
    assert "kernels native" in text.partition("as in the driver, got")[0]
    assert "kernels agnostic" in text.partition("as in the driver, got")[2]
    assert answer["result"] == serial()  # by those that are left, or by others


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "pool", [pytest.param(e, marks=pytest.mark.xdist_group(f"{e}-signals")) for e in MODULES]
)
def test_a_signal_ends_the_search_with_its_result(pool, number, tmp_path):
    with started(pool, tmp_path, "is_interrupted") as process:
        for line in process.stdout:
            if line.strip() == "ready":
                break
        os.killpg(process.pid, number)  # as a terminal does, or a batch system
        answers = answers_of(process, limit=120)
    answer = get(answers, "is_interrupted")
    assert answer["status"] == ("interrupted" if number == signal.SIGINT else "terminated")
    assert answer["nfev"] >= 22
    if number == signal.SIGINT:  # the workers are deaf to it, and go on
        assert answer["result"] == serial()
