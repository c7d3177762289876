"""Ray: tasks of a cluster that `ray.init` has joined, with the ``submit`` of an Executor."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._backends import Elastic


class RayExecutor:
    """Evaluates in tasks of Ray: ``Evaluator(RayExecutor())`` after ``ray.init(...)``.

    Parameters
    ----------
    **options
        What one evaluation needs, as `ray.remote` takes it: ``num_cpus`` (1 by default),
        ``num_gpus``, ``resources``, ``memory``, ``runtime_env`` and so on.

    Notes
    -----
    Ray listens on all network interfaces of a machine, also for ``ray.init()`` on a laptop.
    """

    def __init__(self, **options: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("RayExecutor: pip install 'fmnes[ray]'") from error
        if not ray.is_initialized():
            raise RuntimeError("RayExecutor: expected a call of ray.init() first, got none")
        # Attempts are counted by the driver, which is told of every death.
        self.options = {"num_cpus": 1, "max_retries": 0, **options}
        self._call = ray.remote(**self.options)(_call)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """A Future whose ``object_ref`` is Ray's."""
        future: Future[Any] = self._call.remote(function, *args).future()
        return future


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


class Ray(Elastic):
    """A dead worker costs one chunk, and so does one that is killed because it hangs."""

    def count(self) -> int:
        """How often what a task needs fits into the cluster."""
        import ray

        there, options = ray.cluster_resources(), self.pool.options
        needs = {"CPU": options["num_cpus"], "GPU": options.get("num_gpus") or 0}
        needs |= options.get("resources") or {}
        fits = [there.get(name, 0) / need for name, need in needs.items() if need]
        return int(min(fits, default=1))

    def share(self, data: bytes) -> Any:
        """In the object store."""
        import ray

        return ray.put(data)

    def stop(self, handle: Any) -> bool:
        """Its process is killed."""
        import ray

        ray.cancel(handle.object_ref, force=True)
        return True

    def drop(self, handle: Any) -> None:
        """Its process is killed."""
        self.stop(handle)

    def kill(self) -> None:
        """All that ran was dropped one by one; the cluster is the caller's."""

    close = kill
