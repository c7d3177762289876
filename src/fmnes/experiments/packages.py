"""The packages that bear witness, and what every run of them is watched by."""

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmnes.problems import Problem


class Outcome(NamedTuple):
    """What came of a run."""

    evaluations: int
    value: float  # the best


class Run:
    """What all of them are watched by: the evaluations, the best value, and the end."""

    def __init__(self, problem: Problem, ftarget: float, maxfevals: int) -> None:
        self._problem, self._ftarget, self._maxfevals = problem, ftarget, maxfevals
        self.evaluations, self.best, self._settled = 0, math.inf, False

    def evaluate(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of one generation."""
        f = self._problem(x)
        self.note(f)
        return f

    def note(self, f: NDArray[np.float64]) -> None:
        """A generation has these values."""
        self.evaluations += len(f)
        least, most = float(np.min(f)), float(np.max(f))
        self.best = min(self.best, least)  # a NaN is never less
        self._settled = not most - least > 1e-14 * abs(most)

    def goes_on(self, popsize: int) -> bool:
        """Whether there is another generation."""
        spent = self.evaluations + popsize > self._maxfevals
        return not (spent or self._settled or self.best <= self._ftarget)

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        return Outcome(self.evaluations, self.best)


def authors(problem: Problem, popsize: int, seed: int, ftarget: float, maxfevals: int) -> Outcome:
    """The package crfmnes 1.0.0, its Python loop over violations of a box switched off."""
    from crfmnes import CRFMNES

    run = Run(problem, ftarget, maxfevals)
    values: list[float] = []

    def evaluate(x: NDArray[np.float64]) -> float:  # it hands over a column
        values.append(float(problem(x[:, 0])))
        return values[-1]

    opt = CRFMNES(
        problem.dim,
        evaluate,
        problem.x0.reshape(-1, 1).copy(),
        problem.sigma0,
        popsize,
        seed=seed,
        use_constraint_violation=False,
    )
    while run.goes_on(popsize) and np.isfinite(opt.sigma):
        with np.errstate(all="ignore"):
            opt.one_iteration()
        run.note(np.asarray(values))
        values.clear()
    return run.outcome


def pycma_strategy(
    kind: str, x0: NDArray[np.float64], sigma0: float, popsize: int, seed: int
) -> Any:
    """Of pycma: VD-CMA or diagonal CMA-ES, which nothing ends but its caller."""
    import cma
    from cma.restricted_gaussian_sampler import GaussVDSampler

    options: dict[str, Any] = {"popsize": popsize, "seed": seed, "verbose": -9}
    if kind == "vd":
        options = GaussVDSampler.extend_cma_options(options)
    else:
        options["CMA_diagonal"] = True
    return cma.CMAEvolutionStrategy(x0, sigma0, options)


def pycma(
    kind: str, problem: Problem, popsize: int, seed: int, ftarget: float, maxfevals: int
) -> Outcome:
    """A strategy of pycma, its warnings silenced."""
    run = Run(problem, ftarget, maxfevals)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        es = pycma_strategy(kind, problem.x0, problem.sigma0, popsize, seed)
        while run.goes_on(popsize):
            x = es.ask()
            es.tell(x, run.evaluate(np.asarray(x)).tolist())
    return run.outcome


def cmaes(problem: Problem, popsize: int, seed: int, ftarget: float, maxfevals: int) -> Outcome:
    """Sep-CMA of the package cmaes."""
    from cmaes import SepCMA

    run = Run(problem, ftarget, maxfevals)
    opt = SepCMA(problem.x0.copy(), problem.sigma0, population_size=popsize, seed=seed)
    while run.goes_on(popsize):
        x = np.asarray([opt.ask() for _ in range(popsize)])
        if not (np.abs(x) < 1e32).all():  # cmaes takes no others: it has diverged
            break
        opt.tell(list(zip(x, run.evaluate(x).tolist(), strict=True)))
    return run.outcome
