"""The solvers: fmnes, and those of other packages with their own defaults.

Each is a function of a `Start`, in a row of `OPPONENTS`, and returns when it has converged. To add
one, write such a function and its row. A solver that draws populations doubles them from start to
start, as IPOP-CMA-ES does (Auger & Hansen, CEC 2005), unless its package restarts by itself. A
package without bounds gets points clipped to them.
"""

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import fmnes
from fmnes.algorithms import METHODS
from fmnes.benchmarking.packages import pycma
from leaderboard import bayesian
from leaderboard.trials import DoneError, Solver, Start, Vector


def ours(method: Any, start: Start) -> None:
    """A method of fmnes, with its default settings."""
    bounds = None if start.bounds is None else fmnes.Bounds(*start.bounds)
    popsize = METHODS[method].default_popsize(start.x0.size) * 2**start.number
    fmnes.minimize(
        start.fun.many,
        start.x0,
        start.sigma0,
        method=METHODS[method].Settings().for_restart() if start.number else method,
        bounds=bounds,
        popsize=popsize,
        vectorized=True,
        rng=start.seed,
    )


def by_pycma(kind: str, start: Start) -> None:
    """pycma: CMA-ES with a full matrix, its diagonal, VD or VkD."""
    options: dict[str, Any] = {"seed": start.seed, "popsize_factor": 2**start.number}
    if start.bounds is not None:
        options["bounds"] = [list(side) for side in start.bounds]
    es = pycma(kind, start.x0, start.sigma0, **options)
    while not es.stop():
        x = es.ask()
        es.tell(x, start.fun.many(x).tolist())


def by_pycma_with_reevaluations(start: Start) -> None:
    """The noise handling of pycma with a full matrix, as its documentation shows it.

    Some points are evaluated again. Where ranks change, it takes medians of more and more
    evaluations, and larger steps.
    """
    import cma

    options: dict[str, Any] = {"popsize_factor": 2**start.number, "tolfacupx": np.inf}
    es = pycma("full", start.x0, start.sigma0, seed=start.seed, **options)
    handler = cma.NoiseHandler(es.N, maxevals=[1, 1, 30])
    while not es.stop():
        x, values = es.ask_and_eval(start.fun, evaluations=handler.evaluations)
        es.tell(x, values)
        es.sigma *= handler(x, values, start.fun, es.ask)


def by_cmaes(kind: str, start: Start, **options: Any) -> None:
    """The package cmaes: CMA, or SepCMA."""
    import cmaes

    if start.bounds is not None:
        options["bounds"] = np.stack(start.bounds, axis=1)
    popsize = (4 + int(3 * np.log(start.x0.size))) * 2**start.number  # its default, doubled
    opt = getattr(cmaes, kind)(
        start.x0, start.sigma0, population_size=popsize, seed=start.seed, **options
    )
    while not opt.should_stop():
        x = np.array([opt.ask() for _ in range(popsize)])
        if not (np.abs(x) < 1e32).all():  # it has diverged, and would refuse them
            return
        opt.tell(list(zip(x, start.fun.many(x).tolist(), strict=True)))


def by_evosax(kind: str, start: Start) -> None:
    """A strategy of evosax, which has no default population: pycma's."""
    import jax
    from evosax import algorithms

    dim = start.x0.size
    popsize = 2 * ((4 + int(3 * np.log(dim))) // 2 + 1) * 2**start.number
    opt = getattr(algorithms, kind)(population_size=popsize, solution=np.zeros(dim))
    params = opt.default_params
    if hasattr(params, "std_init"):
        params = params.replace(std_init=start.sigma0)
    key = jax.random.key(start.seed)
    state = opt.init(key, start.x0, params)
    best, flat = np.inf, 0
    while flat < 200 + 20 * dim // popsize:  # evosax has no rule of its own to stop
        key, asked, told = jax.random.split(key, 3)
        x, state = opt.ask(asked, state, params)
        values = _clipped(start)(np.asarray(x, dtype=float))
        state, _ = opt.tell(told, x, values, state, params)
        flat = 0 if values.min() < best else flat + 1
        best = min(best, values.min())
        if not np.isfinite(values).all():
            return


def _clipped(start: Start) -> Callable[[Vector], Vector]:
    if start.bounds is None:
        return start.fun.many
    low, high = start.bounds
    return lambda X: start.fun.many(np.clip(X, low, high))


def by_nevergrad(name: str, start: Start) -> None:
    """An optimizer of nevergrad, told the budget, as it asks for."""
    import nevergrad

    space = nevergrad.p.Array(init=start.x0).set_mutation(sigma=start.sigma0)
    if start.bounds is not None:
        space.set_bounds(*start.bounds)
    space.random_state.seed(start.seed)
    opt = nevergrad.optimizers.registry[name](space, budget=start.budget)
    for _ in range(start.budget):
        asked = opt.ask()
        opt.tell(asked, start.fun(asked.value))


def by_differential_evolution(start: Start) -> None:
    """SciPy's differential evolution in the region of interest."""
    from scipy.optimize import differential_evolution

    region = list(zip(start.problem.low, start.problem.high, strict=True))
    differential_evolution(
        start.fun, region, rng=start.seed, x0=_inside(start), maxiter=10**9, polish=False
    )


def by_dual_annealing(start: Start) -> None:
    """SciPy's dual annealing in the region of interest."""
    from scipy.optimize import dual_annealing

    region = list(zip(start.problem.low, start.problem.high, strict=True))
    dual_annealing(start.fun, region, rng=start.seed, x0=_inside(start), maxiter=10**9)


def _inside(start: Start) -> Vector:
    return np.clip(start.x0, start.problem.low, start.problem.high)


def by_fcmaes(start: Start) -> None:
    """fcmaes: differential evolution, then CMA-ES, which its documentation recommends."""
    from fcmaes.optimizer import de_cma
    from scipy.optimize import Bounds

    bounds = Bounds(start.problem.low, start.problem.high)
    np.random.seed(start.seed % 2**32)  # noqa: NPY002 - it draws how long the first part is
    optimizer = de_cma(max_evaluations=start.budget)
    sigma = 2 * start.sigma0 / (bounds.ub - bounds.lb)  # in variables from -1 to 1
    rng = np.random.default_rng(start.seed)
    optimizer.minimize(_quiet(start), bounds, _inside(start), sigma, rng)
    if start.fun.done:
        raise DoneError


def _quiet(start: Start) -> Callable[[Vector], float]:
    """Compiled code calls it, through which no exception passes."""

    def fun(x: Vector) -> float:
        try:
            return start.fun(x)
        except DoneError:
            return 1e99

    return fun


def by_bobyqa(start: Start) -> None:
    """Py-BOBYQA: quadratic models in a trust region."""
    import pybobyqa

    options: dict[str, Any] = {"maxfun": start.budget, "rhobeg": start.sigma0, "rhoend": 1e-10}
    x0 = start.x0
    if start.bounds is not None:
        low, high = start.bounds
        options["rhobeg"] = min(start.sigma0, 0.49 * float(np.min(high - low)))
        options["bounds"] = low, high
    np.random.seed(start.seed % 2**32)  # noqa: NPY002 - its generator
    if start.number:
        x0 = x0 + start.sigma0 * np.random.default_rng(start.seed).standard_normal(x0.size)
        x0 = _inside(start._replace(x0=x0)) if start.bounds is not None else x0
    pybobyqa.solve(start.fun, x0, do_logging=False, **options)


def by_optuna(start: Start) -> None:
    """Optuna's default sampler (TPE) with one float for each variable."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=start.seed % 2**32))
    names = [f"x{i}" for i in range(start.x0.size)]
    study.enqueue_trial(dict(zip(names, _inside(start), strict=True)))
    sides = list(zip(names, start.problem.low, start.problem.high, strict=True))
    for _ in range(start.budget):
        trial = study.ask()
        x = [trial.suggest_float(name, low, high) for name, low, high in sides]
        study.tell(trial, start.fun(x))


def by_random(start: Start) -> None:
    """Uniform points in the region of interest."""
    rng = np.random.default_rng(start.seed)
    for _ in range(start.budget):
        start.fun(rng.uniform(start.problem.low, start.problem.high))


FULL = 200  # variables for full matrices of other packages

OPPONENTS = {
    **{
        name: Solver(partial(ours, name), "fmnes", "fmnes")
        for name in ("auto", "cr-fm-nes", "sep-cma", "vd-cma")
    },
    "cma-es": Solver(partial(ours, "cma-es"), "fmnes", "fmnes", most=500),
    "pycma CMA-ES": Solver(partial(by_pycma, "full"), "cma", "cma", most=FULL),
    "pycma diagonal": Solver(partial(by_pycma, "diagonal"), "cma", "cma"),
    "pycma VD": Solver(partial(by_pycma, "vd"), "cma", "cma"),
    "pycma VkD": Solver(partial(by_pycma, "vkd"), "cma", "cma"),
    "cmaes CMA": Solver(partial(by_cmaes, "CMA"), "cmaes", "cmaes", most=FULL),
    "cmaes CMA lr_adapt": Solver(
        partial(by_cmaes, "CMA", lr_adapt=True), "cmaes", "cmaes", most=FULL
    ),
    "cmaes Sep": Solver(partial(by_cmaes, "SepCMA"), "cmaes", "cmaes"),
    "evosax CR-FM-NES": Solver(partial(by_evosax, "CR_FM_NES"), "evosax", "evosax"),
    "evosax LM-MA-ES": Solver(partial(by_evosax, "LM_MA_ES"), "evosax", "evosax"),
    "evosax OpenES": Solver(partial(by_evosax, "Open_ES"), "evosax", "evosax"),
    "nevergrad NGOpt": Solver(partial(by_nevergrad, "NGOpt"), "nevergrad", "nevergrad", told=True),
    "SciPy DE": Solver(by_differential_evolution, "scipy", "scipy"),
    "SciPy dual annealing": Solver(by_dual_annealing, "scipy", "scipy"),
    "fcmaes DE-CMA": Solver(by_fcmaes, "fcmaes", "fcmaes", most=1000, told=True),
    "Py-BOBYQA": Solver(by_bobyqa, "Py-BOBYQA", "pybobyqa", most=100, evaluations=200),
    "TuRBO": Solver(bayesian.turbo, "botorch", "botorch", most=300, evaluations=200),
    "Optuna TPE": Solver(by_optuna, "optuna", "optuna", most=100, evaluations=200),
    "random": Solver(by_random, "numpy", "numpy"),
}
NOISY = {  # for problems with noise only
    "pycma noise handling": Solver(by_pycma_with_reevaluations, "cma", "cma", most=FULL),
}


def reason_against(solver: Solver, dim: int, budget: int) -> str | None:
    """Return why a solver does not run here, or None if it does."""
    if reason := missing((solver.module,)):
        return reason
    if dim > solver.most:
        return f"its cost grows too fast beyond {solver.most:g} variables"
    if budget > solver.evaluations * dim:
        return f"it is meant for up to {solver.evaluations:g} evaluations a variable"
    return None


def missing(modules: Sequence[str]) -> str | None:
    """Return which modules are not installed and how to install them, or None."""
    names = [name for name in modules if importlib.util.find_spec(name) is None]
    if not names:
        return None
    extra = "cec2013lsgo" not in names  # which is GPL
    how = "pip install 'fmnes[leaderboard]'" if extra else "docs/leaderboard.md says how"
    return f"{', '.join(names)} is not installed: {how}"


def quiet() -> None:
    """Hide the warnings of packages: overflows, deprecations, numerical trouble."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
