"""Whole programs: their ends, their workers, what they import."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import fmnes
from faults import objectives
from faults.common import (
    EXPECTED,
    X,
    wait_until_gone,
)

HEADER = """
import os
from faults import objectives
from fmnes.evaluate import Evaluator
x = objectives.population()
"""


@pytest.fixture
def program(tmp_path):
    """Start a program of its own that can import what we can.

    It is a script, or comes from the command line ("-c") or from standard input ("-").
    """
    started = []

    def start(text, way="script"):
        script, text = tmp_path / "script.py", HEADER + textwrap.dedent(text)
        script.write_text(text)
        arguments = {"script": [str(script)], "-c": ["-c", text], "-": ["-"]}[way]
        environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        with script.open() as file:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=file if way == "-" else subprocess.PIPE,
                text=True,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_program_that_does_not_close_its_evaluator_still_ends(program):
    process = program("""
        if __name__ == "__main__":
            evaluator = Evaluator(2)
            print(evaluator.evaluate(objectives.sphere, (), x).values.tolist())
    """)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.strip() == str(EXPECTED)


UNGUARDED = {
    "evaluate": "Evaluator(1).evaluate(objectives.sphere, (), x)",
    "minimize": "fmnes.minimize(objectives.sphere, x[0], 1, workers=2)",
    "checkpoint": "fmnes.minimize(objectives.sphere, x[0], 1, workers=2, checkpoint=__file__[:-3])",
}


@pytest.mark.parametrize("text", UNGUARDED.values(), ids=UNGUARDED)
def test_a_script_without_main_part_is_told_once_what_it_lacks(program, text):
    process = program(f"import fmnes\n{text}")
    _, err = process.communicate()
    assert process.returncode == 1
    assert err.count("Traceback") == 1
    assert 'under `if __name__ == "__main__":`' in err.splitlines()[-1]


# In the fork server: say that it is starting, and take a while.
SLOW_START = """
import pathlib, sys, time
if any("forkserver" in argument for argument in sys.orig_argv):
    pathlib.Path(__file__).with_name("starting").touch()
    time.sleep(0.5)
"""


def test_ctrl_c_while_workers_start_prints_nothing(program, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    monkeypatch.syspath_prepend(tmp_path)
    process = program("""
        import fmnes
        if __name__ == "__main__":
            os.setpgid(0, 0)  # a terminal sends Ctrl-C to all processes of a group
            print(fmnes.minimize(objectives.sphere, x[0], 1.0, workers=2).status)
    """)
    while not (tmp_path / "starting").exists():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate() == ("interrupted\n", "")


def test_programs_of_an_objective_can_be_interrupted_by_it(program):
    """The block of Ctrl-C with which a worker starts does not reach them."""
    process = program("""
        import signal
        def fun(x):
            return len(signal.pthread_sigmask(signal.SIG_BLOCK, set()))
        if __name__ == "__main__":
            print(set(Evaluator(2).evaluate(fun, (), x).values.tolist()))
    """)
    assert process.communicate() == ("{0.0}\n", "")


LOCAL_FUNCTION = """
    import sys
    if __name__ == "__main__":
        def fun(x):
            return x[0]
        {first}
        print(Evaluator(2).evaluate(fun, (), x).values.tolist())
"""
WAYS = ["script", "-c", "-"]


@pytest.mark.parametrize("way", WAYS)
def test_a_function_that_exists_in_the_driver_only_is_sent_by_value(program, way):
    pytest.importorskip("cloudpickle", reason="needs the extra fmnes[workers]")
    out, err = program(LOCAL_FUNCTION.format(first=""), way).communicate()
    assert (out.strip(), err) == (str(X[:, 0].tolist()), "")


@pytest.mark.parametrize("way", WAYS)
def test_without_cloudpickle_a_function_has_to_be_importable(program, way):
    process = program(LOCAL_FUNCTION.format(first='sys.modules["cloudpickle"] = None'), way)
    _, err = process.communicate()
    assert process.returncode == 1
    assert "TypeError: fun: expected a function that worker processes can import" in err
    assert "Can't get attribute 'fun'" in err
    assert "pip install 'fmnes[workers]'" in err
    assert "__name__" not in err


def test_a_function_of_a_notebook_is_sent_by_value():
    pytest.importorskip("cloudpickle", reason="needs the extra fmnes[workers]")
    pytest.importorskip("ipykernel")
    client = pytest.importorskip("nbclient")
    import nbformat

    cells = [
        "import fmnes",
        "def fun(x):\n    return float((x * x).sum())",
        "fmnes.minimize(fun, [3.0] * 5, 1.0, workers=2, maxiter=10, rng=1).fun",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client.NotebookClient(notebook, kernel_name="python3").execute()
    (shown,) = notebook.cells[-1].outputs
    expected = fmnes.minimize(objectives.sphere, [3.0] * 5, 1.0, maxiter=10, rng=1)
    assert float(shown["data"]["text/plain"]) == expected.fun


def test_a_forked_child_of_a_program_with_workers_ends_in_silence(program):
    process = program("""
        import sys
        if __name__ == "__main__":
            with Evaluator(1) as evaluator:
                evaluator.evaluate(objectives.sphere, (), x)
                child = os.fork()
                if not child:
                    sys.exit(0)
                print(os.waitpid(child, 0)[1])
                print(evaluator.evaluate(objectives.sphere, (), x).values.tolist())
    """)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.splitlines() == ["0", str(EXPECTED)]


def test_a_child_that_the_objective_left_behind_does_not_hide_the_death_of_a_worker(program, log):
    """Spawned workers share with their children what shows the death of a worker."""
    process = program(f"""
        if __name__ == "__main__":
            import multiprocessing
            other = multiprocessing.get_context("forkserver").Process(target=print)
            other.start()
            other.join()  # now there is a fork server that is not ours
            evaluator = Evaluator(1, on_error="penalize", chunksize=1)
            outcome = evaluator.evaluate(objectives.dies_and_leaves_a_child, ({log!r},), x)
            print(outcome.nfailed, outcome.first_error, flush=True)
            evaluator.close()
    """)
    try:
        assert [process.stdout.readline().strip() for _ in range(2)][1].startswith("1 ")
    finally:
        objectives.release(log)


def test_workers_do_not_outlive_a_driver_that_was_killed(program):
    process = program("""
        if __name__ == "__main__":
            values = Evaluator(2).evaluate(objectives.returns_own_pid, (), x).values
            print(*sorted(set(values.astype(int))), flush=True)
            input()
    """)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert pids
    process.kill()
    for pid in pids:
        wait_until_gone(pid)


def test_not_even_workers_that_hang_outlive_a_driver_that_was_killed(program, log):
    process = program(f"""
        if __name__ == "__main__":
            Evaluator(2).evaluate(objectives.sleeps, ({log!r},), x)
    """)
    while not Path(log).exists() or len(objectives.calls(log)) < 2:
        time.sleep(0.01)
    process.kill()
    for pid in objectives.calls(log):
        wait_until_gone(pid)


def test_workers_keep_blas_to_one_thread_unless_told_otherwise(program):
    process = program("""
        if __name__ == "__main__":
            os.environ["MKL_NUM_THREADS"] = "3"
            with Evaluator(1) as evaluator:
                for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
                    print(evaluator.evaluate(objectives.environment, (name,), x[:1]).values)
            print("OPENBLAS_NUM_THREADS" in os.environ)
    """)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.split("\n")[:3] == ["[1.]", "[3.]", "False"]


def test_the_limit_that_openmp_knows_is_for_all(program):
    """BLAS libraries follow it unless their own is set."""
    process = program("""
        if __name__ == "__main__":
            os.environ["OMP_NUM_THREADS"] = "4"
            with Evaluator(1) as evaluator:
                name = "OPENBLAS_NUM_THREADS"
                print(evaluator.evaluate(objectives.is_set, (name,), x[:1]).values)
    """)
    out, err = process.communicate()
    assert (process.returncode, err, out) == (0, "", "[0.]\n")


def test_pools_are_imported_only_when_asked_for(program):
    process = program("""
        import sys
        Evaluator().evaluate(objectives.sphere, (), x)
        heavy = "multiprocessing", "concurrent.futures.process", "cloudpickle", "distributed", "ray"
        print([name for name in heavy if name in sys.modules])
    """)
    out, err = process.communicate()
    assert (out.strip(), err) == ("[]", "")
