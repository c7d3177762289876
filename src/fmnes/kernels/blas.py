"""NumPy's matrix products and decompositions in one thread.

The methods with a full matrix call BLAS and LAPACK through NumPy. Several threads split a product
in other places than one thread does. Results would therefore depend on the number of threads, from
about 100 variables on. Threads gain little with a few hundred variables, and they lose much if
other processes use the cores, because OpenBLAS's threads wait for each other in busy loops.

We control OpenBLAS, which NumPy's wheels contain on Linux and before macOS 14. On Windows and with
other libraries (Accelerate, MKL) the number of threads stays what it is.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# OpenBLAS has other names for its functions where it is built for NumPy's wheels.
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


class Threads(NamedTuple):
    """The functions of a BLAS library for its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], object]


def _of_numpy() -> Threads | None:
    """The functions of the OpenBLAS that NumPy uses; None if it uses another library."""
    try:
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)  # and all that it is linked with
    except (AttributeError, OSError):
        return None
    for name in _NAMES:
        get, set_ = name.format("get_num_threads"), name.format("set_num_threads")
        if hasattr(library, get) and hasattr(library, set_):
            return Threads(library[get], library[set_])
    return None


class OneThread(contextlib.ContextDecorator):
    """Runs BLAS in one thread within a block or a function, then in as many as before.

    The number of threads belongs to the process. Blocks may overlap in several threads: the first
    one that begins changes the number, and the last one that ends restores it.
    """

    def __init__(self, threads: Threads | None) -> None:
        self.threads = threads
        self._lock = threading.Lock()
        self._open = 0  # blocks that have begun and not ended
        self._before = 1

    def __enter__(self) -> None:
        if self.threads is None:
            return
        with self._lock:
            if self._open == 0:
                self._before = self.threads.get()
                self.threads.set(1)
            self._open += 1

    def __exit__(self, *exception: object) -> None:
        if self.threads is None:
            return
        with self._lock:
            self._open -= 1
            if self._open == 0:
                self.threads.set(self._before)


one_thread = OneThread(_of_numpy())
