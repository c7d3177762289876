"""Objectives that misbehave. They live in a module of their own: worker processes import it.

``x[0]`` is the number of the candidate; number 3 is the one that makes trouble. ``log`` is a file
that takes one line a call, so that tests can count attempts across processes.
"""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from fmnes.evaluate._call import ChunkResult

TROUBLE = 3


def population(popsize=8, dim=3):
    x = np.random.default_rng(1).standard_normal((popsize, dim))
    x[:, 0] = np.arange(popsize)
    return x


def sphere(x):
    return float(np.sum(x * x))


def process(x):
    """The number of the worker process, after so long that no other candidate waits for it."""
    time.sleep(0.2)
    return os.getpid()


def _note(log, text):
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


def calls(log):
    """How often each candidate was started."""
    numbers = [int(line) for line in Path(log).read_text().split()]
    return {number: numbers.count(number) for number in numbers}


def noted(x, log):
    _note(log, int(x[0]))
    return sphere(x)


_called = []


def interrupts_driver(x, driver, at):
    """Sends the driver a Ctrl-C at some call, once it has the values of the earlier calls."""
    _called.append(x)
    if len(_called) == at:
        time.sleep(0.3)
        os.kill(driver, signal.SIGINT)
        time.sleep(60)
    return sphere(x)


def shifted(x, shift, *_):
    return sphere(x - shift)


def shifted_slowly(x, shift):
    time.sleep(0.1)
    return shifted(x, shift)


def killed_once(x, log):
    _note(log, int(x[0]))
    if x[0] == TROUBLE and calls(log)[TROUBLE] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return sphere(x)


def killed_always(x, log):
    _note(log, int(x[0]))
    if x[0] == TROUBLE:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return sphere(x)


def hangs(x, log):
    _note(log, int(x[0]))
    if x[0] == TROUBLE:
        time.sleep(1000)
    return sphere(x)


def hangs_until_released(x, log):
    while x[0] == TROUBLE and not Path(f"{log}.released").exists():
        time.sleep(0.01)
    return sphere(x)


def release(log):
    Path(f"{log}.released").touch()


def hangs_once(x, log):
    _note(log, int(x[0]))
    if x[0] == TROUBLE and calls(log)[TROUBLE] == 1:
        time.sleep(1000)
    return sphere(x)


def hangs_in_a_child(x, log):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]) as child:
        _note(log, child.pid)
        return child.wait()


def sleeps(x, log):
    _note(log, os.getpid())
    time.sleep(1000)


def raises(x):
    if x[0] == TROUBLE:
        raise ValueError("the mesh is tangled")
    return sphere(x)


def raises_once(x, log):
    _note(log, int(x[0]))
    if x[0] == TROUBLE and calls(log)[TROUBLE] == 1:
        raise ValueError("the licence server was busy")
    return sphere(x)


class TwoArgumentsError(Exception):
    """It pickles and cannot be unpickled."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")


def raises_unpicklable(x):
    if x[0] == TROUBLE:
        raise TwoArgumentsError(17, "diverged")
    return sphere(x)


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raises_mute(x):
    if x[0] == TROUBLE:
        raise MuteError
    return sphere(x)


def exits(x):
    if x[0] == TROUBLE:
        sys.exit("the simulator gave up")
    return sphere(x)


def exits_hard(x):
    if x[0] == TROUBLE:
        os._exit(7)
    return sphere(x)


def forks(x, way):
    """A sphere whose child process leaves the objective, as nobody should let it."""
    child = os.fork()
    if child:
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != EXIT_CODES[way]:
            return -1.0
        return sphere(x)
    if way == "exit":
        sys.exit(3)
    if way == "exit with a text":
        sys.exit("the child gave up")
    if way == "raise":
        raise ValueError("the child failed")
    return 1e-9


EXIT_CODES = {"exit": 3, "exit with a text": 1, "raise": 1, "return": 0}


def raises_surrogates(x):
    if x[0] == TROUBLE:
        raise ValueError("no such file: \udcff.msh")  # as in names that are no valid UTF-8
    return sphere(x)


def raises_surrogates_always(x):
    raises_surrogates([TROUBLE])


def interrupts(x):
    raise KeyboardInterrupt


def raises_an_interrupt(x):
    if x[0] == TROUBLE:
        raise KeyboardInterrupt("the simulator's own")
    return sphere(x)


class FailsLate:
    """As numbers of a device do whose computation fails only when it is asked for the result."""

    def __float__(self):
        raise RuntimeError("the device ran out of memory")


def fails_late(x):
    return FailsLate() if x[0] == TROUBLE else sphere(x)


def returns_none(x):
    return None if x[0] == TROUBLE else sphere(x)


def returns_own_pid(x):
    return os.getpid()


def is_set(x, name):
    return float(name in os.environ)


def environment(x, name):
    return int(os.environ[name])


def writes_to_x(x):
    x[0] = 0.0


class SlowToLoad:
    """A sphere that every process but the first takes its time to load."""

    def __init__(self, log):
        self.log = log

    def __reduce__(self):
        return _load_slowly, (self.log,)

    def __call__(self, x):
        return sphere(x)


def _load_slowly(log):
    try:
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        time.sleep(0.5)
    return SlowToLoad(log)


class HangsWhileLoading:
    """A sphere that hangs in the processes that load it, in all of them or in the first."""

    def __init__(self, log=None):
        self.log = log

    def __reduce__(self):
        return _hang, (self.log,)

    def __call__(self, x):
        return sphere(x)


def _hang(log):
    try:
        if log is not None:
            os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        time.sleep(1000)
    except FileExistsError:
        return HangsWhileLoading(log)


def answers_out_of_turn(x):
    """A sphere that writes an answer of its own into the pipe of its worker."""
    if x[0] == TROUBLE:
        (connection,) = (end for end in gc.get_objects() if type(end).__name__ == "Connection")
        connection.send((-1, ChunkResult([-1.0])))
    return sphere(x)


def dies_and_leaves_a_child(x, log):
    if x[0] == TROUBLE:
        if os.fork():
            os._exit(7)
        while not Path(f"{log}.released").exists():
            time.sleep(0.01)
        os._exit(0)
    return sphere(x)


class Unpicklable:
    """A callable that no pickle takes."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, x):
        return 0.0


class CannotBeLoaded:
    """A callable that pickles, and raises in whoever loads it."""

    def __reduce__(self):
        return _refuse, ()

    def __call__(self, x):
        return 0.0


def _refuse():
    raise ImportError("no module named simulator on this machine")
