"""Which kernels are in use and how many threads they may take."""

import operator
import sys

import numpy as np

from fmnes import kernels

if kernels.in_use == "native":
    from fmnes.kernels import _native


def get_num_threads() -> int:
    """The number of threads that the compiled kernels may use; 1 without them.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.get_num_threads() >= 1
    True
    """
    return _native.num_threads() if kernels.in_use == "native" else 1


def set_num_threads(n: int) -> None:
    """Let the compiled kernels use up to n threads; no result depends on the number.

    Threads are used only where they pay, which takes many variables. The array-agnostic kernels
    have no threads of their own: there this changes nothing.

    Examples
    --------
    >>> import fmnes
    >>> before = fmnes.get_num_threads()
    >>> fmnes.set_num_threads(1)
    >>> fmnes.get_num_threads()
    1
    >>> fmnes.set_num_threads(before)
    """
    try:
        number = operator.index(n)
    except TypeError:
        raise TypeError(f"n: expected a whole number of threads, got {n!r}") from None
    if not 1 <= number <= kernels.MAX_THREADS:
        raise ValueError(
            f"n: expected a number of threads from 1 to {kernels.MAX_THREADS}, got {n}"
        )
    if kernels.in_use == "native":
        _native.set_num_threads(number)


def config() -> dict[str, object]:
    """What `show_config` prints, as a dictionary.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.config()["kernels"] in ("native", "agnostic")
    True
    """
    from fmnes import __version__  # set last in the package's __init__

    native = kernels.in_use == "native"
    return {
        "fmnes": __version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "kernels": kernels.in_use,
        "why": kernels.why,
        "level": _native.level() if native else None,
        "levels of this machine": _native.levels_here() if native else [],
        "levels built": _native.levels() if native else [],
        "threads": get_num_threads(),
        "compiler": _native.compiler() if native else None,
    }


def show_config() -> None:
    """Print which kernels are in use and why, the instruction level, threads and versions.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.show_config()  # doctest: +ELLIPSIS
    fmnes                   ...
    """
    for name, value in config().items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        print(f"{name:24}{text or '-'}")
