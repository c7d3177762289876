"""Which kernels are in use, and how many threads they may use."""

import sys

import numpy as np

from fmnes import _checks as checks
from fmnes import kernels
from fmnes._version import __version__
from fmnes.kernels import blas

if kernels.in_use == "native":
    from fmnes.kernels import _native


def get_num_threads() -> int:
    """Return the number of threads that the compiled kernels may use; 1 without them.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.get_num_threads() >= 1
    True
    """
    return _native.num_threads() if kernels.in_use == "native" else 1


def set_num_threads(n: int) -> None:
    """Let the compiled kernels use up to n threads. Results do not depend on the number.

    The kernels use several threads only if there are enough variables to make it worthwhile. The
    array-agnostic kernels have no threads: for them this changes nothing.

    Examples
    --------
    >>> import fmnes
    >>> before = fmnes.get_num_threads()
    >>> fmnes.set_num_threads(1)
    >>> fmnes.get_num_threads()
    1
    >>> fmnes.set_num_threads(before)
    """
    number = checks.integer("n", n, least=1)
    if number > kernels.MAX_THREADS:
        raise ValueError(f"n: expected at most {kernels.MAX_THREADS} threads, got {n}")
    if kernels.in_use == "native":
        _native.set_num_threads(number)


def config() -> dict[str, object]:
    """Return what `show_config` prints, as a dictionary.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.config()["kernels"] in ("native", "agnostic")
    True
    """
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
        "BLAS threads": "one" if blas.one_thread.threads else "not controlled",
        "compiler": _native.compiler() if native else None,
    }


def config_text() -> str:
    """Return what `show_config` prints."""
    texts = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in config().items()
    }
    return "\n".join(f"{name:24}{text or '-'}" for name, text in texts.items())


def show_config() -> None:
    """Print versions, the kernels in use and why, their instruction level, and threads.

    Examples
    --------
    >>> import fmnes
    >>> fmnes.show_config()  # doctest: +ELLIPSIS
    fmnes                   ...
    """
    print(config_text())
