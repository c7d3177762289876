"""Statistics of the normal draws.

Every check gives the p-values of its comparisons, under the hypothesis that the draws are
independent standard normal. None may lie below LEVEL. There are fewer than 1000 comparisons in
this file, so that for a perfect generator and a random seed the chance of a failure is below 1e-4;
the seeds are fixed, so that no run depends on chance.

That each check can fail is shown on spoiled draws: of uniforms that have few bits, a little too
wide, leaning on their neighbours, or made with fewer rounds of Philox.
"""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from fmnes import draws
from fmnes.draws import numpy_draws

LEVEL = 1e-7
SEED = 20240229


def two_sided(z):
    """p-values of what is standard normal."""
    return 2 * stats.norm.sf(np.abs(z))


@pytest.fixture(scope="module")
def sample():
    """1e7 draws: (generations, rows, coordinates)."""
    return np.stack([draws.normals(SEED, 0, g, 0, 2500, 1000) for g in range(4)])


@pytest.fixture(scope="module")
def ordered(sample):
    return np.sort(sample, axis=None)


@pytest.fixture(scope="module")
def coarse(ordered):
    """What the draws would be if their uniforms had eight bits."""
    return special.ndtri((np.floor(special.ndtr(ordered) * 2**8) + 0.5) / 2**8)


# --- The distribution -----------------------------------------------------------------------------


def moments(z):
    """Of the first eight; z^k has the variance (2k - 1)!! - E[z^k]^2."""
    p, power = [], np.ones_like(z)
    for k in range(1, 9):
        power *= z
        mean = special.factorial2(k - 1) if k % 2 == 0 else 0.0
        deviation = math.sqrt((special.factorial2(2 * k - 1) - mean**2) / z.size)
        p.append(two_sided((np.mean(power) - mean) / deviation))
    return p


def kolmogorov_smirnov(z):
    """Of draws in order."""
    u, n = special.ndtr(z), z.size
    steps = np.arange(n + 1) / n
    return [stats.kstwobign.sf(math.sqrt(n) * max(np.max(steps[1:] - u), np.max(u - steps[:-1])))]


def anderson_darling(z):
    """Of draws in order.

    A^2 is in the limit a sum of chi_j^2 / (j (j + 1)) over j = 1, 2, ... (Anderson, Darling 1952);
    the p-value is Chernoff's bound, from its moment generating function.
    """
    n = z.size
    logs = np.log(special.ndtr(z)) + np.log(special.ndtr(-z[::-1]))
    A2 = -n - np.dot(2 * np.arange(1, n + 1) - 1, logs) / n
    j = np.arange(1, 10_000)

    def log_bound(t):
        return -0.5 * np.sum(np.log1p(-2 * t / (j * (j + 1)))) - t * A2

    least = optimize.minimize_scalar(log_bound, bounds=(0, 0.999), method="bounded").fun
    return [math.exp(min(0.0, least))]


def tails(z):
    """How many lie beyond 3, 4, 4.5 and 5 on either side: Poisson numbers."""
    p = []
    for limit in (3.0, 4.0, 4.5, 5.0):
        expected = z.size * stats.norm.sf(limit)
        for count in (np.sum(z > limit), np.sum(z < -limit)):
            either = stats.poisson.cdf(count, expected), stats.poisson.sf(count - 1, expected)
            p.append(min(1.0, 2 * min(either)))
    return p


CHECKS = [moments, kolmogorov_smirnov, anderson_darling, tails]


@pytest.mark.parametrize("check", CHECKS)
def test_distribution(ordered, check):
    assert min(check(ordered)) > LEVEL


@pytest.mark.parametrize("check", CHECKS)
def test_uniforms_of_few_bits_are_found_out(coarse, check):
    assert min(check(coarse)) < LEVEL


@pytest.mark.parametrize("check", CHECKS)
def test_draws_a_little_too_wide_are_found_out(ordered, check):
    """By half a per cent."""
    assert min(check(1.005 * ordered)) < LEVEL


# --- Independence within a generation, and of the next ones ---------------------------------------


def dependence(a, b):
    """Correlations of two arrays of draws, and of their squares, which have the variance 2."""
    squares = np.vdot(a * a - 1, b * b - 1) / 2
    return two_sided(np.array([np.vdot(a, b), squares]) / math.sqrt(a.size)).tolist()


COORDINATES = [*range(1, 18), 24, 31, 32, 33, 64, 128, 256, 512]
ROWS = [1, 2, 3, 4, 8, 16, 64, 256, 1024]
LAGS = COORDINATES + [1000 * lag for lag in ROWS] + [2_500_000, 5_000_000]


def lagged(sample):
    """Draws and those some coordinates, rows or generations later."""
    z = sample.ravel()
    squares = (z * z - 1) / math.sqrt(2)
    return [
        two_sided(np.dot(x[lag:], x[:-lag]) / math.sqrt(z.size - lag))
        for lag in LAGS
        for x in (z, squares)
    ]


def partners(sample):
    """The cosine and the sine of the same words: their radius and angle are independent, too."""
    groups = sample[..., : 1000 // 16 * 16].reshape(-1, 2, 8)
    cosine, sine = groups[:, 0].ravel(), groups[:, 1].ravel()
    uniform = np.exp(-0.5 * (cosine**2 + sine**2))
    turn = np.arctan2(sine, cosine) / (2 * np.pi) + 0.5
    cells = np.bincount((uniform * 64).astype(int) * 64 + np.minimum(turn * 64, 63).astype(int))
    return [*dependence(cosine, sine), stats.chisquare(cells).pvalue]


@pytest.mark.parametrize("check", [lagged, partners])
def test_independence_within_the_sample(sample, check):
    assert min(check(sample)) > LEVEL


def test_neighbours_that_lean_on_each_other_are_found_out(sample):
    z = sample + 0.002 * np.roll(sample, 8)
    assert min(lagged(z)) < LEVEL
    assert min(partners(z)) < LEVEL


# --- Independence of what is at addresses that differ in one bit, or follow each other ------------

BITS = {"seed": 64, "stream": 20, "generation": 44, "row": 32}


def nearby(draw, n=100_000):
    """The draws at an address and at all that are near it; `draw` takes an address and a number."""
    home = {"seed": SEED, "stream": 0, "generation": 5, "row": 3}
    z = draw(**home, n=n)
    p = []
    for part, bits in BITS.items():
        others = {home[part] ^ (1 << bit) for bit in range(bits)} | {home[part] + 1}
        for other in sorted(others):
            p += dependence(z, draw(**home | {part: other}, n=n))
    return p


def test_independence_of_nearby_addresses():
    def draw(seed, stream, generation, row, n):
        return draws.normals(seed, stream, generation, row, row + 1, n)[0]

    p = nearby(draw)
    assert len(p) > 2 * sum(BITS.values())
    assert min(p) > LEVEL


@pytest.mark.parametrize("rounds", [4, 5])
def test_fewer_rounds_are_found_out(monkeypatch, rounds):
    def draw(seed, stream, generation, row, n):
        out = np.empty((1, n))
        numpy_draws.normals(seed, stream, generation, row, out)
        return out[0]

    monkeypatch.setattr(numpy_draws, "ROUNDS", rounds)
    assert min(nearby(draw)) < LEVEL
