"""Ray's actors."""

from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._ray import Ray, RayExecutor
from fmnes.evaluate.cluster._replica import Replica


class RayHost:
    """An actor waits in Ray's queue until the cluster has what it needs."""

    def __init__(self, pool: RayExecutor) -> None:
        import ray

        self.count = Ray(pool).count
        options = {name: value for name, value in pool.options.items() if name != "max_retries"}
        self._make = ray.remote(**options)(Replica)

    def start(self) -> Any:
        """A handle at once."""
        return self._make.remote()

    def call(self, actor: Any, method: str, *args: Any) -> "Future[Any]":
        """Ray's own Future of `concurrent.futures`."""
        future: Future[Any] = getattr(actor, method).remote(*args).future()
        return future

    def end(self, actor: Any, *, busy: bool) -> None:
        """Its process is killed."""
        import ray

        ray.kill(actor)
