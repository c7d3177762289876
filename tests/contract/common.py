"""Objectives, and ways to look into a search, that the tests of the contract share."""

import numpy as np

import fmnes


def sphere(x):
    """Of a point, or of points in rows."""
    return np.sum(x * x, axis=-1)


def ellipsoid(x):
    """Condition 1e6 along the coordinates."""
    dim = x.shape[-1]
    return np.sum(10 ** (6 * np.arange(dim) / max(dim - 1, 1)) * x * x, axis=-1)


def start(method, dim=5, *, dtype=np.float64, **options):
    """A search that has just begun."""
    options = {"rng": 1, **options}
    return fmnes.Optimizer(np.full(dim, 3.0, dtype), 2.0, method=method, **options)


def drive(opt, generations, fun=ellipsoid):
    """Some generations on an objective."""
    for _ in range(generations):
        opt.tell(fun(opt.ask()))
    return opt


def arrays(state):
    """The fields of a state, as copies."""
    return {name: np.array(value) for name, value in state._asdict().items()}


def assert_same_bits(a, b):
    """Two searches stand at the same place, to the bit, and so do their records."""
    for name, value in arrays(a._state).items():
        np.testing.assert_array_equal(value, arrays(b._state)[name], err_msg=name)
    assert a.stop() == b.stop()
    assert (a.nfev, a.nit, a.popsize) == (b.nfev, b.nit, b.popsize)
    mine, other = a.result, b.result
    assert mine.fun == other.fun
    np.testing.assert_array_equal(mine.x, other.x)
    for column in ("best", "generation_best", "median", "sigma", "condition", "phase"):
        np.testing.assert_array_equal(mine.history[column], other.history[column], err_msg=column)
