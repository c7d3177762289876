"""Errors that end a command with one line on standard error."""

import contextlib
import re
import traceback
from collections.abc import Iterator

from fmnes._checks import Hint


class CommandError(Exception):
    """The command failed: its message is printed, and ``status`` is the exit status."""

    status = 1


class UsageError(CommandError):
    """An argument is wrong: the message names it, what was expected, and what came."""

    status = 2


# What `minimize` and its parts raise about their arguments, before any evaluation.
_ABOUT_ARGUMENTS = (ImportError, OSError, OverflowError, TypeError, ValueError)


@contextlib.contextmanager
def arguments_as_flags() -> Iterator[None]:
    """Turn errors about arguments into UsageErrors, with ``x0:`` written as ``--x0:``."""
    try:
        yield
    except _ABOUT_ARGUMENTS as error:
        text = re.sub(r"^([a-z]\w*)((\[\d+\])?:)", _flag, str(error))
        raise UsageError(text) from error


def _flag(match: re.Match[str]) -> str:
    return f"--{match[1].replace('_', '-')}{match[2]}"


@contextlib.contextmanager
def in_one_line(*, debug: bool, run: str | None = None) -> Iterator[None]:
    """Turn what the user's code raises into a CommandError; with ``debug``, let it pass.

    ``run`` is the folder of the run. If the search has begun, the error has its Result so far.
    """
    try:
        yield
    except CommandError:
        raise
    except Exception as error:
        if debug:
            raise
        hints: list[str] = [
            note for note in getattr(error, "__notes__", ()) if isinstance(note, Hint)
        ]
        hints.append("--debug shows where")
        if run is not None and getattr(error, "result", None) is not None:
            hints.append(f"fmnes resume {run} continues")
        raise CommandError(f"{_summary(error)} ({'; '.join(hints)})") from error


def _summary(error: Exception) -> str:
    """Return the type of an exception with the first line of its message."""
    if isinstance(error, SyntaxError):  # Python begins it with the file and the line of code
        return f"{type(error).__name__}: {error}"
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return re.sub(r"^(fmnes|builtins)\.[\w.]*\.", "", lines[0])
