"""A rover's path around obstacles: 30 points of the plane, 60 variables.

After the problem of Z. Wang, C. Gehring, P. Kohli, S. Jegelka, "Batched large-scale Bayesian
optimization in high-dimensional spaces" (AISTATS 2018): a cubic B-spline through the unit square
costs 0.05 for each unit of length, 20 times as much as its length in obstacles and outside,
and ten times the distances (sums of absolute differences) of its ends from start and goal. The
value is the cost minus 5. The map is our own: 60 squares of side 0.1 drawn at random, none at start
and goal, so values cannot be compared with those of the publication.
"""

from functools import cache

import numpy as np

from leaderboard.trials import Problem, Vector

POINTS, SAMPLES = 30, 300
BEGIN, END = np.full(2, 0.05), np.full(2, 0.95)
HALF = 0.05  # of the side of an obstacle


@cache
def obstacles() -> Vector:
    """Return the centres of the squares."""
    centres = np.random.default_rng(2018).random((200, 2))
    far = np.minimum(np.abs(centres - BEGIN).max(1), np.abs(centres - END).max(1)) > 3 * HALF
    return np.asarray(centres[far][:60])


def cost(at: Vector) -> Vector:
    """Return the cost of each unit of length at points of the plane."""
    near = np.abs(at[:, :, None] - obstacles().T) <= HALF
    hit = (near[:, 0] & near[:, 1]).any(axis=1)
    outside = ((at < 0) | (at > 1)).any(axis=1)
    return 0.05 + 20.0 * (hit | outside)


@cache
def _basis() -> Vector:
    """Return the values of the cubic B-splines at the samples, with knots repeated at the ends."""
    from scipy.interpolate import BSpline

    inner = np.linspace(0, 1, POINTS - 2)
    knots = np.concatenate([[0.0] * 3, inner, [1.0] * 3])
    at = np.linspace(0, 1, SAMPLES)
    return np.asarray(BSpline.design_matrix(at, knots, 3).toarray())


def value(x: Vector) -> float:
    """Return the cost of a path minus 5, by the trapezoidal rule."""
    points = _basis() @ x.reshape(POINTS, 2)
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    costs = cost(points)
    along = float(np.sum(lengths * (costs[1:] + costs[:-1]) / 2))
    ends = np.abs(points[0] - BEGIN).sum() + np.abs(points[-1] - END).sum()
    return along + 10 * float(ends) - 5


def problem(seed: int) -> Problem:
    """Return the problem; it starts at random in the square."""

    def start(number: int) -> Vector:
        return np.random.default_rng([seed, number]).random(2 * POINTS)

    low, high = np.full(2 * POINTS, -0.1), np.full(2 * POINTS, 1.1)
    return Problem(value, start, 0.2, low, high, True)
