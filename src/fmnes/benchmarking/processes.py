"""Processes in which a task gives the same bits on every x86-64 machine, and their progress.

The compiled kernels of this library give the same bits anyway. NumPy and OpenBLAS choose other
code, with other rounding, on processors with AVX-512, and over thousands of generations the last
bit changes the number of evaluations. So these processes do not use AVX-512, and one thread each.
"""

import importlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from multiprocessing import connection
from typing import TypeVar

from fmnes._progress import Display

_WIDER_THAN_AVX2 = ("X86_V4", "AVX512")  # how NumPy's names of these instructions begin
SECONDS_BETWEEN_LINES = 60.0  # of progress, where standard error is not a terminal

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_all(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[tuple[Task, Result]]:
    """Yield every task with what ``function(task)`` returns, in the order in which they end."""
    if not tasks:
        return
    with _pool(min(workers, len(tasks))) as executor:
        running = {executor.submit(function, task): task for task in tasks}
        for future in as_completed(running):
            task = running[future]
            try:
                result = future.result()
            except BrokenExecutor as error:
                raise RuntimeError(
                    "a worker process was killed; run the same command again to continue"
                ) from error
            except Exception as error:  # a user's solver may raise anything
                raise RuntimeError(f"{task}: {type(error).__name__}: {error}") from error
            yield task, result


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """Give an executor of pinned processes; an exception ends them at once."""
    before = dict(os.environ)
    os.environ.update(_pinned())  # processes inherit it when they start, and they start when needed
    executor = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
    )
    others = set(multiprocessing.active_children())
    try:
        yield executor
    except BaseException:  # Ctrl-C too: a task may have minutes to go
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown()
        os.environ.clear()
        os.environ.update(before)


def _pinned() -> dict[str, str]:
    """Return environment variables that fix the arithmetic of NumPy and OpenBLAS."""
    variables = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "FMNES_NUM_THREADS": "1"}
    numpy = importlib.import_module("numpy._core._multiarray_umath")
    found = [name for name in numpy.__cpu_dispatch__ if numpy.__cpu_features__.get(name)]
    wide = [name for name in found if name.startswith(_WIDER_THAN_AVX2)]
    if wide:
        variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(wide)
    if numpy.__cpu_features__.get("AVX2"):
        variables["OPENBLAS_CORETYPE"] = "Haswell"
    return variables


def _start_worker() -> None:
    """Leave Ctrl-C to the parent process, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def with_progress(
    ended: Iterable[tuple[Task, Result]], tasks: Sequence[Task], work: Callable[[Task], float]
) -> Iterator[tuple[Task, Result]]:
    """Pass on tasks that ended, and show progress and the time left on standard error.

    ``work`` gives the expected effort of a task in any unit.
    """
    if not tasks:
        return
    total, done, count = sum(map(work, tasks)), 0.0, 0

    def words() -> list[str]:
        return [f"{count} of {len(tasks)} done"]

    with closing(Display(total, every_line=SECONDS_BETWEEN_LINES)) as display:
        for task, result in ended:
            yield task, result
            count, done = count + 1, done + work(task)
            display.update(done if count < len(tasks) else total, words)  # sums are rounded
