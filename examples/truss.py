"""A bridge of hundreds of bars: the least weight at which it bends no more than allowed.

    python examples/truss.py                     399 bars, a minute
    python examples/truss.py --panels 20         79 bars, seconds

A Warren truss spans n panels between two supports and carries the same load at each lower joint.
A bar of length L, area A and force N gets longer by N L / (E A), and the middle sinks by

    u = sum N n L / (E A),     n: the forces for a unit load in the middle (virtual work).

We minimise the weight, the sum of L A, over the areas of all bars. The deflection u is a constraint
with a value. The strength |N| / A <= limit of each bar is a bound on its area. The optimum is
known: A is proportional to sqrt(N n), and where that is too weak, the bound.
"""

import argparse

import numpy as np

import fmnes

LIMIT = 1.0  # deflection allowed; lengths, loads and Young's modulus have units that make it 1


class Truss:
    """Forces and lengths of a Warren truss with an even number of panels of length 1."""

    def __init__(self, panels: int) -> None:
        top = [(i + 0.5, np.sqrt(3) / 2) for i in range(panels)]
        joints = np.array([(float(i), 0.0) for i in range(panels + 1)] + top)
        low, high = np.arange(panels + 1), panels + 1 + np.arange(panels)
        bars = [(low[i], low[i + 1]) for i in range(panels)]
        bars += [(low[i], high[i]) for i in range(panels)]
        bars += [(high[i], low[i + 1]) for i in range(panels)]
        bars += [(high[i], high[i + 1]) for i in range(panels - 1)]
        a, b = np.array(bars).T
        along = joints[b] - joints[a]
        self.length = np.linalg.norm(along, axis=1)
        unit = along / self.length[:, None]
        # Equilibrium of each joint in x and y, with reactions in x and y left, in y right.
        balance = np.zeros((2 * len(joints), len(bars) + 3))
        for k in range(2):
            balance[2 * a + k, np.arange(len(bars))] = unit[:, k]
            balance[2 * b + k, np.arange(len(bars))] = -unit[:, k]
        balance[[0, 1, 2 * panels + 1], [-3, -2, -1]] = 1.0
        loads = np.zeros((2 * len(joints), 2))
        loads[2 * low[1:-1] + 1, 0] = 1.0 / panels  # on all inner lower joints, downwards
        loads[2 * (panels // 2) + 1, 1] = 1.0  # the unit load in the middle
        self.force, self.unit_force = np.linalg.solve(balance, loads)[:-3].T
        self.work = self.force * self.unit_force * self.length
        self.weakest = np.maximum(np.abs(self.force), 1e-3) / 4.0  # the least area for its strength

    def __call__(self, x: np.ndarray) -> tuple[float, float]:
        """Weight and deflection beyond the limit, relative to it, for logarithms of the areas."""
        area = np.exp(x)
        return float(self.length @ area), float((self.work / area).sum() / LIMIT - 1)

    def optimum(self) -> np.ndarray:
        """The best areas: max(weakest, c sqrt(N n)) with c from the limit, by bisection."""
        best = np.sqrt(np.maximum(self.work / self.length, 0.0))
        low, high = 0.0, 1e9
        for _ in range(200):
            c = (low + high) / 2
            area = np.maximum(self.weakest, c * best)
            low, high = (low, c) if (self.work / area).sum() < LIMIT else (c, high)
        return np.maximum(self.weakest, high * best)


def design(truss: Truss, seed: int, **options: object) -> fmnes.Result:
    """Search for the areas, from bars that are all equally thick."""
    lowest = np.log(truss.weakest)
    start = np.maximum(lowest, np.log(2 * truss.work.sum() / LIMIT))
    return fmnes.minimize(
        truss, start, 0.5, bounds=fmnes.Bounds(lowest, np.inf), constraints=1, rng=seed, **options
    )


def main() -> None:
    """Print the weight that was found, and the least one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--panels", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    truss = Truss(arguments.panels)
    least = float(truss.length @ truss.optimum())
    result = design(truss, arguments.seed, stopping=fmnes.Stopping(tolx=1e-6, tolfun=1e-10))
    print(result)
    print(f"{len(truss.length)} bars: weight {result.fun:.8g}, the least is {least:.8g}")
    print(f"multiplier {result.multipliers[0]:.6g}: weight saved for each 100 % of deflection")


if __name__ == "__main__":
    main()
