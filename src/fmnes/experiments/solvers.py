"""Who runs a trial: our methods, and the packages that bear witness, behind one call.

``solve(problem, popsize, seed, ftarget, maxfevals)`` returns an `Outcome`. Evaluations are counted
in whole generations for everyone. A run ends at the target or with its budget; where the values of
one generation no longer differ in 14 digits (a local minimum); and where the method's own
arithmetic breaks down: a distribution that is no longer finite, or whose axes are more unequal than
floating-point numbers can hold (`Status.SCALE`, `Status.CONDITION` of our methods; a step size that
is no number, of packages). All but the first are failures.
"""

import dataclasses
import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import fmnes
from fmnes import draws
from fmnes.algorithms import METHODS, Algorithm, cr_fm_nes, sep_cma, vd_cma
from fmnes.algorithms import _phases as phases
from fmnes.algorithms._records import Shape
from fmnes.draws import Address
from fmnes.engines import EngineSpec
from fmnes.engines.array import ArrayEngine
from fmnes.experiments import ask_tell, packages, protocol
from fmnes.experiments.packages import Outcome
from fmnes.problems import PROBLEMS, Problem

ENDLESS = fmnes.Stopping(tolx=0.0, tolsigmaup=math.inf, stagnation=10**9)


Solve = Callable[[Problem, int, int, float, int], Outcome]


# === Our methods ===


def _minimize(
    settings: Callable[[int, int], Any],
    problem: Problem,
    popsize: int,
    seed: int,
    ftarget: float,
    maxfevals: int,
) -> Outcome:
    with np.errstate(all="ignore"):  # the paper's update overflows where it breaks
        result = fmnes.minimize(
            problem,
            problem.x0,
            problem.sigma0,
            method=settings(problem.dim, popsize),
            popsize=popsize,
            ftarget=ftarget,
            maxfevals=maxfevals,
            stopping=ENDLESS,
            vectorized=True,
            rng=seed,
        )
    return Outcome(result.nfev, result.fun)


def _fixed(method: Any) -> Solve:
    """A method of THE TABLE or settings, whatever the dimension and the population size."""
    return partial(_minimize, lambda dim, popsize: method)


def _one_rate(dim: int, popsize: int) -> fmnes.CRFMNES:
    """The step size's learning rate of the stagnation phase, always; the weights by phase.

    With the tanh of C: NumPy's has other last bits on other machines.
    """
    rate = math.tanh(phases.stagnation_argument(dim, popsize))
    return fmnes.CRFMNES(variant="paper", eta_sigma=rate)


def _without_phases(dim: int, popsize: int) -> fmnes.CRFMNES:
    """That learning rate, and rank weights: with neither, nothing depends on the phase."""
    return dataclasses.replace(_one_rate(dim, popsize), distance_weights=False)


def _without_anything(dim: int, popsize: int) -> fmnes.CRFMNES:
    """No distance weights, no phases, no rank-one update."""
    return dataclasses.replace(_without_phases(dim, popsize), c_1=0.0)


def _scaled_eta_B(scale: float, dim: int, popsize: int) -> fmnes.CRFMNES:
    """A multiple of the fitted learning rate of v and D."""
    fitted = cr_fm_nes.fitted_eta_B(np, dim, np.asarray(float(popsize)))
    return fmnes.CRFMNES(variant="paper", eta_B=scale * float(fitted))


# === Our texts, with constants or parts of another's ===


def _driven(
    prepare: Callable[[int, int], tuple[Algorithm, Any, int]],
    problem: Problem,
    popsize: int,
    seed: int,
    ftarget: float,
    maxfevals: int,
) -> Outcome:
    """A method's pure functions with params of our making; ``prepare`` also counts the state on."""
    algorithm, params, generation = prepare(problem.dim, popsize)
    shape = Shape(D=np.ones(problem.dim))
    z = draws.normals(seed, draws.initial_stream(0), 0, 0, 1, problem.dim)[0]
    state = algorithm.init(params, problem.x0, np.asarray(problem.sigma0), shape, z)
    if generation:
        state = state._replace(generation=state.generation + generation)
    address = Address(seed, draws.population_stream(0))
    engine = ArrayEngine(EngineSpec(algorithm, params, state, address, tolx=0.0))
    run = packages.Run(problem, ftarget, maxfevals)
    while run.goes_on(popsize) and engine.state.sigma > 0:
        with np.errstate(all="ignore"):
            engine.tell(run.evaluate(engine.ask(0, popsize)), run.best)
    return run.outcome


def _older_H(dim: int, popsize: int) -> tuple[Algorithm, Any, int]:
    from fmnes.experiments import older_h

    return older_h, older_h.params(dim, popsize, fmnes.CRFMNES(variant="paper")), 0


def _sep_cma_of_cmaes(dim: int, popsize: int) -> tuple[Algorithm, Any, int]:
    """The c_1 of the full CMA-ES, all of c_cov to the rank-mu update, generations from 1."""
    params = sep_cma.params(dim, popsize)
    c_1 = 2 / ((dim + 1.3) ** 2 + params.mu_eff)
    return sep_cma, params._replace(c_1=c_1, c_mu=params.c_1 + params.c_mu), 1


def _vd_cma_of_pycma(dim: int, popsize: int) -> tuple[Algorithm, Any, int]:
    """Its c_sigma and d_sigma, and E|N(0, I)| to the last digit."""
    c_sigma, d_sigma = _step_size_rates_of_pycma(dim, popsize)
    chi_n = math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))
    params = vd_cma.params(dim, popsize)
    return vd_cma, params._replace(c_sigma=c_sigma, d_sigma=d_sigma, chi_n=chi_n), 0


@cache
def _step_size_rates_of_pycma(dim: int, popsize: int) -> tuple[float, float]:
    rates = packages.pycma_strategy("vd", np.zeros(dim), 1.0, popsize, 1).adapt_sigma
    return rates.cs, rates.damps


# === Those of a user ===


def _begun(name: str, problem: Problem, popsize: int, seed: int) -> ask_tell.AskTell:
    """``factory(x0, sigma0, popsize, seed)`` makes an object that asks and tells."""
    factory = ask_tell.imported("--beside", name, list(METHODS))
    start = {"x0": problem.x0.copy(), "sigma0": problem.sigma0, "popsize": popsize, "seed": seed}
    return ask_tell.begun("--beside", name, factory, **start)


def _asked(
    name: str, problem: Problem, popsize: int, seed: int, ftarget: float, maxfevals: int
) -> Outcome:
    solver = _begun(name, problem, popsize, seed)
    run = packages.Run(problem, ftarget, maxfevals)
    both = ask_tell.takes_candidates(solver)
    while run.goes_on(popsize) and not solver.stop():
        x = np.asarray(solver.ask())
        f = run.evaluate(x)
        solver.tell(*([x, f] if both else [f]))
    return run.outcome


def solver_of(name: str) -> protocol.Solver:
    """``method``, ``method:variant``, or ``package.module:factory``, after one trial start."""
    method, _, variant = name.partition(":")
    if method not in METHODS:
        _begun(name, PROBLEMS["sphere"](20), popsize=12, seed=1)
        return name, "yours"
    variants = [solver[1] for solver in SOLVERS if solver[0] == method]
    variant = variant or variants[0]
    if variant not in variants:
        known = ", ".join(variants)
        raise ValueError(f"--beside: expected a variant of {method}: {known}; got {variant!r}")
    return method, variant


def solve(trial: protocol.Trial) -> Outcome:
    """Let the solver of a trial run it."""
    run = SOLVERS.get(trial.solver, partial(_asked, trial.method))
    return run(trial.problem, trial.popsize, trial.seed, trial.ftarget, trial.maxfevals)


# === The table ===

SOLVERS: dict[protocol.Solver, Solve] = {  # the first one of a method is its default
    **{(name, "ours"): _fixed(name) for name in METHODS if name != "cr-fm-nes"},
    protocol.SAFE: _fixed(fmnes.CRFMNES()),
    protocol.PAPER: _fixed(fmnes.CRFMNES(variant="paper")),
    protocol.AUTHORS: packages.authors,
    protocol.VD_PYCMA: partial(packages.pycma, "vd"),
    protocol.VD_FED: partial(_driven, _vd_cma_of_pycma),
    protocol.SEP_CMAES: packages.cmaes,
    protocol.SEP_PYCMA: partial(packages.pycma, "diagonal"),
    protocol.SEP_FED_CMAES: partial(_driven, _sep_cma_of_cmaes),
    protocol.SEP_FED_PYCMA: _fixed(fmnes.SepCMA(rates="pycma")),
    protocol.NO_WEIGHTS: _fixed(fmnes.CRFMNES(variant="paper", distance_weights=False)),
    protocol.ONE_RATE: partial(_minimize, _one_rate),
    protocol.NO_PHASES: partial(_minimize, _without_phases),
    protocol.NO_RANK_ONE: _fixed(fmnes.CRFMNES(variant="paper", c_1=0.0)),
    protocol.NONE_OF_THESE: partial(_minimize, _without_anything),
    **{
        solver: partial(_minimize, partial(_scaled_eta_B, scale))
        for solver, scale in zip(protocol.ETA_B, protocol.SCALES, strict=True)
    },
    protocol.OLDER_H: partial(_driven, _older_H),
}
PACKAGES = {  # whose version a row has to name, beside our own and NumPy's
    protocol.AUTHORS: "crfmnes",
    protocol.VD_PYCMA: "cma",
    protocol.VD_FED: "cma",
    protocol.SEP_CMAES: "cmaes",
    protocol.SEP_PYCMA: "cma",
}
