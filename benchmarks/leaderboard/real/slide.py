"""The path of fastest descent between two points: Johann Bernoulli's problem with d heights.

A bead slides without friction from (0, 0) to (1, -1). The variables are the depths of a polygon at
equally spaced places between the ends. The value is the time over that of the cycloid, the fastest
of all curves, minus 1: the minimum of polygons is a little above 0.
"""

import numpy as np

from leaderboard.trials import Problem, Vector

GRAVITY = 9.81
_TURN = 2.412011143913525  # of the cycloid through (1, -1): (t - sin t) / (1 - cos t) = 1
FASTEST = _TURN * np.sqrt(1 / (1 - np.cos(_TURN)) / GRAVITY)  # in seconds


def duration(depths: Vector) -> float:
    """Return the time to slide along a polygon, depths of its corners at equal distances."""
    y = np.concatenate([[0.0], depths, [1.0]])
    lengths = np.hypot(1 / (len(y) - 1), np.diff(y))
    speeds = np.sqrt(2 * GRAVITY * np.maximum(y, 0))
    return float(np.sum(2 * lengths / np.maximum(speeds[1:] + speeds[:-1], 1e-9)))


def problem(dim: int, seed: int) -> Problem:
    """Return the problem; it starts with the straight line."""
    line = np.linspace(0, 1, dim + 2)[1:-1]

    def start(number: int) -> Vector:
        rng = np.random.default_rng([seed, number])
        return np.clip(line + (0.1 * rng.standard_normal(dim) if number else 0), 1e-3, 2)

    low, high = np.full(dim, 1e-3), np.full(dim, 2.0)
    return Problem(lambda x: duration(x) / FASTEST - 1, start, 0.1, low, high, True)
