"""Ctrl-C while the command line is still importing its modules: one line instead of a traceback.

`fmnes/__init__.py` imports this module first, because it runs before anything in `fmnes.cli` does.
In other programs nothing changes.
"""

import os
import signal
import sys
from types import FrameType
from typing import Never

EXIT_STATUS = 128 + 2  # what shells report for a program that Ctrl-C ended


def is_command_line() -> bool:
    """Return whether this process was started as ``fmnes`` or ``python -m fmnes``.

    Workers inherit `sys.argv` from the process that starts them, but not `sys.orig_argv`.
    """
    words = sys.orig_argv
    name = os.path.splitext(os.path.basename(words[1]))[0] if len(words) > 1 else ""
    return name == "fmnes" or words[1:3] == ["-m", "fmnes"]


def _end(number: int, frame: FrameType | None) -> Never:
    # Not an exception: modules that are being imported might handle it. Nothing has been done yet.
    os.write(2, b"fmnes: interrupted\n")
    os._exit(EXIT_STATUS)


def give_back() -> None:
    """From here on, Ctrl-C raises KeyboardInterrupt as usual."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if is_command_line() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
