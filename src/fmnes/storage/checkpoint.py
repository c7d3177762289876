"""The files of a search: two checkpoints, the values since the older one, and a lock."""

import contextlib
import glob
import logging
import os
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from fmnes import _checks as checks
from fmnes.engines.asynchronous import X0, Origin
from fmnes.evaluate import Outcome, Value
from fmnes.storage import journal as journals
from fmnes.storage import npz
from fmnes.storage.contents import RUNS
from fmnes.storage.journal import Entry, Journal, Opening, Position
from fmnes.storage.lock import Lock

logger = logging.getLogger("fmnes")

_SHARE_OF_SAVING = 20  # writing checkpoints takes at most 1/20 of the time,
_SHARE_OF_SYNCING = 50  # and syncing the journal at most 1/50
_MOST_CREDIT = 10.0  # seconds of syncing that a long evaluation can earn at most
_LARGEST_JOURNAL = 2**26  # bytes; a longer one is replaced by a checkpoint


@dataclass(frozen=True)
class Checkpoint:
    """Where and how to keep a search on disk. A path alone means the defaults.

    Parameters
    ----------
    path : path
        The file of the checkpoint. Further files are next to it, with ``.previous``, ``.journal``
        and ``.lock`` appended to the name.
    every : float
        Seconds between checkpoints; more if writing one takes longer than a twentieth of that
        time. Between two checkpoints every value is appended to the journal as it arrives, so a
        killed process loses no value.
    fsync : {"auto", "evaluation", "generation", "never"}
        When to force the journal to the disk, so that a power failure does not lose it: after each
        evaluation, after each generation, or only with checkpoints ("never"). "auto" syncs after
        an evaluation if syncing takes less than a fiftieth of the time since the last sync: a long
        evaluation is synced at once, and evaluations of microseconds are not slowed down.
    on_error : {"warn", "raise"}
        What to do if the disk is full or the folder is read-only: log a warning, continue, and try
        again with the next checkpoint; or raise an OSError.

    Examples
    --------
    >>> import fmnes, tempfile
    >>> fun = fmnes.problems.sphere(5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keep = fmnes.Checkpoint(f"{folder}/run.npz", every=60)
    ...     for n in (10, 20):  # the second call resumes where the first ended
    ...         result = fmnes.minimize(fun, fun.x0, 2.0, rng=1, maxiter=n, checkpoint=keep)
    >>> result.nit
    20
    """

    path: str | os.PathLike[str]
    every: float = 10.0
    fsync: Literal["auto", "evaluation", "generation", "never"] = "auto"
    on_error: Literal["warn", "raise"] = "warn"

    def __post_init__(self) -> None:
        checks.path("checkpoint", self.path)
        checks.finite("every", self.every, least=0)
        checks.choice("fsync", self.fsync, ("auto", "evaluation", "generation", "never"))
        checks.choice("on_error", self.on_error, ("warn", "raise"))


class CheckpointFiles:
    """The files of one search.

    At every moment the files hold all values that were entered, even if the process dies in the
    middle of a call. A checkpoint is always present at the path, and the journals hold the values
    since that checkpoint.
    """

    def __init__(self, settings: Checkpoint, constraints: int = 0) -> None:
        self._settings, self._constraints = settings, constraints
        self._path = checks.path("checkpoint", settings.path)
        self._previous, self._journal_path = f"{self._path}.previous", f"{self._path}.journal"
        self._lock = Lock(f"{self._path}.lock")
        self._process = os.getpid()  # a forked child leaves the files to this process
        self._search = os.urandom(16)  # identifies the search that a journal belongs to
        self._fresh = True  # nothing of this search is on disk yet
        self._newest_is_whole = False  # True: the next save keeps it as the previous one
        self._journal: Journal | None = None  # None if values cannot be written now
        self._entry: Entry | None = None  # the generation that is being evaluated
        self._unwritten: tuple[bytes, ...] = ()  # its first record, written with the next one
        self._ahead: deque[Entry] = deque()  # generations of the journal, not yet told
        self._rows: dict[Position, int] = {}  # how many candidates an asynchronous one handed out
        self._trouble: str | None = None
        self._saved = self._earned = time.monotonic()
        self._seconds_saving = self._seconds_syncing = 0.0
        self._credit, self._unsynced = 0.0, False  # seconds for syncing; whether one is needed

    # === Opening and closing ===

    def open(self) -> None:
        """Lock the files and clean up; RuntimeError if another search uses them."""
        folder = os.path.dirname(os.path.abspath(self._path))
        if not os.path.isdir(folder):  # report it now, not after hours of evaluations
            raise FileNotFoundError(f"checkpoint: expected a folder that exists, got {folder}")
        if os.path.isdir(self._path):
            raise IsADirectoryError(
                f"checkpoint: expected the path of a file, such as run.npz, got {self._path}"
            )
        try:
            self._lock.acquire()
            # Only files of this path: "run.npz.b.1-2.tmp" belongs to a search at "run.npz.b".
            ours = re.compile(re.escape(self._path) + r"\.(\d+-\d+|journal)\.tmp")
            for leftover in glob.glob(f"{glob.escape(self._path)}.*.tmp"):
                if ours.fullmatch(leftover):
                    os.unlink(leftover)
        except OSError as error:
            self._complain(error)

    def close(self) -> None:
        """Write what is left, and release the files; in a forked child, only close them."""
        try:
            self._append(sync=self._settings.fsync != "never")
        finally:
            self._drop_journal()
            self._lock.release()

    def load(self, *, must: bool) -> dict[str, Any] | None:
        """Return the newest undamaged checkpoint, or None if there is none.

        A missing checkpoint is a FileNotFoundError if ``must`` is true, or if other files of a
        search are still there: that search would be lost if another one started.
        """
        if not os.path.exists(self._path):
            left = [path for path in (self._previous, self._journal_path) if os.path.exists(path)]
            if left or must:
                raise FileNotFoundError(
                    f"checkpoint: expected a saved search at {self._path}, got none"
                    + (f", but found {' and '.join(left)}; {self._advice()}" if left else "")
                )
            return None
        try:
            saved = npz.read(self._path, RUNS, "checkpoint")
            self._newest_is_whole = True
        except npz.DamagedError as error:
            if not os.path.exists(self._previous):
                raise
            saved = npz.read(self._previous, RUNS, "checkpoint")
            logger.warning("%s; resuming from %s and the journal", error, self._previous)
        self._search = bytes.fromhex(saved.pop("search"))
        self._fresh = False
        return saved

    def _advice(self) -> str:
        """Return what to do if only the newest checkpoint is missing."""
        again = "to start again, delete the other files"
        if not os.path.exists(self._previous):
            return again
        return f"to continue, copy {self._previous} to {self._path}; {again}"

    def resume(self, position: Position) -> None:
        """Read the values since the checkpoint, which was taken at ``position``."""
        paths = (f"{self._journal_path}.previous", self._journal_path)
        found = [journals.read(path, self._search, self._constraints) for path in paths]
        known = journals.chain([segment for segment in found if segment is not None], position)
        self._ahead.extend(entry for entry in known.entries if entry.position >= position)
        for entry in self._ahead:
            for generation, row in set(entry.all_origins) - {X0}:
                born = Position(entry.position.run, generation)
                self._rows[born] = max(self._rows.get(born, 0), row + 1)
        if not known.whole:
            logger.warning(
                "%s has a damaged record; its values are used up to run %d, generation %d, and "
                "later ones are evaluated again",
                self._journal_path,
                *(self._ahead[-1].position if self._ahead else position),
            )
        try:
            self._begin_journal(known.start, known.entries, keep=False)
        except OSError as error:
            self._complain(error)

    @property
    def values_ahead(self) -> int:
        """The number of values in the journal that the optimizer has not been told yet."""
        return sum(e.popsize if e.complete else len(e.known) for e in self._ahead)

    def rows_ahead(self, position: Position) -> int:
        """How many candidates of a generation the journal knows of, in an asynchronous search."""
        return self._rows.get(position, 0)

    # === Checkpoints ===

    def due(self) -> bool:
        """Return whether it is time for a checkpoint."""
        is_long = self._journal is not None and self._journal.size > _LARGEST_JOURNAL
        if is_long and self._trouble is None:
            return True
        elapsed = time.monotonic() - self._saved
        return elapsed >= max(self._settings.every, _SHARE_OF_SAVING * self._seconds_saving)

    def save(self, content: dict[str, Any], position: Position) -> None:
        """Write a checkpoint of the search before the generation at ``position``."""
        # If values are ahead, the files hold more than ``content`` does.
        if self._ahead or self._is_forked():
            return
        begun = time.monotonic()
        try:
            self._lock.acquire()
            self._write(content, position)
            self._trouble = None
        except (OSError, RuntimeError) as error:  # RuntimeError: another search has taken the path
            self._complain(error)
        self._saved = time.monotonic()
        self._seconds_saving = self._saved - begun

    def _write(self, content: dict[str, Any], position: Position) -> None:
        previous = self._previous if self._newest_is_whole else None
        npz.write(self._path, {**content, "search": self._search.hex()}, previous)
        if self._fresh:
            for path in (self._previous, self._journal_path, f"{self._journal_path}.previous"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        self._fresh, self._newest_is_whole = False, True
        self._begin_journal(position, [] if self._entry is None else [self._entry], keep=True)

    def _begin_journal(self, start: Position, entries: list[Entry], *, keep: bool) -> None:
        """Replace the journal by a new one in a single step; ``keep`` the one before it."""
        temporary = f"{self._journal_path}.tmp"
        with contextlib.closing(Journal(temporary, self._search, start, entries)) as journal:
            self._sync(journal)
        self._drop_journal()
        if keep:
            with contextlib.suppress(FileNotFoundError):
                os.replace(self._journal_path, f"{self._journal_path}.previous")
        os.replace(temporary, self._journal_path)
        npz.sync_folder(self._journal_path)
        journal.open(self._journal_path)
        self._journal, self._unwritten = journal, ()

    # === Values ===

    def discard_foreign(self, opening: Opening) -> bool:
        """Discard the journal if its values belong to other candidates; return whether they do.

        Afterwards the caller has to save a checkpoint, which begins a new journal.
        """
        if not self._ahead or self._ahead[0].opening == opening.to_bytes():
            return False
        logger.warning(
            "%s holds values of other candidates than those of run %d, generation %d (another "
            "machine, version or stopping rule?); these values are not used",
            self._journal_path,
            opening.run,
            opening.generation,
        )
        self._ahead.clear()
        self._drop_journal()
        return True

    def evaluate(self, opening: Opening, evaluate: Callable[..., Outcome], x: Any) -> Outcome:
        """Return the values of the next generation; those that the journal lacks are evaluated."""
        if self._ahead:
            self._entry = entry = self._ahead[0]
            self._ahead.popleft()  # second: a signal in between must not lose the entry
        else:
            self._entry = entry = Entry(opening.to_bytes(), self._constraints)
            self._unwritten = (entry.opening,)
        if not entry.complete:
            outcome = evaluate(x, entry.known.copy(), partial(self._report, entry))
            records = []
            if not entry.complete:  # some values were not reported one by one
                entry.note_rest(outcome.values)
                records.append(journals.values_record(entry.values))
            self._append(*records, sync=self._settings.fsync == "generation")
        return entry.outcome()

    def _report(
        self, entry: Entry, candidate: int | Origin, value: Value, error: str | None
    ) -> None:
        """Enter a value that has just arrived."""
        # First in memory: if a signal interrupts us here, the checkpoint will have the value.
        index = entry.note(candidate, value, error)
        record = journals.value_record(candidate, value)
        if error is None:
            self._append(record)
        else:
            self._append(journals.error_record(index, error), record)

    def told(self) -> None:
        """Note that the optimizer has been told the values of the current generation."""
        self._entry = None

    def _append(self, *records: bytes, sync: bool = False) -> None:
        if self._journal is None or self._is_forked():
            return
        try:
            self._journal.enter(*self._unwritten, *records)
            self._unwritten = ()
            self._unsynced = self._unsynced or bool(records)
            if sync or (self._unsynced and self._sync_is_due()):
                self._sync(self._journal)
        except OSError as error:
            # A journal must have no gaps: later values wait for the next checkpoint.
            self._drop_journal()
            self._complain(error)

    def _sync_is_due(self) -> bool:
        if self._settings.fsync != "auto":
            return self._settings.fsync == "evaluation"
        # If several values arrive together after an hour, each of them is worth a sync.
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

    def _is_forked(self) -> bool:
        """Return whether this is a child that the objective or the callback has forked."""
        return os.getpid() != self._process

    def _complain(self, error: OSError | RuntimeError) -> None:
        """Log a failure of the disk, or raise it if ``on_error`` says so."""
        if self._settings.on_error == "raise":
            raise error
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        if why != self._trouble:  # not again at every checkpoint
            logger.warning("checkpoint %s was not written: %s", self._path, why)
        self._trouble = why
