"""What a user got wrong, in words of the command line."""

import contextlib
import re
from collections.abc import Iterator


class UsageError(Exception):
    """A line for the user: the argument, what was expected, and what came."""


# What `minimize` and its parts raise about their arguments, before any evaluation.
_ABOUT_ARGUMENTS = (ImportError, OSError, OverflowError, TypeError, ValueError)


@contextlib.contextmanager
def arguments_as_flags() -> Iterator[None]:
    """Errors about arguments become UsageErrors, with ``x0:`` written ``--x0:``."""
    try:
        yield
    except _ABOUT_ARGUMENTS as error:
        text = re.sub(r"^([a-z]\w*)((\[\d+\])?:)", _flag, str(error))
        raise UsageError(text) from error


def _flag(match: re.Match[str]) -> str:
    return f"--{match[1].replace('_', '-')}{match[2]}"
