"""Weighted Lasso: one penalty for each feature, chosen by cross-validation.

A re-implementation of the synthetic problems of LassoBench (K. Sehic, A. Gramfort, J. Salmon,
L. Nardi, AutoML 2022) from their description; the data are our own draws, so values are near the
published ones but not equal. n = d/2 samples of d features with correlation 0.6 between neighbours;
d/20 of the weights are 1 or -1, the others 0; the signal is ten times the noise. The penalties are
exp of an affine map of x in [-1, 1], from a_max/100 to a_max, where a_max is the smallest penalty
for which all weights are 0. The value is the mean squared error of five folds.
"""

from functools import cache

import numpy as np

from leaderboard.trials import Problem, Vector

CORRELATION, SNR, FOLDS = 0.6, 10.0, 5


@cache
def data(dim: int) -> tuple[Vector, Vector, Vector]:
    """Return features, answers and the true weights."""
    rng = np.random.default_rng([42, dim])
    n = dim // 2
    X = rng.standard_normal((n, dim))
    for j in range(1, dim):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    weights = np.zeros(dim)
    places = np.linspace(0, dim - 1, dim // 20).astype(int)
    weights[places] = (-1.0) ** np.arange(len(places))
    signal, noise = X @ weights, rng.standard_normal(n)
    y = signal + noise * np.linalg.norm(signal) / (SNR * np.linalg.norm(noise))
    return X, y, weights


def penalties(dim: int, x: Vector) -> Vector:
    """Return the penalty of each feature."""
    X, y, _ = data(dim)
    most = np.log(np.max(np.abs(X.T @ y)) / len(y))
    least = most - np.log(100)
    return np.asarray(np.exp(x * (most - least) / 2 + (most + least) / 2))


def fitted(X: Vector, y: Vector, alphas: Vector) -> Vector:
    """Return the weights of least |y - X w|^2 / 2n + sum_j alphas_j |w_j|."""
    from sklearn.linear_model import lasso_path

    scaled = np.asfortranarray(X / alphas)  # in the variables alphas w all penalties are 1
    options = {"tol": 1e-4, "max_iter": 1000, "precompute": False, "check_input": False}
    _, weights, _ = lasso_path(scaled, y, alphas=[1.0], **options)
    return np.asarray(weights[:, 0] / alphas)


def loss(dim: int, x: Vector) -> float:
    """Return the mean squared error of cross-validation."""
    X, y, _ = data(dim)
    alphas = penalties(dim, x)
    folds = np.random.default_rng(42).permutation(len(y)) % FOLDS
    errors = []
    for fold in range(FOLDS):
        inside = folds != fold
        w = fitted(X[inside], y[inside], alphas)
        errors.append(np.mean((y[~inside] - X[~inside] @ w) ** 2))
    return float(np.mean(errors))


def problem(dim: int, seed: int) -> Problem:
    """Return the problem; it starts in the middle, or at random when it starts again."""

    def start(number: int) -> Vector:
        if number == 0:
            return np.zeros(dim)
        return np.random.default_rng([seed, number]).uniform(-1, 1, dim)

    return Problem(
        lambda x: loss(dim, x), start, 1 / 3, np.full(dim, -1.0), np.full(dim, 1.0), True
    )
