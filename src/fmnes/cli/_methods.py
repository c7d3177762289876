"""``fmnes methods``: a table of the methods."""

import argparse
import dataclasses
from typing import Any

from fmnes.algorithms import METHODS
from fmnes.cli._command import add_command
from fmnes.cli._output import print_out

_EPILOG = """\
examples:
  fmnes run mymodel:loss --x0 0 --dim 40 --sigma0 0.5 --method cma-es
  fmnes run mymodel:loss --x0 0 --dim 40 --sigma0 0.5 --set variant=paper

The cost is the time and memory for one candidate with d variables. Methods with O(d) are made for
ten to millions of variables, methods with O(d^2) for up to a few hundred.
"""


def add_commands(commands: Any) -> None:
    """Add `methods` to the commands of the command line."""
    add_command(commands, methods, epilog=_EPILOG)


def methods(parsed: argparse.Namespace) -> int:
    """List the methods with their covariance, cost and settings.

    The settings are shown with their defaults; `fmnes run --set NAME=VALUE` changes them.
    """
    del parsed  # there are no options
    print_out(f"{'method':11}{'covariance':25}{'cost':8}settings")
    for name, module in METHODS.items():
        cost = "O(d)" if module.LINEAR else "O(d^2)"
        texts = [
            field.name if field.default is None else f"{field.name}={field.default}"
            for field in dataclasses.fields(module.Settings)
        ]
        print_out(f"{name:11}{module.COVARIANCE:25}{cost:8}{' '.join(texts) or '-'}")
    return 0
