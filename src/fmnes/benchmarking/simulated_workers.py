"""A pool of workers on a simulated clock, to measure what waiting costs without waiting."""

from collections.abc import Callable
from typing import Any


class SimulatedWorkers:
    """An executor whose workers take as long as ``seconds()`` says, and compute in no time.

    The pool completes one job at a time, the one that ends first. `workers` of `minimize` takes it
    as any other pool.
    """

    def __init__(self, count: int, seconds: Callable[[], float]) -> None:
        self._max_workers = count  # as executors of the standard library say it
        self._seconds = seconds
        self._running: dict[Job, float] = {}  # when each one ends
        self._next: Job | None = None  # the one that ends first, if known
        self.now = self.busy = 0.0

    def submit(self, function: Callable[..., Any], /, *args: Any) -> "Job":
        """Start a job; never more of them than there are workers."""
        job, seconds = Job(self, function, args), self._seconds()
        self._running[job] = self.now + seconds
        self.busy += seconds
        self._next = None
        return job

    def is_next(self, job: "Job") -> bool:
        """Whether no running job ends before this one."""
        if self._next is None:
            self._next = min(self._running, key=self._running.__getitem__)
        return self._next is job

    def complete(self, job: "Job") -> None:
        """Let time pass until a job ends."""
        self.now, self._next = self._running.pop(job), None

    @property
    def utilisation(self) -> float:
        """The share of their time that the workers have worked until now."""
        ahead = sum(end - self.now for end in self._running.values())
        return (self.busy - ahead) / (self.now * self._max_workers)


class Job:
    """One call of a function; what `SimulatedWorkers.submit` returns."""

    def __init__(
        self, pool: SimulatedWorkers, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        self._pool, self._function, self._args = pool, function, args

    def done(self) -> bool:
        """Whether it is the next one to end."""
        return self._pool.is_next(self)

    def result(self) -> Any:
        """Compute the result."""
        self._pool.complete(self)
        return self._function(*self._args)
