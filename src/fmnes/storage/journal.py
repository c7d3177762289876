"""The journal: the values since a checkpoint, on disk as soon as they arrive.

A journal is an `AppendOnlyFile` of records. Each record ends with a CRC-32 of all records so far,
so a record is read only if all records before it are undamaged and in place. The first record names
the search and where the journal begins. Then each generation has an opening record, and its values
follow in any order. The values of an asynchronous search follow in the order of
their arrival, with the origins of their candidates: this order decides how the search goes on.
Where several runs are in progress, a number of arrivals takes the place of a generation.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.engines.asynchronous import X0, Origin
from fmnes.evaluate import Outcome, Value
from fmnes.storage.append_only import AppendOnlyFile

_MAGIC = b"fmnes journal 1\n"
_LENGTH = struct.Struct("<I")  # before a record: its number of bytes
_CRC = struct.Struct("<I")  # after a record
# The first byte says what a record is.
_BEGIN, _OPEN, _VALUES, _ERROR, _ARRIVED = range(5)
_BEGINNING = struct.Struct("<B16sIQ")  # search, run, generation
_OPENING = struct.Struct("<BIQIdd")  # an Opening
_CANDIDATE = struct.Struct("<BI")  # the first candidate; values follow, or an error
_ARRIVAL = struct.Struct("<BQI")  # an Origin; its value follows


class Position(NamedTuple):
    """A generation of a run. Positions compare in the order of the search."""

    run: int
    generation: int


class Opening(NamedTuple):
    """The record that opens a generation: its position, and numbers that identify its candidates.

    Values must not be told to a search with other candidates, which another machine or version of
    fmnes may produce. Such candidates differ in the step size or the mean.
    """

    run: int
    generation: int
    popsize: int
    sigma: float
    mean_max: float  # largest |coordinate| of the mean

    def to_bytes(self) -> bytes:
        """Return the record. Two openings are the same if their bytes are."""
        return _OPENING.pack(_OPEN, *self)


class Entry:
    """The known values of one generation."""

    def __init__(self, opening: bytes, constraints: int = 0) -> None:
        _, run, generation, self.popsize, _, _ = _OPENING.unpack(opening)
        self.opening = opening
        self.position = Position(run, generation)
        self._shape = (self.popsize, 1 + constraints) if constraints else (self.popsize,)
        # By candidate, if they arrive one by one; in an asynchronous search by origin.
        self.known: dict[Any, Value] = {}
        self.errors: dict[int, str] = {}  # by candidate, or by the number of the arrival
        self.origins: tuple[Origin, ...] = ()  # of the values, in an asynchronous search
        self.values = np.empty(0)  # of all candidates, once the generation is complete
        self.complete = False

    def note(self, candidate: int | Origin, value: Value, error: str | None) -> int:
        """Enter the value of a candidate, and the error if its evaluation failed.

        Returns the number under which the error is found.
        """
        index = len(self.known) if isinstance(candidate, Origin) else candidate
        self.known[candidate] = value
        if error is not None:
            self.errors[index] = error
        if len(self.known) - (X0 in self.known) == self.popsize:
            if isinstance(candidate, Origin):
                self.origins, self.values = tuple(self.known), np.array(list(self.known.values()))
                self.complete, self.known = True, {}
            else:
                self.note_rest(np.empty(self._shape))
        return index

    @property
    def all_origins(self) -> tuple[Origin, ...]:
        """The origins of the values so far, in an asynchronous search."""
        return self.origins or tuple(key for key in self.known if isinstance(key, Origin))

    def note_rest(self, values: NDArray[np.float64]) -> None:
        """Enter the values of the candidates that have none yet; ``values`` is not copied."""
        if self.known:
            values[list(self.known)] = np.array(list(self.known.values()))
        self.values, self.complete = values, True
        self.known = {}

    def outcome(self) -> Outcome:
        """Return the values in the form that an evaluation returns."""
        errors = self.errors
        first = errors[min(errors)] if errors else None
        return Outcome(self.values, len(errors), first, self.origins)

    def records(self) -> Iterator[bytes]:
        """Yield the records that hold this entry."""
        yield self.opening
        yield from (error_record(i, self.errors[i]) for i in self.errors)
        if self.all_origins:
            values = self.values if self.complete else self.known.values()
            yield from map(value_record, self.all_origins, values)
        elif self.complete:
            yield values_record(self.values)
        else:
            yield from (value_record(i, value) for i, value in self.known.items())


def value_record(candidate: int | Origin, value: Value) -> bytes:
    """Return the record of the value of one candidate."""
    if isinstance(candidate, Origin):
        head = _ARRIVAL.pack(_ARRIVED, *candidate)
    else:
        head = _CANDIDATE.pack(_VALUES, candidate)
    return head + np.asarray(value, "<f8").tobytes()


def values_record(values: NDArray[np.float64]) -> bytes:
    """Return the record of all values of a generation."""
    return _CANDIDATE.pack(_VALUES, 0) + values.astype("<f8", copy=False).tobytes()


def error_record(candidate: int, error: str) -> bytes:
    """Return the record of the error of a candidate or arrival, which precedes its value."""
    return _CANDIDATE.pack(_ERROR, candidate) + error.encode("utf-8", "surrogatepass")


# === Writing ===


class Journal(AppendOnlyFile):
    """Writes a new journal file."""

    def __init__(
        self, path: str, search: bytes, start: Position, entries: Iterable[Entry] = ()
    ) -> None:
        records = [record for entry in entries for record in entry.records()]
        head, self._crc = _framed([_BEGINNING.pack(_BEGIN, search, *start), *records], 0)
        super().__init__(path, _MAGIC + head)

    def enter(self, *records: bytes) -> None:
        """Append records."""
        data, crc = _framed(records, self._crc)
        self.append(data)
        self._crc = crc


def _framed(records: Iterable[bytes], crc: int) -> tuple[bytes, int]:
    """Return records as they are written, and the CRC after them, given the one before."""
    parts: list[bytes] = []
    for record in records:
        record = _LENGTH.pack(len(record)) + record
        crc = zlib.crc32(record, crc)
        parts += record, _CRC.pack(crc)
    return b"".join(parts), crc


# === Reading ===


class Segment(NamedTuple):
    """The content of a journal file, up to the first damaged record."""

    start: Position
    entries: list[Entry]
    whole: bool


def read(path: str, search: bytes, constraints: int = 0) -> Segment | None:
    """Return the journal at ``path``; None if there is no file, or it is of another search."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    records = _records(data)
    first, end = next(records, (b"", 0))
    if len(first) != _BEGINNING.size or first[0] != _BEGIN:
        return Segment(Position(0, 0), [], whole=False)
    _, owner, run, generation = _BEGINNING.unpack(first)
    if owner != search:
        return None
    entries: list[Entry] = []
    for record, record_end in records:
        if not _take(record, entries, constraints):
            break
        end = record_end
    return Segment(Position(run, generation), entries, whole=end == len(data))


def _records(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the records and where each ends, as long as their CRCs are right."""
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


def _take(record: bytes, entries: list[Entry], constraints: int) -> bool:
    """Add a record to the entries; return False if it does not fit."""
    kind, size = record[0], 8 * (1 + constraints)
    if kind == _OPEN and len(record) == _OPENING.size:
        entries.append(Entry(record, constraints))
        return True
    if kind == _ARRIVED and len(record) == _ARRIVAL.size + size and entries:
        return _take_arrival(record, entries[-1])
    if kind not in (_VALUES, _ERROR) or len(record) < _CANDIDATE.size or not entries:
        return False
    entry, content = entries[-1], record[_CANDIDATE.size :]
    first = _CANDIDATE.unpack_from(record)[1]
    count = 1 if kind == _ERROR else len(content) // size
    if first + count > entry.popsize or (kind == _VALUES and len(content) != size * count):
        return False
    if kind == _ERROR:
        try:
            entry.errors[first] = content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return False
    else:
        values = np.frombuffer(content, "<f8").astype(np.float64)
        values = values.reshape(-1, 1 + constraints) if constraints else values
        if count == entry.popsize:
            entry.note_rest(values)
        else:
            for i, value in enumerate(values, start=first):
                entry.note(i, value, None)
    return True


def _take_arrival(record: bytes, entry: Entry) -> bool:
    _, generation, row = _ARRIVAL.unpack_from(record)
    origin, value = Origin(generation, row), np.frombuffer(record[_ARRIVAL.size :], "<f8")
    if entry.complete or origin in entry.known:
        return False
    if origin.split()[1].generation > entry.position.generation:
        return False
    entry.note(origin, value.astype(np.float64) if len(value) > 1 else float(value[0]), None)
    return True


def chain(segments: Sequence[Segment], position: Position) -> Segment:
    """Return several journals as one: the generations around ``position`` and later, without a gap.

    ``segments`` are in the order in which they were written. Each begins where a checkpoint was
    written, with the values that were known of that generation.
    """
    begun = [i for i, segment in enumerate(segments) if segment.start <= position]
    if not begun:
        return Segment(position, [], whole=not segments)
    first = segments[begun[-1]]
    start = first.start if first.entries else position
    entries: list[Entry] = []
    for segment in segments[begun[-1] :]:
        entries = [entry for entry in entries if entry.position < segment.start]
        for entry in segment.entries:
            if not _follows(entry, entries, start):
                return Segment(start, entries, whole=False)
            entries.append(entry)
        if not segment.whole:
            return Segment(start, entries, whole=False)
    return Segment(start, entries, whole=True)


def _follows(entry: Entry, entries: list[Entry], start: Position) -> bool:
    """Return whether a generation is the next one: of the same run, or the first of a later run.

    The first generation of all may be there several times, with other step sizes.
    """
    if entries and not entries[-1].complete:
        return False
    run, generation = entries[-1].position if entries else start
    expected = (run, generation + 1) if entries else start
    is_first_of_later_run = entry.position.run > run and entry.position.generation == 0
    is_another_trial = bool(entries) and entry.position == (run, generation) == (0, 0)
    return entry.position == expected or is_first_of_later_run or is_another_trial
