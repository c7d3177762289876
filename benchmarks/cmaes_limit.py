"""What cmaes' limit on the step size does on Rosenbrock's function: docs/paper.md, "Witnesses".

    python benchmarks/cmaes_limit.py     # some ten minutes

cmaes cuts sigma at 1e32. The two cells of the paper's experiments in which its SepCMA and our text
with its constants differ are run once more, trial 0 of each, with and without that limit.
"""

from cmaes import _sepcma

from fmnes.experiments import protocol
from fmnes.experiments.solvers import SOLVERS

PROBLEMS = ((80, 54), (200, 60))  # dimension and population size


def main() -> None:
    for dim, popsize in PROBLEMS:
        for solver, limit in (
            (protocol.SEP_CMAES, 1e32),
            (protocol.SEP_CMAES, 1e300),
            (protocol.SEP_FED_CMAES, 1e32),
        ):
            trial = protocol.Trial("evaluations", "rosenbrock", dim, popsize, *solver, 0)
            _sepcma._SIGMA_MAX = limit  # ours has none
            solve = SOLVERS[solver]
            outcome = solve(trial.problem, popsize, trial.seed, trial.ftarget, trial.maxfevals)
            print(
                f"d = {dim}, popsize {popsize}, {' '.join(solver)}, limit {limit:g}: "
                f"{outcome.evaluations:.3g} evaluations, best value {outcome.value:.3g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
