"""The command line: ``fmnes COMMAND``, also ``python -m fmnes COMMAND``.

A command is a function that takes the parsed options and returns the exit status; `main` lists
them all. What a user gets wrong is one line on standard error and exit status 2.
"""

import argparse
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import fmnes
from fmnes.cli import _doctor, _methods, _run, _show
from fmnes.cli._errors import UsageError
from fmnes.experiments import commands as paper
from fmnes.integrations import coco

_EPILOG = """\
examples:
  fmnes run mymodel:loss --x0 0 --dim 100 --sigma0 0.5 --maxfevals 20000
  fmnes run --command "./simulate {file}" --x0 @start.txt --sigma0 0.1 --workers 4
  fmnes watch DIR          the run in DIR on a page of your browser, live
  fmnes resume DIR         go on after Ctrl-C, a crash or a kill
  fmnes COMMAND --help     more about each, with examples
"""
_INTERRUPTED = 128 + 2  # what shells give to a program that Ctrl-C has ended


class _Parser(argparse.ArgumentParser):
    """Arguments may be any negative numbers, and an error is one line."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)
        # As in Python 3.14. Before, "-1e-3" and "-5,5" were taken for options.
        self._negative_number_matcher = re.compile(r"-\.?\d|-inf")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message.removeprefix('argument ')}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command named by the arguments; those of the process where none are given."""
    parser = _Parser(prog="fmnes", description=fmnes.__doc__, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"fmnes {fmnes.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (_run, _show, _methods, _doctor):
        module.add_commands(commands)
    paper.add_command(commands)
    coco.add_command(commands)

    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return 2
    options = parser.parse_args(arguments)
    name = f"fmnes {options.name}" if "name" in options else "fmnes"
    try:
        status: int = options.run(options)
    except UsageError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except Exception as error:  # whatever an objective raises: its last line, not our frames
        if "hint" not in options or options.debug:
            raise
        print(f"{name}: {_last_line(error)} ({options.hint})", file=sys.stderr)
        return 1
    return status


def _last_line(error: Exception) -> str:
    """Type and message of an exception, on one line."""
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return re.sub(r"^(fmnes|builtins)\.[\w.]*\.", "", lines[0])
