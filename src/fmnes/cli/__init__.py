"""The command line: ``fmnes COMMAND``, also ``python -m fmnes COMMAND``.

A command is a function that takes the parsed arguments and returns the exit status. Its docstring
is its help. Wrong arguments give one line on standard error and exit status 2.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import fmnes
from fmnes import _checks as checks
from fmnes import _early_interrupt
from fmnes.cli import _doctor, _methods, _run, _show
from fmnes.cli._errors import CommandError
from fmnes.cli._output import discard_unwritten, print_err

_EPILOG = """\
examples:
  fmnes run mymodel:loss --x0 0 --dim 100 --sigma0 0.5 --maxfevals 20000
  fmnes run --command "./simulate {file}" --x0 @start.txt --sigma0 0.1 --workers 4
  fmnes watch DIR          follow the run in DIR in your browser
  fmnes resume DIR         continue the run in DIR after Ctrl-C, a crash or a kill
  fmnes COMMAND --help     describe a command, with examples
"""
_BENCHMARKS = {  # commands whose modules are imported only when they are used
    "paper": ("fmnes.experiments.commands", "run the experiments of the CR-FM-NES paper again"),
    "coco": ("fmnes.integrations.coco", "benchmark methods on the suites of COCO"),
}


class _Parser(argparse.ArgumentParser):
    """A parser that accepts any negative number as a value and prints errors on one line."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)
        # As in Python 3.14. Older versions take "-1e-3" and "-5,5" for options.
        self._negative_number_matcher = re.compile(r"-\.?\d|-inf")

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        message = re.sub("invalid (number|float|int) value: ", "expected a number, got ", message)
        if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            message += checks.did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
        self.exit(2, f"{self.prog}: {message}\n")

    def flag_hint(self, word: str) -> str:
        """Return a question about the flag that an unknown word may mean."""
        name = word.strip("-").partition("=")[0]
        return checks.did_you_mean(name, self._option_string_actions)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name and return its exit status.

    Without ``arguments``, those of the process are used.
    """
    parser = _Parser(prog="fmnes", description=fmnes.__doc__, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"fmnes {fmnes.__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="name", required=True
    )
    for module in (_run, _show, _methods, _doctor):
        module.add_commands(commands)
    words = sys.argv[1:] if arguments is None else arguments
    for command, (path, about) in _BENCHMARKS.items():
        subparser = commands.add_parser(command, help=about)
        if command in words[:1]:
            importlib.import_module(path).add_arguments(subparser)

    if not words:
        parser.print_help(sys.stderr)
        return 2
    parsed, others = parser.parse_known_args(arguments)
    if others:
        command_parser = commands.choices[parsed.name]
        hint = command_parser.flag_hint(others[0])
        if not hint and getattr(parsed, "command", None):
            hint = " (a command of several words needs quotes: --command 'PROGRAM WORDS')"
        command_parser.error(f"unrecognized arguments: {' '.join(others)}{hint}")
    try:
        _early_interrupt.give_back()
        status: int = parsed.run(parsed)
    except CommandError as error:
        print_err(f"fmnes {parsed.name}: {error}")
        return error.status
    except KeyboardInterrupt:
        print_err(f"fmnes {parsed.name}: interrupted")
        return _early_interrupt.EXIT_STATUS
    finally:
        discard_unwritten(sys.stderr)
    return status
