"""`Cluster`: which workers hold the state of a search."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fmnes import _checks as checks

if TYPE_CHECKING:  # pools are imported only when asked for
    from concurrent.futures import Future


@runtime_checkable
class Host(Protocol):
    """An engine that keeps objects at other places and calls their methods: actors."""

    def count(self) -> int:
        """How many actors there is room for now."""

    def start(self) -> Any:
        """A new `Replica` somewhere: a handle at once, even where there is no room for it yet."""

    def call(self, actor: Any, method: str, *args: Any) -> "Future[Any]":
        """Call a method of an actor; the calls of one actor are made one after the other.

        An actor that is lost shows in an exception of the Future.
        """

    def end(self, actor: Any, *, busy: bool) -> None:
        """End an actor, by force where it is ``busy``; it may be gone already."""


@dataclass(frozen=True)
class Cluster:
    """Workers that each hold the state of the search, so that only values cross the network.

    For 10^5 variables and more, as ``minimize(..., workers=Cluster(client))``, or in an
    `Evaluator` with further policies. The answer has the bits of a search without workers.

    Parameters
    ----------
    pool : distributed.Client, fmnes.evaluate.RayExecutor, or Host
        Where the workers live: as Dask actors, one in each Dask worker; as Ray actors, each with
        the resources that the RayExecutor was given; or whatever has the methods of a `Host`.
    n : int, optional
        How many workers at most; as many as there is room for when the search begins, by default.
        Those that there is no room for yet join when there is.

    Notes
    -----
    Methods of linear time on NumPy arrays only. Each worker needs the memory of the state, and the
    time of an update for every generation. Workers have to run the same versions of fmnes and NumPy
    on the same kernels; others are refused. docs/cluster.md has examples on Dask and Ray.
    """

    pool: Any
    n: int | None = None

    def __post_init__(self) -> None:
        if self.n is not None:
            checks.integer("n", self.n, least=1)
        if not (_is_dask(self.pool) or _is_ray(self.pool) or isinstance(self.pool, Host)):
            raise TypeError(
                "pool: expected a Client of Dask, a fmnes.evaluate.RayExecutor, or an object with "
                "the methods of fmnes.evaluate.cluster.Host, got "
                f"{type(self.pool).__name__}: {self.pool!r}"
            )

    def host(self) -> Host:
        """The engine of the pool."""
        if _is_dask(self.pool):
            from fmnes.evaluate.cluster._dask import DaskHost

            return DaskHost(self.pool)
        if _is_ray(self.pool):
            from fmnes.evaluate.cluster._ray import RayHost

            return RayHost(self.pool)
        host: Host = self.pool
        return host


def _is_dask(pool: Any) -> bool:
    home = type(pool).__module__
    return home.startswith("distributed.") and hasattr(pool, "restart_workers")


def _is_ray(pool: Any) -> bool:
    return type(pool).__module__ == "fmnes.evaluate._ray"
