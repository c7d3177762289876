"""``fmnes plot`` and ``fmnes watch``: a run as a picture, and as a page that follows it."""

import argparse
import webbrowser
from pathlib import Path
from typing import Any

import fmnes
from fmnes.cli._config import Config
from fmnes.cli._errors import UsageError, arguments_as_flags
from fmnes.cli._folder import Folder

_PLOT_EPILOG = """\
examples:
  fmnes plot fit                        draws fit/plot.png
  fmnes plot fit --out fit.pdf          any format that Matplotlib knows
"""
_WATCH_EPILOG = """\
examples:
  fmnes watch fit --open
  ssh -L 8000:127.0.0.1:8000 machine fmnes watch fit --port 8000     then http://127.0.0.1:8000/

Only this machine can reach the page, and it loads nothing from anywhere else. Start it before,
during or after the run; Ctrl-C ends it.
"""


def add_commands(commands: Any) -> None:
    """Add `plot` and `watch` to the commands of the command line."""
    command = commands.add_parser(
        "plot",
        help="draw a run",
        description="Draw the run in DIR, as of its last checkpoint if it goes on.",
        epilog=_PLOT_EPILOG,
    )
    command.set_defaults(run=plot, name="plot")
    command.add_argument("dir", metavar="DIR")
    command.add_argument("--out", type=Path, metavar="FILE", help="default: plot.png in DIR")

    command = commands.add_parser(
        "watch",
        help="a live page of a run",
        description="Serve a page that shows the run in DIR as it goes on, on 127.0.0.1 only.",
        epilog=_WATCH_EPILOG,
    )
    command.set_defaults(run=watch, name="watch")
    command.add_argument("dir", metavar="DIR")
    command.add_argument(
        "--port", type=int, default=0, metavar="N", help="default: one that is free"
    )
    command.add_argument("--open", action="store_true", help="open the page in the browser")


def plot(options: argparse.Namespace) -> int:
    """Draw what the checkpoint holds."""
    folder = Folder(Path(options.dir))
    config = Config.read(folder.config)
    with arguments_as_flags():
        search = folder.search(config)
    if len(search.history) == 0:
        raise UsageError(f"DIR: expected at least one generation, got none in {options.dir}")
    figure = fmnes.plot(search)
    try:
        figure.savefig(options.out or folder.plot, dpi=150)
    except (OSError, ValueError) as error:  # no such folder, or no such format
        expected = "--out: expected a file for a picture"
        raise UsageError(f"{expected}, got {options.out} ({error})") from None
    print(options.out or folder.plot)
    return 0


def watch(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    from fmnes.cli._watch import Server  # here: HTTP takes a while to import

    if not Path(options.dir).is_dir():
        raise UsageError(f"DIR: expected the folder of a run, got {options.dir}")
    try:
        server = Server(Folder(Path(options.dir)), options.port)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--port: expected a free port, got {options.port} ({error})") from None
    with server:
        print(f"{server.url} shows {options.dir}; Ctrl-C ends it", flush=True)
        if options.open:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:  # the way to end it
            print()
    return 0
