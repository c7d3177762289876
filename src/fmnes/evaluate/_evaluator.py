"""`Evaluator`: where and how a population is evaluated, and what happens after failures."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Self

import numpy as np

from fmnes import _checks as checks
from fmnes._arrays import to_host
from fmnes._population import Population
from fmnes.evaluate._call import (
    ObjectiveCall,
    call_user,
    copied,
    evaluate_one,
    plain_values,
)
from fmnes.evaluate._driver import Driver, Supply
from fmnes.evaluate._outcome import (
    EvaluationError,
    EvaluationRecord,
    Failure,
    OnError,
    Outcome,
    StreamRecord,
    Value,
    ValueCallback,
    attach,
    keep_values,
)
from fmnes.evaluate._payload import ObjectivePickler, StreamWorkload, Workload
from fmnes.evaluate._policies import Policies
from fmnes.evaluate._values import to_rows, to_values
from fmnes.evaluate._workers import is_factory, worker_groups
from fmnes.evaluate.cluster._cluster import Cluster

MapLike = Callable[..., Iterable[Any]]

_LARGE = 2**18  # bytes of a population from which on workers build the candidates themselves


class Evaluator:
    """Evaluates populations, one candidate at a time or many in parallel.

    Parameters
    ----------
    workers : None, int, object with ``submit``, callable, or Cluster
        None evaluates in the calling thread. An int n keeps n worker processes, and -1 one for each
        CPU; a process that dies or hangs is replaced and costs one candidate. An object with
        ``submit`` (any `concurrent.futures.Executor`, a Dask ``Client``, a `RayExecutor`, an
        executor of submitit, or anything that returns objects with ``done()`` and ``result()``) is
        used and left open. A callable without arguments that makes such an object is called when a
        pool is needed, and again after the pool broke. An executor that was passed in and breaks
        cannot be made again.
        A `Cluster` keeps the state of the search on each of its workers.
    timeout : float, optional
        Seconds that one evaluation may take. After that its worker is killed, so ``workers`` has to
        be an int, a callable, or of Dask or Ray. Threads cannot be killed, only left alone. Workers
        get 30 more seconds to start and to load the objective.
    retries : int
        Further attempts after one that raised, returned no real number or ran out of time. A
        candidate whose worker died gets a second attempt even with 0.
    on_error : {"raise", "penalize"}
        What happens if a candidate failed in every attempt. "raise" raises `EvaluationError`
        (TypeError if the last attempt returned no real number; without workers and retries, the
        exception of the objective itself). "penalize" gives the candidate the value NaN.
    fraction : float
        Share of a population that has to come back. Later candidates count as failed, so
        ``on_error`` has to be "penalize". Below 1 the result depends on the speed of the workers.
    chunksize : int, optional
        Candidates that go to a worker at a time. By default as many as make some milliseconds of
        work. A batch system that takes seconds to start a job needs more.
    asynchronous : bool
        Whether `minimize` gives a worker its next candidate as soon as the worker is free, instead
        of waiting for the slowest candidate of each generation. See docs/asynchronous.md.

    Notes
    -----
    A candidate may be evaluated more than once if a worker is lost; its value is used once.
    The objective receives a read-only row that is valid during the call. Worker processes import
    the script that started them, so scripts need their main part under
    ``if __name__ == "__main__":``. With cloudpickle installed (``fmnes[workers]``) workers also
    accept lambdas, closures, and functions of a notebook. BLAS uses one thread in each of our
    worker processes, unless the environment sets another number. Only one thread at a time may use
    an Evaluator with workers. After a fork, the child starts worker processes of its own.

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
        asynchronous: bool = False,
    ) -> None:
        self._policies = Policies(timeout, retries, on_error, fraction, chunksize).checked()
        self._workers, self._pickler = workers, ObjectivePickler()
        # A function that makes a pool is called at the first evaluation.
        self._driver = None if is_factory(workers) else self._new_driver()
        self._users: dict[int, int] = {}  # process -> the thread that uses the workers there
        # The workers of a cluster always build their candidates: that is its purpose.
        self._holds_search = isinstance(workers, Cluster)
        self._large = 0 if self._holds_search else _LARGE
        self._map: MapLike = map
        # Without workers and policies, exceptions of the objective propagate unchanged.
        self._plain = workers is None and retries == 0 and on_error == "raise"
        groups = () if self._driver is None else self._driver.groups
        if timeout is not None and (workers is None or not all(g.can_stop for g in groups)):
            raise ValueError(
                "timeout: expected None, because only workers that can be killed and replaced have "
                f"a time limit, got {timeout!r}; workers is {workers!r}, not an int, a function "
                "that makes a pool, Dask or Ray"
            )
        if workers is None and (fraction < 1 or chunksize is not None):
            name, value = ("fraction", fraction) if fraction < 1 else ("chunksize", chunksize)
            raise ValueError(f"{name}: expected workers to go with it, got {value!r} without")
        self.asynchronous = checks.boolean("asynchronous", asynchronous)
        if asynchronous:
            self.check_asynchronous()

    def __repr__(self) -> str:
        given = {"workers": self._workers, **self._policies._asdict()}
        given["asynchronous"] = self.asynchronous
        return f"Evaluator({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def check_asynchronous(self) -> None:
        """Raise a ValueError unless these workers and policies suit an asynchronous search."""
        if self._workers is None or self._holds_search:
            came = "Evaluator.from_map" if self._map is not map else repr(self._workers)
            raise ValueError(
                "workers: expected a number of processes or a pool for an asynchronous search, got "
                f"{came}"
            )
        for name, usual in (("fraction", 1.0), ("chunksize", None)):
            if getattr(self._policies, name) != usual:
                raise ValueError(
                    f"{name}: expected {usual!r} for an asynchronous search, which has no "
                    f"generations to divide, got {getattr(self._policies, name)!r}"
                )

    def check_injection(self) -> None:
        """Raise a ValueError if the workers cannot evaluate points from elsewhere."""
        if self._holds_search:
            raise ValueError(
                "inject: expected a search without a Cluster, whose workers build the candidates "
                f"themselves and know no other points, got {self._workers!r:.60}"
            )

    @property
    def fixed_width(self) -> int:
        """The number of workers; 0 if it is not known or may change."""
        groups = self._own_driver().groups
        return 0 if any(group.elastic for group in groups) else sum(g.width or 0 for g in groups)

    def _new_driver(self) -> Driver:
        self._process = os.getpid()
        return Driver(worker_groups(self._workers), self._policies)

    def _own_driver(self) -> Driver:
        """The driver of this process; a forked process cannot use the workers of its parent."""
        if self._driver is None or self._process != os.getpid():
            can_be_made = isinstance(self._workers, int | np.integer) or is_factory(self._workers)
            if self._driver is not None and not can_be_made:
                raise EvaluationError(
                    "workers: expected a pool that was made in this process, got one from before a "
                    "fork; pass a function that makes one, as in "
                    "Evaluator(lambda: ProcessPoolExecutor(4))"
                )
            self._driver = self._new_driver()
        return self._driver

    @contextlib.contextmanager
    def _one_thread(self) -> Iterator[None]:
        """Context in which no other thread may use the workers."""
        process, thread = os.getpid(), threading.get_ident()
        if self._users.setdefault(process, thread) != thread:
            raise RuntimeError(
                "Evaluator: expected one thread at a time, got a second one; make an Evaluator for "
                "each thread"
            )
        try:
            yield
        finally:
            self._users.pop(process, None)

    @classmethod
    def from_map(
        cls, map_like: MapLike, *, retries: int = 0, on_error: OnError = "raise"
    ) -> Evaluator:
        """An Evaluator around a callable that is used as ``map(function, iterable)``.

        There is no timeout and no replacement of workers: a map cannot say which candidate hangs
        or killed its worker. What happens then (often an endless wait) depends on the map.
        """
        evaluator = cls(retries=retries, on_error=on_error)
        evaluator._map = checks.function("map_like", map_like)
        evaluator._plain = False
        return evaluator

    def evaluate(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        x: Any,
        known: Mapping[int, Value] | None = None,
        report: ValueCallback | None = None,
        constraints: int = 0,
    ) -> Outcome:
        """The values ``fun(row, *args)`` of the rows of x, shape (n, d), of any array library.

        x may also be the object that `Optimizer.population` returns, a short description of a large
        population. ``known`` maps the indices of rows that need no evaluation to their values.
        ``report(index, value, error)`` is called for each other row as soon as it has its final
        value, in the order of completion. After a failure the value is NaN and the error is its
        traceback; otherwise the error is None. With a number of ``constraints`` m, ``fun`` returns
        ``(f, g)`` with m numbers g, and the values have the shape (n, 1 + m).
        """
        if isinstance(x, Population) and self._workers is None:
            x = x.rows()
        x, popsize = read_only(x), x.shape[0]
        call = ObjectiveCall(fun, args, constraints)
        if self._plain and not known and report is None:
            return _evaluate_plainly(call, x)

        def row(i: int) -> Any:
            return x.row(i) if isinstance(x, Population) else copied(x[i, ...])

        on_error = self._policies.on_error
        record = EvaluationRecord(popsize, on_error, known or {}, report, row, constraints)
        try:
            self._evaluate_open(call, x, record)
        except BaseException as error:
            keep_values(error, record.known())
            raise
        return record.outcome()

    def _evaluate_open(self, call: ObjectiveCall, x: Any, record: EvaluationRecord) -> None:
        """Evaluate the candidates that have no value yet."""
        if self._plain:
            waiting = list(record.open)
            for i, value in zip(waiting, plain_values(call, x, waiting), strict=True):
                record.succeed(i, value)
        elif record.open and self._workers is None:
            self._evaluate_by_map(call, x, record)
        elif record.open:
            with self._one_thread():
                self._own_driver().run(Workload(call, x, self._pickler), record)

    def new_stream(
        self, report: ValueCallback, row: Callable[[int], Any], constraints: int = 0
    ) -> StreamRecord:
        """The record of a new stream of candidates; ``row`` returns a candidate by its number."""
        return StreamRecord(self._policies.on_error, report, row, constraints)

    def stream(self, call: ObjectiveCall, record: StreamRecord, supply: Supply) -> None:
        """Evaluate candidates that ``supply`` hands out one by one, until it has enough values.

        Values are reported to ``record``. Other candidates are still running then: call `stream`
        with the same record again, or `end_stream`.
        """
        workload = StreamWorkload(call, record.row, self._pickler)
        with self._one_thread():
            self._own_driver().stream(workload, record, supply)

    def end_stream(self) -> None:
        """Give up the candidates of `stream` that are still running."""
        if self._driver is not None and self._process == os.getpid():
            with self._one_thread():
                self._driver.end_stream()

    def builds(self, nbytes: int) -> bool:
        """Whether workers should build a population of ``nbytes`` bytes themselves."""
        if self._workers is None or nbytes < self._large:
            return False
        return self._own_driver().groups[0].builds

    def close(self) -> None:
        """End the processes and pools that this object made; a later `evaluate` makes new ones."""
        if self._driver is not None and self._process == os.getpid():
            with self._one_thread():
                self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _evaluate_by_map(self, call: ObjectiveCall, x: Any, record: EvaluationRecord) -> None:
        """Call the map once for all candidates, and again for those that failed."""
        waiting = list(record.open)
        for attempt in range(1, self._policies.retries + 2):
            failed: list[int] = []
            results = self._map(partial(_evaluate_pair, call), [(i, x[i, ...]) for i in waiting])
            count = 0
            for count, result in enumerate(results, start=1):  # a lazy map returns each in turn
                if count > len(waiting):
                    break
                candidate = waiting[count - 1]
                if not isinstance(result, Failure):
                    record.succeed(candidate, result)
                elif attempt <= self._policies.retries:
                    failed.append(candidate)
                else:
                    record.fail(candidate, result, attempt)
            if count != len(waiting):
                raise ValueError(
                    f"map_like: expected one result for each of {len(waiting)} candidates, "
                    f"got {count}"
                )
            waiting = failed


def _evaluate_plainly(call: ObjectiveCall, x: Any) -> Outcome:
    """The values of all rows of x, without policies and reports: the quickest way."""
    values: list[Value] = []
    try:
        values.extend(plain_values(call, x, range(x.shape[0])))
    except BaseException as error:
        keep_values(error, dict(enumerate(values)))  # `extend` has added the values up to here
        raise
    return Outcome(np.array(values, np.float64))


def _evaluate_pair(call: ObjectiveCall, pair: tuple[int, Any]) -> Value | Failure:
    """`evaluate_one` with one argument, for a map; pools of processes have to pickle it."""
    return evaluate_one(call, *pair)


def evaluate_vectorized(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    x: Any,
    constraints: int = 0,
    known: Mapping[int, Value] | None = None,
) -> Outcome:
    """The values of all rows of x from one call ``fun(x, *args)``, without rows that are known."""
    if known:
        is_open = np.array([i not in known for i in range(x.shape[0])])
        values = np.empty(x.shape[0])
        values[list(known)] = list(known.values())
        values[is_open] = evaluate_vectorized(fun, args, x[is_open, ...]).values
        return Outcome(values)
    try:
        raw = call_user(fun, read_only(x), *args)
        if constraints:
            return Outcome(to_rows(raw, x.shape[0], constraints))
        return Outcome(to_values(to_host(raw), x.shape[0]))
    except BaseException as error:
        keep_values(error, {})
        attach(error, "x", copied(x))
        raise


def read_only(x: Any) -> Any:
    """A read-only view of a NumPy array; arrays of other libraries as they are."""
    if not isinstance(x, np.ndarray) or not x.flags.writeable:
        return x
    view = x.view()
    view.flags.writeable = False
    return view
