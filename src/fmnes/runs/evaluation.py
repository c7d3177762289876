"""What evaluates the candidates of `minimize`: the objective with its constraints, on workers."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from fmnes._arrays import Array
from fmnes._optimizer import Optimizer
from fmnes.constraints.functions import ConstrainedObjective, Piece, read_constraints
from fmnes.constraints.kinds import Kinds
from fmnes.evaluate import (
    Evaluator,
    Outcome,
    Value,
    end_if_unguarded,
    evaluate_vectorized,
    read_only,
)
from fmnes.runs.asynchronous import Flight, Stream
from fmnes.runs.fleet import Fleet
from fmnes.variables.space import OfSpace, Space, of_named_values


def objective_of(
    fun: Callable[..., Any], space: Space | None, pieces: tuple[Piece, ...], *, vectorized: bool
) -> Callable[..., Any]:
    """Return a function of the vector of variables, which returns constraints too if there are any.

    ``pieces`` are the functions of the constraints that are not part of ``fun``.
    """
    objective = fun if space is None else OfSpace(fun, space)
    if not pieces:
        return objective
    constrained = ConstrainedObjective(objective, pieces)
    return constrained.of_population if vectorized else constrained


def constraints_from(
    constraints: Any, point: Array, space: Space | None
) -> tuple[Kinds | None, tuple[Piece, ...]]:
    """Return the constraints; their functions are called once, at a point of the search."""
    if isinstance(constraints, tuple | list) and not constraints:
        return None, ()
    eps = float(array_namespace(point).finfo(point.dtype).eps)
    if space is not None:
        constraints = of_named_values(constraints, space)
    return read_constraints(constraints, read_only(point), eps)


class Evaluation:
    """Evaluates populations; a context manager that closes the pools which it opened itself."""

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        workers: Any,
        *,
        vectorized: bool,
        constraints: int,
        asynchronous: bool,
    ) -> None:
        if vectorized and workers is not None:
            raise ValueError(
                "workers: expected None with vectorized=True, which calls fun once for the whole "
                f"population, got {workers!r}"
            )
        if workers is not None:
            end_if_unguarded()  # before a checkpoint is opened, which the driver has locked
        self._fun, self._args, self._vectorized = fun, args, vectorized
        self._constraints = constraints
        self._own = not isinstance(workers, Evaluator)
        self._evaluator = Evaluator(workers) if self._own else workers
        self._memory: NDArray[Any] | None = None
        self.asynchronous = asynchronous or self._evaluator.asynchronous
        if self.asynchronous:
            self._evaluator.check_asynchronous()
        self._stream = Stream(fun, args, self._evaluator, constraints)

    @property
    def least_popsize(self) -> int:
        """The least size of a generation, if the search is asynchronous: one candidate per worker.

        In smaller generations, most values would come from candidates of earlier generations.
        """
        return self._evaluator.fixed_width if self.asynchronous else 0

    def check_injection(self) -> None:
        """Raise a ValueError if points from elsewhere cannot be evaluated; see `Evaluator`."""
        self._evaluator.check_injection()

    def __enter__(self) -> Self:
        return self

    def ask(self, opt: Optimizer, points: Array | None) -> Any:
        """Return the candidates, or the Population that workers build them from.

        If ``points`` are to be evaluated too, they are the last rows.
        """
        if not self._vectorized and self._evaluator.builds(8 * opt.popsize * opt.dim):
            population = opt.population(points)
            if population is not None:
                return population
        if not isinstance(opt.setup.mean, np.ndarray):
            x = opt.ask_vectors()
            xp = array_namespace(x)
            return x if points is None else xp.concat([x, points])
        return read_only(self._ask_in_place(opt, points))

    def _ask_in_place(self, opt: Optimizer, points: NDArray[Any] | None) -> NDArray[Any]:
        """Return the same for NumPy arrays, in the same memory while nobody else keeps it."""
        popsize = opt.popsize
        if points is not None:
            self._memory = np.empty((popsize + points.shape[0], points.shape[1]), points.dtype)
            self._memory[popsize:] = points
            opt.ask_vectors(out=self._memory[:popsize])
            return self._memory
        if self._memory is None or self._memory.shape[0] < popsize:
            self._memory = opt.ask_vectors()
        else:
            opt.ask_vectors(out=self._memory[:popsize])
        return self._memory[:popsize]

    def evaluate(
        self, x: Any, known: Mapping[Any, Value] | None = None, report: Any = None
    ) -> Outcome:
        """Return the values of the candidates; see `Evaluator.evaluate` and `Stream.evaluate`."""
        if isinstance(x, Flight | Fleet):
            return self._stream.evaluate(x, known, report)
        references = self._references(x)
        outcome = self._evaluate_all(x, known, report)
        if self._references(x) > references:  # the objective keeps candidates
            self._memory = None
        return outcome

    def _evaluate_all(self, x: Any, known: Mapping[Any, Value] | None, report: Any) -> Outcome:
        if self._vectorized:
            return evaluate_vectorized(self._fun, self._args, x, self._constraints, known)
        evaluate = self._evaluator.evaluate
        return evaluate(self._fun, self._args, x, known, report, self._constraints)

    def _references(self, x: Any) -> int:
        """Return how many objects refer to the candidates or to the memory that holds them."""
        memory = self._memory
        owner = memory if memory is None or memory.base is None else memory.base
        return sys.getrefcount(x) + (0 if owner is None else sys.getrefcount(owner))

    def __exit__(self, *exc_info: object) -> None:
        if self.asynchronous:
            self._evaluator.end_stream()
        if self._own:
            self._evaluator.close()
