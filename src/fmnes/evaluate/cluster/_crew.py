"""All workers of a cluster as one slot of the driver."""

import math
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from fmnes._population import Population
from fmnes.evaluate._cargo import Cargo
from fmnes.evaluate._guard import Answer, failure_of
from fmnes.evaluate._outcome import EvaluationError, Failure
from fmnes.evaluate.cluster._chronicle import Chronicle
from fmnes.evaluate.cluster._cluster import Cluster
from fmnes.evaluate.cluster._member import Member


class Crew:
    """A slot: each flight is one call to one member.

    Before its first candidate of a generation a member is told the values of the one before, and
    has to come to the driver's state by its own update. One that does not, or that comes late or
    comes back, begins from the chronicle's checkpoint and journal.
    """

    isolates = can_stop = builds = leaves_stragglers = True
    replaceable = False  # it sees to that itself
    lookahead = 0
    in_order = False
    allowance = 0.0
    patience = math.inf  # calls of members that there is no room for are waited for, too

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._members: list[Member] = []
        self._chronicle = Chronicle()
        self._cargo: Cargo | None = None
        self._next: Member | None = None
        self._calls: dict[Future[Any], Member] = {}

    @property
    def width(self) -> int:
        """Members that may take part."""
        if not self._members:
            self._gather()
        width = sum(member.refused is None for member in self._members)
        if not width:
            reasons = "; ".join(str(member.refused) for member in self._members)
            raise EvaluationError(f"workers: none of the cluster can take part: {reasons}")
        return width

    def _gather(self) -> None:
        host = self._cluster.host()
        n = max(1, host.count()) if self._cluster.n is None else self._cluster.n
        self._members = [Member(host, number) for number in range(n)]

    def prepare(self, cargo: Cargo) -> "Future[Any] | None":
        """Find a free member that is ready; else make one so, step by step."""
        if cargo is not self._cargo:
            if not isinstance(cargo.x, Population):
                raise ValueError(
                    "workers: expected no Cluster, because its workers build the candidates, which "
                    "takes a method of linear time on NumPy arrays"
                )
            self._cargo = cargo
            self._chronicle.go_on(cargo.x)
        free = [member for member in self._members if member.is_idle and member.refused is None]
        for member in free:
            if member.is_ready(cargo.objective, self._chronicle):
                self._next = member
                return None
        return self._note(free[0], free[0].prepare(cargo.objective, self._chronicle))

    def submit(self, cargo: Cargo, candidates: Sequence[int], seconds: float) -> "Future[Any]":
        """Start a chunk, with the member that `prepare` found."""
        if self._next is None:
            raise RuntimeError("prepare() comes before submit()")
        return self._note(self._next, self._next.work(list(candidates), seconds))

    def _note(self, member: Member, call: "Future[Any]") -> "Future[Any]":
        self._calls[call] = member
        return call

    def result(self, handle: "Future[Any]") -> Answer | Failure:
        """What a call came to; a Failure where the member was lost."""
        member = self._calls.pop(handle)
        try:
            answer = handle.result()
        except Exception as error:  # noqa: BLE001  the engine's own; the objective's are data
            failure = failure_of(error)._replace(lost=True)
            member.lose(failure)
            return failure
        return member.take(answer, self._chronicle)

    @staticmethod
    def completed(
        handles: "Sequence[Future[Any]]", seconds: float | None
    ) -> "Sequence[Future[Any]]":
        """Those that are done, after waiting for the first of them."""
        return list(wait(handles, seconds, return_when=FIRST_COMPLETED).done)

    def is_queued(self, handle: "Future[Any]") -> bool:
        """A member that gets candidates is free."""
        return False

    def stop(self, handle: "Future[Any]") -> bool:
        """End the member that hangs."""
        self._calls.pop(handle).end()
        return True

    def drop(self, handles: "Sequence[Future[Any]]") -> None:
        """End those that work in vain: all, whether a signal let the driver hear of them or not."""
        self._calls.clear()
        for member in self._members:
            if not member.is_idle:
                member.end()

    def kill(self) -> None:
        """Never called: it is not replaceable."""

    def close(self) -> None:
        """End all members."""
        for member in self._members:
            member.end()
        self._members, self._calls = [], {}
        self._chronicle, self._cargo = Chronicle(), None
