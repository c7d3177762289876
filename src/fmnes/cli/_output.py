"""What the process of a run prints and logs; full disks do not end a search."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from fmnes.cli._errors import CommandError


def print_out(text: str) -> None:
    """Print to standard output; if it cannot be written to, to standard error, and fail."""
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        discard_unwritten(sys.stdout)
    except OSError as error:
        discard_unwritten(sys.stdout)
        print_err(text)
        raise CommandError(f"standard output was not written ({error.strerror})") from None


def print_err(text: str) -> None:
    """Print to standard error, if it can be written to; what is no Unicode is escaped."""
    with contextlib.suppress(OSError):
        print(text.encode("utf-8", "backslashreplace").decode(), file=sys.stderr, flush=True)


def discard_unwritten(stream: TextIO) -> None:
    """Discard what a stream could not write: Python would try again at its end, and complain."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _LogFile(logging.FileHandler):
    """A log whose disk may be full: warnings reach the terminal all the same."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


@contextlib.contextmanager
def logged(path: Path) -> Iterator[None]:
    """Write messages to the log of the run, and warnings to the terminal, each kind once."""
    logger = logging.getLogger("fmnes")
    file = _LogFile(path, encoding="utf-8", errors="backslashreplace")
    terminal = logging.StreamHandler()
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    terminal.setFormatter(logging.Formatter(f"fmnes: %(message)s (further ones: {path.name})"))
    terminal.setLevel(logging.WARNING)
    shown: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:  # a worker may be killed a thousand times
        known = record.msg in shown
        shown.add(record.msg)
        return not known

    terminal.addFilter(is_new)
    before = logger.level
    logger.setLevel(logging.INFO)
    for handler in (file, terminal):
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(before)
        for handler in (file, terminal):
            logger.removeHandler(handler)
            handler.close()
