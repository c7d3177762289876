"""Packages of other authors: whether they are installed, and their solvers."""

import importlib.util
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes.benchmarking.loop import Monitor, RunResult, RunSpec, ask_and_tell


def require(extra: str, *modules: str) -> None:
    """Refuse to continue if a package of an extra is not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f'{module} is not installed: pip install "fmnes[{extra}]"', name=module
            )


def pycma(kind: str, x0: NDArray[np.float64], sigma0: float, **options: Any) -> Any:
    """Return a strategy of pycma that prints nothing: "full", "diagonal", "vd" or "vkd"."""
    import cma
    from cma.restricted_gaussian_sampler import GaussVDSampler, GaussVkDSampler

    options |= {"verbose": -9, "verb_log": 0}
    if kind == "vd":
        options = GaussVDSampler.extend_cma_options(options)
    elif kind == "vkd":
        options = GaussVkDSampler.extend_cma_options(options)
    elif kind == "diagonal":
        options["CMA_diagonal"] = True
    return cma.CMAEvolutionStrategy(x0, sigma0, options)


def run_pycma(kind: str, spec: RunSpec) -> RunResult:
    """Run a strategy of pycma, without its own stopping rules and without its warnings."""
    problem = spec.problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        es = pycma(kind, problem.x0, problem.sigma0, popsize=spec.popsize, seed=spec.seed)
        return ask_and_tell(spec, es.ask, lambda x, f: es.tell(x, f.tolist()))


def run_cmaes(spec: RunSpec) -> RunResult:
    """Run Sep-CMA of the package cmaes."""
    from cmaes import SepCMA

    problem, popsize = spec.problem, spec.popsize
    opt = SepCMA(problem.x0.copy(), problem.sigma0, population_size=popsize, seed=spec.seed)

    def ask() -> NDArray[np.float64] | None:
        x = np.asarray([opt.ask() for _ in range(popsize)])
        return x if (np.abs(x) < 1e32).all() else None  # cmaes refuses larger ones: it diverged

    return ask_and_tell(spec, ask, lambda x, f: opt.tell(list(zip(x, f.tolist(), strict=True))))


def run_authors(spec: RunSpec) -> RunResult:
    """Run crfmnes 1.0.0, the authors' package, without its Python loop over bound violations."""
    from crfmnes import CRFMNES

    problem, monitor = spec.problem, Monitor(spec)
    values: list[float] = []

    def evaluate(x: NDArray[np.float64]) -> float:  # crfmnes passes a column
        values.append(float(problem(x[:, 0])))
        return values[-1]

    opt = CRFMNES(
        problem.dim,
        evaluate,
        problem.x0.reshape(-1, 1).copy(),
        problem.sigma0,
        spec.popsize,
        seed=spec.seed,
        use_constraint_violation=False,
    )
    while monitor.goes_on() and np.isfinite(opt.sigma):
        with np.errstate(all="ignore"):
            opt.one_iteration()
        monitor.note(np.asarray(values))
        values.clear()
    return monitor.result
