"""What the commands `fmnes paper` and `fmnes coco` share."""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from fmnes.cli._errors import UsageError
from fmnes.kernels import available_cpus

Action = Callable[[argparse.Namespace], int]


def add_action(actions: Any, command: str, action: Action, about: str) -> argparse.ArgumentParser:
    """Add an action, named like its function, to a command."""
    parser: argparse.ArgumentParser = actions.add_parser(action.__name__.strip("_"), help=about)
    parser.set_defaults(name=command, run=partial(_in_one_line, action))
    return parser


def _in_one_line(action: Action, options: argparse.Namespace) -> int:
    """Run an action; wrong arguments, files, solvers and missing packages give one line."""
    sys.path.insert(0, os.getcwd())  # a user's solver may be in the current directory
    try:
        return action(options)
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print("\nrun the same command again to continue", file=sys.stderr)
        raise


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add ``--workers``."""
    about = "worker processes (default: one for each core, %(default)s)"
    parser.add_argument("--workers", type=int, default=available_cpus(), metavar="N", help=about)
