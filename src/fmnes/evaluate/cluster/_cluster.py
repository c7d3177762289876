"""`Cluster`: the workers that hold the state of a search."""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from fmnes import _checks as checks
from fmnes.evaluate._ray import RayExecutor
from fmnes.evaluate.cluster._dask_actors import DaskHost
from fmnes.evaluate.cluster._ray_actors import RayHost


@runtime_checkable
class Host(Protocol):
    """Starts actors, objects in other processes, and calls their methods."""

    def count(self) -> int:
        """How many actors the cluster has room for now."""

    def start(self) -> Any:
        """Start a `Replica`; return a handle at once, even if there is no room for it yet."""

    def call(self, actor: Any, method: str, *args: Any) -> "Future[Any]":
        """Call a method of an actor; an actor runs its calls one after the other.

        If the actor is lost, the Future has an exception.
        """

    def end(self, actor: Any, *, busy: bool) -> None:
        """End an actor, by force if it is ``busy``; it may have ended already."""


@dataclass(frozen=True)
class Cluster:
    """Workers that each hold the state of the search, so that only values cross the network.

    For 10^5 variables and more: ``minimize(..., workers=Cluster(client))``, or in an `Evaluator`
    with further policies. The result is exactly that of a search without workers.

    Parameters
    ----------
    pool : distributed.Client, fmnes.evaluate.RayExecutor, or Host
        Where the workers run: as Dask actors, one in each Dask worker; as Ray actors, each with
        the resources of the RayExecutor; or as actors of an object with the methods of a `Host`.
    n : int, optional
        The largest number of workers. By default as many as the cluster has room for when the
        search begins. Workers without room join later, when there is room.

    Notes
    -----
    Only for methods of linear time on NumPy arrays. Each worker needs memory for the state, and
    time for one update per generation. Workers have to run the same versions of fmnes and NumPy
    with the same kernels; others are refused. docs/cluster.md has examples for Dask and Ray.
    """

    pool: Any
    n: int | None = None

    def __post_init__(self) -> None:
        if self.n is not None:
            checks.integer("n", self.n, least=1)
        if not (_is_dask(self.pool) or isinstance(self.pool, (RayExecutor, Host))):
            raise TypeError(
                "pool: expected a Client of Dask, a fmnes.evaluate.RayExecutor, or an object with "
                "the methods of fmnes.evaluate.cluster.Host, got "
                f"{type(self.pool).__name__}: {self.pool!r}"
            )

    def host(self) -> Host:
        """What starts the actors in the pool."""
        if isinstance(self.pool, RayExecutor):
            return RayHost(self.pool)
        host: Host = DaskHost(self.pool) if _is_dask(self.pool) else self.pool
        return host


def _is_dask(pool: Any) -> bool:
    """Whether a pool is a Client of Dask, not one of its executors."""
    bases = type(pool).__mro__
    is_dask = any(base.__module__.startswith("distributed.") for base in bases)
    return is_dask and hasattr(pool, "restart_workers")
