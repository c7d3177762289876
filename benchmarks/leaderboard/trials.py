"""One trial: a solver on a problem until the budget is spent or the last target is reached.

A solver that ends by itself starts again, with another seed and where the problem says, so that
every trial uses its budget. Solvers get an objective that counts evaluations, notes what is
reached, and raises `DoneError` at the end.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_STEPS = 20  # points of a curve for each factor of ten in evaluations


class DoneError(Exception):
    """The budget is spent, or the last target is reached."""


class Trial(NamedTuple):
    """What identifies a row."""

    suite: str
    problem: str
    dim: int
    solver: str
    seed: int
    budget: int  # evaluations, those of all starts together

    def seed_of(self, start: int) -> int:
        """Return the seed of a start (0, 1, ...): the same for every solver."""
        key = [*f"{self.suite}/{self.problem}".encode(), self.dim, self.seed, start]
        return int(np.random.SeedSequence(key).generate_state(1)[0] >> 1) + 1


class Problem(NamedTuple):
    """A function to minimize, where to start, and what counts as progress."""

    fun: Callable[[Vector], float]
    start: Callable[[int], Vector]  # where start 0, 1, ... of a solver begins
    sigma0: float
    low: Vector  # the region of interest
    high: Vector
    bounded: bool = False  # whether points outside it are forbidden
    many: Callable[[Vector], Vector] | None = None  # the function of many points, if that is faster
    targets: Sequence[float] = ()  # in falling order; none: the best values are kept instead
    reached: Callable[[], bool] = lambda: False  # where the problem itself says when to end
    hits: Callable[[], list[int]] | None = None  # where it notes itself when targets are reached
    integers: int = 0  # how many variables take integers only: the first ones


class Start(NamedTuple):
    """What a solver gets."""

    fun: "Counter"
    problem: Problem
    x0: Vector
    sigma0: float
    budget: int  # evaluations that are left
    seed: int
    number: int  # how many starts there were before

    @property
    def bounds(self) -> tuple[Vector, Vector] | None:
        """The bounds, if points outside are forbidden."""
        return (self.problem.low, self.problem.high) if self.problem.bounded else None


class Counter:
    """The objective of a trial: counts, and notes the best value and the targets."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self._problem, self._budget = problem, budget
        self._noted = 0.0
        self.spent, self.best = 0, math.inf
        self.hits: list[int] = []
        self.curve: list[tuple[int, float]] = []

    def __call__(self, x: Any) -> float:
        """Return the value of one point."""
        return float(self.many(np.asarray(x, dtype=float)[None])[0])

    def many(self, X: Any) -> Vector:
        """Return the values of points, one per row."""
        rows = np.asarray(X, dtype=float)
        left = self._budget - self.spent
        if left <= 0 or self._ended:
            raise DoneError
        values = self._values(rows[:left])
        for value in values:
            self._note(float(value))
        if self._ended or len(rows) > left:
            raise DoneError
        return values

    @property
    def done(self) -> bool:
        """Whether the next evaluation would be one too many."""
        return self._ended or self.spent >= self._budget

    @property
    def _ended(self) -> bool:
        targets = self._problem.targets
        return (len(self.hits) == len(targets) > 0) or self._problem.reached()

    def _values(self, rows: Vector) -> Vector:
        if self._problem.many is not None:
            return self._problem.many(rows)
        return np.array([self._problem.fun(x) for x in rows], dtype=float)

    def _note(self, value: float) -> None:
        targets = self._problem.targets
        self.spent += 1
        if not value < self.best:
            return
        self.best = value
        while len(self.hits) < len(targets) and value <= targets[len(self.hits)]:
            self.hits.append(self.spent)
        if not targets:  # the last of the improvements on each step of the grid
            step = math.floor(_STEPS * math.log10(self.spent))
            if self.curve and step == self._noted:
                self.curve.pop()
            self.curve.append((self.spent, value))
            self._noted = step


class Solver(NamedTuple):
    """A solver, what it needs, and for how many variables it is meant."""

    run: Callable[..., None]  # of a `Start`, unless its suite calls it otherwise
    package: str  # its name on PyPI
    module: str  # what is imported
    most: float = math.inf  # variables
    evaluations: float = math.inf  # for each variable
    told: bool = False  # its budget, so that it runs differently with another one


class Suite(ABC):
    """Problems with budgets; each has a name in ``problems(dim)``."""

    name: ClassVar[str]
    about: ClassVar[str]
    dims: ClassVar[tuple[int, ...]]
    modules: ClassVar[tuple[str, ...]] = ()  # what the problems need
    targets: ClassVar[tuple[float, ...]] = ()  # none: best values are compared
    exact: ClassVar[bool] = False  # whether the best value of a row is known, and has no noise
    solvers: Mapping[str, Solver]

    @abstractmethod
    def problems(self, dim: int) -> list[str]:
        """Return the names of the problems with this many variables."""

    @abstractmethod
    def budget(self, problem: str, dim: int) -> int:
        """Return the evaluations of a trial, unless others are asked for."""

    def needs(self, problem: str) -> tuple[str, ...]:
        """Return the modules that a problem needs."""
        return self.modules

    @abstractmethod
    def run(self, trial: Trial) -> dict[str, Any]:
        """Run a trial, and return what was reached: evaluations, best, and hits or curve."""

    def stored(self) -> Iterable[dict[str, Any]]:
        """Yield rows that other benchmarks have stored."""
        return ()

    def run_stored(self, trial: Trial) -> dict[str, Any]:
        """Run a trial of `stored` as the other benchmark did, and return what was reached."""
        return self.run(trial)


class Functions(Suite):
    """A suite of functions that solvers call, without constraints."""

    @abstractmethod
    def problem(self, name: str, dim: int, seed: int) -> Problem:
        """Return an instance of a problem."""

    def run(self, trial: Trial) -> dict[str, Any]:
        """Run a trial, and return what was reached."""
        problem = self.problem(trial.problem, trial.dim, trial.seed)
        counter = Counter(problem, trial.budget)
        run_solver(self.solvers[trial.solver], problem, counter, trial)
        row = {"evaluations": counter.spent, "best": counter.best}
        if self.targets:
            return row | {"hits": problem.hits() if problem.hits else counter.hits}
        return row | {"curve": counter.curve}


def run_solver(solver: Solver, problem: Problem, counter: Counter, trial: Trial) -> None:
    """Start the solver until the trial is over."""
    try:
        for number in count():
            if counter.done:
                return
            before, left = counter.spent, trial.budget - counter.spent
            seed = trial.seed_of(number)
            x0 = np.array(problem.start(number), dtype=float)
            solver.run(Start(counter, problem, x0, problem.sigma0, left, seed, number))
            if counter.spent == before:
                raise RuntimeError("the solver ended before it evaluated a point")
    except DoneError:
        pass


def row_of(suite: Suite, trial: Trial, run: Callable[[Trial], dict[str, Any]]) -> dict[str, Any]:
    """Run a trial with `suite.run` or `suite.run_stored`, and return its row."""
    begun = time.perf_counter()
    reached = run(trial)
    seconds = round(time.perf_counter() - begun, 3)
    solver = suite.solvers.get(trial.solver)  # other benchmarks have other ones too
    packages = {"numpy"} if solver is None else {"fmnes", "numpy", solver.package}
    versions = {name: metadata.version(name) for name in sorted(packages) if name != "fmnes"}
    import fmnes

    versions["fmnes"] = fmnes.__version__
    return trial._asdict() | reached | {"seconds": seconds, "versions": versions}
