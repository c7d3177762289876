"""How a command is added to the command line."""

import argparse
import inspect
from collections.abc import Callable
from typing import Any


def add_command(commands: Any, run: Callable[[argparse.Namespace], int], **options: Any) -> Any:
    """Add a command with the name of the function ``run``, and return its parser.

    The function's docstring is what ``--help`` shows; its first line is the entry in the list of
    commands. ``options`` are further arguments of `argparse.ArgumentParser`.
    """
    text = inspect.cleandoc(run.__doc__ or "")
    first = text.partition("\n")[0].rstrip(".")
    about = first[:1].lower() + first[1:]
    command = commands.add_parser(run.__name__, help=about, description=text, **options)
    command.set_defaults(run=run)
    return command
