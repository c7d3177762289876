"""Hyper-parameters of a classifier of handwritten digits: a scale for each pixel, 66 variables.

Kernel ridge regression with a Gaussian kernel on scikit-learn's digits (8 x 8 pixels). The
variables are the logarithms of 64 scales, of the width of the kernel and of the penalty. The value
is the mean squared error on 599 images that were not used to fit; 599 others were.
"""

from functools import cache

import numpy as np

from leaderboard.trials import Problem, Vector

TRAIN, TEST = 599, 599


@cache
def data() -> tuple[Vector, Vector]:
    """Return the images, in [0, 1], and the digits as rows of ten signs."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))[: TRAIN + TEST]
    return images[order] / 16, np.where(digits[order][:, None] == np.arange(10), 1.0, -1.0)


def error(x: Vector) -> float:
    """Return the mean squared error on the images that were left out."""
    X, Y = data()
    Z = X * np.exp(x[:64])
    squares = np.sum(Z**2, axis=1)
    distances = squares[:, None] + squares[:TRAIN] - 2 * Z @ Z[:TRAIN].T
    K = np.exp(-np.exp(x[64]) * np.maximum(distances, 0) / 64)
    ridge = K[:TRAIN] + np.exp(x[65]) * np.eye(TRAIN)
    guess = K[TRAIN:] @ np.linalg.solve(ridge, Y[:TRAIN])
    return float(np.mean((guess - Y[TRAIN:]) ** 2))


def problem(seed: int) -> Problem:
    """Return the problem; it starts with equal scales."""

    def start(number: int) -> Vector:
        x = np.concatenate([np.zeros(64), [2.0, -5.0]])
        return x + (np.random.default_rng([seed, number]).standard_normal(66) if number else 0)

    low = np.concatenate([np.full(64, -4.0), [-3.0, -14.0]])
    high = np.concatenate([np.full(64, 4.0), [7.0, 2.0]])
    return Problem(error, start, 0.5, low, high, True)
