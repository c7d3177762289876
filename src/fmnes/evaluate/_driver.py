"""The loop that every pool runs under: submit, wait, enter in the books, retry.

Candidates may finish in any order, and one may be evaluated more than once (after its worker was
lost, say), but each is entered once.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from fmnes.evaluate._guard import Task
from fmnes.evaluate._outcome import EvaluationError, Failure, Ledger

logger = logging.getLogger("fmnes")


class PoolBrokenError(Exception):
    """What ran in a slot is lost; the text says why."""


class Slot(Protocol):
    """A pool of workers, as the driver sees it. Handles are whatever the slot likes."""

    @property
    def width(self) -> int | None:
        """How many candidates run at the same time; None where the pool does not say."""

    @property
    def rebuildable(self) -> bool:
        """Whether `kill` may be called, after which the slot starts afresh by itself."""

    def payload(self, task: Task) -> Any:
        """The task in the form that `prepare` and `submit` take; TypeError if it cannot be sent."""

    def prepare(self, payload: Any) -> Any | None:
        """A handle to wait for before the first candidate, or None."""

    def submit(self, payload: Any, candidate: int, x: Any) -> Any:
        """Start a candidate; its handle. A broken pool shows in the result."""

    def result(self, handle: Any) -> float | Failure | None:
        """What a completed handle holds. PoolBrokenError where it was lost with the pool."""

    def completed(self, handles: Sequence[Any], seconds: float | None) -> Sequence[Any]:
        """Those completed, after waiting for the first of them or for so many seconds."""

    def kill(self) -> None:
        """End the workers at once."""

    def close(self) -> None:
        """End the workers when they are done."""


class _Flight(NamedTuple):
    slot: Slot
    candidate: int | None  # None: the slot is being prepared
    started: float


class Driver:
    """One evaluation of a population through slots.

    Who is to blame when a pool breaks? With one candidate in it: that one. With several nobody is
    charged; all are started again, and should the pool break a second time, each of them alone,
    so that the one that kills its worker is found and the others lose nothing but time.

    A candidate whose worker was lost is tried at least once more even with ``retries=0``: workers
    die for reasons that have nothing to do with the objective. One that raises, returns no number
    or takes longer than ``timeout`` has ``retries + 1`` attempts.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        task: Task,
        rows: Sequence[Any],
        ledger: Ledger,
        *,
        timeout: float | None,
        retries: int,
    ) -> None:
        self._slots = slots[: len(ledger.open)]
        self._payload = slots[0].payload(task)
        self._rows, self._ledger = rows, ledger
        self._timeout, self._retries = timeout, retries
        self._waiting = deque(ledger.open)
        self._suspects: deque[int] = deque()  # each to be run with nothing else in its slot
        self._attempts = [0] * len(rows)
        self._flights: dict[Any, _Flight] = {}
        self._busy: Counter[Slot] = Counter()  # flights of each slot
        self._reserved: set[Slot] = set()  # slots that a suspect has for itself
        self._breaks = 0  # with more than one candidate in flight

    def run(self) -> None:
        """Evaluate everything; whatever ends this early leaves no worker of ours running."""
        try:
            while self._ledger.open:
                for slot in self._slots:
                    self._fill(slot)
                self._land(self._completed())
                self._end_overdue()
        except BaseException:
            for slot in self._slots:
                self._ground(slot)
            raise

    # === Take-off ===

    def _fill(self, slot: Slot) -> None:
        """Start as many candidates as the slot takes."""
        while self._has_room(slot):
            candidate = None
            handle = slot.prepare(self._payload)
            if handle is None:
                if self._suspects:
                    self._reserved.add(slot)
                candidate = (self._suspects or self._waiting).popleft()
                handle = slot.submit(self._payload, candidate, self._rows[candidate])
            self._flights[handle] = _Flight(slot, candidate, time.monotonic())
            self._busy[slot] += 1

    def _has_room(self, slot: Slot) -> bool:
        busy = self._busy[slot]
        if self._suspects:
            return busy == 0
        if not self._waiting or slot in self._reserved:
            return False
        return slot.width is None or busy < slot.width

    # === Landing ===

    def _completed(self) -> Sequence[Any]:
        seconds = None
        if self._timeout is not None:
            first = min(flight.started for flight in self._flights.values())
            seconds = max(0.0, first + self._timeout - time.monotonic())
        return self._slots[0].completed(list(self._flights), seconds)

    def _land(self, handles: Sequence[Any]) -> None:
        """Enter what came back; only then see to the slots that broke."""
        broken: dict[Slot, str] = {}
        for handle in handles:
            flight = self._flights[handle]
            try:
                result = flight.slot.result(handle)
            except PoolBrokenError as error:
                broken[flight.slot] = str(error)
                continue
            self._remove(handle)
            self._enter(flight, result)
        for slot, why in broken.items():
            self._mourn(slot, why)

    def _enter(self, flight: _Flight, result: float | Failure | None) -> None:
        if flight.candidate is None:
            if isinstance(result, Failure):
                raise TypeError(
                    "fun: expected a function that worker processes can import, but loading it "
                    f"there raised {result.summary}\n\n{result.traceback}"
                )
        elif isinstance(result, Failure):
            self._charge(flight.candidate, result, self._waiting)
        elif result is not None:
            self._ledger.succeed(flight.candidate, result)
        if self._timeout is not None and flight.slot.width is None:
            self._restart_clocks(flight.slot)

    def _restart_clocks(self, slot: Slot) -> None:
        """Where a pool does not say how wide it is, a candidate may still wait in its queue.

        Its time can be said to run only while nothing else comes to an end.
        """
        now = time.monotonic()
        for handle, flight in self._flights.items():
            if flight.slot is slot:
                self._flights[handle] = flight._replace(started=now)

    # === What went wrong ===

    def _mourn(self, slot: Slot, why: str) -> None:
        """A pool broke, and what was in flight there is lost."""
        lost = self._ground(slot)
        if not slot.rebuildable:
            raise EvaluationError(
                f"workers: it broke ({why}), and one that was passed in cannot be built anew; pass "
                "a function that makes one, as in Evaluator(lambda: ProcessPoolExecutor(4))"
            )
        logger.warning("pool broke with candidates %s in it: %s", lost, why)
        if len(lost) == 1:
            self._charge(lost[0], Failure(why, lost=True), self._suspects)
        elif lost:
            self._breaks += 1
            (self._waiting if self._breaks == 1 else self._suspects).extend(lost)

    def _end_overdue(self) -> None:
        """Kill the workers that have been at one candidate for too long."""
        if self._timeout is None:
            return
        started_by = time.monotonic() - self._timeout
        overdue = {
            flight.candidate: flight.slot
            for flight in self._flights.values()
            if flight.candidate is not None and flight.started <= started_by
        }
        failure = Failure(f"TimeoutError: no value within {self._timeout:g} seconds")
        for slot in set(overdue.values()):
            blame_is_clear = slot.width is not None or self._busy[slot] == 1
            lost = self._ground(slot)
            logger.warning("timeout: workers killed with candidates %s in them", lost)
            if not blame_is_clear:  # which one hangs, and which only waited in the pool's queue?
                self._suspects.extend(lost)
                continue
            for candidate in lost:
                if candidate in overdue:
                    self._charge(candidate, failure, self._waiting)
                else:
                    self._waiting.append(candidate)

    def _charge(self, candidate: int, failure: Failure, again: deque[int]) -> None:
        """One attempt is used up; queue the candidate ``again`` or enter it as failed."""
        self._attempts[candidate] += 1
        if self._attempts[candidate] <= max(self._retries, int(failure.lost)):
            again.append(candidate)
        else:
            self._ledger.fail(candidate, failure, self._attempts[candidate])

    def _ground(self, slot: Slot) -> list[int]:
        """Give up everything in a slot, and kill its workers if they are ours."""
        handles = [handle for handle, flight in self._flights.items() if flight.slot is slot]
        flights = [self._remove(handle) for handle in handles]
        for handle in handles:
            if hasattr(handle, "cancel"):
                handle.cancel()
        if slot.rebuildable:
            slot.kill()
        return [flight.candidate for flight in flights if flight.candidate is not None]

    def _remove(self, handle: Any) -> _Flight:
        flight = self._flights.pop(handle)
        self._busy[flight.slot] -= 1
        if not self._busy[flight.slot]:
            self._reserved.discard(flight.slot)
        return flight
