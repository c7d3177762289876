"""CEC 2013 LSGO: fifteen functions of 1000 variables (905 where groups overlap).

X. Li, K. Tang, M. Omidvar, Z. Yang, K. Qin: "Benchmark functions for the CEC'2013 special session
and competition on large-scale global optimization" (2013). The functions are those of the package
cec2013lsgo (GPL-3), which is imported here only, and only if it is installed.
"""

from typing import Any

import numpy as np

from leaderboard.opponents import OPPONENTS
from leaderboard.trials import Functions, Problem, Trial, Vector

TARGETS = tuple(float(target) for target in 10.0 ** (12 - np.arange(101) / 5))  # 1e12 to 1e-8


class LSGO(Functions):
    """The fifteen functions; most are sums over groups of variables."""

    name = "lsgo"
    about = "CEC 2013 LSGO, f1 to f15"
    dims = (1000,)
    modules = ("cec2013lsgo",)
    targets = TARGETS
    exact = True
    solvers = OPPONENTS

    def problems(self, dim: int) -> list[str]:
        """Return f1 to f15."""
        return [f"f{number}" for number in range(1, 16)]

    def budget(self, problem: str, dim: int) -> int:
        """Return the 3e6 evaluations of the competition."""
        return 3000 * dim

    def problem(self, name: str, dim: int, seed: int) -> Problem:
        """Return a function; f13 and f14 have 905 variables."""
        from cec2013lsgo.cec2013 import Benchmark

        benchmark, number = Benchmark(), int(name[1:])
        info, fun = benchmark.get_info(number), benchmark.get_function(number)
        size = int(info["dimension"])
        low, high = np.full(size, float(info["lower"])), np.full(size, float(info["upper"]))
        trial = Trial(self.name, name, dim, "", seed, 0)

        def value(x: Vector, _keep: Any = benchmark) -> float:
            return float(fun(np.array(x)))  # it refuses arrays that are read-only

        def start(k: int) -> Vector:
            return np.random.default_rng(trial.seed_of(k)).uniform(low, high)

        sigma0 = float(high[0] - low[0]) / 6
        return Problem(value, start, sigma0, low, high, True, targets=TARGETS)
