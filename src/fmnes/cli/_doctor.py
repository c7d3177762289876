"""``fmnes doctor``: what is installed, which kernels are in use, and whether they work."""

import argparse
from importlib import metadata
from typing import Any

import numpy as np

import fmnes
from fmnes import kernels

_EPILOG = """\
Exit status 0 if every check passed, else 1. FMNES_KERNELS=agnostic or FMNES_KERNELS=native in the
environment chooses the kernels; without it the compiled ones are taken where they can be loaded.
"""
# The package that tells whether an extra is installed.
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
    command = commands.add_parser(
        "doctor",
        help="say which kernels are in use and why, and check that they work",
        description="Versions, kernels and optional packages; then a small search with each of the "
        "kernels'\ninstruction levels, which have to give the same bits.",
        epilog=_EPILOG,
    )
    command.set_defaults(run=doctor, name="doctor")


def doctor(options: argparse.Namespace) -> int:
    """What `fmnes.show_config` prints, then a small search at every level of this machine."""
    del options  # it has none
    fmnes.show_config()
    for extra, package in _EXTRAS.items():
        absent = f"- (pip install 'fmnes[{extra}]')"
        print(f"{package:24}{_version(package) or absent}")
    print()
    if kernels.in_use == "agnostic":
        return 0 if _search("array-agnostic kernels").success else 1

    from fmnes.kernels import _native

    chosen = _native.level()
    results = []
    for level in _native.levels_here():
        _native.set_level(level)
        results.append(_search(f"compiled kernels, {level}"))
    _native.set_level(chosen)
    same = all(np.array_equal(result.x, results[0].x) for result in results)
    print("every level gives the same bits" if same else "FAILED: the levels differ")
    return 0 if same and all(result.success for result in results) else 1


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _search(name: str) -> fmnes.Result:
    """Minimise an ellipsoid of 40 variables and say how it went."""
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
    print(f"{name}: {verdict}, {result.fun:.1e} after {result.nfev} evaluations")
    return result
