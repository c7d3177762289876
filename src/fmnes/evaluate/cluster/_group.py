"""All workers of a cluster as one worker group of the driver."""

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from fmnes._population import Population
from fmnes.evaluate._call import ChunkResult, failure_of
from fmnes.evaluate._group import WorkerGroup
from fmnes.evaluate._outcome import EvaluationError, Failure
from fmnes.evaluate._payload import Workload
from fmnes.evaluate.cluster._cluster import Cluster
from fmnes.evaluate.cluster._remote import RemoteReplica
from fmnes.evaluate.cluster._update_log import UpdateLog


class ReplicaGroup(WorkerGroup):
    """Workers that hold the search; each handle is one call to one of them.

    Before its first candidate of a generation, a worker receives the values of the previous one and
    has to reach the driver's state by its own update. A worker that does not, that is late or that
    was restarted, begins from the checkpoint of the log.
    """

    replaceable = False  # the group replaces single workers itself

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._reset()

    def _reset(self) -> None:
        self._replicas: list[RemoteReplica] = []
        self._calls: dict[Future[Any], RemoteReplica] = {}
        self._log = UpdateLog()
        self._workload: Workload | None = None
        self._next: RemoteReplica | None = None
        self._called: RemoteReplica | None = None  # the last one

    @property
    def width(self) -> int:
        """The number of workers that may take part."""
        if not self._replicas:
            host = self._cluster.host()
            n = max(1, host.count()) if self._cluster.n is None else self._cluster.n
            self._replicas = [RemoteReplica(host, number) for number in range(n)]
        width = sum(replica.refused is None for replica in self._replicas)
        if not width:
            reasons = "; ".join(str(replica.refused) for replica in self._replicas)
            raise EvaluationError(f"workers: none of the cluster can take part: {reasons}")
        return width

    @property
    def startup_seconds(self) -> float:
        return 0.0 if self._called is None else self._called.startup_seconds

    def prepare(self, workload: Workload) -> "Future[Any] | None":
        """Find an idle worker that is ready; if there is none, make the next call to one."""
        if workload is not self._workload:
            if not isinstance(workload.x, Population):
                raise ValueError(
                    "workers: expected no Cluster, because its workers build the candidates, which "
                    "needs a method of linear time on NumPy arrays"
                )
            self._workload = workload
            self._log.append(workload.x)
        idle = [replica for replica in self._replicas if replica.is_idle and not replica.refused]
        for replica in idle:
            if replica.is_ready(workload.objective, self._log):
                self._next = replica
                return None
        return self._track(idle[0], idle[0].prepare(workload.objective, self._log))

    def submit(
        self, workload: Workload, candidates: Sequence[int], seconds: float
    ) -> "Future[Any]":
        """Send a chunk to the worker that `prepare` found."""
        if self._next is None:
            raise RuntimeError("prepare() comes before submit()")
        return self._track(self._next, self._next.work(list(candidates), seconds))

    def _track(self, replica: RemoteReplica, call: "Future[Any]") -> "Future[Any]":
        self._calls[call] = self._called = replica
        return call

    def result(self, handle: "Future[Any]") -> ChunkResult | Failure:
        """The result of a call; a Failure if the worker was lost."""
        replica = self._calls.pop(handle)
        try:
            answer = handle.result()
        except Exception as error:  # noqa: BLE001  of Dask or Ray; those of the objective are data
            failure = failure_of(error, lost=True)
            replica.lose(failure)
            return failure
        return replica.take(answer, self._log)

    def completed(
        self, handles: "Sequence[Future[Any]]", seconds: float
    ) -> "Sequence[Future[Any]]":
        return list(wait(handles, seconds, return_when=FIRST_COMPLETED).done)

    def stop(self, handle: "Future[Any]") -> bool:
        """End the worker that hangs."""
        self._calls.pop(handle).end()
        return True

    def drop(self, handles: "Sequence[Future[Any]]") -> None:
        """End all busy workers, also one whose handle a signal kept from the driver."""
        self._calls.clear()
        for replica in self._replicas:
            if not replica.is_idle:
                replica.end()

    def end(self, *, force: bool) -> None:
        for replica in self._replicas:
            replica.end()
        self._reset()
