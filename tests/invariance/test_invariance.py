"""What must not change a search: where the origin is, the unit of length, the names and signs of
the coordinates, the scale of the values, the order of the candidates; for some, any rotation.

Two searches run side by side for ten generations, one on f and one on f after the change, from
states and with draws that the change maps onto each other; then their distributions have to.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fmnes.algorithms import METHODS, Shape
from property_tests import examples

GENERATIONS = 10
ROTATION_INVARIANT = ["xnes", "dx-nes-ic", "fm-nes", "cma-es", "r1-nes"]

methods = pytest.mark.parametrize("name", METHODS)
few_examples = examples(8)
seeds, dims = st.integers(0, 2**32 - 1), st.integers(2, 8)


class Search:
    """A method, a random start and a random objective with an infeasible half-space."""

    def __init__(self, name, dim, seed):
        self.rng = np.random.default_rng(seed)
        self.module, self.dim = METHODS[name], dim
        self.popsize = 2 * dim + 4  # with fewer, the axes of DX-NES-IC are not unique at first
        self.params = self.module.params(dim, self.popsize)
        self.mean = self.rng.normal(size=dim)
        self.sigma = np.exp(self.rng.normal())
        self.D = np.exp(0.5 * self.rng.normal(size=dim)) if name != "r1-nes" else np.ones(dim)
        self.v = self.rng.normal(size=dim)
        self.axes = np.exp(self.rng.normal(size=dim))
        normal = np.abs(self.rng.normal(size=dim))
        self.normal = normal / np.linalg.norm(normal)
        rows = self.popsize // 2 if self.module.ANTITHETIC else self.popsize
        self.draws = self.rng.normal(size=(GENERATIONS, rows, dim))

    def f(self, x):
        """A curved valley that a wall cuts off from its optimum."""
        y = (x - self.mean) / self.sigma
        curved = np.sum((self.axes * (y - 3)) ** 2, axis=-1) + (y[..., 0] - y[..., 1] ** 2) ** 2
        return np.where(y @ self.normal > 1, np.inf, curved)

    def start(self, mean, sigma, shape):
        return self.module.init(self.params, mean, np.asarray(sigma), shape, self.v)

    def shape(self):
        """For the methods with a full matrix a matrix, for the others the vectors."""
        if self.module.LINEAR:
            return Shape(D=self.D, v=self.v)
        C = np.diag(self.D) @ (np.eye(self.dim) + np.outer(self.v, self.v)) @ np.diag(self.D)
        return Shape(D=np.ones(self.dim), C=C)

    def step(self, state, z, f):
        if not self.module.LINEAR:
            state = self.module.refresh(self.params, state)
        x = self.module.ask(self.params, state, z)
        return self.module.tell(self.params, state, z, f(x))

    def run(self, state, f, draws):
        for z in draws:
            state = self.step(state, z, f)
        return state

    def run_original(self):
        return self.run(self.start(self.mean, self.sigma, self.shape()), self.f, self.draws)

    def matrix(self, state):
        """The T of x - m = z T, one unit vector a row."""
        return self.module.transform(self.params, state, np.eye(self.dim))


def assert_close(ours, theirs, rtol=1e-9):
    size = np.max(np.abs(theirs), initial=0)  # an array may be empty
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * size)


@methods
@few_examples
@given(dim=dims, seed=seeds)
def test_translation(name, dim, seed):
    search = Search(name, dim, seed)
    shift = search.rng.normal(size=dim)
    moved = search.start(search.mean + shift, search.sigma, search.shape())
    moved = search.run(moved, lambda x: search.f(x - shift), search.draws)
    original = search.run_original()
    for field in set(original._fields) - {"mean"}:
        assert_close(getattr(moved, field), getattr(original, field))
    assert_close(moved.mean - shift, original.mean)


@methods
@pytest.mark.parametrize("scale", [2.0**-30, 1e-3, 1e6])
@few_examples
@given(dim=dims, seed=seeds)
def test_unit_of_length(name, scale, dim, seed):
    search = Search(name, dim, seed)
    scaled = search.start(scale * search.mean, scale * search.sigma, search.shape())
    scaled = search.run(scaled, lambda x: search.f(x / scale), search.draws)
    original = search.run_original()
    assert_close(scaled.mean / scale, original.mean)
    assert_close(search.matrix(scaled) / scale, search.matrix(original))


@methods
@pytest.mark.parametrize(
    "g", [np.sqrt, np.square, lambda f: 3 * f - 7, lambda f: -1 / (1 + f)], ids=range(4)
)
@few_examples
@given(dim=dims, seed=seeds)
def test_increasing_map_of_the_values(name, g, dim, seed):
    """To the last bit."""
    search = Search(name, dim, seed)

    def mapped(x):
        f = search.f(x)
        return np.where(np.isfinite(f), g(f), f)

    state = search.start(search.mean, search.sigma, search.shape())
    state = search.run(state, mapped, search.draws)
    for ours, theirs in zip(state, search.run_original(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@methods
@few_examples
@given(dim=dims, seed=seeds)
def test_order_of_the_candidates(name, dim, seed):
    """Rows in any order; pairs with either member first."""
    search = Search(name, dim, seed)
    draws = np.array([search.rng.permutation(z, axis=0) for z in search.draws])
    if search.module.ANTITHETIC:
        draws = draws * search.rng.choice([-1.0, 1.0], size=(*draws.shape[:2], 1))
    state = search.start(search.mean, search.sigma, search.shape())
    shuffled, original = search.run(state, search.f, draws), search.run_original()
    for field in original._fields:
        assert_close(getattr(shuffled, field), getattr(original, field))


def mapped_draws(search, Q, original, image, z):
    """The draws that give the image of each step: transform'(z') = Q transform(z).

    They are the old ones in rotated coordinates, so they are as long as those.
    """
    steps = search.module.transform(search.params, original, z) @ Q.T
    new = np.linalg.solve(search.matrix(image).T, steps.T).T
    np.testing.assert_allclose(np.sum(new**2, axis=1), np.sum(z**2, axis=1), rtol=1e-8)
    return new


def check_orthogonal_map(search, Q, image_shape):
    original = search.start(search.mean, search.sigma, search.shape())
    image = search.start(Q @ search.mean, search.sigma, image_shape)
    for z in search.draws:
        if not search.module.LINEAR:
            original = search.module.refresh(search.params, original)
            image = search.module.refresh(search.params, image)
        new = mapped_draws(search, Q, original, image, z)
        original = search.step(original, z, search.f)
        image = search.step(image, new, lambda x: search.f(x @ Q))
    T, T_image = search.matrix(original), search.matrix(image)
    assert_close(image.mean, Q @ original.mean, 1e-8)
    assert_close(T_image.T @ T_image, Q @ T.T @ T @ Q.T, 1e-8)


def image_of_shape(search, Q):
    """Of the full matrices Q C Q^T; the others need a permutation with signs for Q, or D = 1."""
    shape = search.shape()
    if search.module.LINEAR:
        return Shape(D=np.abs(Q) @ shape.D if np.any(shape.D != 1) else shape.D, v=Q @ shape.v)
    return Shape(D=shape.D, C=Q @ shape.C @ Q.T)


@methods
@few_examples
@given(dim=dims, seed=seeds)
def test_names_and_signs_of_the_coordinates(name, dim, seed):
    search = Search(name, dim, seed)
    Q = search.rng.permutation(np.eye(dim)) * search.rng.choice([-1.0, 1.0], size=dim)
    check_orthogonal_map(search, Q, image_of_shape(search, Q))


@pytest.mark.parametrize("name", ROTATION_INVARIANT)
@few_examples
@given(dim=dims, seed=seeds)
def test_rotation(name, dim, seed):
    search = Search(name, dim, seed)
    Q = np.linalg.qr(search.rng.normal(size=(dim, dim))).Q
    check_orthogonal_map(search, Q, image_of_shape(search, Q))


@methods
def test_what_the_searches_meet(name):
    """Feasible and infeasible candidates, and a distribution that moves: the tests see it all."""
    search = Search(name, dim=5, seed=1)
    state = search.start(search.mean, search.sigma, search.shape())
    values = []
    search.run(state, lambda x: values.append(search.f(x)) or values[-1], search.draws)
    assert 0.01 < np.mean(np.isinf(values)) < 0.5
    before, after = search.matrix(state), search.matrix(search.run_original())
    assert np.max(np.abs(after.T @ after - before.T @ before)) > 0.1 * np.max(before.T @ before)
