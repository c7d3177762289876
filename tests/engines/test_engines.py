"""Each engine survives each fault, and a search over it has the bits of a serial one."""

import functools
import math
import signal
import tempfile

import pytest
from engines import program
from engines.common import Program, lacking
from faults import objectives

pytestmark = pytest.mark.engines

FAULTS = [
    "plain",
    "killed-once",
    "killed-always",
    "killed-always-in-a-chunk",
    "hang",
    "raise",
    "unpicklable",
    "exit",
    "exit-hard",
    "memory",
    "lambda",
    "optimize",
    "optimize-large",
]
PROGRAMS = dict.fromkeys(("processes", "executor", "loky", "dask", "ray"), FAULTS)
PROGRAMS["dask-factory"] = ["killed-once", "hang"]  # with Dask's own attempts
PROGRAMS["submitit"] = ["raise-in-jobs", "killed-once-in-jobs", "optimize-in-jobs"]
EXPECTED = [objectives.sphere(row).hex() for row in program.X]


def on_each(*scenarios):
    """Parametrized over the engines that run these, each in one worker of xdist: started once."""
    return pytest.mark.parametrize(
        ("engine", "scenario"),
        [
            pytest.param(engine, scenario, marks=pytest.mark.xdist_group(engine))
            for engine, run in PROGRAMS.items()
            for scenario in scenarios
            if scenario in run
        ],
    )


@functools.cache
def serial(scenario):
    """What a scenario answers without workers, where everything is well."""
    return program.alone(scenario)


@functools.cache
def answers_of(engine):
    """What an engine answers to all its scenarios, and what its program complained about."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        running = Program(engine, folder, *PROGRAMS[engine])
        try:
            return running.answers(), running.errors()
        finally:
            running.close()


def answer_of(engine, scenario):
    if reason := lacking(engine):
        pytest.skip(reason)
    answers, errors = answers_of(engine)
    assert scenario in answers, errors
    return answers[scenario]


def assert_only_trouble_failed(answer, *words):
    values = answer["values"].copy()
    assert math.isnan(float.fromhex(values.pop(objectives.TROUBLE)))
    assert values == [value for i, value in enumerate(EXPECTED) if i != objectives.TROUBLE]
    assert answer["nfailed"] == 1
    for word in words:
        assert word in answer["error"]


@on_each("plain", "lambda")
def test_values_are_those_of_the_serial_loop(engine, scenario):
    answer = answer_of(engine, scenario)
    assert (answer["values"], answer["nfailed"], answer["error"]) == (EXPECTED, 0, None)


@on_each("killed-once", "killed-once-in-jobs")
def test_a_worker_killed_once_costs_nothing(engine, scenario):
    answer = answer_of(engine, scenario)
    assert (answer["values"], answer["nfailed"]) == (EXPECTED, 0)
    assert answer["calls"][str(objectives.TROUBLE)] >= 2


@on_each("killed-always", "killed-always-in-a-chunk")
def test_a_poison_candidate_is_failed_after_its_attempts(engine, scenario):
    answer = answer_of(engine, scenario)
    assert_only_trouble_failed(answer)
    assert 2 <= answer["calls"][str(objectives.TROUBLE)] <= 12


@on_each("hang")
def test_a_hang_ends_with_its_worker(engine, scenario):
    answer = answer_of(engine, scenario)
    assert_only_trouble_failed(answer, "TimeoutError: no value within 2 seconds")
    assert answer["gone"]
    assert all(answer["gone"])
    assert answer["after"] == EXPECTED


WORDS = {
    "raise": ["ValueError: the mesh is tangled", "in raises"],
    "raise-in-jobs": ["ValueError: the mesh is tangled", "in raises"],
    "unpicklable": ["TwoArgumentsError: 17: diverged", "in raises_unpicklable"],
    "exit": ["SystemExit: the simulator gave up", "in exits"],
    "memory": ["MemoryError", "in wants_too_much_memory"],
    "exit-hard": [],  # each engine has its own
}


@on_each(*WORDS)
def test_what_the_objective_does_is_told_and_harms_nobody(engine, scenario):
    assert_only_trouble_failed(answer_of(engine, scenario), *WORDS[scenario])


@on_each("optimize", "optimize-large", "optimize-in-jobs")
def test_a_search_has_the_bits_of_a_serial_one(engine, scenario):
    assert answer_of(engine, scenario)["result"] == serial(scenario)["result"]


# === Signals to the process group ===


@pytest.mark.parametrize(
    ("name", "number", "status"),
    [
        pytest.param(name, number, status, marks=pytest.mark.xdist_group(f"{name}-signals"))
        for name in ("processes", "executor", "loky", "dask", "ray")
        for number, status in (
            (signal.SIGINT, "interrupted"),
            (signal.SIGTERM, "terminated"),
        )
    ],
)
def test_a_signal_ends_the_search_with_its_result(name, number, status, tmp_path):
    if reason := lacking(name):
        pytest.skip(reason)
    running = Program(name, tmp_path, "is_interrupted")
    try:
        for line in running.process.stdout:
            if line.strip() == "ready":
                break
        else:
            pytest.fail(running.errors())
        running.signal(number)
        answers = running.answers(limit=60)
        assert "is_interrupted" in answers, running.errors()
        answer = answers["is_interrupted"]
        assert answer["status"] == status
        assert answer["nfev"] >= 8
        if number == signal.SIGINT:  # workers are deaf to it
            assert answer["values"] == EXPECTED
    finally:
        running.close()
