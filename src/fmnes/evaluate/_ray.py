"""Ray: tasks of a cluster that `ray.init` has joined, with the ``submit`` of an Executor."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from fmnes.evaluate._executor import ElasticPool


class RayExecutor:
    """Evaluates in tasks of Ray: ``Evaluator(RayExecutor())`` after ``ray.init(...)``.

    Parameters
    ----------
    **options
        What one evaluation needs, as `ray.remote` takes it: ``num_cpus`` (1 by default),
        ``num_gpus``, ``resources``, ``memory``, ``runtime_env`` and so on.

    Notes
    -----
    Ray listens on all network interfaces of a machine, also after ``ray.init()`` on a laptop.
    """

    def __init__(self, **options: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("RayExecutor: pip install 'fmnes[ray]'") from error
        if not ray.is_initialized():
            raise RuntimeError("RayExecutor: expected a call of ray.init() first, got none")
        # No retries by Ray: the driver counts the attempts.
        self.options = {"num_cpus": 1, "max_retries": 0, **options}
        self._call = ray.remote(**self.options)(_call)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Start a task; the Future has Ray's ``object_ref``."""
        future: Future[Any] = self._call.remote(function, *args).future()
        return future


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


class RayPool(ElasticPool):
    """Tasks of Ray: a worker that dies or is killed costs one chunk."""

    def count(self) -> int:
        """How many tasks the resources of the cluster allow at the same time."""
        import ray

        available, options = ray.cluster_resources(), self.pool.options
        needs = {"CPU": options["num_cpus"], "GPU": options.get("num_gpus") or 0}
        needs |= options.get("resources") or {}
        fits = [available.get(name, 0) / need for name, need in needs.items() if need]
        return int(min(fits, default=1))

    def _share(self, data: bytes) -> Any:
        """A reference into Ray's object store."""
        import ray

        return ray.put(data)

    def _kill(self, handle: Any) -> None:
        """Kill the process of the task."""
        import ray

        ray.cancel(handle.object_ref, force=True)

    def drop(self, handles: Sequence[Any]) -> None:
        for handle in handles:
            self._kill(handle)
