"""One worker of a cluster, as the driver sees it."""

import logging
import math
from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._call import ChunkResult
from fmnes.evaluate._group import STARTUP_SECONDS
from fmnes.evaluate._outcome import Failure
from fmnes.evaluate._payload import Payload
from fmnes.evaluate.cluster._cluster import Host
from fmnes.evaluate.cluster._replica import identity
from fmnes.evaluate.cluster._update_log import LogPosition, UpdateLog

logger = logging.getLogger("fmnes")

_MOST_DEATHS = 3  # in a row, before the first candidate
_MOST_CHANGES = 3  # of the state, between two comparisons


class RemoteReplica:
    """What the driver knows about one `Replica`, and the call to it that is in progress."""

    def __init__(self, host: Host, number: int) -> None:
        self._host, self._name = host, f"worker {number}"
        self.refused: str | None = None  # why this worker may not take part
        self._deaths = self._changes = 0
        self._reset()

    def _reset(self) -> None:
        self._actor: Any = None
        self._method = ""  # of the call in progress; empty if there is none
        self._forget()

    def _forget(self) -> None:
        self._has_joined = False
        self._objective = ""  # the key of the objective that it holds
        self._position: LogPosition | None = None
        self._from_checkpoint = False  # whether it reached this position from a checkpoint

    @property
    def is_idle(self) -> bool:
        """Whether no call is in progress."""
        return not self._method

    @property
    def startup_seconds(self) -> float:
        """Time beyond that of candidates for the call in progress; it may wait for room to join."""
        return {"join": math.inf, "work": 0.0}.get(self._method, STARTUP_SECONDS)

    def is_ready(self, objective: Payload, log: UpdateLog) -> bool:
        """Whether the worker holds what it needs to evaluate candidates."""
        is_current = self._position == log.position and self._objective == objective.key
        return self._has_joined and is_current

    # === Calls ===

    def prepare(self, objective: Payload, log: UpdateLog) -> "Future[Any]":
        """Make the next call on the way to `is_ready`: join, hold the objective, follow."""
        if self._actor is None:
            self._actor = self._host.start()
        if not self._has_joined:
            return self._call("join")
        if self._objective != objective.key:
            self._objective = objective.key
            return self._call("hold", objective.data)
        checkpoint, values = log.since(self._position)
        self._position, self._from_checkpoint = log.position, bool(checkpoint)
        return self._call("follow", checkpoint, values)

    def work(self, candidates: list[int], seconds: float) -> "Future[Any]":
        """Evaluate candidates."""
        if self._position is None:
            raise RuntimeError("prepare() comes before work()")
        return self._call("work", self._position.generation, candidates, seconds)

    def _call(self, method: str, *args: Any) -> "Future[Any]":
        self._method = method
        return self._host.call(self._actor, method, *args)

    # === Answers ===

    def take(self, answer: Any, log: UpdateLog) -> ChunkResult:
        """Take in the answer to the call that was in progress."""
        method, self._method = self._method, ""
        if method == "join":
            self._check_identity(*answer)
            return ChunkResult()
        if method == "follow":
            self._compare(answer, log)
            return ChunkResult()
        if method == "hold":
            held: ChunkResult = answer
            return held
        self._deaths = 0
        result, fingerprint = answer
        if result.missing:  # Dask or Ray has started the actor again
            self._forget()
        elif self._position == log.position and fingerprint != log.fingerprint:
            self._distrust()
            return ChunkResult()  # without the values: the candidates were not the right ones
        answered: ChunkResult = result
        return answered

    def _check_identity(self, got: dict[str, Any], where: str) -> None:
        self._name, expected = where, identity()
        self._has_joined = got == expected
        if not self._has_joined:
            self._refuse(f"expected {_words(expected)} as in the driver, got {_words(got)}")

    def _compare(self, fingerprint: int, log: UpdateLog) -> None:
        """Compare the worker's state with the driver's, in every generation."""
        if self._position != log.position:  # the search has moved on in the meantime
            return
        if fingerprint == log.fingerprint:
            log.confirm()
            return
        self._position = None
        if self._from_checkpoint:
            self._refuse("its updates lead to another state than the driver's, bit for bit")
        else:
            logger.warning("%s: its state differs; it starts again from a checkpoint", self._name)

    def _distrust(self) -> None:
        """The state was right before the candidates were evaluated, and differs afterwards."""
        self._position, self._changes = None, self._changes + 1
        logger.warning("%s: its state has changed; it starts again from a checkpoint", self._name)
        if self._changes >= _MOST_CHANGES:
            self._refuse(f"its state changed {self._changes} times while it evaluated candidates")

    def _refuse(self, why: str) -> None:
        """Exclude the worker; its actor stays, because another one there would be refused, too."""
        self.refused = f"{self._name}: {why}"
        logger.warning("workers: refused %s", self.refused)

    # === The end ===

    def lose(self, failure: Failure) -> None:
        """Note that the worker died."""
        why = failure.summary.partition("\n")[0]
        logger.warning("workers: lost %s (%s): %s", self._name, self._method, why)
        self._deaths += self._method != "work"
        self._method = ""
        self.end()
        if self._deaths >= _MOST_DEATHS:
            self._refuse(f"died {self._deaths} times before its first candidate: {why}")

    def end(self) -> None:
        """End the actor, by force if it runs the user's code; the next call starts another."""
        actor, busy = self._actor, self._method in ("hold", "work")
        self._reset()
        if actor is not None:
            self._host.end(actor, busy=busy)


def _words(versions: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in versions.items())
