"""Real problems, one file each; their minima are unknown, so the best values are compared.

Every file has a function of a seed that returns a `Problem`. `PROBLEMS` names them with their
number of variables and the evaluations of a trial.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from leaderboard.opponents import OPPONENTS
from leaderboard.real import antenna, lasso, policies, rover, slide, tuning, wind
from leaderboard.trials import Functions, Problem


class Real(NamedTuple):
    """A problem, its number of variables, and the evaluations of a trial."""

    make: Callable[[int], Problem]
    dim: int
    budget: int
    module: str = "numpy"  # what it needs


PROBLEMS = {
    **{
        f"lasso-{dim}": Real(partial(lasso.problem, dim), dim, budget, "sklearn")
        for dim, budget in ((60, 2000), (100, 2000), (180, 5000), (300, 5000), (1000, 5000))
    },
    "rover-60": Real(rover.problem, 60, 2000, "scipy"),
    **{
        f"wind-farm-{turbines}": Real(partial(wind.problem, turbines), 2 * turbines, 5000)
        for turbines in (16, 36, 64)
    },
    "antenna-120": Real(partial(antenna.problem, 60), 120, 5000),
    "slide-100": Real(partial(slide.problem, 100), 100, 10_000),
    "tuning-66": Real(tuning.problem, 66, 2000, "sklearn"),
    "ant-840": Real(partial(policies.problem, "Ant-v5"), 840, 1000, "mujoco"),
    "humanoid-5916": Real(partial(policies.problem, "Humanoid-v5"), 5916, 1000, "mujoco"),
}


class RealProblems(Functions):
    """The suite."""

    name = "real"
    about = "weighted Lasso, paths, wind farms, an antenna, hyper-parameters, robots"
    exact = True
    dims = tuple(sorted({real.dim for real in PROBLEMS.values()}))
    solvers = OPPONENTS

    def problems(self, dim: int) -> list[str]:
        """Return the names of those with so many variables."""
        return [name for name, real in PROBLEMS.items() if real.dim == dim]

    def budget(self, problem: str, dim: int) -> int:
        """Return the evaluations of a trial."""
        return PROBLEMS[problem].budget

    def needs(self, problem: str) -> tuple[str, ...]:
        """Return the module that a problem needs."""
        return (PROBLEMS[problem].module,)

    def problem(self, name: str, dim: int, seed: int) -> Problem:
        """Return a problem; the seed decides about starts, and data that are drawn."""
        return PROBLEMS[name].make(seed)
