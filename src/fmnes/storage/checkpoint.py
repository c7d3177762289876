"""What a search keeps at a path: two checkpoints, the values since the older one, and a lock."""

import contextlib
import glob
import logging
import math
import os
import re
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes.storage import journal as journals
from fmnes.storage import npz
from fmnes.storage.journal import Address, Entry, Journal, Place
from fmnes.storage.lock import Lock

logger = logging.getLogger("fmnes")

Fsync = Literal["auto", "generation", "evaluation", "never"]
OnError = Literal["warn", "raise"]

_SHARE_OF_SAVING = 20  # saving takes at most one part in so many of the time,
_SHARE_OF_SYNCING = 50  # and so does syncing,
_MOST_CREDIT = 10.0  # with these seconds saved up at most while nothing came
_LARGEST_JOURNAL = 2**26  # bytes


@dataclass(frozen=True)
class Checkpoint:
    """Where a search is kept on disk, and how well; a path alone means these defaults.

    Parameters
    ----------
    path : path
        The file; what goes with it has longer names: ``.previous``, ``.journal``, ``.lock``.
    every : float
        Seconds from one checkpoint to the next; more where writing one takes more than a
        twentieth of that. In between every value is appended to the journal as it arrives, so
        that a killed process loses none.
    fsync : {"auto", "evaluation", "generation", "never"}
        When the journal is forced to the disk, where a power failure cannot take it back: after
        each evaluation, after each generation, or by checkpoints only. "auto" measures: after an
        evaluation if syncing takes less than a fiftieth of the time since it was last done. So a
        long evaluation is synced at once, and generations of microseconds are not slowed down.
    on_error : {"warn", "raise"}
        What a full disk or a read-only folder does: a warning in the log, the search goes on, the
        files stay as they are and the next checkpoint tries again; or an OSError.

    Examples
    --------
    >>> import fmnes, tempfile
    >>> fun = fmnes.problems.sphere(5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keep = fmnes.Checkpoint(f"{folder}/run.npz", every=60)
    ...     for n in (10, 20):  # the second call goes on where the first ended
    ...         result = fmnes.minimize(fun, fun.x0, 2.0, rng=1, maxiter=n, checkpoint=keep)
    >>> result.nit
    20
    """

    path: str | os.PathLike[str]
    every: float = 10.0
    fsync: Fsync = "auto"
    on_error: OnError = "warn"

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise TypeError(f"checkpoint: expected a path, got {self.path!r}")
        if not (isinstance(self.every, int | float) and 0 <= self.every < math.inf):
            raise ValueError(f"every: expected seconds >= 0, got {self.every!r}")
        checks.choice("fsync", self.fsync, get_args(Fsync))
        checks.choice("on_error", self.on_error, get_args(OnError))


class Store:
    """The files of one search.

    At every instant they hold all that was entered, whichever call the process dies in: there is
    a checkpoint under the path itself, and the journals are read from where it was written on,
    whatever they hold of earlier times.
    """

    def __init__(self, settings: Checkpoint) -> None:
        self._settings = settings
        self._path = os.fspath(settings.path)
        self._previous, self._journal_path = f"{self._path}.previous", f"{self._path}.journal"
        self._lock = Lock(f"{self._path}.lock")
        self._search = os.urandom(16)
        self._fresh = True  # nothing of this search is on disk
        self._keep_newest = False  # as the older one, when the next is written
        self._journal: Journal | None = None  # None: values cannot be written now
        self._entry: Entry | None = None  # the generation that is being evaluated
        self._opening: tuple[bytes, ...] = ()  # its first record, until another follows
        self._ahead: deque[Entry] = deque()  # generations that the journal knows and we do not
        self._trouble: str | None = None
        self._saved = self._earned = time.monotonic()
        self._seconds_saving = self._seconds_syncing = 0.0
        self._credit, self._unsynced = 0.0, False  # seconds for syncing; whether there is need

    # === Opening and closing ===

    def open(self) -> None:
        """Become the only one who uses these files; RuntimeError where somebody does already."""
        folder = os.path.dirname(os.path.abspath(self._path))
        if not os.path.isdir(folder):  # now, and not after hours of evaluations
            raise FileNotFoundError(f"checkpoint: expected a folder that exists, got {folder}")
        try:
            self._lock.acquire()
            # Of this path only: ".b.npz.1-2.tmp" may be in use by a search at "run.b.npz".
            ours = re.compile(re.escape(self._path) + r"\.(\d+-\d+|journal)\.tmp")
            for left_by_a_kill in glob.glob(f"{glob.escape(self._path)}.*.tmp"):
                if ours.fullmatch(left_by_a_kill):
                    os.unlink(left_by_a_kill)
        except OSError as error:
            self._complain(error)

    def close(self) -> None:
        """Let go of the files."""
        try:
            self._append(sync=self._settings.fsync != "never")
        finally:
            self._drop_journal()
            self._lock.release()

    def load(self, names: tuple[str, ...], *, must: bool) -> dict[str, Any] | None:
        """The newest checkpoint that is whole; None where there is none, if none ``must`` be."""
        if not os.path.exists(self._path):
            if must:
                raise FileNotFoundError(
                    f"checkpoint: expected a saved search at {self._path}, got none"
                )
            return None
        names = (*names, "search")
        try:
            saved = npz.read(self._path, names, "checkpoint")
            self._keep_newest = True
        except npz.DamagedError as error:
            if not os.path.exists(self._previous):
                raise
            saved = npz.read(self._previous, names, "checkpoint")
            logger.warning("%s; going on from %s and the journal", error, self._previous)
        self._search = bytes.fromhex(saved.pop("search"))
        self._fresh = False
        return saved

    def resume(self, address: Address) -> None:
        """Read what is known of the generations since the checkpoint, and go on from there."""
        paths = (f"{self._journal_path}.previous", self._journal_path)
        found = [journals.read(path, self._search) for path in paths]
        known = journals.chain([segment for segment in found if segment is not None], address)
        self._ahead.extend(entry for entry in known.entries if entry.address >= address)
        if not known.whole:
            logger.warning(
                "%s ends in a record that is torn or damaged; values are known up to generation %d "
                "of run %d, those after it are evaluated again",
                self._journal_path,
                *(self._ahead[-1].address if self._ahead else address)[::-1],
            )
        try:
            self._begin_journal(known.start, known.entries, keep=False)
        except OSError as error:
            self._complain(error)

    # === Checkpoints ===

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        elapsed = time.monotonic() - self._saved
        long = self._journal is not None and self._journal.size > _LARGEST_JOURNAL
        wait = 0.0 if long else self._settings.every
        return elapsed >= max(wait, _SHARE_OF_SAVING * self._seconds_saving)

    def save(self, content: dict[str, Any], address: Address) -> None:
        """Write a checkpoint, taken before the generation at ``address``."""
        if self._ahead:  # what is on disk knows more
            return
        begun = time.monotonic()
        try:
            self._lock.acquire()
            self._write(content, address)
            self._trouble = None
        except (OSError, RuntimeError) as error:  # the latter: somebody else is at work there
            self._complain(error)
        self._saved = time.monotonic()
        self._seconds_saving = self._saved - begun

    def _write(self, content: dict[str, Any], address: Address) -> None:
        previous = self._previous if self._keep_newest else None
        npz.write(self._path, {**content, "search": self._search.hex()}, previous)
        if self._fresh:
            for path in (self._previous, self._journal_path, f"{self._journal_path}.previous"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        self._fresh, self._keep_newest = False, True
        self._begin_journal(address, [] if self._entry is None else [self._entry], keep=True)

    def _begin_journal(self, start: Address, entries: list[Entry], *, keep: bool) -> None:
        """A new journal under its name, all at once; ``keep`` the one before it."""
        temporary = f"{self._journal_path}.tmp"
        journal = Journal(temporary, self._search, start, entries)
        try:
            self._sync(journal)
            if keep:
                with contextlib.suppress(FileNotFoundError):
                    os.replace(self._journal_path, f"{self._journal_path}.previous")
            os.replace(temporary, self._journal_path)
            npz.sync_folder(self._journal_path)
        except BaseException:
            journal.close()
            raise
        self._drop_journal()
        self._journal, self._opening = journal, ()

    # === Values ===

    def strays(self, place: Place) -> bool:
        """Whether the journal tells of another course than the one that led here.

        Then it is of no further use, and a checkpoint has to begin a new one.
        """
        if not self._ahead or self._ahead[0].opening == place.to_bytes():
            return False
        logger.warning(
            "%s holds values of other candidates than those of generation %d of run %d here (by "
            "another machine, version or stopping rule?); they are not used",
            self._journal_path,
            place.generation,
            place.run,
        )
        self._ahead.clear()
        self._drop_journal()
        return True

    def begin(self, place: Place) -> Entry:
        """The generation that is evaluated next, with what the journal knows of it."""
        if self._ahead:
            entry = self._ahead.popleft()
        else:
            entry = Entry(place.to_bytes())
            self._opening = (entry.opening,)
        self._entry = entry
        return entry

    def report(self, entry: Entry, candidate: int, value: float, error: str | None) -> None:
        """Enter a value that has just arrived."""
        # First in memory: if a signal ends the search in between, the checkpoint will have it.
        entry.note(candidate, value, error)
        record = journals.value_record(candidate, value)
        if error is None:
            self._append(record)
        else:
            self._append(journals.error_record(candidate, error), record)

    def complete(self, entry: Entry, values: NDArray[np.float64]) -> None:
        """Enter all values of a generation that were not reported one by one."""
        records = []
        if not entry.complete:
            entry.note_rest(values)
            records.append(journals.values_record(entry.values))
        self._append(*records, sync=self._settings.fsync == "generation")

    def told(self) -> None:
        """The generation is part of the search's state now."""
        self._entry = None

    def _append(self, *records: bytes, sync: bool = False) -> None:
        if self._journal is None:
            return
        try:
            self._journal.append(*self._opening, *records)
            self._opening = ()
            self._unsynced = self._unsynced or bool(records)
            if sync or (self._unsynced and self._sync_is_due()):
                self._sync(self._journal)
        except OSError as error:
            # A journal has no gaps: what follows has to wait for the next checkpoint.
            self._drop_journal()
            self._complain(error)

    def _sync_is_due(self) -> bool:
        if self._settings.fsync != "auto":
            return self._settings.fsync == "evaluation"
        # Values that arrive together after an hour are all worth it, not only the first.
        now = time.monotonic()
        earned = (now - self._earned) / _SHARE_OF_SYNCING
        self._credit, self._earned = min(self._credit + earned, _MOST_CREDIT), now
        return self._credit >= self._seconds_syncing

    def _sync(self, journal: Journal) -> None:
        begun = time.monotonic()
        journal.sync()
        self._seconds_syncing = time.monotonic() - begun
        self._credit, self._unsynced = self._credit - self._seconds_syncing, False

    def _drop_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _complain(self, error: OSError | RuntimeError) -> None:
        """A disk that fails is no reason to lose a search, unless that was asked for."""
        if self._settings.on_error == "raise":
            raise error
        why = getattr(error, "strerror", None) or str(error)
        if why != self._trouble:  # once, not every few seconds
            logger.warning("checkpoint %s was not written: %s", self._path, why)
        self._trouble = why
