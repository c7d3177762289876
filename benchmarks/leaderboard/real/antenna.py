"""An antenna array: the excitation of elements half a wavelength apart, with low side lobes.

The first half of the variables are amplitudes in [0, 1], the second half phases in half turns. The
value is the highest side lobe in decibels below the main beam, which points across the array and is
as wide as that of the Dolph-Chebyshev excitation of -30 dB: with equal phases and these amplitudes
the value is -30, and no excitation has lower side lobes beside a beam of this width (C. Dolph,
Proc. IRE 34, 1946).
"""

from functools import cache

import numpy as np

from leaderboard.trials import Problem, Vector

LEVEL, SAMPLES = -30.0, 1024


def edge(elements: int) -> float:
    """Return sin of the angle where the beam has fallen to the side lobes' level."""
    ratio = 10 ** (-LEVEL / 20)
    x0 = np.cosh(np.arccosh(ratio) / (elements - 1))
    return float(2 * np.arccos(1 / x0) / np.pi)


@cache
def _waves(elements: int) -> Vector:
    """Return the response of each element in the directions of the side lobes, and across."""
    u = np.linspace(edge(elements), 1, SAMPLES)
    u = np.concatenate([[0.0], u, -u])
    return np.exp(1j * np.pi * u[:, None] * np.arange(elements))


def level(excitation: Vector) -> float:
    """Return the highest side lobe in decibels; ``excitation`` is complex."""
    strength = np.abs(_waves(len(excitation)) @ excitation)
    return float(20 * np.log10((strength[1:].max() + 1e-12) / (strength[0] + 1e-12)))


def problem(elements: int, seed: int) -> Problem:
    """Return the problem; it starts with random excitations."""

    def value(x: Vector) -> float:
        return level(x[:elements] * np.exp(1j * np.pi * x[elements:]))

    def start(number: int) -> Vector:
        rng = np.random.default_rng([seed, number])
        return np.concatenate([rng.random(elements), rng.uniform(-1, 1, elements)])

    low = np.concatenate([np.zeros(elements), -np.ones(elements)])
    return Problem(value, start, 0.3, low, np.ones(2 * elements), True)
