"""Processes in which a trial gives the same bits on every x86-64 machine.

The compiled kernels of this library do so anyway. NumPy and OpenBLAS choose other code, with other
rounding, on processors with AVX-512; where thousands of generations follow, the last bit decides
how many. So the processes of an experiment are told to leave it alone, and to use one thread each.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection

import numpy as np

_BEYOND_AVX2 = ("X86_V4", "AVX512")  # how NumPy names what it must not use begins like this


def cores() -> int:
    """How many cores we may use: in a container or a job of a cluster, not all of the machine."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def pool(workers: int) -> Iterator[Executor]:
    """An executor of so many pinned processes; on an exception they are ended at once."""
    before = dict(os.environ)
    os.environ.update(_pinned())  # processes inherit it when they start, and they start when needed
    executor = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_settle
    )
    others = set(multiprocessing.active_children())
    try:
        yield executor
    except BaseException:  # Ctrl-C too: a trial may have minutes to go
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown()
        os.environ.clear()
        os.environ.update(before)


def _pinned() -> dict[str, str]:
    """Environment variables that fix the floating-point arithmetic of NumPy and OpenBLAS."""
    variables = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "FMNES_NUM_THREADS": "1"}
    features = np._core._multiarray_umath  # type: ignore[attr-defined]
    wide = [
        name
        for name in features.__cpu_dispatch__
        if name.startswith(_BEYOND_AVX2) and features.__cpu_features__.get(name)
    ]
    if wide:
        variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(wide)
    if features.__cpu_features__.get("AVX2"):
        variables["OPENBLAS_CORETYPE"] = "Haswell"
    return variables


def _settle() -> None:
    """Leave Ctrl-C to the process that started us, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
