"""The loop for all worker groups: submit chunks, wait, record values, retry.

Candidates may finish in any order. A candidate may be evaluated more than once, for example after
its worker was lost, but its value is recorded once.
"""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fmnes.evaluate._call import ChunkResult
from fmnes.evaluate._chunks import Chunk, ChunkSizer, candidates_of
from fmnes.evaluate._group import GroupBrokenError, WorkerGroup
from fmnes.evaluate._outcome import EvaluationError, EvaluationRecord, Failure
from fmnes.evaluate._payload import Workload, refusal
from fmnes.evaluate._policies import Policies

logger = logging.getLogger("fmnes")

_MOST_LATE_LOADS = 2  # workers in a row that do not load the objective in time
_UNKNOWN_WIDTH = 16  # assumed number of workers if a pool does not say
# The longest wait. If a signal arrives just before a wait, Python handles it only afterwards; on
# Windows, no signal interrupts a wait. Besides, a cluster may have got new workers.
_WAIT_SECONDS = 0.5
_NOTHING = EvaluationRecord(0, "raise", {}, None, int)  # is being evaluated


class Supply(Protocol):
    """Candidates that are handed out one by one, and known by their numbers."""

    def waiting(self) -> Sequence[int]:
        """The candidates that were handed out before and have no value."""

    def next(self) -> int | None:
        """Hand out a new candidate; None if there is none at the moment."""

    def is_full(self) -> bool:
        """Whether there are enough values."""


class Driver:
    """Evaluates populations through worker groups.

    Which candidate is the cause when a worker dies or time runs out? If one candidate was running,
    that one. If several were running, none is charged with an attempt: each is tried again by
    itself. So the candidate that kills its worker is found, and the others only lose time. (If a
    dying worker takes others with it, all candidates get a second chance together before they run
    one after the other.)

    A candidate whose worker was lost gets at least one more attempt, even with ``retries=0``,
    because workers die for reasons that have nothing to do with the objective. A candidate that
    raises, returns no number or takes longer than ``timeout`` has ``retries + 1`` attempts.
    """

    def __init__(self, groups: Sequence[WorkerGroup], policies: Policies) -> None:
        self.groups, self._policies = groups, policies
        self._sizer = ChunkSizer(policies.chunksize, policies.timeout)
        # Late chunks of earlier generations stay here: they still occupy their workers.
        self._chunks: dict[Any, Chunk] = {}
        self._busy: Counter[WorkerGroup] = Counter()  # chunks in each group
        self._reserved: set[WorkerGroup] = set()  # groups that run one suspect alone
        self._late_loads = 0  # in a row
        self._record = _NOTHING
        self._supply: Supply | None = None  # of candidates that are handed out one by one

    def run(self, workload: Workload, record: EvaluationRecord) -> None:
        """Evaluate the open candidates of the record; after an exception no worker is busy."""
        self._workload, self._supply = workload, None
        self._begin(record, list(record.open), self.groups[: len(record.open)])
        popsize = len(record.values)
        may_be_late = popsize - math.ceil(self._policies.fraction * popsize)
        self._work_until(lambda: len(record.open) <= may_be_late)
        self._leave_late_ones()

    def stream(self, workload: Workload, record: EvaluationRecord, supply: Supply) -> None:
        """Evaluate candidates that ``supply`` hands out one by one, until it has enough values.

        The chunks that are running then go on, and a later call with the same record collects them.
        """
        self._workload, self._supply = workload, supply
        if record is not self._record:
            self._begin(record, supply.waiting(), self.groups)
        self._work_until(supply.is_full)

    def end_stream(self) -> None:
        """Give up the candidates of a stream that are still running: nobody needs their values."""
        for chunk in list(self._chunks.values()):
            if chunk.candidates and not chunk.group.keeps_late_chunks:
                self._give_up(chunk.group)
        self._record = _NOTHING

    def _begin(
        self, record: EvaluationRecord, candidates: Sequence[int], used: Sequence[WorkerGroup]
    ) -> None:
        """Begin an evaluation: its candidates wait, and none has failed."""
        self._record, self._used = record, used
        self._waiting, self._nopen = deque(candidates), max(1, len(candidates))
        self._suspects: deque[int] = deque()  # candidates that have to run alone
        self._attempts: Counter[int] = Counter()
        self._losses: Counter[int] = Counter()  # together with others, so not charged

    def _work_until(self, is_done: Callable[[], bool]) -> None:
        try:
            while not is_done():
                self._fill()
                self._collect(self._completed(), is_done)
                self._end_overdue()
        except BaseException:
            for group in self.groups:
                self._give_up(group)
            raise

    def close(self) -> None:
        """End the workers that are ours; give up chunks that are late."""
        self._chunks.clear()
        self._busy.clear()
        self._reserved.clear()
        for group in self.groups:
            group.end(force=False)

    # === Submit ===

    def _fill(self) -> None:
        """Give each worker a chunk first, and only then queue further chunks behind them."""
        for group in self._used:
            while self._has_room(group, self._width(group)):
                self._start_chunk(group)
        # A candidate of a stream that waited in a queue would be older than necessary.
        for group in self._used if self._sizer.is_quick and self._supply is None else ():
            width = (group.width or 0) + self._lookahead(group)
            while self._busy[group] < width and self._has_room(group, width):
                self._start_chunk(group)

    def _width(self, group: WorkerGroup) -> int | None:
        """How many chunks may be in a group; a stream has no end that would limit their number."""
        return group.width if self._supply is None else group.width or _UNKNOWN_WIDTH

    def _lookahead(self, group: WorkerGroup) -> int:
        """No lookahead if a timeout is set and we cannot tell which chunk is running."""
        return group.lookahead if group.in_order or self._policies.timeout is None else 0

    def _has_room(self, group: WorkerGroup, width: int | None) -> bool:
        if self._suspects and not group.isolates:
            return self._busy[group] == 0
        if group in self._reserved or (width is not None and self._busy[group] >= width):
            return False
        return bool(self._suspects or self._waiting) or self._is_supplied()

    def _is_supplied(self) -> bool:
        """Whether a stream hands out one more candidate, which is put into the queue."""
        candidate = None if self._supply is None else self._supply.next()
        if candidate is not None:
            self._waiting.append(candidate)
        return candidate is not None

    def _start_chunk(self, group: WorkerGroup) -> None:
        candidates: Sequence[int] = ()
        handle = group.prepare(self._workload)
        if handle is None:
            candidates = self._next_candidates(group)
            handle = group.submit(self._workload, candidates, self._sizer.limit)
        now, seconds = (
            time.monotonic(),
            self._sizer.longest(len(candidates)) + group.startup_seconds,
        )
        sent = now if self._busy[group] < (group.width or 0) else None
        is_alone = group.isolates or group in self._reserved
        self._chunks[handle] = Chunk(group, candidates, now, seconds, sent, is_alone, self._record)
        self._busy[group] += 1

    def _next_candidates(self, group: WorkerGroup) -> Sequence[int]:
        if self._suspects:
            if not group.isolates:
                self._reserved.add(group)
            return [self._suspects.popleft()]
        lanes = sum(group.width or _UNKNOWN_WIDTH for group in self._used)
        size = self._sizer.size(len(self._waiting), lanes, self._nopen)
        return [self._waiting.popleft() for _ in range(size)]

    # === Collect ===

    def _completed(self) -> Sequence[Any]:
        """Wait for the first chunk, until one is overdue, or for a moment."""
        deadline = min(chunk.deadline for chunk in self._chunks.values())
        seconds = min(_WAIT_SECONDS, max(0.0, deadline - time.monotonic()))
        return self._used[0].completed(list(self._chunks), seconds)

    def _collect(self, handles: Sequence[Any], is_done: Callable[[], bool]) -> None:
        """Record all results first; then handle the groups that broke."""
        broken: dict[WorkerGroup, str] = {}
        for handle in handles:
            if self._supply is not None and is_done():  # the next call finds the others
                break
            chunk = self._chunks[handle]
            try:
                result = chunk.group.result(handle)
            except GroupBrokenError as error:
                broken[chunk.group] = str(error)
                continue
            self._remove(handle)
            if chunk.record is self._record:
                self._enter(chunk, result)
            width = chunk.group.width
            if width is None or self._busy[chunk.group] >= width:  # another chunk was queued
                self._restart_clocks(chunk.group)
        for group, why in broken.items():
            self._replace_workers(group, why)

    def _enter(self, chunk: Chunk, result: ChunkResult | Failure) -> None:
        if isinstance(result, Failure):  # the pool itself lost this chunk
            self._lose([chunk], result)
            return
        if result.refused is not None:
            raise refusal(*result.refused)
        self._late_loads = 0
        done = len(result.results)
        self._sizer.note(done, result.seconds)
        if done and chunk.sent is not None:
            self._sizer.note_trip(time.monotonic() - chunk.sent - result.seconds)
        for candidate, value in zip(chunk.candidates, result.results, strict=False):
            if isinstance(value, Failure):
                self._charge(candidate, value, self._waiting)
            else:
                self._record.succeed(candidate, value)
        self._waiting.extendleft(reversed(chunk.candidates[done:]))

    def _restart_clocks(self, group: WorkerGroup) -> None:
        """Restart the time of all chunks of a group when one of them has ended.

        A queued chunk starts now. If a pool does not say how many workers it has, that may be any
        chunk, so time runs only while no chunk ends.
        """
        now = time.monotonic()
        for handle, chunk in self._chunks.items():
            if chunk.group is group:
                self._chunks[handle] = chunk._replace(started=now)

    # === Failures ===

    def _replace_workers(self, group: WorkerGroup, why: str) -> None:
        """A group broke and all its chunks are lost."""
        chunks = self._give_up(group)
        if not group.replaceable:
            raise EvaluationError(
                f"workers: expected a pool that works, got one that broke ({why}); to have it "
                "replaced, pass a function, as in Evaluator(lambda: ProcessPoolExecutor(4))"
            )
        logger.warning("workers lost with candidates %s: %s", candidates_of(chunks), why)
        if group.in_order:  # the chunks behind the first had not started
            self._waiting.extendleft(reversed(candidates_of(chunks[1:])))
            chunks = chunks[:1]
        self._lose(chunks, Failure(why, lost=True))

    def _lose(self, chunks: Sequence[Chunk], failure: Failure) -> None:
        """Candidates were lost, and one of them may be the cause."""
        if len(chunks) == 1 and chunks[0].is_alone:
            self._blame(chunks[0].candidates, failure)
            return
        for candidate in candidates_of(chunks):
            self._losses[candidate] += 1
            again = self._waiting if self._losses[candidate] == 1 else self._suspects
            again.append(candidate)

    def _end_overdue(self) -> None:
        """Kill the workers that have spent too long on one candidate."""
        now = time.monotonic()
        for handle in [handle for handle, chunk in self._chunks.items() if chunk.deadline <= now]:
            chunk = self._chunks.get(handle)
            if chunk is None:  # killed with another chunk of its pool
                continue
            failure = Failure(f"TimeoutError: no value within {self._policies.timeout:g} seconds")
            group, candidates = chunk.group, chunk.candidates
            if not candidates:
                self._note_late_load(chunk)
            ours = candidates if chunk.record is self._record else ()
            if group.is_queued(handle):
                self._chunks[handle] = chunk._replace(started=now)
            elif group.stop(handle):
                logger.warning("timeout: worker killed with candidates %s", candidates)
                self._remove(handle)
                self._blame(ours, failure)
            elif group.can_stop:
                self._kill_group(group, ours, failure)
            else:
                raise EvaluationError(
                    f"timeout: candidates {candidates} hang, and workers of this kind cannot be "
                    "ended; end the program"
                )

    def _note_late_load(self, chunk: Chunk) -> None:
        """One worker may hang by accident; if several do, it is the objective."""
        self._late_loads += 1
        if self._late_loads >= _MOST_LATE_LOADS:
            raise EvaluationError(
                f"timeout: {_MOST_LATE_LOADS} workers in a row did not load the objective within "
                f"{chunk.seconds:g} seconds; give a larger timeout if loading takes that long"
            )

    def _kill_group(self, group: WorkerGroup, overdue: Sequence[int], failure: Failure) -> None:
        """Kill all workers of a pool, because one of them hangs."""
        may_be_queued = group.width is None and self._busy[group] > 1
        lost = candidates_of(self._give_up(group))
        logger.warning("timeout: workers killed with candidates %s", lost)
        if may_be_queued:  # we cannot tell which one hung and which ones only waited
            self._suspects.extend(lost)
            return
        self._waiting.extend(candidate for candidate in lost if candidate not in overdue)
        self._blame(overdue, failure)

    def _blame(self, candidates: Sequence[int], failure: Failure) -> None:
        """One of these is the cause: charge it, or run each alone to find out."""
        if len(candidates) == 1:
            self._charge(candidates[0], failure, self._suspects)
        else:
            self._suspects.extend(candidates)

    def _charge(self, candidate: int, failure: Failure, again: deque[int]) -> None:
        """Count an attempt; put the candidate into the queue ``again``, or record its failure."""
        self._attempts[candidate] += 1
        if self._attempts[candidate] <= max(self._policies.retries, int(failure.lost)):
            again.append(candidate)
        else:
            self._record.fail(candidate, failure, self._attempts[candidate])

    def _leave_late_ones(self) -> None:
        """The required share of the population is done: the late candidates have failed."""
        for chunk in list(self._chunks.values()):
            if chunk.candidates and not chunk.group.keeps_late_chunks:
                self._give_up(chunk.group)
        late = Failure("TimeoutError: no value when the share `fraction` had come back")
        for candidate in list(self._record.open):
            self._record.fail(candidate, late, self._attempts[candidate] + 1)

    def _give_up(self, group: WorkerGroup) -> list[Chunk]:
        """Drop all chunks of a group and kill its workers if they are ours.

        Returns the chunks that belong to the current evaluation.
        """
        handles = [handle for handle, chunk in self._chunks.items() if chunk.group is group]
        chunks = [self._remove(handle) for handle in handles]
        group.drop(handles)
        if group.replaceable:
            group.end(force=True)
        return [chunk for chunk in chunks if chunk.record is self._record]

    def _remove(self, handle: Any) -> Chunk:
        chunk = self._chunks.pop(handle)
        self._busy[chunk.group] -= 1
        if not self._busy[chunk.group]:
            self._reserved.discard(chunk.group)
        return chunk
