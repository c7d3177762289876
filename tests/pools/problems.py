"""Further objectives, for searches and for signals; worker processes import this module."""

import os
import signal
import time

import numpy as np

from faults.objectives import TROUBLE, killed_once, sphere


def hangs_and_says_where(x, log, pids, ballast=None):
    with open(log, "a") as file:
        print(int(x[0]), file=file)
    if x[0] == TROUBLE:
        with open(pids, "a") as file:
            print(os.getpid(), file=file)
        time.sleep(1000)
    return sphere(x)


def killed_once_with_ballast(x, log, ballast):
    return killed_once(x, log)


def wants_too_much_memory(x):
    if x[0] == TROUBLE:
        np.empty(2**50)
    return sphere(x)


def sphere_with_failures(x):
    """Some candidates raise, some have no value; which ones depends on x alone."""
    if x[0] > 0.5:
        raise ValueError("the mesh is tangled")
    return np.nan if x[1] > 1.5 else sphere(x)


def slow_sphere(x):
    time.sleep(0.05)
    return sphere(x)


def kills_once_at_20(x, calls, killed):
    with open(calls, "a") as file:
        print("called", file=file)
    with open(calls) as file:
        count = len(file.read().split())
    if count >= 20 and not os.path.exists(killed):
        with open(killed, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return sphere(x)
