"""`Evaluator`: where and how a population is evaluated, and what becomes of failures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fmnes._arrays import to_host
from fmnes._population import Population
from fmnes.evaluate._guard import Task, guarded_pair
from fmnes.evaluate._outcome import Failure, Ledger, OnError, Outcome, Report
from fmnes.evaluate._policies import Policies
from fmnes.evaluate._values import to_value, to_values
from fmnes.evaluate.cluster._cluster import Cluster

if TYPE_CHECKING:
    from fmnes.evaluate._slot import Slot

MapLike = Callable[..., Iterable[Any]]

_LARGE = 2**18  # bytes of a population that workers should rather build by themselves


class Evaluator:
    """Evaluates populations, one candidate at a time or many.

    Parameters
    ----------
    workers : None, int, object with ``submit``, callable, or Cluster
        None evaluates in the calling thread. An int n keeps n processes: one that dies or hangs
        is replaced and costs one candidate. An object with ``submit`` (any
        `concurrent.futures.Executor`, a Dask ``Client``, a `RayExecutor`, an executor of submitit,
        or whatever returns objects with ``done()`` and ``result()``) is used and left open. A
        callable without arguments that makes such an object is called when one is needed: after a
        breakdown, again. An executor that was passed in and breaks cannot be built anew. A
        `Cluster` keeps the state of the search on each of its workers.
    timeout : float, optional
        Seconds that one evaluation may take. Then its worker is killed, so ``workers`` has to be an
        int, a callable, or of Dask or Ray; threads cannot be killed, only left behind. Workers of
        other pools get 30 seconds more while they start.
    retries : int
        Further attempts after one that raised, returned no real number or ran out of time. A
        candidate whose worker died is tried a second time even with 0.
    on_error : {"raise", "penalize"}
        What a candidate that failed in every attempt does: raise `EvaluationError` (TypeError if
        the last attempt returned no real number; without workers and retries, the exception of the
        objective itself), or get the value NaN.
    fraction : float
        Share of a population that has to come back; what is late then has failed (so ``on_error``
        has to be "penalize"). Below 1 the answer depends on how quick each worker was.
    chunksize : int, optional
        Candidates that go to a worker at a time. By default as many as make some milliseconds of
        work; a batch system that takes seconds to start a job wants more.

    Notes
    -----
    A candidate may be evaluated more than once, when a worker is lost; its value is used once.
    The objective gets a read-only row that is valid during the call. Worker processes import
    what they run, so scripts keep their main part under ``if __name__ == "__main__":``; with
    cloudpickle installed (``fmnes[workers]``) they also take lambdas and closures. BLAS uses one
    thread in each of our processes unless the environment says otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from fmnes.evaluate import Evaluator
    >>> with Evaluator(on_error="penalize") as evaluator:
    ...     outcome = evaluator.evaluate(sum, (), np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> outcome.values
    array([3., 7.])
    """

    def __init__(
        self,
        workers: Any = None,
        *,
        timeout: float | None = None,
        retries: int = 0,
        on_error: OnError = "raise",
        fraction: float = 1.0,
        chunksize: int | None = None,
    ) -> None:
        self._policies = Policies(timeout, retries, on_error, fraction, chunksize).checked()
        self._slots = _slots(workers)
        # A cluster always builds its candidates itself: that is what it is for.
        self._large = 0 if isinstance(workers, Cluster) else _LARGE
        self._map: MapLike = map
        # Nothing to decide means nothing to guard: what the objective raises goes straight up.
        self._plain = not self._slots and retries == 0 and on_error == "raise"
        if timeout is not None:
            _check_timed(self._slots, workers)
        if self._slots:
            from fmnes.evaluate._cargo import Packer
            from fmnes.evaluate._driver import Driver

            self._driver, self._packer = Driver(self._slots, self._policies), Packer()
        elif fraction < 1 or chunksize is not None:
            name, value = ("fraction", fraction) if fraction < 1 else ("chunksize", chunksize)
            raise ValueError(f"{name}: expected workers to go with it, got {value!r} without")

    @classmethod
    def from_map(
        cls, map_like: MapLike, *, retries: int = 0, on_error: OnError = "raise"
    ) -> "Evaluator":
        """An Evaluator around a callable that is used as ``map(function, iterable)``.

        Without fault tolerance: a map cannot say which candidate hangs or killed its worker, so
        there is no timeout, and what happens then (often an endless wait) is up to the map.
        """
        if not callable(map_like):
            raise TypeError(f"map_like: expected a callable, got {type(map_like).__name__}")
        evaluator = cls(retries=retries, on_error=on_error)
        evaluator._map = map_like
        evaluator._plain = False
        return evaluator

    def evaluate(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        x: Any,
        known: Mapping[int, float] | None = None,
        report: Report | None = None,
    ) -> Outcome:
        """The values ``fun(row, *args)`` of the rows of x, shape (n, d), of any array library.

        x may also be what `Optimizer.population` returns, which large ones are sent as.
        ``known`` has the values of rows that need no evaluation, by their index; they are not
        reported. ``report(index, value, error)`` is called for each of the others as soon as it
        has its final value, in the order of completion; after a failure the value is NaN and the
        error its traceback, else None.
        """
        if isinstance(x, Population) and not self._slots:
            x = x.rows()
        x, popsize = read_only(x), x.shape[0]
        if self._plain and not known and report is None:
            values = [to_value(fun(x[i, ...], *args), i) for i in range(popsize)]
            return Outcome(np.array(values, dtype=np.float64))
        task = Task(fun, args)
        ledger = Ledger(popsize, self._policies.on_error, known or {}, report)
        if self._plain:
            for i in list(ledger.open):
                ledger.succeed(i, to_value(fun(x[i, ...], *args), i))
        elif self._slots and ledger.open:
            from fmnes.evaluate._cargo import Cargo

            self._driver.run(Cargo(task, x, self._packer), ledger)
        elif ledger.open:
            self._evaluate_by_map(task, x, ledger)
        return ledger.outcome()

    def builds(self, nbytes: int) -> bool:
        """Whether workers should build a population of so many bytes by themselves."""
        return nbytes >= self._large and any(slot.builds for slot in self._slots[:1])

    def close(self) -> None:
        """End the processes and pools that this object made; a later `evaluate` makes new ones."""
        if self._slots:
            self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _evaluate_by_map(self, task: Task, x: Any, ledger: Ledger) -> None:
        """Wave after wave, each with the candidates that failed in the one before."""
        waiting = list(ledger.open)
        for attempt in range(1, self._policies.retries + 2):
            failed: list[int] = []
            results = self._map(partial(guarded_pair, task), [(i, x[i, ...]) for i in waiting])
            came = 0
            for came, result in enumerate(
                results, start=1
            ):  # each as it comes, where the map is lazy
                if came > len(waiting):
                    break
                candidate = waiting[came - 1]
                if not isinstance(result, Failure):
                    ledger.succeed(candidate, result)
                elif attempt <= self._policies.retries:
                    failed.append(candidate)
                else:
                    ledger.fail(candidate, result, attempt)
            if came != len(waiting):
                raise ValueError(
                    f"map_like: expected one result for each of {len(waiting)} candidates, "
                    f"got {came}"
                )
            waiting = failed


def evaluate_vectorized(fun: Callable[..., Any], args: tuple[Any, ...], x: Any) -> Outcome:
    """The values of all rows of x from one call ``fun(x, *args)``."""
    return Outcome(to_values(to_host(fun(read_only(x), *args)), x.shape[0]))


def read_only(x: Any) -> Any:
    """A view that cannot be written to, where the library of the array knows such a thing."""
    if not isinstance(x, np.ndarray) or not x.flags.writeable:
        return x
    view = x.view()
    view.flags.writeable = False
    return view


def _slots(workers: Any) -> "Sequence[Slot]":
    """What a `workers` argument means. Pools are imported here, so that `import fmnes` is quick."""
    if workers is None:
        return []
    if isinstance(workers, (int, np.integer)) and not isinstance(workers, bool):
        if workers < 1:
            raise ValueError(f"workers: expected at least 1 process, got {workers}")
        from fmnes.evaluate._worker import Worker

        return [Worker() for _ in range(workers)]
    if isinstance(workers, Cluster):
        from fmnes.evaluate.cluster._crew import Crew

        return [Crew(workers)]
    is_factory = callable(workers) and (isinstance(workers, type) or not hasattr(workers, "submit"))
    if not is_factory and not hasattr(workers, "submit"):
        raise TypeError(
            "workers: expected None, a number of processes, an object with a `submit` method, a "
            f"function that makes one, or a Cluster, got {type(workers).__name__}: {workers!r}"
        )
    from fmnes.evaluate._pool import Pool

    return [Pool(make=workers) if is_factory else Pool(workers)]


def _check_timed(slots: "Sequence[Slot]", workers: Any) -> None:
    if not any(slot.can_stop for slot in slots):
        raise ValueError(
            "timeout: expected None, because only workers that can be killed and replaced can be "
            f"timed: workers is {workers!r}, not an int, a function that makes a pool, Dask or Ray"
        )
