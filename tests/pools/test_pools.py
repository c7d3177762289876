"""Each pool survives each fault, and a search over it has the bits of a serial one."""

import functools
import math
import signal

import pytest

from faults import objectives
from pools import program
from pools.common import Program, lacking

pytestmark = pytest.mark.pools

FAULTS = [
    "plain",
    "killed-once",
    "killed-always",
    "killed-always-in-a-chunk",
    "large-killed-once",
    "hang",
    "large-hang",
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
PROGRAMS["submitit"] = [
    f"{fault}-in-jobs"
    for fault in (
        "raise", "unpicklable", "exit", "memory", "killed-once", "killed-always", "hang", "optimize"
    )
]  # fmt: skip
EXPECTED = [objectives.sphere(row).hex() for row in program.X]


@functools.cache
def serial(scenario):
    """What the search of a scenario comes to without workers, where everything is well."""
    return program.alone(scenario)


WORDS = {  # scenario -> what its first error says
    "hang": ["TimeoutError: no value within"],
    "raise": ["ValueError: the mesh is tangled", "in raises"],
    "unpicklable": ["TwoArgumentsError: 17: diverged", "in raises_unpicklable"],
    "exit": ["SystemExit: the simulator gave up", "in exits"],
    "memory": ["MemoryError", "in wants_too_much_memory"],
    "killed-always": [],  # each pool has its own
    "killed-always-in-a-chunk": [],
    "exit-hard": [],
}


def check(scenario, answer):
    """What every pool has to answer."""
    scenario = scenario.removeprefix("large-").removesuffix("-in-jobs")
    if scenario.startswith("optimize"):
        assert answer["result"] == serial(scenario)["result"]
    elif scenario in ("plain", "lambda", "killed-once"):
        assert (answer["values"], answer["nfailed"], answer["error"]) == (EXPECTED, 0, None)
    else:
        values = answer["values"].copy()
        assert math.isnan(float.fromhex(values.pop(objectives.TROUBLE)))
        assert values == [value for i, value in enumerate(EXPECTED) if i != objectives.TROUBLE]
        assert answer["nfailed"] == 1
        assert [word for word in WORDS[scenario] if word not in answer["error"]] == []
    if scenario.startswith("killed"):  # once more at least, and not for ever
        assert 2 <= answer["calls"][str(objectives.TROUBLE)] <= 12
    if scenario == "hang":
        assert answer["gone"]  # the processes that hung: in a chunk, then alone
        assert all(answer["gone"])
        assert answer["after"] == EXPECTED


def check_all(running, scenarios):
    """All that a program answers, and all that is wrong with it."""
    try:
        answers, errors = running.answers(), running.errors()
    finally:
        running.close()
    wrong = {name: errors for name in scenarios if name not in answers}
    for scenario, answer in answers.items():
        try:
            check(scenario, answer)
        except AssertionError as error:
            wrong[scenario] = f"{error} {answer}"
    assert not wrong, "\n".join(f"=== {name}\n{text}" for name, text in wrong.items())


@pytest.mark.parametrize("pool", PROGRAMS)
def test_every_fault(pool, tmp_path):
    if reason := lacking(pool):
        pytest.skip(reason)
    check_all(Program(pool, tmp_path, *PROGRAMS[pool]), PROGRAMS[pool])


# === Signals to the process group ===


@pytest.mark.parametrize(
    ("name", "number", "status"),
    [
        (name, number, status)
        for name in ("processes", "executor", "loky", "dask", "ray", "submitit")
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
        running.wait_until_ready()
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
