"""The problems: known optima, values of independent formulas, and invariance to rotation."""

import itertools
import math

import numpy as np
import pytest
from scipy.signal.windows import chebwin

from leaderboard import rotated
from leaderboard.real import antenna, rover, slide, wind
from leaderboard.trials import Counter, DoneError, Problem

MINIMA = {"rosenbrock": (1.0, 0.0), "levy_montalvo": (-1.0, 0.0)}  # where not 0: y, and the value


def by_loops(name, y):
    """A few of the functions, written term by term."""
    n = len(y)
    if name == "cigar_discus":
        return y[0] ** 2 + sum(1e4 * a * a for a in y[1:-1]) + 1e6 * y[-1] ** 2
    if name == "schwefel12":
        return sum(sum(y[: i + 1]) ** 2 for i in range(n))
    if name == "different_powers":
        return sum(abs(a) ** (2 + 4 * i / (n - 1)) for i, a in enumerate(y))
    if name == "griewank":
        product = math.prod(math.cos(a / math.sqrt(i + 1)) for i, a in enumerate(y))
        return sum(a * a for a in y) / 4000 - product + 1
    if name == "scaled_rastrigin":
        z = [a * 10 ** (i / (n - 1)) for i, a in enumerate(y)]
        return 10 * n + sum(a * a - 10 * math.cos(2 * math.pi * a) for a in z)
    if name == "michalewicz":
        waves = (math.sin((i + 1) * a * a / math.pi) ** 20 for i, a in enumerate(y))
        return len(y) - sum(math.sin(a) * w for a, w in zip(y, waves, strict=True))
    if name == "bohachevsky":
        return sum(
            a * a + 2 * b * b
            - 0.3 * math.cos(3 * math.pi * a) - 0.4 * math.cos(4 * math.pi * b) + 0.7
            for a, b in itertools.pairwise(y)
        )  # fmt: skip
    raise AssertionError(name)


LOOPS = [
    *("cigar_discus", "schwefel12", "different_powers", "griewank", "scaled_rastrigin"),
    *("michalewicz", "bohachevsky"),
]


@pytest.mark.parametrize("name", LOOPS)
def test_values_are_those_of_the_formula(name):
    y = np.random.default_rng(3).normal(size=7)
    assert rotated.FUNCTIONS[name](y) == pytest.approx(by_loops(name, y.tolist()), rel=1e-12)


def test_the_twenty_functions_have_their_minimum_where_it_is_known():
    assert len(rotated.FUNCTIONS) == len(rotated.PUBLISHED) == 20
    rng = np.random.default_rng(1)
    for name in rotated.FUNCTIONS.keys() - {"michalewicz"}:
        place, value = MINIMA.get(name, (0.0, 0.0))
        y = np.full(6, place)
        x = rotated.shift(name, 6) + rotated.rotation(name, 6).T @ y
        assert rotated.values(name, x[None])[0] == pytest.approx(value, abs=1e-9)
        around = rotated.values(name, x + 0.7 * rng.normal(size=(50, 6)))
        assert (around >= value).all(), name


def test_the_infimum_of_michalewicz_is_nothing():
    y = np.linspace(-3000, 3000, 600_001)
    for k in range(1, 6):  # of the last variable, where the others are 0
        points = np.zeros((len(y), k))
        points[:, -1] = y
        values = rotated.michalewicz(points) - (k - 1)
        assert values.min() >= 0
        assert values.min() < 1e-3


def test_budgets_are_those_of_the_published_medians():
    suite = rotated.Rotated()
    assert suite.budget("ellipsoid", 2000) == 5_000_000
    assert suite.budget("discus", 2000) == 5_300_000  # of the best that did not reach 1e-10
    assert suite.budget("sphere", 2000) == 5_000_000  # all five reached it
    assert suite.budget("ellipsoid", 20) == 50_000


def test_functions_of_the_length_do_not_see_the_rotation():
    rng = np.random.default_rng(2)
    x = rng.uniform(-10, 10, (5, 8))
    for name in ("sphere", "salomon"):
        moved = x - rotated.shift(name, 8)
        assert rotated.values(name, x) == pytest.approx(rotated.FUNCTIONS[name](moved), rel=1e-12)
    Q = rotated.rotation("discus", 8)
    np.testing.assert_allclose(Q @ Q.T, np.eye(8), atol=1e-14)
    turned = rotated.values("discus", x)
    assert (abs(turned / rotated.discus(x - rotated.shift("discus", 8)) - 1) > 1e-3).all()


def test_the_wind_farm_has_the_energy_that_the_case_study_states():
    def ring(count, radius):
        angle = 2 * np.pi * np.arange(count) / count
        return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    given = np.concatenate([np.zeros((1, 2)), ring(5, 650.0), ring(10, 1300.0)])
    assert wind.energy(given) == pytest.approx(366941.57, abs=0.02)
    assert wind.violation(given, 1300.0) == pytest.approx(0, abs=1e-9)
    assert wind.violation(1.1 * given, 1300.0) == pytest.approx(10 * 130 / 130)


@pytest.mark.filterwarnings("ignore:This window is not suitable for spectral analysis")
def test_the_chebyshev_excitation_reaches_the_level():
    best = antenna.level(chebwin(60, -antenna.LEVEL).astype(complex))
    assert best == pytest.approx(antenna.LEVEL, abs=1e-3)
    assert antenna.level(np.ones(60, complex)) == pytest.approx(-13.2, abs=0.1)  # of a sinc


def test_the_cycloid_is_the_fastest_slide():
    t = np.linspace(0, slide._TURN, 20_001)
    radius = 1 / (1 - np.cos(slide._TURN))
    x, y = radius * (t - np.sin(t)), radius * (1 - np.cos(t))
    assert (x[-1], y[-1]) == pytest.approx((1, 1))
    cycloid = slide.duration(np.interp(np.linspace(0, 1, 2002)[1:-1], x, y))
    assert slide.FASTEST < cycloid < 1.002 * slide.FASTEST
    line = slide.duration(np.linspace(0, 1, 2002)[1:-1])
    assert line == pytest.approx(2 / math.sqrt(9.81), rel=1e-6)  # sqrt(2 L / (g sin)), L = sqrt 2


def test_the_rover_pays_for_length_obstacles_and_its_ends():
    straight = np.linspace(0.05, 0.95, rover.POINTS)
    x = np.stack([straight, straight], axis=1).ravel()
    free = 0.05 * 0.9 * math.sqrt(2) - 5
    assert rover.value(x) > free + 20 * 0.01  # some obstacles are on the diagonal
    assert rover.value(np.full(60, 0.05)) == pytest.approx(10 * 1.8 - 5)  # stays where it is
    assert rover.cost(rover.obstacles()[:1])[0] == 20.05


def test_lasso_has_its_known_solutions():
    pytest.importorskip("sklearn", reason="needs the extra leaderboard: scikit-learn")
    from leaderboard.real import lasso

    X, y, weights = lasso.data(60)
    assert X.shape == (30, 60)
    assert np.count_nonzero(weights) == 3
    assert lasso.fitted(X, y, np.full(60, 1.001 * np.max(np.abs(X.T @ y)) / 30)) == pytest.approx(0)
    alphas = lasso.penalties(60, np.linspace(-1, 1, 60))
    assert alphas[-1] / alphas[0] == pytest.approx(100)
    w = lasso.fitted(X, y, alphas)
    slopes = X.T @ (y - X @ w) / 30  # the optimality conditions of the weighted problem
    assert (np.abs(slopes) <= 1.02 * alphas).all()
    assert slopes[w != 0] == pytest.approx((alphas * np.sign(w))[w != 0], rel=0.05)
    assert lasso.loss(60, np.where(weights == 0, 1.0, -1.0)) < lasso.loss(60, np.zeros(60))


def test_the_counter_notes_targets_and_ends():
    problem = Problem(float, lambda number: None, 1.0, None, None, targets=(10.0, 1.0, 0.1))
    counter = Counter(problem._replace(fun=lambda x: float(x[0])), 5)
    assert counter.many([[20.0], [5.0]]).tolist() == [20, 5]
    assert counter([0.5]) == 0.5
    assert counter.hits == [2, 3]
    with pytest.raises(DoneError):
        counter.many([[3.0], [4.0], [0.0]])  # the sixth evaluation is not made
    assert (counter.spent, counter.best, counter.hits) == (5, 0.5, [2, 3])
    reached = Counter(problem._replace(fun=lambda x: float(x[0])), 5)
    with pytest.raises(DoneError):
        reached([0.1])
    assert reached.hits == [1, 1, 1]
