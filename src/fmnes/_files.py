"""Files that are written completely or not at all."""

import contextlib
import os
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], temporary: str | None = None) -> Iterator[str]:
    """Give the path of a temporary file, which takes the place of ``path`` at the end.

    If an exception ends the context, ``path`` stays as it was.
    """
    temporary = temporary or f"{os.fspath(path)}.{os.getpid()}-{threading.get_ident()}.tmp"
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
