"""The values between two checkpoints, on disk as soon as they are there.

A journal is a file of records. Each ends with a CRC-32 that goes on from the one before, so that
a record counts only if all before it are whole and in their places. The first names the search
and where the journal begins; then each generation is opened, and its values follow in any order.
"""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.evaluate import Outcome

_MAGIC = b"fmnes journal 1\n"
_LENGTH = struct.Struct("<I")  # before a record: its bytes
_CRC = struct.Struct("<I")  # after it
_BEGIN, _OPEN, _VALUES, _ERROR = range(4)  # the first byte says what a record is
_BEGINNING = struct.Struct("<B16sIQ")  # search, run, generation
_OPENING = struct.Struct("<BIQIdd")  # a Place
_CANDIDATE = struct.Struct("<BI")  # the first candidate; values follow, or the text of an error
_VALUE = struct.Struct("<BId")  # the same with one value

Address = tuple[int, int]  # run and generation


class Place(NamedTuple):
    """Where a search stands: a generation of a run, and what tells one course from another.

    The last two are of the distribution that the candidates come from. Values of other candidates,
    by the arithmetic of another machine or version, must not be told in place of these.
    """

    run: int
    generation: int
    popsize: int
    sigma: float
    mean_max: float  # largest |coordinate| of the mean

    def to_bytes(self) -> bytes:
        """The record that opens the generation; two places are the same if these bytes are."""
        return _OPENING.pack(_OPEN, *self)


class Entry:
    """What is known of one generation."""

    def __init__(self, opening: bytes) -> None:
        _, run, generation, self.popsize, _, _ = _OPENING.unpack(opening)
        self.opening = opening
        self.address: Address = (run, generation)
        self.known: dict[int, float] = {}  # by candidate, where they arrived one by one
        self.errors: dict[int, str] = {}
        self.values = np.empty(0)  # of all candidates, once the generation is complete
        self.complete = False

    def note(self, candidate: int, value: float, error: str | None) -> None:
        """Enter the value of a candidate, and why it failed."""
        self.known[candidate] = value
        if error is not None:
            self.errors[candidate] = error
        if len(self.known) == self.popsize:
            self.note_rest(np.empty(self.popsize))

    def note_rest(self, values: NDArray[np.float64]) -> None:
        """Enter the values of those candidates that have none; ``values`` becomes ours."""
        if self.known:
            values[list(self.known)] = list(self.known.values())
        self.values, self.complete = values, True
        self.known = {}

    def outcome(self) -> Outcome:
        """The same as an evaluation gives it."""
        errors = self.errors
        return Outcome(self.values, len(errors), errors[min(errors)] if errors else None)

    def records(self) -> Iterator[bytes]:
        """What is known, to be read again."""
        yield self.opening
        yield from (error_record(i, self.errors[i]) for i in self.errors)
        if self.complete:
            yield values_record(self.values)
        else:
            yield from (value_record(i, value) for i, value in self.known.items())


def value_record(candidate: int, value: float) -> bytes:
    """The value of one candidate."""
    return _VALUE.pack(_VALUES, candidate, value)


def values_record(values: NDArray[np.float64]) -> bytes:
    """The values of a generation."""
    return _CANDIDATE.pack(_VALUES, 0) + values.astype("<f8", copy=False).tobytes()


def error_record(candidate: int, error: str) -> bytes:
    """Why a candidate failed; comes before its value."""
    return _CANDIDATE.pack(_ERROR, candidate) + error.encode("utf-8", "backslashreplace")


# === Writing ===


class Journal:
    """A new file, and what is appended to it."""

    def __init__(
        self, path: str, search: bytes, start: Address, entries: Iterable[Entry] = ()
    ) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o666)
        self._crc = 0
        self.size = 0
        try:
            self._write(_MAGIC)
            self.append(_BEGINNING.pack(_BEGIN, search, *start))
            for entry in entries:
                self.append(*entry.records())
        except BaseException:
            self.close()
            raise

    def append(self, *records: bytes) -> None:
        """Write records; once this returns, the end of the process cannot take them back."""
        data = b""
        for record in records:
            record = _LENGTH.pack(len(record)) + record
            self._crc = zlib.crc32(record, self._crc)
            data += record + _CRC.pack(self._crc)
        self._write(data)

    def _write(self, data: bytes) -> None:
        self.size += len(data)
        while data:  # a disk that is nearly full takes a part, and refuses the next
            data = data[os.write(self._file, data) :]

    def sync(self) -> None:
        """Have the disk keep it, so that the end of the machine cannot take it back."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


# === Reading ===


class Segment(NamedTuple):
    """What a file holds, up to the first record that is torn or damaged."""

    start: Address
    entries: list[Entry]
    whole: bool


def read(path: str, search: bytes) -> Segment | None:
    """The journal at ``path``; None where there is none of this search."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    records = _records(data)
    first, end = next(records, (b"", 0))
    if len(first) != _BEGINNING.size or first[0] != _BEGIN:
        return Segment((0, 0), [], whole=False)
    _, owner, run, generation = _BEGINNING.unpack(first)
    if owner != search:
        return None
    entries: list[Entry] = []
    for record, record_end in records:
        if not _take(record, entries):
            break
        end = record_end
    return Segment((run, generation), entries, whole=end == len(data))


def _records(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Records and where each ends, as long as their CRCs are right."""
    if not data.startswith(_MAGIC):
        return
    crc, position = 0, len(_MAGIC)
    while position + _LENGTH.size <= len(data):
        body = position + _LENGTH.size
        end = body + _LENGTH.unpack_from(data, position)[0]
        if end == body or end + _CRC.size > len(data):
            return
        crc = zlib.crc32(data[position:end], crc)
        if crc != _CRC.unpack_from(data, end)[0]:
            return
        position = end + _CRC.size
        yield data[body:end], position


def _take(record: bytes, entries: list[Entry]) -> bool:
    """Add a record to what is known; False for one that does not belong there."""
    kind = record[0]
    if kind == _OPEN and len(record) == _OPENING.size:
        entries.append(Entry(record))
        return True
    if kind not in (_VALUES, _ERROR) or len(record) < _CANDIDATE.size or not entries:
        return False
    entry, content = entries[-1], record[_CANDIDATE.size :]
    first = _CANDIDATE.unpack_from(record)[1]
    count = 1 if kind == _ERROR else len(content) // 8
    if first + count > entry.popsize or (kind == _VALUES and len(content) != 8 * count):
        return False
    if kind == _ERROR:
        try:
            entry.errors[first] = content.decode()
        except UnicodeDecodeError:
            return False
    elif count == entry.popsize:
        entry.note_rest(np.frombuffer(content, "<f8").astype(np.float64))
    else:
        for i, (value,) in enumerate(struct.iter_unpack("<d", content), start=first):
            entry.note(i, value, None)
    return True


def chain(segments: Sequence[Segment], address: Address) -> Segment:
    """One of several: what is known around ``address`` and later, without a gap.

    ``segments`` are in the order in which they were written. A later one begins where a checkpoint
    was written, with what was known of that generation.
    """
    begun = [i for i, segment in enumerate(segments) if segment.start <= address]
    if not begun:
        return Segment(address, [], whole=not segments)
    first = segments[begun[-1]]
    start = first.start if first.entries else address
    entries: list[Entry] = []
    for segment in segments[begun[-1] :]:
        entries = [entry for entry in entries if entry.address < segment.start]
        for entry in segment.entries:
            if not _follows(entry, entries, start):
                return Segment(start, entries, whole=False)
            entries.append(entry)
        if not segment.whole:
            return Segment(start, entries, whole=False)
    return Segment(start, entries, whole=True)


def _follows(entry: Entry, entries: list[Entry], start: Address) -> bool:
    """Whether a generation is the next one: of the same run, or the first of a later one."""
    expected = start
    if entries:
        run, generation = entries[-1].address
        expected = (run, generation + 1)
    first_of_later_run = entry.address[0] > expected[0] and entry.address[1] == 0
    previous_is_told = not entries or entries[-1].complete
    return previous_is_told and (entry.address == expected or first_of_later_run)
