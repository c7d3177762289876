"""``fmnes doctor``: show what is installed and which kernels are in use, and check them."""

import argparse
from importlib import metadata
from typing import Any

import numpy as np

import fmnes
from fmnes import kernels
from fmnes._config import config_text
from fmnes.cli._command import add_command
from fmnes.cli._output import print_out

if kernels.in_use == "native":
    from fmnes.kernels import _native

_EPILOG = """\
The exit status is 0 if every check passed, and 1 otherwise. The environment variable FMNES_KERNELS
chooses the kernels: "native" (compiled) or "agnostic" (in Python, for any array library). By
default, the compiled kernels are used if they can be loaded.
"""
# The package by which we tell whether an extra is installed.
_EXTRAS = {
    "plot": "matplotlib",
    "progress": "tqdm",
    "workers": "cloudpickle",
    "dask": "distributed",
    "ray": "ray",
    "mpi": "mpi4py",
    "torch": "torch",
    "jax": "jax",
    "scipy": "scipy",
    "optuna": "optuna",
    "gymnasium": "gymnasium",
    "coco": "coco-experiment",
}


def add_commands(commands: Any) -> None:
    """Add `doctor` to the commands of the command line."""
    add_command(commands, doctor, epilog=_EPILOG)


def doctor(parsed: argparse.Namespace) -> int:
    """Show what is installed, and check that the kernels work.

    Print versions, kernels and optional packages. Then run a small search with every instruction
    set that the compiled kernels support on this machine: all must give identical results.
    """
    del parsed  # there are no options
    print_out(config_text())
    for extra, package in _EXTRAS.items():
        absent = f"- (pip install 'fmnes[{extra}]')"
        print_out(f"{package:24}{_version(package) or absent}")
    print_out("")
    if kernels.in_use == "agnostic":
        return 0 if _search("array-agnostic kernels").success else 1
    chosen = _native.level()
    results = []
    for level in _native.levels_here():
        _native.set_level(level)
        results.append(_search(f"compiled kernels, {level}"))
    _native.set_level(chosen)
    same = all(np.array_equal(result.x, results[0].x) for result in results)
    print_out(
        "every instruction level gives identical results" if same else "FAILED: the levels differ"
    )
    return 0 if same and all(result.success for result in results) else 1


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _search(name: str) -> fmnes.Result:
    """Minimize an ellipsoid of 40 variables and print the outcome."""
    result = fmnes.minimize(
        lambda X: (X**2) @ np.logspace(0, 2, 40),
        np.full(40, 3.0),
        2.0,
        vectorized=True,
        rng=1,
        ftarget=1e-10,
        maxfevals=40_000,
    )
    verdict = "ok" if result.success else "FAILED"
    print_out(f"{name}: {verdict}, {result.fun:.1e} after {result.nfev} evaluations")
    return result
