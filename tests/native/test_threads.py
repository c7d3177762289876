"""The number of threads, results that do not depend on it, and what could break with threads."""

import concurrent.futures
import hashlib
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import fmnes

HERE = pathlib.Path(__file__).parent
NATIVE = HERE.parents[1] / "native"


# --- How many -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 3, 1024, np.int64(5)])
def test_what_is_set_is_what_is_used(number):
    fmnes.set_num_threads(number)
    assert fmnes.get_num_threads() == number
    assert fmnes.config()["threads"] == number


@pytest.mark.parametrize("number", [0, -1, 1025, 2**40])
def test_a_number_out_of_range_is_an_error(number):
    with pytest.raises(ValueError, match=rf"^n: expected .*, got {number}$"):
        fmnes.set_num_threads(number)


@pytest.mark.parametrize("number", [1.5, "2", None])
def test_what_is_no_whole_number_is_an_error(number):
    with pytest.raises(TypeError, match=r"^n: expected .*, got "):
        fmnes.set_num_threads(number)


def started_with(**variables):
    names = ("FMNES_NUM_THREADS", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(
        [sys.executable, "-c", "import fmnes; print(fmnes.get_num_threads())"],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("variables", "number"),
    [
        ({"FMNES_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "4,2"}, 4),  # OpenMP: for each level of nesting
        ({"OMP_NUM_THREADS": "5", "FMNES_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "5", "FMNES_NUM_THREADS": ""}, 5),
        ({}, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
    ],
)
def test_the_environment_says_how_many(variables, number):
    assert started_with(**variables).stdout == f"{number}\n"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        *(("FMNES_NUM_THREADS", text) for text in ("0", "-1", "two", "1.5", "1025")),
        ("OMP_NUM_THREADS", "two"),
    ],
)
def test_a_wrong_number_in_the_environment_is_an_error(variable, text):
    message = started_with(**{variable: text}).stderr
    assert re.search(rf"ValueError: {variable}: expected .* got '{text}'\n$", message)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinities (Linux)")
def test_only_the_cpus_of_the_process_count():
    code = """
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import fmnes
print(fmnes.get_num_threads())
"""
    environment = os.environ | {"FMNES_NUM_THREADS": "", "OMP_NUM_THREADS": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"1\n"


# --- What they compute ----------------------------------------------------------------------------


def search(threads, seed=1, d=50_000, generations=3):
    """A digest of the candidates and the mean of a search that is large enough to use threads."""
    fmnes.set_num_threads(threads)
    optimizer = fmnes.Optimizer(np.full(d, 3.0), 2.0, popsize=20, rng=seed)
    digest = hashlib.sha256()
    for _ in range(generations):
        X = optimizer.ask()
        digest.update(X)
        optimizer.tell(X[:, :3] @ np.array([1.0, 10.0, 100.0]))
    digest.update(optimizer.result.mean)
    return digest.hexdigest()


def test_no_bit_depends_on_the_number_of_threads():
    expected = search(threads=1)
    for threads in (2, 3, 5, 16):
        assert search(threads) == expected
    assert search(threads=2, seed=2) != expected


# Newer Pythons warn of every fork() of a process with threads, such as a worker of pytest-xdist.
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("start", multiprocessing.get_all_start_methods())
def test_children_of_a_process_that_has_used_threads(start):
    """A child of fork() has none of its parent's threads; it must not wait for them."""
    expected = search(threads=2)
    context = multiprocessing.get_context(start)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(search, [2, 2, 3])) == [expected] * 3
    assert search(threads=2) == expected


def test_several_optimizers_in_several_python_threads():
    seeds = list(range(6))
    expected = [search(1, seed) for seed in seeds]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert list(pool.map(search, [2] * len(seeds), seeds)) == expected


# --- The loop itself ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """check_threads.cpp as a program, built with the given flags."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    assert compiler, "these tests need a C++ compiler"

    def build(*flags):
        program = tmp_path_factory.mktemp("check") / "check"
        sources = [HERE / "check_threads.cpp", NATIVE / "threads.cpp"]
        flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *flags]
        subprocess.run([compiler, *flags, "-I", NATIVE, *sources, "-o", program], check=True)
        return program

    return build


@pytest.mark.build
def test_every_block_is_done_once(compiled):
    subprocess.run([compiled()], check=True, timeout=60)


@pytest.mark.build
def test_there_are_no_data_races(compiled):
    subprocess.run([compiled("-fsanitize=thread", "-g")], check=True, timeout=60)


@pytest.mark.build
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limit of memory")
def test_a_thread_that_cannot_be_started_costs_no_result(compiled):
    subprocess.run([compiled(), "refused"], check=True, timeout=60)
