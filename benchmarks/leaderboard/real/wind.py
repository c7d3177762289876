"""Wind farms: IEA Wind Task 37, case study 1, with 16, 36 or 64 turbines.

N. Baker et al.: "Best practices for wake model and optimization algorithm selection in wind farm
layout optimization" (AIAA 2019), and the announcement of the case study: a simplified Gaussian wake
(F. Porte-Agel and M. Bastankhah), 16 directions, one wind speed, a 3.35 MW turbine. The variables
are positions in rotor diameters. A turbine outside the circle or within two diameters of another
costs a penalty, so that every solver sees a function with values everywhere.
"""

import numpy as np

from leaderboard.trials import Problem, Vector

RADII = {16: 1300.0, 36: 2000.0, 64: 3000.0}  # of the site, in metres
DIAMETER, RATED, CUT_IN, SPEED, POWER = 130.0, 9.8, 4.0, 9.8, 3.35
SPREAD, THRUST = 0.0324555, 8 / 9
FREQUENCIES = np.array(
    [25, 24, 29, 36, 63, 65, 100, 122, 63, 38, 39, 83, 213, 46, 32, 22]
) / 1000  # fmt: skip
DIRECTIONS = np.radians(np.arange(0, 360, 22.5))  # where the wind comes from, clockwise from north
PENALTY = 0.05  # of the energy of a farm without wakes, for each diameter


def energy(positions: Vector) -> float:
    """Return the energy of a year in MWh; positions in metres, (east, north) in each row."""
    sin, cos = np.sin(DIRECTIONS)[:, None], np.cos(DIRECTIONS)[:, None]
    east, north = positions.T
    powers = _powers(-(east * sin + north * cos), east * cos - north * sin)
    return 8760 * float(FREQUENCIES @ powers.sum(axis=1))


def _powers(down: Vector, cross: Vector) -> Vector:
    """Return the power of each turbine in MW; places along and across the wind in the last axis."""
    dx = down[..., :, None] - down[..., None, :]
    dy = cross[..., :, None] - cross[..., None, :]
    width = SPREAD * np.maximum(dx, 0) + DIAMETER / np.sqrt(8)
    deficit = 1 - np.sqrt(1 - THRUST / (8 * width**2 / DIAMETER**2))
    losses = np.where(dx > 0, deficit * np.exp(-0.5 * (dy / width) ** 2), 0.0)
    speed = SPEED * (1 - np.sqrt(np.sum(losses**2, axis=-1)))
    return np.asarray(POWER * np.clip((speed - CUT_IN) / (RATED - CUT_IN), 0, 1) ** 3)


def violation(positions: Vector, radius: float) -> float:
    """Return the sum of all violations in diameters."""
    outside = np.maximum(np.linalg.norm(positions, axis=1) - radius, 0).sum()
    i, j = np.triu_indices(len(positions), 1)
    apart = np.linalg.norm(positions[i] - positions[j], axis=1)
    return float(outside + np.maximum(2 * DIAMETER - apart, 0).sum()) / DIAMETER


def problem(turbines: int, seed: int) -> Problem:
    """Return minus the energy over that of a farm without wakes, plus penalties."""
    radius = RADII[turbines]
    free = 8760 * POWER * turbines

    def value(x: Vector) -> float:
        positions = DIAMETER * x.reshape(-1, 2)
        return PENALTY * violation(positions, radius) - energy(positions) / free

    def start(number: int) -> Vector:
        rng = np.random.default_rng([seed, number, turbines])
        angle, distance = 2 * np.pi * rng.random(turbines), np.sqrt(rng.random(turbines))
        points = np.stack([np.cos(angle), np.sin(angle)], axis=1) * distance[:, None]
        return np.asarray(points.ravel() * radius / DIAMETER)

    side = np.full(2 * turbines, radius / DIAMETER)
    return Problem(value, start, side[0] / 5, -side, side, True)
