"""``fmnes plot`` and ``fmnes watch``: a run as a figure, and as a page that follows it."""

import argparse
import dataclasses
import webbrowser
from pathlib import Path
from typing import Any

import fmnes
from fmnes.cli._command import add_command
from fmnes.cli._errors import CommandError, UsageError, arguments_as_flags
from fmnes.cli._folder import Folder
from fmnes.cli._recorder import read_history
from fmnes.cli._watch import Server

_PLOT_EPILOG = """\
examples:
  fmnes plot fit                        writes fit/plot.png
  fmnes plot fit --out fit.pdf          in any format that Matplotlib supports
"""
_WATCH_EPILOG = """\
examples:
  fmnes watch fit --open
  ssh -L 8000:127.0.0.1:8000 machine fmnes watch fit --port 8000     then http://127.0.0.1:8000/

Only this machine can reach the page, and the page loads nothing from other machines.
"""


def add_commands(commands: Any) -> None:
    """Add `plot` and `watch` to the commands of the command line."""
    command = add_command(commands, plot, epilog=_PLOT_EPILOG)
    command.add_argument("dir", metavar="DIR", help="folder of the run")
    command.add_argument("--out", type=Path, metavar="FILE", help="default: plot.png in DIR")

    command = add_command(commands, watch, epilog=_WATCH_EPILOG)
    command.add_argument("dir", metavar="DIR", help="folder of the run")
    command.add_argument("--port", type=int, default=0, metavar="N", help="default: any free port")
    command.add_argument("--open", action="store_true", help="open the page in the browser")


def plot(parsed: argparse.Namespace) -> int:
    """Plot a run, also while it is running."""
    folder = Folder(Path(parsed.dir))
    options = folder.read_options()
    with arguments_as_flags():
        try:
            result = folder.last_result(options)
        except FileNotFoundError:  # in the first moments there is no checkpoint
            if folder.history.exists():
                raise
            raise _nothing_to_plot(folder) from None
    rows = read_history(folder.history)  # newer than the last checkpoint while the run goes on
    if len(rows) > len(result.history):
        result = dataclasses.replace(result, history=rows)
    if len(result.history) == 0:
        raise _nothing_to_plot(folder)
    path = parsed.out or folder.plot
    try:
        figure = fmnes.plot(result)
    except ImportError as error:  # without Matplotlib
        raise CommandError(str(error)) from error
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:  # the folder or the format does not exist
        raise UsageError(f"--out: expected a file for a figure, got {path} ({error})") from None
    print(path)
    return 0


def _nothing_to_plot(folder: Folder) -> UsageError:
    """Return the error for a run whose first generation has not been completed."""
    running = "the first one is still being evaluated"
    why = running if folder.is_running() else f"fmnes resume {folder.shown} continues the run"
    return UsageError(
        f"DIR: expected at least one complete generation, got none in {folder.shown} ({why})"
    )


def watch(parsed: argparse.Namespace) -> int:
    """Follow a run in the browser.

    Serve a page on 127.0.0.1 that shows the run in DIR while it is running. You may start
    `fmnes watch` before, during or after the run. Ctrl-C ends it.
    """
    path = Path(parsed.dir)
    if path.exists() and not path.is_dir():
        raise UsageError(f"DIR: expected the folder of a run, got a file, {parsed.dir}")
    try:
        server = Server(Folder(path), parsed.port)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--port: expected a free port, got {parsed.port} ({error})") from None
    with server:
        later = "" if path.exists() else " once there is a run in it"
        try:
            print(f"{server.url} shows {parsed.dir}{later}; Ctrl-C ends it", flush=True)
            if parsed.open:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:  # the usual end
            print()
    return 0
