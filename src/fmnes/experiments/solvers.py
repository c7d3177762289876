"""The solvers by name: our methods and variants of them, other packages, and a user's own.

A solver takes a `RunSpec` and returns a `RunResult`. Our methods run in `fmnes.minimize`, where
they also end when their distribution leaves the range of floating-point numbers (`Status.SCALE`,
`Status.CONDITION`); all others run in `loop.ask_and_tell`.
"""

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
from fmnes.benchmarking import ask_tell, packages
from fmnes.benchmarking.loop import RunResult, RunSpec, ask_and_tell
from fmnes.draws import Address
from fmnes.engines import EngineSpec
from fmnes.engines.array import ArrayEngine
from fmnes.experiments import older_h, protocol
from fmnes.problems import PROBLEMS, Problem

_ENDLESS = fmnes.Stopping(tolx=0.0, tolsigmaup=math.inf, stagnation=10**9)

Solve = Callable[[RunSpec], RunResult]


# === Our methods ===


def _ours(settings: Callable[[int, int], Any], spec: RunSpec) -> RunResult:
    """Run a method with the settings that ``settings(dim, popsize)`` returns.

    By ask and tell, because `minimize` evaluates x0 too, which the paper does not count.
    """
    problem = spec.problem
    with np.errstate(all="ignore"):  # the paper's update overflows when it breaks down
        opt = fmnes.Optimizer(
            problem.x0,
            problem.sigma0,
            method=settings(problem.dim, spec.popsize),
            popsize=spec.popsize,
            ftarget=spec.ftarget,
            maxfevals=spec.maxfevals,
            stopping=_ENDLESS,
            rng=spec.seed,
        )
        while not opt.stop():
            opt.tell(problem(opt.ask()))
    return RunResult(opt.nfev, opt.result.fun)


def _fixed(method: Any) -> Solve:
    """Return the solver for settings that depend on neither dimension nor population size."""
    return partial(_ours, lambda dim, popsize: method)


def _one_rate(dim: int, popsize: int, **others: Any) -> fmnes.CRFMNES:
    """Use the stagnation phase's learning rate of the step size in all phases.

    It is computed with the tanh of C: NumPy's has other last bits on other machines.
    """
    rate = math.tanh(phases.stagnation_argument(dim, popsize))
    return fmnes.CRFMNES(variant="paper", eta_sigma=rate, **others)


def _scaled_eta_B(scale: float, dim: int, popsize: int) -> fmnes.CRFMNES:
    """Use a multiple of the fitted learning rate of v and D."""
    fitted = cr_fm_nes.fitted_eta_B(np, dim, np.asarray(float(popsize)))
    return fmnes.CRFMNES(variant="paper", eta_B=scale * float(fitted))


# === Our methods with constants or parts of others ===


def _pure(prepare: Callable[[int, int], tuple[Algorithm, Any, int]], spec: RunSpec) -> RunResult:
    """Run pure functions of a method: ``prepare`` gives them, their Params, and the generation.

    The engine's record of the best candidate is not needed, hence a best value of -inf.
    """
    problem, popsize = spec.problem, spec.popsize
    algorithm, params, generation = prepare(problem.dim, popsize)
    shape = Shape(D=np.ones(problem.dim))
    z = draws.normals(spec.seed, draws.initial_stream(0), 0, 0, 1, problem.dim)[0]
    state = algorithm.init(params, problem.x0, np.asarray(problem.sigma0), shape, z)
    if generation:
        state = state._replace(generation=state.generation + generation)
    address = Address(spec.seed, draws.population_stream(0))
    engine = ArrayEngine(EngineSpec(algorithm, params, state, address, tolx=0.0))
    with np.errstate(all="ignore"):
        return ask_and_tell(
            spec,
            lambda: engine.ask(0, popsize) if engine.state.sigma > 0 else None,
            lambda x, f: engine.tell(f, -math.inf),
        )


def _older_H(dim: int, popsize: int) -> tuple[Algorithm, Any, int]:
    return older_h, older_h.params(dim, popsize, fmnes.CRFMNES(variant="paper")), 0


def _sep_cma_of_cmaes(dim: int, popsize: int) -> tuple[Algorithm, Any, int]:
    """Take c_1 of the full CMA-ES, give all of c_cov to rank mu, and count generations from 1."""
    params = sep_cma.params(dim, popsize)
    c_1 = 2 / ((dim + 1.3) ** 2 + params.mu_eff)
    return sep_cma, params._replace(c_1=c_1, c_mu=params.c_1 + params.c_mu), 1


def _vd_cma_of_pycma(dim: int, popsize: int) -> tuple[Algorithm, Any, int]:
    """Take pycma's c_sigma and d_sigma, and E|N(0, I)| to the last digit."""
    c_sigma, d_sigma = _step_size_rates_of_pycma(dim, popsize)
    chi_n = math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))
    params = vd_cma.params(dim, popsize)
    return vd_cma, params._replace(c_sigma=c_sigma, d_sigma=d_sigma, chi_n=chi_n), 0


@cache
def _step_size_rates_of_pycma(dim: int, popsize: int) -> tuple[float, float]:
    rates = packages.pycma("vd", np.zeros(dim), 1.0, popsize=popsize, seed=1).adapt_sigma
    return rates.cs, rates.damps


# === A user's solvers ===


def _start(name: str, problem: Problem, popsize: int, seed: int) -> ask_tell.AskTell:
    """Call ``factory(x0=, sigma0=, popsize=, seed=)``."""
    factory = ask_tell.imported("--beside", name, list(METHODS))
    given = {"x0": problem.x0.copy(), "sigma0": problem.sigma0, "popsize": popsize, "seed": seed}
    return ask_tell.start("--beside", name, factory, **given)


def _yours(name: str, spec: RunSpec) -> RunResult:
    run = _start(name, spec.problem, spec.popsize, spec.seed)
    return ask_and_tell(
        spec,
        lambda: None if run.stop() else np.asarray(run.ask()),
        ask_tell.tell_both(run),
    )


def solver_of(name: str) -> protocol.Solver:
    """Return the solver of ``method``, ``method:variant`` or ``package.module:factory``."""
    method, _, variant = name.partition(":")
    if method not in METHODS:
        _start(name, PROBLEMS["sphere"](20), popsize=12, seed=1)  # it has to work
        return name, "yours"
    variants = [solver[1] for solver in SOLVERS if solver[0] == method]
    variant = variant or variants[0]
    if variant not in variants:
        known = ", ".join(variants)
        raise ValueError(f"--beside: expected a variant of {method}: {known}; got {variant!r}")
    return method, variant


def solve(trial: protocol.Trial) -> RunResult:
    """Run a trial with its solver."""
    run = SOLVERS.get(trial.solver, partial(_yours, trial.method))
    spec = RunSpec(trial.problem, trial.popsize, trial.seed, trial.ftarget, trial.maxfevals)
    return run(spec)


SOLVERS: dict[protocol.Solver, Solve] = {  # the first one of a method is its default
    **{(name, "ours"): _fixed(name) for name in METHODS if name != "cr-fm-nes"},
    protocol.SAFE: _fixed(fmnes.CRFMNES()),
    protocol.PAPER: _fixed(fmnes.CRFMNES(variant="paper")),
    protocol.AUTHORS: packages.run_authors,
    protocol.VD_PYCMA: partial(packages.run_pycma, "vd"),
    protocol.VD_PYCMA_RATES: partial(_pure, _vd_cma_of_pycma),
    protocol.SEP_CMAES: packages.run_cmaes,
    protocol.SEP_PYCMA: partial(packages.run_pycma, "diagonal"),
    protocol.SEP_CMAES_RATES: partial(_pure, _sep_cma_of_cmaes),
    protocol.SEP_PYCMA_RATES: _fixed(fmnes.SepCMA(rates="pycma")),
    protocol.NO_WEIGHTS: _fixed(fmnes.CRFMNES(variant="paper", distance_weights=False)),
    protocol.ONE_RATE: partial(_ours, _one_rate),
    # With one rate and rank weights nothing depends on the phase.
    protocol.NO_PHASES: partial(_ours, partial(_one_rate, distance_weights=False)),
    protocol.NO_RANK_ONE: _fixed(fmnes.CRFMNES(variant="paper", c_1=0.0)),
    protocol.NONE_OF_THESE: partial(_ours, partial(_one_rate, distance_weights=False, c_1=0.0)),
    **{
        solver: partial(_ours, partial(_scaled_eta_B, scale))
        for solver, scale in zip(protocol.ETA_B, protocol.SCALES, strict=True)
    },
    protocol.OLDER_H: partial(_pure, _older_H),
}
PACKAGES = {  # that a solver needs; rows name their versions
    protocol.AUTHORS: "crfmnes",
    protocol.VD_PYCMA: "cma",
    protocol.VD_PYCMA_RATES: "cma",
    protocol.SEP_CMAES: "cmaes",
    protocol.SEP_PYCMA: "cma",
}
