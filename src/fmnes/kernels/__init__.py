"""The hot loops in three implementations: compiled for NumPy, fused by JAX, array-agnostic.

This module chooses the implementation, the instruction level and the number of threads once, when
it is imported. Environment variables can force the choice (an empty one counts as not set):

- ``FMNES_KERNELS``: ``auto`` (compiled if the extension is built), ``native``, ``agnostic``, which
  turns the Triton kernels of the engines off too;
- ``FMNES_LEVEL``: ``auto`` (the best that the machine has), ``baseline``, ``avx2``, ``avx512``,
  ``neon``;
- ``FMNES_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the number of CPUs the process may use.
"""

import functools
import importlib
import importlib.util
import os
from types import ModuleType
from typing import Any

from array_api_compat import is_jax_namespace, is_numpy_namespace

from fmnes.kernels import agnostic, fused

EXTENSION = "fmnes.kernels._native"
MAX_THREADS = 1024
NOT_BUILT = (
    "the extension is not built: there was no C++20 compiler, or no Python headers, when fmnes was "
    "installed (pip install -v says which)"
)
ONLY_MAIN = "the extension works only in the main interpreter of a process, not in a subinterpreter"


def _choice(variable: str, *choices: str) -> str:
    """The value of an environment variable; the first choice if it is not set."""
    value = os.environ.get(variable) or choices[0]
    if value not in choices:
        raise ValueError(f"{variable}: expected one of {', '.join(choices)}, got {value!r}")
    return value


def _kernels_in_use(wanted: str) -> tuple[str, str]:
    """'native' or 'agnostic', and why."""
    if wanted == "agnostic":
        return "agnostic", "FMNES_KERNELS=agnostic"
    if _is_subinterpreter():  # calls of the extension would never return
        if wanted == "native":
            raise ImportError(f"FMNES_KERNELS=native, but {ONLY_MAIN}", name=EXTENSION)
        return "agnostic", ONLY_MAIN
    if importlib.util.find_spec(EXTENSION) is not None:
        return "native", "FMNES_KERNELS=native" if wanted == "native" else "the extension is built"
    if wanted == "native":
        raise ImportError(f"FMNES_KERNELS=native, but {NOT_BUILT}", name=EXTENSION)
    return "agnostic", NOT_BUILT


def _is_subinterpreter() -> bool:
    """Whether this is another interpreter than the first one of the process."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13; before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() != interpreters.get_main())
    return False


def available_cpus() -> int:
    """Return how many CPUs this process may use; a container or a batch job may have fewer."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _default_num_threads() -> int:
    """The number of threads, from the environment or the CPUs of the process."""
    for variable in ("FMNES_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable)
        if text:
            # OpenMP allows one number for each level of nesting: 4,2.
            number = text.split(",")[0] if variable == "OMP_NUM_THREADS" else text
            if not number.strip().isdecimal() or not 1 <= int(number) <= MAX_THREADS:
                raise ValueError(
                    f"{variable}: expected a whole number from 1 to {MAX_THREADS}, got {text!r}"
                )
            return int(number)
    return min(available_cpus(), MAX_THREADS)


wanted = _choice("FMNES_KERNELS", "auto", "native", "agnostic")
in_use, why = _kernels_in_use(wanted)
_level = _choice("FMNES_LEVEL", "auto", "baseline", "avx2", "avx512", "neon")
_num_threads = _default_num_threads()

if in_use == "native":
    from fmnes.kernels import _native, native

    if _level != "auto":
        if _level not in _native.levels_here():
            raise ValueError(
                f"FMNES_LEVEL: expected one that this machine runs "
                f"({', '.join(_native.levels_here())}), got {_level!r}"
            )
        _native.set_level(_level)
    _native.set_num_threads(_num_threads)


def select(xp: Any, dtype: Any) -> ModuleType:
    """The module with the hot loops for this array library and dtype.

    A namespace that is no library, such as that of `engines.sharded`, brings its own.
    """
    if isinstance(xp, ModuleType):
        return _of_library(xp, dtype)
    own: ModuleType = xp.kernels
    return own


@functools.cache
def _of_library(xp: Any, dtype: Any) -> ModuleType:
    if in_use == "native" and is_numpy_namespace(xp) and dtype in (xp.float64, xp.float32):
        return native
    return fused if is_jax_namespace(xp) else agnostic
