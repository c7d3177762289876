"""``fmnes methods``: THE TABLE, as a table."""

import argparse
import dataclasses
import re
from typing import Any

from fmnes.algorithms import METHODS, Algorithm

_EPILOG = """\
examples:
  fmnes run mymodel:loss --x0 0 --dim 40 --sigma0 0.5 --method cma-es
  fmnes run mymodel:loss --x0 0 --dim 40 --sigma0 0.5 --set variant=paper

O(d) methods take from ten to millions of variables, O(d^2) ones up to some hundred.
"""


def add_commands(commands: Any) -> None:
    """Add `methods` to the commands of the command line."""
    command = commands.add_parser(
        "methods",
        help="the methods there are: covariance, cost and settings",
        description="The methods, their covariance matrices, the time and memory that a candidate "
        "costs,\nand their settings (for --set) with the defaults.",
        epilog=_EPILOG,
    )
    command.set_defaults(run=methods, name="methods")


def methods(options: argparse.Namespace) -> int:
    """Print a row for each method."""
    del options  # it has none
    print(f"{'method':11}{'covariance':25}{'cost':8}settings")
    for name, module in METHODS.items():
        cost = "O(d)" if module.LINEAR else "O(d^2)"
        settings = dataclasses.fields(module.Settings)
        texts = [
            field.name if field.default is None else f"{field.name}={field.default}"
            for field in settings
        ]
        print(f"{name:11}{covariance(module):25}{cost:8}{' '.join(texts) or '-'}")
    return 0


def covariance(module: Algorithm) -> str:
    """The formula with which the sentence "Covariance ..." of a method's text begins."""
    match = re.search(r"^Covariance (.+?)(?=:|,| with)", module.__doc__ or "", re.MULTILINE)
    return match[1] if match else "-"
