"""Whole programs: their ends, their workers, what they import."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
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
    """Start a program of its own that can import what we can."""
    started = []

    def start(text):
        script = tmp_path / "script.py"
        script.write_text(HEADER + textwrap.dedent(text))
        environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        started.append(
            subprocess.Popen(
                [sys.executable, str(script)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

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


def test_a_script_without_main_part_is_told_what_it_lacks(program):
    process = program("Evaluator(1).evaluate(objectives.sphere, (), x)")
    _, err = process.communicate()
    assert process.returncode == 1
    assert "3 worker processes in a row died while starting" in err
    assert 'under `if __name__ == "__main__":`' in err.splitlines()[-1]


LOCAL_FUNCTION = """
    import sys
    if __name__ == "__main__":
        def fun(x):
            return x[0]
        {first}
        print(Evaluator(2).evaluate(fun, (), x).values.tolist())
"""


def test_a_function_that_exists_in_the_driver_only_is_sent_by_value(program):
    pytest.importorskip("cloudpickle", reason="needs the extra fmnes[workers]")
    out, err = program(LOCAL_FUNCTION.format(first="")).communicate()
    assert (out.strip(), err) == (str(X[:, 0].tolist()), "")


def test_without_cloudpickle_a_function_has_to_be_importable(program):
    process = program(LOCAL_FUNCTION.format(first='sys.modules["cloudpickle"] = None'))
    _, err = process.communicate()
    assert process.returncode == 1
    assert "TypeError: fun: expected a function that worker processes can import" in err
    assert "Can't get attribute 'fun'" in err


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
