"""SIGTERM and Ctrl-C: the search ends, is saved, and its Result comes back."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from checkpoints.common import Counted, digest, names, search, sphere
from fmnes._optimizer import Optimizer

SIGNALS = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}


@pytest.fixture(autouse=True)
def _handlers_are_given_back():
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    assert {number: signal.getsignal(number) for number in SIGNALS} == before


class Signalled(Counted):
    """An objective that sends its own process a signal at some call."""

    def __init__(self, number, at):
        super().__init__()
        self.number, self.at = number, at

    def __call__(self, x):
        if len(self.calls) + 1 == self.at:
            signal.raise_signal(self.number)
        return super().__call__(x)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_an_evaluation(number, tmp_path):
    path = tmp_path / "run.npz"
    whole, first, rest = Counted(), Signalled(number, at=28), Counted()
    expected = search(whole, maxiter=10)
    part = search(first, path, maxiter=10)
    assert (part.status, part.nit, part.success) == (SIGNALS[number], 3, False)
    assert part.message.startswith(part.status.sentence)
    assert digest(search(rest, path, maxiter=10)) == digest(expected)
    assert first.calls + rest.calls == whole.calls
    assert "run.npz.lock" not in names(tmp_path)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_until_a_generation_is_told(number, tmp_path, monkeypatch):
    """So that what is saved and returned is whole."""
    path, told = tmp_path / "run.npz", []
    tell = Optimizer.tell

    def signalled(opt, values):
        if len(told) == 3:
            signal.raise_signal(number)
        told.append(1)
        tell(opt, values)

    with monkeypatch.context() as patch:
        patch.setattr(Optimizer, "tell", signalled)
        part = search(sphere, path, maxiter=10)
    assert (part.status, part.nit, len(part.history)) == (SIGNALS[number], 4, 4)
    assert digest(search(sphere, path, maxiter=10)) == digest(search(sphere, maxiter=10))


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_callback(number):
    def callback(intermediate_result):
        if intermediate_result.nit == 3:
            signal.raise_signal(number)
            raise AssertionError("went on")

    result = search(sphere, maxiter=10, callback=callback)
    assert (result.status, result.nit) == (SIGNALS[number], 3)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_at_the_very_end_is_not_swallowed(number, path, monkeypatch):
    """The last checkpoint is being written: the caller learns that the process has to end."""
    fun = Counted()
    signal_while_saving(monkeypatch, path, fun, 2 + 5 * 8, number)
    assert search(fun, path, maxiter=5).status == SIGNALS[number]


def signal_while_saving(monkeypatch, path, fun, calls, number):
    """Send a signal while a checkpoint is written, after so many calls of the objective."""
    replace = os.replace

    def signalled(source, target):
        if str(target) == str(path) and len(fun.calls) == calls:
            signal.raise_signal(number)
        replace(source, target)

    monkeypatch.setattr(os, "replace", signalled)


def test_a_second_ctrl_c_propagates_and_a_second_sigterm_waits(path, monkeypatch):
    def run(first, second):
        fun = Signalled(first, at=28)
        with monkeypatch.context() as patch:
            signal_while_saving(patch, path, fun, 27, second)
            return search(fun, path, method="cr-fm-nes", resume="never", maxiter=10)

    assert run(signal.SIGTERM, signal.SIGTERM).status == "terminated"
    with pytest.raises(KeyboardInterrupt):
        run(signal.SIGINT, signal.SIGINT)
    rest = Counted()
    options = {"method": "cr-fm-nes", "maxiter": 10}
    assert digest(search(rest, path, **options)) == digest(search(sphere, **options))
    assert len(rest.calls) == 1 + 10 * 8 - 27


def test_a_handler_of_the_program_stays_in_charge():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    try:
        result = search(Signalled(signal.SIGTERM, at=28), maxiter=10)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [1]
    assert result.nit == 10


FORKING = """
    import os, signal
    import fmnes

    def fun(x):
        child = os.fork()
        if child == 0:
            signal.raise_signal(signal.SIGTERM)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == signal.SIGTERM
        return float((x**2).sum())

    assert fmnes.minimize(fun, [3.0] * 4, 1.0, maxiter=2).nit == 2
"""


def test_a_forked_child_ends_as_it_would_without_us():
    """Pools that fork end their workers by SIGTERM."""
    subprocess.run([sys.executable, "-c", textwrap.dedent(FORKING)], check=True, timeout=60)


def test_other_threads_are_left_alone():
    results = []
    thread = threading.Thread(target=lambda: results.append(search(sphere, maxiter=10)))
    thread.start()
    thread.join()
    assert results[0].nit == 10


# === Processes ===

PROGRAM = """
    import sys, time
    import fmnes

    def fun(x):
        time.sleep(0.02)
        return float((x**2).sum())

    if __name__ == "__main__":
        path, workers = sys.argv[1], int(sys.argv[2]) or None
        def callback(intermediate_result):
            print("go", flush=True)
        result = fmnes.minimize(
            fun, [3.0] * 5, 1.0, rng=1, maxiter=100, checkpoint=path, workers=workers,
            callback=callback,
        )
        print(result.status, result.nit, flush=True)
"""


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_to_the_process_group(number, workers, tmp_path):
    """As a terminal or a batch system sends it: to the workers as well."""
    path, program = tmp_path / "run.npz", tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    process = subprocess.Popen(
        [sys.executable, program, path, str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    killer = threading.Timer(60, process.kill)
    killer.start()
    try:
        for _ in range(3):
            assert process.stdout.readline() == "go\n"
        time.sleep(0.03)
        os.killpg(process.pid, number)
        out, err = process.communicate()
    finally:
        killer.cancel()
        process.kill()
        process.wait()
    *_, last = out.splitlines()
    status, nit = last.split()
    assert (status, process.returncode, err) == (SIGNALS[number], 0, "")
    rest = Counted()
    resumed = search(rest, path, maxiter=int(nit) + 3)
    assert digest(resumed) == digest(search(sphere, maxiter=int(nit) + 3))
    assert len(rest.calls) <= 3 * 8
