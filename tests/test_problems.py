"""The test problems have the values, the minima and the axes that they claim."""

import itertools
import math
import pickle

import numpy as np
import pytest

import fmnes
from fmnes.problems import PROBLEMS, cigar, discus, ellipsoid, ktablet, twoaxes

each_problem = pytest.mark.parametrize("name", PROBLEMS)
DIMS = [1, 2, 3, 8]


def hessian(problem):
    """Of a quadratic function with its minimum 0 at 0, from its values: exact but for rounding."""
    eye = np.eye(problem.dim)
    single = problem(eye)
    pairs = np.array([problem(eye + e) for e in eye])
    return pairs - single[:, None] - single[None, :]


# --- Values by hand ------------------------------------------------------------------------------


BY_HAND = [
    ("sphere", [3.0, 4.0], 25.0),
    ("ktablet", [1.0, 1.0, 1.0, 1.0], 30_001.0),
    ("ktablet", [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.01], 5.0),
    ("ktablet", [1.0], 1e4),  # k = 0
    ("ellipsoid", [1.0, 1.0, 1.0], 1 + 1e3 + 1e6),
    ("ellipsoid", [7.0], 49.0),
    ("rosenbrock", [0.0, 0.0], 1.0),
    ("rosenbrock", [-1.0, 1.0], 4.0),
    ("rosenbrock", [1.0, 2.0, 3.0], 100 * 1 + 0 + 100 * 1 + 1),
    ("rosenbrock", [5.0], 0.0),  # a chain without links
    ("rastrigin", [0.5, 0.0], 0.25 + 20.0),
    ("rastrigin", [1.0, 2.0], 5.0),
    ("rastrigin", [0.25], 0.0625 + 10.0),
    ("cigar", [3.0], 9.0),  # with one variable there is only the long axis
    ("discus", [3.0], 9e6),  # ... and only the short one
    ("twoaxes", [3.0], 9.0),
    ("halfspaces", [3.0, 4.0], 25.0),
    ("halfspaces", [0.0, 4.0], 16.0),
    ("halfspaces", [-1e-9, 4.0], math.inf),
]


@each_problem
def test_values_by_hand(name):
    values = {tuple(x): value for of, x, value in BY_HAND if of == name}
    assert values
    for x, value in values.items():
        assert PROBLEMS[name](len(x))(x) == pytest.approx(value, rel=1e-13)


def test_options_by_hand():
    assert ktablet(4, k=3)([1.0, 1.0, 1.0, 1.0]) == 3 + 1e4
    assert ellipsoid(2, ratio=10.0)([1.0, 1.0]) == 101.0


def test_the_cigar_is_what_the_literature_writes():
    """c |x|^2 - (c - 1) <u, x>^2, where u is read off the Hessian."""
    c = 1e4
    for dim in (2, 5):
        problem = cigar(dim, condition=c, seed=3)
        u = np.linalg.eigh(hessian(problem)).eigenvectors[:, 0]
        x = np.random.default_rng(0).normal(size=(20, dim))
        expected = c * np.sum(x**2, axis=1) - (c - 1) * (x @ u) ** 2
        np.testing.assert_allclose(problem(x), expected, rtol=1e-7)


def test_rastrigin_is_what_the_paper_writes():
    for dim in (1, 2, 7):
        x = np.random.default_rng(1).normal(scale=3, size=(50, dim))
        expected = 10 * dim + np.sum(x**2 - 10 * np.cos(2 * np.pi * x), axis=1)
        np.testing.assert_allclose(PROBLEMS["rastrigin"](dim)(x), expected, rtol=1e-12)


# --- Minima and starting points ------------------------------------------------------------------


@each_problem
def test_the_minimum_is_at_x_opt(name):
    for dim in DIMS:
        problem = PROBLEMS[name](dim)
        assert problem(problem.x_opt) == problem.minimum == 0.0
        rng = np.random.default_rng(dim)
        for scale in (1e-3, 1.0, 10.0):
            around = problem(problem.x_opt + scale * rng.normal(size=(200, dim)))
            assert np.all(around > 0) or (name, dim) == ("rosenbrock", 1)


def test_starting_points_of_the_paper():
    for name in PROBLEMS:
        problem = PROBLEMS[name](4)
        mean, sigma = {"rosenbrock": (0.0, 0.5), "halfspaces": (10.0, 2.0)}.get(name, (3.0, 2.0))
        np.testing.assert_array_equal(problem.x0, np.full(4, mean))
        assert problem.sigma0 == sigma


# --- Axes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "short"),
    [(cigar, lambda d: d - 1), (discus, lambda d: 1), (twoaxes, lambda d: d // 2)],
)
def test_axes(make, short):
    """Eigenvalues of the Hessian: 2 for the long axes, 2c for the short ones, none other."""
    c = 1e4
    for dim, seed in itertools.product([2, 5, 20], [0, 1]):
        H = hessian(make(dim, condition=c, seed=seed))
        np.testing.assert_allclose(H, H.T, rtol=0, atol=1e-10 * c)
        expected = np.repeat([2.0, 2 * c], [dim - short(dim), short(dim)])
        np.testing.assert_allclose(np.linalg.eigvalsh(H), expected, rtol=0, atol=1e-10 * c)
        off_diagonal = H - np.diag(np.diagonal(H))
        assert np.max(np.abs(off_diagonal)) > 1e-3 * c  # rotated


def test_a_stretched_cigar_is_the_cigar_in_other_units():
    spread, c = 1e3, 1e4
    for dim in (2, 5, 20):
        stretch = spread ** (np.arange(dim) / (dim - 1))
        plain, stretched = cigar(dim, c, seed=2), cigar(dim, c, spread=spread, seed=2)
        x = np.random.default_rng(4).normal(size=(10, dim))
        np.testing.assert_allclose(stretched(x), plain(stretch * x), rtol=1e-12)


def test_the_inverse_hessian_of_a_cigar_is_what_the_methods_learn():
    """(1/2c) S^-1 (I + (c - 1) u u^T) S^-1: of the form D (I + v v^T) D."""
    c, spread = 1e4, 10.0
    for dim in (2, 5, 20):
        u = np.linalg.eigh(hessian(cigar(dim, c, seed=5))).eigenvectors[:, 0]
        stretch = spread ** (np.arange(dim) / (dim - 1))
        inverse = (np.eye(dim) + (c - 1) * np.outer(u, u)) / np.outer(stretch, stretch) / (2 * c)
        H = hessian(cigar(dim, c, spread=spread, seed=5))
        np.testing.assert_allclose(H @ inverse, np.eye(dim), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["cigar", "discus", "twoaxes"])
def test_the_seed_turns_the_axes(name):
    x = np.arange(1.0, 6.0)
    values = [PROBLEMS[name](5, seed=seed)(x) for seed in (0, 0, 1)]
    assert values[0] == values[1] != values[2]


# --- How they are called -------------------------------------------------------------------------


def test_rows_are_candidates():
    for name in PROBLEMS:
        for dim in DIMS:
            problem = PROBLEMS[name](dim)
            x = np.random.default_rng(dim).normal(size=(6, dim))
            values = problem(x)
            assert values.shape == (6,)
            one_by_one = [problem(row) for row in x]
            assert all(np.ndim(value) == 0 for value in one_by_one)
            np.testing.assert_allclose(values, one_by_one, rtol=1e-13)
            assert problem(x[:0]).shape == (0,)


def test_wrong_shapes_are_refused():
    for name in PROBLEMS:
        problem = PROBLEMS[name](3)
        for x in (0.0, np.zeros(2), np.zeros((2, 4)), np.zeros((2, 2, 3))):
            with pytest.raises(ValueError, match=r"^x: .*\(3,\)"):
                problem(x)


def test_a_problem_can_be_sent_to_another_process():
    for name in PROBLEMS:
        problem = PROBLEMS[name](3)
        copy = pickle.loads(pickle.dumps(problem))
        x = np.array([[0.5, 1.0, 2.0]])
        np.testing.assert_array_equal(copy(x), problem(x))
        assert (copy.name, copy.dim, copy.minimum) == (name, 3, 0.0)


def test_its_vectors_cannot_be_changed():
    for name in PROBLEMS:
        problem = PROBLEMS[name](3)
        for vector in (problem.x0, problem.x_opt):
            with pytest.raises(ValueError, match="read-only"):
                vector[0] = 1.0


def test_a_problem_that_was_not_made_is_named():
    """A common slip: fmnes.problems.sphere makes the function to minimize, and is not one."""
    with pytest.raises(TypeError, match=r"^dim: .* what sphere\(3\) returns"):
        fmnes.minimize(fmnes.problems.sphere, [1.0, 2.0, 3.0])
