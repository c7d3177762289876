"""How worker processes start, and why none of them is left behind.

`multiprocessing` is imported inside functions, because it would make `import fmnes` several percent
slower.
"""

import atexit
import contextlib
import functools
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from fmnes.evaluate._outcome import EvaluationError

# Everything here has a `process`, and an `end(seconds)` that is called before Python exits.
running: "weakref.WeakSet[Any]" = weakref.WeakSet()
_one_start_at_a_time = threading.Lock()  # a start changes the environment for a moment
_NAME = "fmnes-worker"
UNGUARDED = 86  # exit status of a worker whose import of the script would start workers again


def launch(serve: Callable[[Any], None]) -> tuple[Any, Any]:
    """Start a process that calls ``serve`` with its end of a pipe.

    Returns the process and our end of the pipe.
    """
    import multiprocessing

    end_if_unguarded()
    if multiprocessing.current_process().daemon:
        raise EvaluationError(
            "workers: expected None in a daemon process, which Python does not allow to start "
            "processes. The workers of multiprocessing.Pool are such processes; those of "
            "concurrent.futures.ProcessPoolExecutor are not"
        )
    context = _context(serve.__module__)
    ours, theirs = context.Pipe()
    # Not a daemon: daemons may not have children, and an objective may start some.
    process = context.Process(target=serve, args=(theirs,), name=_NAME)
    with _one_start_at_a_time, _one_thread_each(), _importable_main(), _interrupts_blocked():
        process.start()
    theirs.close()
    return process, ours


def end_if_unguarded() -> None:
    """End this process if it is a worker that imports a script without a main part.

    The worker has not started yet, and the script already uses workers of its own. The exit status
    says so to the driver, which raises one error for all workers.
    """
    import multiprocessing

    process = multiprocessing.current_process()
    if process.name == _NAME and getattr(process, "_inheriting", False):
        os._exit(UNGUARDED)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for processes that start in this context; this process gets it afterwards.

    Otherwise, a fork server or a worker that is importing modules would print a traceback. The
    resource tracker of multiprocessing is started before, because it would remove the block.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def unblock_interrupts() -> None:
    """Lift the block that a worker started with: programs of the objective inherit it."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@functools.cache
def _context(preloaded: str) -> Any:
    """The way in which processes are started.

    Never by fork: the driver may have threads (BLAS, JAX), and a forked copy of their locks hangs.
    A fork server that has loaded the module ``preloaded`` starts a worker in 10 milliseconds, where
    spawning takes some hundreds. A fork server that somebody else started has not loaded it, and
    its BLAS may have started threads. The fork server of a parent process cannot be used.
    """
    import multiprocessing.util

    # At exit, multiprocessing waits for every process that is not a daemon. `_end_all` is
    # registered later than that, so it runs first and leaves none.
    atexit.register(_end_all)
    if "forkserver" in multiprocessing.get_all_start_methods():
        from multiprocessing import forkserver

        server: Any = forkserver._forkserver
        if server._forkserver_pid is None:
            server.set_forkserver_preload([*server._preload_modules, preloaded])
            return multiprocessing.get_context("forkserver")
    return multiprocessing.get_context("spawn")


_THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that start in this context run BLAS in one thread, unless the user set it.

    Libraries read the environment when they are loaded, which is before our code runs there.
    """
    asked = "OMP_NUM_THREADS" in os.environ  # all libraries follow it by default
    added = [] if asked else [name for name in _THREAD_LIMITS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def has_script() -> bool:
    """Whether workers import the main program: it is a file, not a notebook or standard input."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    return path is not None and os.path.exists(path)


@contextlib.contextmanager
def _importable_main() -> Iterator[None]:
    """Hide the path of a main program that is not a file: processes would try to import it."""
    namespace = vars(sys.modules["__main__"])
    hidden = {} if has_script() else {"__file__": namespace.pop("__file__", None)}
    try:
        yield
    finally:
        namespace.update({name: path for name, path in hidden.items() if path is not None})


def kill_process_group(pid: int) -> None:
    """Kill a worker with all programs that its objective started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):  # the process has not called `setsid` yet
            os.killpg(pid, signal.SIGKILL)


def _end_all() -> None:
    for process in list(running):
        process.end(0.0)


def _forget_the_parents() -> None:
    """The workers and the fork server belong to the parent of a process that was forked."""
    global _one_start_at_a_time
    _one_start_at_a_time = threading.Lock()  # a thread of the parent may have held it
    _context.cache_clear()
    atexit.unregister(_end_all)
    # At its exit, multiprocessing would try to wait for the workers of the parent.
    siblings: set[Any] = getattr(sys.modules.get("multiprocessing.process"), "_children", set())
    siblings.difference_update(worker.process for worker in running)
    running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents)
