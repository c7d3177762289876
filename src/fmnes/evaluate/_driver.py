"""The loop that every pool runs under: submit, wait, enter in the books, retry.

Candidates may finish in any order, and one may be evaluated more than once (after its worker was
lost, say), but each is entered once.
"""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from fmnes.evaluate._cargo import Cargo, refusal
from fmnes.evaluate._guard import Answer
from fmnes.evaluate._outcome import EvaluationError, Failure, Ledger
from fmnes.evaluate._pace import Pace
from fmnes.evaluate._policies import Policies
from fmnes.evaluate._slot import PoolBrokenError, Slot

logger = logging.getLogger("fmnes")

_UNKNOWN_WIDTH = 16  # what is assumed where a pool does not say how many workers it has


class _Flight(NamedTuple):
    """A chunk of candidates on its way."""

    slot: Slot
    candidates: Sequence[int]  # none: the slot is being prepared
    started: float
    seconds: float  # after which it is overdue
    sent: float | None  # when, if there was a worker for it at once
    is_alone: bool  # a worker that dies can only be due to this one
    ledger: Ledger  # of the evaluation that it belongs to

    @property
    def deadline(self) -> float:
        return self.started + self.seconds


class Driver:
    """Evaluates populations through slots.

    Who is to blame when a worker dies, or when time runs out? With one candidate in flight: that
    one. With several nobody is charged: each is tried by itself, so that the one that kills its
    worker is found and the others lose nothing but time. (Where a worker that dies takes others
    with it, all have a second chance together, before they go one after the other.)

    A candidate whose worker was lost is tried at least once more even with ``retries=0``: workers
    die for reasons that have nothing to do with the objective. One that raises, returns no number
    or takes longer than ``timeout`` has ``retries + 1`` attempts.
    """

    def __init__(self, slots: Sequence[Slot], policies: Policies) -> None:
        self._all_slots, self._policies = slots, policies
        self._pace = Pace(policies.chunksize)
        # Late flights of an earlier generation stay here: they still take up their workers.
        self._flights: dict[Any, _Flight] = {}
        self._busy: Counter[Slot] = Counter()  # flights of each slot
        self._reserved: set[Slot] = set()  # slots that a suspect has for itself

    def run(self, cargo: Cargo, ledger: Ledger) -> None:
        """Evaluate what the ledger has open; what ends this early leaves no worker of ours busy."""
        self._cargo, self._ledger = cargo, ledger
        self._slots = self._all_slots[: len(ledger.open)]
        self._waiting, self._popsize = deque(ledger.open), len(ledger.open)
        self._suspects: deque[int] = deque()  # each to be tried by itself
        self._attempts: Counter[int] = Counter()
        self._losses: Counter[int] = Counter()  # with others, so that nobody was charged
        popsize = len(ledger.values)
        spare = popsize - math.ceil(self._policies.fraction * popsize)
        try:
            while len(ledger.open) > spare:
                self._fill()
                self._land(self._completed())
                self._end_overdue()
        except BaseException:
            for slot in self._all_slots:
                self._ground(slot)
            raise
        self._leave_behind()

    def close(self) -> None:
        """End the workers that are ours; whatever is late stays behind."""
        self._flights.clear()
        self._busy.clear()
        self._reserved.clear()
        for slot in self._all_slots:
            slot.close()

    # === Take-off ===

    def _fill(self) -> None:
        """Start as many candidates as the slots take, and only then let more wait behind them."""
        for slot in self._slots:
            while self._has_room(slot, slot.width):
                self._start_chunk(slot)
        for slot in self._slots if self._pace.is_quick else ():
            width = (slot.width or 0) + self._lookahead(slot)
            while self._busy[slot] < width and self._has_room(slot, width):
                self._start_chunk(slot)

    def _lookahead(self, slot: Slot) -> int:
        """None where nobody could tell which chunk's time is running."""
        return slot.lookahead if slot.in_order or self._policies.timeout is None else 0

    def _start_chunk(self, slot: Slot) -> None:
        candidates: Sequence[int] = ()
        handle = slot.prepare(self._cargo)
        if handle is None:
            candidates = self._next_chunk(slot)
            handle = slot.submit(self._cargo, candidates, self._limit)
        seconds, now = self._seconds_for(slot, candidates), time.monotonic()
        sent = now if self._busy[slot] < (slot.width or 0) else None
        is_alone = slot.isolates or slot in self._reserved
        self._flights[handle] = _Flight(
            slot, candidates, now, seconds, sent, is_alone, self._ledger
        )
        self._busy[slot] += 1

    def _has_room(self, slot: Slot, width: int | None) -> bool:
        if not self._suspects and not self._waiting:
            return False
        if self._suspects and not slot.isolates:
            return self._busy[slot] == 0
        return slot not in self._reserved and (width is None or self._busy[slot] < width)

    def _next_chunk(self, slot: Slot) -> Sequence[int]:
        if self._suspects:
            if not slot.isolates:
                self._reserved.add(slot)
            return [self._suspects.popleft()]
        lanes = sum(slot.width or _UNKNOWN_WIDTH for slot in self._slots)
        size = self._pace.size(len(self._waiting), lanes, self._popsize)
        return [self._waiting.popleft() for _ in range(size)]

    @property
    def _limit(self) -> float:
        """Seconds after which a chunk returns what it has."""
        return min(self._pace.limit, self._policies.timeout or math.inf)

    def _seconds_for(self, slot: Slot, candidates: Sequence[int]) -> float:
        """How long a chunk may take if none of its candidates takes longer than ``timeout``."""
        timeout = self._policies.timeout
        if timeout is None or not candidates:
            return math.inf
        return slot.allowance + min(timeout * len(candidates), timeout + self._limit)

    # === Landing ===

    def _completed(self) -> Sequence[Any]:
        slot = self._slots[0]
        deadline = min(flight.deadline for flight in self._flights.values())
        seconds = min(slot.patience, max(0.0, deadline - time.monotonic()))
        return slot.completed(list(self._flights), None if seconds == math.inf else seconds)

    def _land(self, handles: Sequence[Any]) -> None:
        """Enter what came back; only then see to the slots that broke."""
        broken: dict[Slot, str] = {}
        for handle in handles:
            flight = self._flights[handle]
            try:
                answer = flight.slot.result(handle)
            except PoolBrokenError as error:
                broken[flight.slot] = str(error)
                continue
            self._remove(handle)
            if flight.ledger is self._ledger:
                self._enter(flight, answer)
            width = flight.slot.width
            if width is None or self._busy[flight.slot] >= width:  # something was waiting
                self._restart_clocks(flight.slot)
        for slot, why in broken.items():
            self._mourn(slot, why)

    def _enter(self, flight: _Flight, answer: Answer | Failure) -> None:
        if isinstance(answer, Failure):  # the pool itself gave this task up
            self._lose([flight], answer)
            return
        if answer.refused is not None:
            raise refusal(*answer.refused)
        done = len(answer.results)
        self._pace.note(done, answer.seconds)
        if done and flight.sent is not None:
            self._pace.note_trip(time.monotonic() - flight.sent - answer.seconds)
        for candidate, result in zip(flight.candidates, answer.results, strict=False):
            if isinstance(result, Failure):
                self._charge(candidate, result, self._waiting)
            else:
                self._ledger.succeed(candidate, result)
        self._waiting.extendleft(reversed(flight.candidates[done:]))

    def _restart_clocks(self, slot: Slot) -> None:
        """The next one's time begins now.

        Where a pool does not say how wide it is, that may be any one: time can be said to run only
        while nothing else comes to an end.
        """
        now = time.monotonic()
        for handle, flight in self._flights.items():
            if flight.slot is slot:
                self._flights[handle] = flight._replace(started=now)

    # === What went wrong ===

    def _mourn(self, slot: Slot, why: str) -> None:
        """A pool broke, and what was in flight there is lost."""
        flights = self._ground(slot)
        if not slot.replaceable:
            raise EvaluationError(
                f"workers: it broke ({why}), and one that was passed in cannot be built anew; pass "
                "a function that makes one, as in Evaluator(lambda: ProcessPoolExecutor(4))"
            )
        logger.warning("workers lost with candidates %s: %s", _all_of(flights), why)
        if slot.in_order:  # what waited behind the first had not begun
            self._waiting.extendleft(reversed(_all_of(flights[1:])))
            flights = flights[:1]
        self._lose(flights, Failure(why, lost=True))

    def _lose(self, flights: Sequence[_Flight], failure: Failure) -> None:
        """Candidates were lost, and perhaps one of them was the reason."""
        if len(flights) == 1 and flights[0].is_alone:
            self._blame(flights[0].candidates, failure)
            return
        for candidate in _all_of(flights):
            self._losses[candidate] += 1
            again = self._waiting if self._losses[candidate] == 1 else self._suspects
            again.append(candidate)

    def _end_overdue(self) -> None:
        """Kill the workers that have been at one candidate for too long."""
        now = time.monotonic()
        overdue = [handle for handle, flight in self._flights.items() if flight.deadline <= now]
        if not overdue:
            return
        failure = Failure(f"TimeoutError: no value within {self._policies.timeout:g} seconds")
        for handle in overdue:
            flight = self._flights.get(handle)
            if flight is None:  # gone with another one of its pool
                continue
            slot, is_ours = flight.slot, flight.ledger is self._ledger
            if slot.is_queued(handle):
                self._flights[handle] = flight._replace(started=now)
            elif slot.stop(handle):
                logger.warning("timeout: worker killed with candidates %s", flight.candidates)
                self._remove(handle)
                if is_ours:
                    self._blame(flight.candidates, failure)
            elif slot.can_stop:
                self._end_pool(slot, flight.candidates if is_ours else (), failure)
            else:
                raise EvaluationError(
                    f"timeout: candidates {flight.candidates} hang, and workers of this kind "
                    "cannot be ended; the program has to be"
                )

    def _end_pool(self, slot: Slot, overdue: Sequence[int], failure: Failure) -> None:
        """One hangs, and all others in the pool are lost with it."""
        queueing = slot.width is None and self._busy[slot] > 1
        lost = _all_of(self._ground(slot))
        logger.warning("timeout: workers killed with candidates %s", lost)
        if queueing:  # which one hangs, and which only waited in the pool's queue?
            self._suspects.extend(lost)
            return
        self._waiting.extend(candidate for candidate in lost if candidate not in overdue)
        self._blame(overdue, failure)

    def _blame(self, candidates: Sequence[int], failure: Failure) -> None:
        """One of these is to blame: charge it, or find out which."""
        if len(candidates) == 1:
            self._charge(candidates[0], failure, self._suspects)
        else:
            self._suspects.extend(candidates)

    def _charge(self, candidate: int, failure: Failure, again: deque[int]) -> None:
        """One attempt is used up; queue the candidate ``again`` or enter it as failed."""
        self._attempts[candidate] += 1
        if self._attempts[candidate] <= max(self._policies.retries, int(failure.lost)):
            again.append(candidate)
        else:
            self._ledger.fail(candidate, failure, self._attempts[candidate])

    def _leave_behind(self) -> None:
        """The share that was asked for has come back: the late ones are failures."""
        for flight in list(self._flights.values()):
            if flight.candidates and not flight.slot.leaves_stragglers:
                self._ground(flight.slot)
        late = Failure("TimeoutError: no value when the share `fraction` had come back")
        for candidate in list(self._ledger.open):
            self._ledger.fail(candidate, late, self._attempts[candidate] + 1)

    def _ground(self, slot: Slot) -> list[_Flight]:
        """Give up everything in a slot, and kill its workers if they are ours."""
        handles = [handle for handle, flight in self._flights.items() if flight.slot is slot]
        flights = [self._remove(handle) for handle in handles]
        slot.drop(handles)
        if slot.replaceable:
            slot.kill()
        return [flight for flight in flights if flight.ledger is self._ledger]

    def _remove(self, handle: Any) -> _Flight:
        flight = self._flights.pop(handle)
        self._busy[flight.slot] -= 1
        if not self._busy[flight.slot]:
            self._reserved.discard(flight.slot)
        return flight


def _all_of(flights: Sequence[_Flight]) -> list[int]:
    return [candidate for flight in flights for candidate in flight.candidates]
