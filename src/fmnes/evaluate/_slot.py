"""A pool of workers, as the driver sees it."""

from collections.abc import Sequence
from typing import Any, Protocol

from fmnes.evaluate._cargo import Cargo
from fmnes.evaluate._guard import Answer
from fmnes.evaluate._outcome import Failure


class PoolBrokenError(Exception):
    """What ran in a slot is lost; the text says why."""


class Slot(Protocol):
    """One process of ours, or somebody's pool. Handles are whatever the slot likes."""

    @property
    def width(self) -> int | None:
        """How many chunks run at the same time; None where the pool does not say."""

    @property
    def lookahead(self) -> int:
        """How many more may be submitted, so that no worker has to wait for the driver."""

    @property
    def in_order(self) -> bool:
        """Whether chunks are done in the order in which they were submitted."""

    @property
    def isolates(self) -> bool:
        """Whether a worker that dies takes only its own chunk with it."""

    @property
    def replaceable(self) -> bool:
        """Whether `kill` may be called, after which the slot starts afresh by itself."""

    @property
    def can_stop(self) -> bool:
        """Whether there is a way to end a chunk that hangs."""

    @property
    def leaves_stragglers(self) -> bool:
        """Whether late chunks are better left to end by themselves than stopped."""

    @property
    def builds(self) -> bool:
        """Whether workers should build a large population by themselves."""

    @property
    def allowance(self) -> float:
        """Seconds that the next chunk may take beside its work, for a worker to start."""

    @property
    def patience(self) -> float:
        """Seconds to wait at most until one should look again how wide it is."""

    def prepare(self, cargo: Cargo) -> Any | None:
        """A handle to wait for before the first candidate, or None."""

    def submit(self, cargo: Cargo, candidates: Sequence[int], seconds: float) -> Any:
        """Start a chunk that comes back after so many seconds; a broken pool shows in its result.

        TypeError if the objective cannot be sent.
        """

    def result(self, handle: Any) -> Answer | Failure:
        """What a completed chunk came to; a Failure where the pool lost it and nothing else.

        PoolBrokenError where it was lost with the pool.
        """

    def completed(self, handles: Sequence[Any], seconds: float | None) -> Sequence[Any]:
        """Those completed, after waiting for the first of them or for so many seconds."""

    def is_queued(self, handle: Any) -> bool:
        """Whether a chunk is known to wait for a worker still."""

    def stop(self, handle: Any) -> bool:
        """End one chunk by force; False where that takes `kill`, and all others with it."""

    def drop(self, handles: Sequence[Any]) -> None:
        """Nobody waits for these any more."""

    def kill(self) -> None:
        """End the workers at once."""

    def close(self) -> None:
        """End the workers when they are done."""
