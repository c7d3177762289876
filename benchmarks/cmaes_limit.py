"""What the limit on the step size in cmaes does on Rosenbrock's function (see docs/paper.md).

    python benchmarks/cmaes_limit.py     # some ten minutes

cmaes cuts sigma at 1e32. In two cases of the paper's experiments its SepCMA and our implementation
with its constants differ. They are run once more, trial 0 of each, with and without that limit.
"""

from cmaes import _sepcma

from fmnes.experiments import protocol
from fmnes.experiments.solvers import solve

PROBLEMS = ((80, 54), (200, 60))  # dimension and population size


def main() -> None:
    for dim, popsize in PROBLEMS:
        for solver, limit in (
            (protocol.SEP_CMAES, 1e32),
            (protocol.SEP_CMAES, 1e300),
            (protocol.SEP_CMAES_RATES, 1e32),
        ):
            trial = protocol.Trial("evaluations", "rosenbrock", dim, popsize, *solver, 0)
            _sepcma._SIGMA_MAX = limit  # ours has none
            outcome = solve(trial)
            print(
                f"d = {dim}, popsize {popsize}, {' '.join(solver)}, limit {limit:g}: "
                f"{outcome.evaluations:.3g} evaluations, best value {outcome.value:.3g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
