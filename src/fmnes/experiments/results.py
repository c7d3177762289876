"""The rows: an append-only file of comma-separated values, one line a trial.

A line is written when its trial has ended, all at once, and synced. What a kill can leave behind is
part of a last line, which the next run takes away. So nothing is lost, and nothing runs twice.
"""

import csv
import io
import os
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from fmnes.experiments.protocol import Trial
from fmnes.problems import PROBLEMS
from fmnes.storage.lock import Lock


class Row(NamedTuple):
    """A trial and what came of it."""

    trial: Trial
    seed: int
    evaluations: int
    success: bool
    value: float  # the best
    seconds: float
    versions: str  # of Python and the packages that had a part in it; of times also the processor

    def to_line(self) -> list[str]:
        """Its fields, as text that gives the same numbers back."""
        seconds = f"{self.seconds:.6g}"
        return [
            *map(str, self.trial),
            *map(str, (self.seed, self.evaluations, int(self.success), self.value, seconds)),
            self.versions,
        ]

    @classmethod
    def from_line(cls, line: list[str]) -> "Row":
        """The inverse of `to_line`."""
        experiment, function, dim, popsize, method, variant, trial, *outcome = line
        seed, evaluations, success, value, seconds, versions = outcome
        _expect("experiment", experiment, ("evaluations", "time"))
        _expect("function", function, PROBLEMS)
        _expect("success", success, ("0", "1"))
        return cls(
            Trial(experiment, function, int(dim), int(popsize), method, variant, int(trial)),
            int(seed),
            int(evaluations),
            success == "1",
            float(value),
            float(seconds),
            versions,
        )


def _expect(field: str, text: str, known: Collection[str]) -> None:
    if text not in known:
        raise ValueError(f"{field}: expected one of {', '.join(known)}")


HEADER = [*Trial._fields, *Row._fields[1:]]


def read(path: str | os.PathLike[str]) -> dict[Trial, Row]:
    """All rows of a file; a line that a kill cut short is not one of them."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected text in UTF-8, got {error}") from error
    whole = text[: text.rfind("\n") + 1]
    header, *lines = list(csv.reader(io.StringIO(whole))) or [HEADER]
    if header != HEADER:
        raise _another_kind(path, ",".join(header))
    rows = {}
    for number, line in enumerate(lines, start=2):
        try:
            row = Row.from_line(line)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: expected a trial, got {line} ({error})"
            ) from error
        if row.trial in rows:
            raise ValueError(f"{path}, line {number}: expected each trial once, got {row.trial}")
        rows[row.trial] = row
    return rows


def read_some(path: str | os.PathLike[str]) -> dict[Trial, Row]:
    """The same where there has to be one at least."""
    rows = read(path)
    if not rows:
        got = "none" if Path(path).exists() else "no such file (fmnes paper run makes one)"
        raise ValueError(f"{path}: expected at least one trial, got {got}")
    return rows


def _another_kind(path: str | os.PathLike[str], got: str) -> ValueError:
    return ValueError(
        f"{path}: expected a file that begins with {','.join(HEADER)}, got {got[:80]!r}"
    )


class Appender:
    """Adds rows to a file, which it locks for as long as it is open."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(Lock(f"{path}.lock", "results"))
            self._file = stack.enter_context(open(path, "a+b"))
            self._open = stack.pop_all()
        self._file.seek(0)
        written = self._file.read()
        head = f"{','.join(HEADER)}\n".encode()
        if not (written.startswith(head) or head.startswith(written)):
            self._open.close()
            raise _another_kind(path, written[:80].decode(errors="replace"))
        end = written.rfind(b"\n") + 1
        self._file.truncate(end)
        if end == 0:
            self._write(HEADER)

    def add(self, rows: Iterable[Row]) -> None:
        """Write these rows; afterwards nothing but the disk itself can lose them."""
        for row in rows:
            self._write(row.to_line())
        self._file.flush()
        os.fsync(self._file.fileno())

    def _write(self, fields: list[str]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(fields)
        self._file.write(text.getvalue().encode())

    def __enter__(self) -> "Appender":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._open.close()
