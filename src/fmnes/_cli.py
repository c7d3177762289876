"""The command line: ``fmnes COMMAND``, also ``python -m fmnes COMMAND``.

A command is a function that takes the parsed options and returns the exit status; `main` lists
them all.
"""

import argparse
from collections.abc import Sequence

import numpy as np

import fmnes
from fmnes import kernels
from fmnes.experiments import commands as paper
from fmnes.integrations import coco


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command named by the arguments; those of the process where none are given."""
    parser = argparse.ArgumentParser(prog="fmnes", description=fmnes.__doc__)
    parser.add_argument("--version", action="version", version=f"fmnes {fmnes.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = commands.add_parser(
        "doctor", help="say which kernels are in use and why, and check that they work"
    )
    command.set_defaults(run=doctor)

    paper.add_command(commands)
    coco.add_command(commands)

    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status


def doctor(options: argparse.Namespace) -> int:
    """What `fmnes.show_config` prints, then a small search at every level of this machine."""
    del options  # it has none
    fmnes.show_config()
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
