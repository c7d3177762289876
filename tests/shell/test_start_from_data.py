"""Searches that start from points with values, of which an earlier search evaluated some."""

import numpy as np
import pytest

import fmnes


def ellipsoid(x):
    return (10.0 ** np.linspace(0, 3, x.shape[-1]) * x**2).sum(axis=-1)


def source(n=2000, d=20):
    """What an earlier search on a similar problem evaluated; its minimum is at 2."""
    opt = fmnes.Optimizer(np.zeros(d), 1.0, rng=3, maxfevals=n)
    seen = []
    while not opt.stop():
        seen.append(opt.ask())
        opt.tell(ellipsoid(seen[-1] - 2))
    x = np.concatenate(seen)
    return x, ellipsoid(x - 2)


@pytest.mark.parametrize("method", ["cr-fm-nes", "auto", "cma-es", "sep-cma"])
def test_a_start_from_data_needs_fewer_evaluations(method):
    x, f = source()

    def fun(x):
        return ellipsoid(x - 2.02)

    options = {"method": method, "ftarget": 1e-6, "rng": 1}
    cold = fmnes.minimize(fun, np.zeros(20), 1.0, **options)
    warm = fmnes.minimize(fun, (x, f), **options)
    assert warm.success
    assert warm.nfev < 0.75 * cold.nfev


def test_a_start_from_data_has_the_moments_of_the_best_tenth():
    x, f = source()
    opt = fmnes.Optimizer((x, f), method="cma-es", rng=1)
    best = x[np.argsort(f)[: int(np.ceil(0.1 * len(f)))]]
    C = np.cov(best.T, bias=True) + np.diag((0.1 * x.std(axis=0)) ** 2)
    np.testing.assert_allclose(opt.result.mean, best.mean(axis=0))
    np.testing.assert_allclose(opt.result.stds, np.sqrt(np.diag(C)))
    shape = opt.result.shape.C * opt.result.sigma**2
    np.testing.assert_allclose(shape, C, rtol=1e-8, atol=1e-12)


def test_the_best_point_of_the_data_is_evaluated():
    x, f = source()
    result = fmnes.minimize(lambda x: ellipsoid(x - 2), (x, f), maxiter=1, rng=1)
    assert result.fun <= f.min()


def test_a_start_from_data_of_named_variables():
    space = fmnes.Space(
        {
            "rate": fmnes.Log(1e-5, 1.0),
            "layers": fmnes.Int(1, 30),
            "act": fmnes.Choice(["relu", "gelu", "elu"]),
            "bias": fmnes.Choice([False, True]),
        }
    )

    def loss(p):
        wrong = (p["act"] != "gelu") + (not p["bias"])
        return np.log(p["rate"] / 1e-3) ** 2 + (p["layers"] - 21) ** 2 + 10 * wrong

    spent = {"warm": 0, "cold": 0}
    for seed in (3, 2, 1):
        opt = fmnes.Optimizer(space, rng=seed, popsize=400)
        points = [space.decode(x) for x in opt.ask_vectors()]
        values = [loss(p) for p in points]
        for name, start in (("warm", (space, points, values)), ("cold", space)):
            result = fmnes.minimize(loss, start, rng=seed, ftarget=1e-4)
            assert result.success
            assert result.best["act"] == "gelu"
            spent[name] += result.nfev
    assert spent["warm"] < 0.8 * spent["cold"]
    best = np.argsort(values)[:40]
    opt = fmnes.Optimizer((space, points, values), rng=1)
    start = space.decode(opt.result.mean)
    rates = [np.log(points[i]["rate"]) for i in best]
    assert np.log(start["rate"]) == pytest.approx(np.mean(rates), abs=1e-6)
    assert start["act"] == "gelu"
    same = [{**p, "layers": 20} for p in points]  # a constant column of integers
    assert fmnes.Optimizer((space, same, values), rng=1).ask()
    with pytest.raises(ValueError, match=r"x0\[1\]: expected a value of every variable"):
        fmnes.Optimizer((space, [{"rate": 0.1}, {"rate": 0.2}], [1.0, 2.0]))


@pytest.mark.parametrize("method", ["cr-fm-nes", "auto", "cma-es", "sep-cma"])
@pytest.mark.parametrize("bound", [(0.7, 0.7), (0.0, 1.2)], ids=["fixed", "bounded"])
def test_data_with_the_same_value_of_a_variable_in_all_points(method, bound):
    """A fixed variable stays; one with two bounds gets the deviation that it has without data.

    The mean of n equal numbers is not exactly that number, and neither is their deviation 0.
    """
    x, f = source(d=6)
    x[:, 2] = 0.7
    bounds = [(-50, 50)] * 2 + [bound] + [(-50, 50)] * 3
    opt = fmnes.Optimizer((x, f), bounds=bounds, method=method, rng=1)
    others = np.delete(np.arange(6), 2)
    best = x[np.argsort(f)[: int(np.ceil(0.1 * len(f)))]]
    C = np.cov(best.T, bias=True) + np.diag((0.1 * x.std(axis=0)) ** 2)
    np.testing.assert_allclose(opt.result.stds[others], np.sqrt(np.diag(C))[others], rtol=0.1)
    if method == "cma-es":
        shape = opt.result.shape.C * opt.result.sigma**2
        shape = shape if len(shape) == 5 else shape[np.ix_(others, others)]
        np.testing.assert_allclose(shape, C[np.ix_(others, others)], rtol=1e-6, atol=1e-12)
    assert opt.result.mean[2] == 0.7
    expected = 0.0 if bound == (0.7, 0.7) else 1.2 / 6
    assert opt.result.stds[2] == pytest.approx(expected, rel=0.2)
    assert fmnes.minimize(lambda x: ellipsoid(x - 0.7), (x, f), bounds=bounds, rng=1).fun < 1e-6


def test_data_with_the_same_value_of_a_variable_without_bounds():
    x, f = source(d=6)
    x[:, 2] = 0.7
    with pytest.raises(ValueError, match="the same value of variable 2 in all points"):
        fmnes.Optimizer((x, f), rng=1)
    assert fmnes.Optimizer((x, f), 0.5, rng=1).result.stds[2] == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize(
    ("x0", "message"),
    [
        ((np.ones((3, 2)), np.ones((3, 1))), r"got shapes \(3, 2\) and \(3, 1\)"),
        (([[1.0, 2.0], [2.0, 3.0]], [[1.0], [2.0]]), r"got shapes \(2, 2\) and \(2, 1\)"),
        ((np.ones((3, 2)), np.ones(2)), "got shapes"),
        ((np.ones((1, 2)), np.ones(1)), "at least two points"),
        ((np.ones((3, 2)), np.ones(3)), "the same value of variable 0 in all points"),
        ((np.eye(3), np.full(3, np.nan)), "some finite values"),
    ],
)
def test_wrong_data(x0, message):
    with pytest.raises(ValueError, match=message):
        fmnes.Optimizer(x0)
    with pytest.raises(TypeError, match=r"x0: expected points and values as a tuple \(X, F\)"):
        fmnes.minimize(ellipsoid, list(x0))
