"""A search in a process of its own, to be killed: ``python -m checkpoints.driver '{...}'``.

Prints a hash of the Result: two searches that print the same ended with the same bits.
"""

import json
import os
import struct
import sys
import time
import zlib

import numpy as np

import fmnes
from checkpoints.common import digest


def mark(x):
    """Four bytes by which a candidate is known."""
    return struct.pack("<I", zlib.crc32(x.tobytes()))


def rastrigin(x, log, seconds):
    """Every call leaves its mark in the log, whichever process makes it."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, mark(x))
    os.close(file)
    time.sleep(seconds)
    return float(10 * len(x) + (x**2 - 10 * np.cos(2 * np.pi * x)).sum())


def faulty(x, log, seconds):
    """The same; a tenth of the points fail."""
    value = rastrigin(x, log, seconds)
    if mark(x) < b"\x1a":
        raise ArithmeticError(f"no value at {x[0]!r}")
    return value


def options(method, fun, workers, log, seconds=0.0, checkpoint=None):
    """Arguments of minimize, from what can be written in JSON."""
    evaluator = fmnes.Evaluator(
        workers,
        on_error="penalize" if fun == "faulty" else "raise",
        chunksize=None if workers is None else 1,
    )
    return {
        "fun": globals()[fun],
        "x0": [3.0] * 4,
        "sigma0": 2.0,
        "method": method,
        "args": (log, seconds),
        "workers": evaluator,
        "restarts": 2,
        "maxfevals": 2400,
        "stopping": fmnes.Stopping(tolx=0.05),
        "rng": 3,
        "checkpoint": None if checkpoint is None else fmnes.Checkpoint(checkpoint, every=0.02),
    }


if __name__ == "__main__":
    arguments = options(**json.loads(sys.argv[1]))
    with arguments["workers"]:
        print(digest(fmnes.minimize(**arguments)))
