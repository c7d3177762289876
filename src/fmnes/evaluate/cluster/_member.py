"""A worker of a cluster, as the driver sees it."""

import logging
from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._cargo import Parcel
from fmnes.evaluate._guard import Answer
from fmnes.evaluate._outcome import Failure
from fmnes.evaluate.cluster._chronicle import Chronicle, Place
from fmnes.evaluate.cluster._cluster import Host
from fmnes.evaluate.cluster._replica import identity

logger = logging.getLogger("fmnes")

_MOST_DEATHS = 3  # in a row, before the first candidate


class Member:
    """What one worker is known to hold, and the one call to it that is under way."""

    def __init__(self, host: Host, number: int) -> None:
        self._host, self._name = host, f"worker {number}"
        self._actor: Any = None
        self._method = ""  # of the call that is under way; none if empty
        self._refused: str | None = None
        self._deaths = 0
        self._forget()

    def _forget(self) -> None:
        self._is_known = False
        self._objective = ""  # the key of the one that it holds
        self._place: Place | None = None
        self._from_checkpoint = False  # how it got to that place

    @property
    def refused(self) -> str | None:
        """Why it may not take part, if so."""
        return self._refused

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._method

    def is_ready(self, objective: Parcel, chronicle: Chronicle) -> bool:
        """Whether it holds what it needs to evaluate candidates."""
        there = self._place == chronicle.place
        return self._is_known and there and self._objective == objective.key

    # === Calls ===

    def prepare(self, objective: Parcel, chronicle: Chronicle) -> "Future[Any]":
        """The next step of what it needs: to be there, to be known, the objective, the state."""
        if self._actor is None:
            self._actor = self._host.start()
        if not self._is_known:
            return self._call("join")
        if self._objective != objective.key:
            self._objective = objective.key
            return self._call("hold", objective.data)
        checkpoint, journal = chronicle.since(self._place)
        self._place, self._from_checkpoint = chronicle.place, bool(checkpoint)
        return self._call("follow", checkpoint, journal)

    def work(self, candidates: list[int], seconds: float) -> "Future[Any]":
        """Evaluate candidates."""
        if self._place is None:
            raise RuntimeError("prepare() comes before work()")
        return self._call("work", self._place.generation, candidates, seconds)

    def _call(self, method: str, *args: Any) -> "Future[Any]":
        self._method = method
        return self._host.call(self._actor, method, *args)

    # === Answers ===

    def take(self, answer: Any, chronicle: Chronicle) -> Answer:
        """What the call came to."""
        method, self._method = self._method, ""
        if method == "join":
            self._check(*answer)
        elif method == "follow":
            self._compare(answer, chronicle)
        else:
            done: Answer = answer
            if method == "work":
                self._deaths = 0
            if done.missing:  # its engine has begun it anew
                self._forget()
            return done
        return Answer(())

    def _check(self, got: dict[str, Any], where: str) -> None:
        self._name, expected = where, identity()
        if got == expected:
            self._is_known = True
        else:
            self._refuse(f"expected {_words(expected)} as in the driver, got {_words(got)}")

    def _compare(self, fingerprint: int, chronicle: Chronicle) -> None:
        """Hashes of states, every generation."""
        if self._place != chronicle.place:  # the search went on meanwhile
            return
        if fingerprint == chronicle.fingerprint:
            chronicle.agree()
            return
        self._place = None
        if self._from_checkpoint:
            self._refuse("its updates lead to another state than the driver's, bit for bit")
        else:
            logger.warning("%s: its state differs; it begins anew from a checkpoint", self._name)

    def _refuse(self, why: str) -> None:
        """It keeps its place, where the next one to be started would be refused, too."""
        self._refused = f"{self._name}: {why}"
        logger.warning("workers: refused %s", self._refused)

    # === The end ===

    def lose(self, failure: Failure) -> None:
        """It died."""
        why = failure.summary.partition("\n")[0]
        logger.warning("workers: lost %s (%s): %s", self._name, self._method, why)
        preparing = self._method != "work"
        self._method = ""
        self.end()
        self._deaths += preparing
        if self._deaths >= _MOST_DEATHS:
            self._refuse(f"died {self._deaths} times before its first candidate: {why}")

    def end(self) -> None:
        """By force where candidates are under way; the next call needs another actor."""
        actor, busy = self._actor, self._method == "work"
        self._actor, self._method = None, ""
        self._forget()
        if actor is not None:
            self._host.end(actor, busy=busy)


def _words(versions: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in versions.items())
