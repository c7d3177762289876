"""A text file of lines that a later run continues: what `fmnes paper` and `fmnes coco` have done.

A line is written and synced when its task has ended, so that no task is lost or run twice.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fmnes.storage.append_only import AppendOnlyFile
from fmnes.storage.lock import Lock

PathLike = str | os.PathLike[str]


def read_lines(path: PathLike, header: str = "") -> list[str]:
    """Return the complete lines after the header; none if there is no such file."""
    lines = _complete(path, header)[len(header.encode()) :]
    return lines.decode(errors="backslashreplace").splitlines()


@contextmanager
def appending(
    path: PathLike, argument: str, header: str = ""
) -> Iterator[Callable[[list[str]], None]]:
    """Lock a file and give a function that appends lines to it; ``argument`` named the file."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with (
        Lock(f"{path}.lock", argument),
        closing(AppendOnlyFile(path, header.encode(), end=len(_complete(path, header)))) as file,
    ):

        def append(lines: list[str]) -> None:
            file.append("".join(f"{line}\n" for line in lines).encode())
            file.sync()

        yield append


def _complete(path: PathLike, header: str) -> bytes:
    """Return the content up to its last line end, after a look at the header."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return b""
    head = header.encode()
    if not (data.startswith(head) or head.startswith(data)):  # the header may be cut short too
        raise ValueError(
            f"{path}: expected a file that begins with {header.strip()}, got {data[:80]!r}"
        )
    return data[: data.rfind(b"\n") + 1]
