"""The rows that benchmarks keep: one JSON object per line, in files that only grow."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fmnes._files import replacing
from fmnes.benchmarking import lines
from fmnes.storage.lock import Lock

Row = dict[str, Any]


def read(path: Path, fields: Iterable[str] = ()) -> list[Row]:
    """Return the rows of a file, which have these fields; none if there is no such file.

    An incomplete last line, of a process that was killed, is not a row. Any other line that is
    not a row is an error.
    """
    numbered = enumerate(lines.read_lines(path), 1)
    return [_row(line, frozenset(fields), f"{path}, line {number}") for number, line in numbered]


def _row(line: str, fields: frozenset[str], where: str) -> Row:
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        row = None
    if isinstance(row, dict) and fields <= row.keys():
        return row
    expected = f"a JSON object with {', '.join(sorted(fields))}" if fields else "a JSON object"
    raise ValueError(
        f"{where}: expected {expected}, got {line[:60]!r}; "
        "remove this line, and run again what is missing"
    )


@contextmanager
def appending(path: Path) -> Iterator[Callable[[Row], None]]:
    """Lock a file, and give a function that appends a row to it."""
    with lines.appending(path, "results") as append:
        yield lambda row: append([json.dumps(row)])


def fill(
    path: Path, fields: Sequence[str], tasks: Iterable[tuple[Any, ...]], run: Callable[..., Row]
) -> None:
    """Append `run(*task)` for each task that has no row yet; ``fields`` of a row name its task."""
    with appending(path) as append:
        done = {tuple(row[name] for name in fields) for row in read(path, fields)}
        for task in tasks:
            if task not in done:
                append(run(*task))


def keep(path: Path, wanted: Callable[[Row], bool]) -> None:
    """Keep only the rows of a file that are wanted."""
    with Lock(f"{path}.lock", "results"):
        rows = read(path)
        kept = [row for row in rows if wanted(row)]
        if len(kept) < len(rows):
            with replacing(path) as part:
                text = "".join(f"{json.dumps(row)}\n" for row in kept)
                Path(part).write_text(text, encoding="utf-8")
