"""Actors of Ray."""

from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._ray import RayExecutor, RayPool
from fmnes.evaluate.cluster._replica import Replica


class RayHost:
    """Starts actors, which wait in Ray's queue until the cluster has the resources they need."""

    def __init__(self, pool: RayExecutor) -> None:
        import ray

        self.count = RayPool(pool).count
        options = {name: value for name, value in pool.options.items() if name != "max_retries"}
        self._make = ray.remote(**options)(Replica)

    def start(self) -> Any:
        return self._make.remote()

    def call(self, actor: Any, method: str, *args: Any) -> "Future[Any]":
        future: Future[Any] = getattr(actor, method).remote(*args).future()
        return future

    def end(self, actor: Any, *, busy: bool) -> None:
        """Kill the process of the actor."""
        import ray

        ray.kill(actor)
