"""Problems with constraints whose solution and multipliers are known."""

import numpy as np
from scipy import optimize

FORMS = {
    "NonlinearConstraint": optimize.NonlinearConstraint(lambda x: x[:2] - 1, 0, np.inf),
    "LinearConstraint": optimize.LinearConstraint(np.eye(2, 4), lb=[1, 1], ub=np.inf),
    "Bounds": optimize.Bounds([1, 1, -np.inf, -np.inf]),
    "dict": {"type": "ineq", "fun": lambda x, a: x[:2] - a, "args": (1.0,)},
    "several": [
        {"type": "ineq", "fun": lambda x: x[0] - 1},
        optimize.NonlinearConstraint(lambda x: -x[1], -np.inf, -1),
    ],
}


def sphere(x):
    return (x**2).sum()


def sphere_above_1(x):
    """The sphere with x[0] >= 1 and x[1] >= 1: the multipliers are 2 and 2."""
    return (x**2).sum(), 1 - x[:2]
