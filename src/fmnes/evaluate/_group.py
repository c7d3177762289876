"""Workers, as the driver sees them."""

from collections.abc import Sequence
from typing import Any

from fmnes.evaluate._call import ChunkResult
from fmnes.evaluate._outcome import Failure
from fmnes.evaluate._payload import Workload

STARTUP_SECONDS = 30.0  # that a worker may need to start and to load the objective


class GroupBrokenError(Exception):
    """All chunks in a group are lost; the text says why."""


class WorkerGroup:
    """Evaluates chunks of candidates: one process of ours, somebody's pool, or a cluster.

    `submit` returns a handle, which the driver passes back to the other methods.
    """

    in_order = False  # whether chunks are done in the order in which they were submitted
    elastic = False  # whether the number of workers may change
    replaceable = True  # whether `end` and the next chunk replace broken workers by new ones
    keeps_late_chunks = True  # whether late chunks should end by themselves instead of being killed

    @property
    def width(self) -> int | None:
        """How many chunks run at the same time; None if the pool does not say."""
        raise NotImplementedError

    @property
    def lookahead(self) -> int:
        """How many more chunks may be submitted, so that no worker waits for the driver."""
        return 0

    @property
    def isolates(self) -> bool:
        """Whether a worker that dies takes only its own chunk with it."""
        return True

    @property
    def can_stop(self) -> bool:
        """Whether there is a way to end a chunk that hangs."""
        return True

    @property
    def builds(self) -> bool:
        """Whether workers should build the candidates of a large population themselves."""
        return True

    @property
    def startup_seconds(self) -> float:
        """Seconds that the last `prepare` or `submit` may take beyond the time of its candidates.

        A worker may have to start, or to load the objective.
        """
        return 0.0

    def prepare(self, workload: Workload) -> Any | None:
        """A handle that has to complete before the next `submit`, or None."""
        return None

    def submit(self, workload: Workload, candidates: Sequence[int], seconds: float) -> Any:
        """Start a chunk; it returns early if it takes longer than ``seconds``.

        TypeError if the objective cannot be sent. A broken pool shows in `result`.
        """
        raise NotImplementedError

    def result(self, handle: Any) -> ChunkResult | Failure:
        """The result of a completed chunk; a Failure if this chunk was lost.

        GroupBrokenError if all chunks were lost.
        """
        raise NotImplementedError

    def completed(self, handles: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Wait for the first handle, at most ``seconds``; return the handles that are completed.

        The handles may belong to several groups of the same class.
        """
        raise NotImplementedError

    def is_queued(self, handle: Any) -> bool:
        """Whether a chunk is known to be waiting for a worker."""
        return False

    def stop(self, handle: Any) -> bool:
        """Kill one chunk; False if only `end` can do this, with all other chunks."""
        return False

    def drop(self, handles: Sequence[Any]) -> None:
        """Give up chunks: nobody waits for them any more."""

    def end(self, *, force: bool) -> None:
        """End the workers that are ours, when they are idle or by force.

        The next chunk starts new ones.
        """
        raise NotImplementedError
