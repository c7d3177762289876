"""The peers, each behind the same call: run to a target and count evaluations.

``run(problem, popsize, seed, ftarget, maxfevals)`` returns (evaluations, best value). Evaluations
are counted in whole generations for everyone.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import fmnes
from fmnes.problems import Problem

Runner = Callable[[Problem, int, int, float, int], tuple[int, float]]

# Only the target and the budget end a run that is to be counted; and tolfun, which holds where a
# run sits in a local minimum above the target: its values no longer differ in 14 digits.
ENDLESS = fmnes.Stopping(tolx=0.0, tolsigmaup=math.inf, stagnation=10**9)


def _ours(method: Any) -> Runner:
    def run(
        problem: Problem, popsize: int, seed: int, ftarget: float, maxfevals: int
    ) -> tuple[int, float]:
        result = fmnes.minimize(
            problem,
            problem.x0,
            problem.sigma0,
            method=method,
            popsize=popsize,
            ftarget=ftarget,
            maxfevals=maxfevals,
            stopping=ENDLESS,
            vectorized=True,
            rng=seed,
        )
        return result.nfev, result.fun

    return run


def authors(
    problem: Problem, popsize: int, seed: int, ftarget: float, maxfevals: int
) -> tuple[int, float]:
    """The authors' package crfmnes 1.0.0, its Python loop over violations switched off."""
    from crfmnes import CRFMNES

    opt = CRFMNES(
        problem.dim,
        lambda x: float(problem(x[:, 0])),
        problem.x0.reshape(-1, 1).copy(),
        problem.sigma0,
        popsize,
        seed=seed,
        use_constraint_violation=False,
    )
    while opt.no_of_evals + popsize <= maxfevals and not opt.f_best <= ftarget:
        opt.one_iteration()
        if not np.isfinite(opt.sigma):
            break
    return opt.no_of_evals, float(opt.f_best)


def _pycma(kind: str) -> Runner:
    def run(
        problem: Problem, popsize: int, seed: int, ftarget: float, maxfevals: int
    ) -> tuple[int, float]:
        import cma
        from cma.restricted_gaussian_sampler import GaussVDSampler

        options: dict[str, Any] = {
            "popsize": popsize,
            "ftarget": ftarget,
            "maxfevals": maxfevals,
            "seed": seed + 1,  # 0 means the clock
            "verbose": -9,
            **dict.fromkeys(("tolx", "tolfun", "tolfunhist", "tolfunrel"), 0),
            **dict.fromkeys(("tolstagnation", "tolflatfitness", "maxiter"), 10**9),
            **dict.fromkeys(("tolfacupx", "tolconditioncov", "tolupsigma"), 1e300),
        }
        if kind == "VD":
            options = GaussVDSampler.extend_cma_options(options)
        else:
            options["CMA_diagonal"] = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            es = cma.CMAEvolutionStrategy(problem.x0, problem.sigma0, options)
            while not es.stop():
                x = es.ask()
                es.tell(x, list(problem(np.asarray(x))))
        return es.countevals, float(es.best.f)

    return run


RUNNERS: dict[str, Runner] = {
    "fmnes safe": _ours(fmnes.CRFMNES()),
    "fmnes paper": _ours(fmnes.CRFMNES(variant="paper")),
    "authors' crfmnes": authors,
    "pycma VD": _pycma("VD"),
    "pycma diagonal": _pycma("diagonal"),
    **{f"fmnes {name}": _ours(name) for name in fmnes.METHODS if name != "cr-fm-nes"},
}
