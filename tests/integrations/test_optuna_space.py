"""Optuna's parameters and the unit cube."""

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna_studies import NAMES, objective, sampler  # noqa: E402  # once it is there

from fmnes.integrations._optuna_space import Cube, Intersection  # noqa: E402

# --- The cube -------------------------------------------------------------------------------------


def test_every_whole_number_has_the_same_share():
    cube = Cube({"n": IntDistribution(3, 9, step=2), "q": FloatDistribution(-1, 1, step=0.5)})
    u = (np.arange(1000) + 0.5) / 1000
    n, q = zip(*(cube.to_params(np.full(2, v)).values() for v in u), strict=True)
    assert {value: n.count(value) for value in set(n)} == dict.fromkeys([3, 5, 7, 9], 250)
    assert {v: q.count(v) for v in set(q)} == dict.fromkeys([-1.0, -0.5, 0.0, 0.5, 1.0], 200)


def test_logarithmic_ranges():
    cube = Cube({"r": FloatDistribution(1e-4, 1, log=True), "n": IntDistribution(1, 4, log=True)})
    assert cube.to_params(np.array([0.5, 0.5]))["r"] == pytest.approx(1e-2, rel=1e-14)
    # A whole number n has all that rounds to it: log(n + 1/2) - log(n - 1/2) of log 9.
    u = (np.arange(10_000) + 0.5) / 10_000
    n = [cube.to_params(np.array([0.0, v]))["n"] for v in u]
    for k in (1, 2, 3, 4):
        share = np.log((k + 0.5) / (k - 0.5)) / np.log(9)
        assert abs(n.count(k) / 10_000 - share) < 2e-4


def test_the_ends_of_the_cube_are_the_ends_of_the_ranges():
    space = {
        "a": FloatDistribution(-0.7, 0.1),
        "b": FloatDistribution(1e-7, 0.3, log=True),
        "c": IntDistribution(-3, 11),
        "d": IntDistribution(2, 9, log=True),
        "e": FloatDistribution(0.1, 0.7, step=0.2),
    }
    cube = Cube(space)
    assert cube.to_params(np.zeros(5)) == {name: d.low for name, d in space.items()}
    top = cube.to_params(np.ones(5))
    assert top == pytest.approx({name: d.high for name, d in space.items()}, rel=1e-15)
    assert all(top[name] <= d.high for name, d in space.items())


def test_to_cube_is_the_inverse():
    space = {
        "a": FloatDistribution(-5, 3),
        "b": FloatDistribution(1e-7, 0.3, log=True),
        "c": IntDistribution(-3, 11),
        "d": IntDistribution(2, 9, log=True),
    }
    cube = Cube(space)
    values = {"a": 0.25, "b": 1e-3, "c": 7, "d": 4}
    assert cube.to_params(cube.to_cube(values)) == pytest.approx(values, rel=1e-14)
    np.testing.assert_array_equal(cube.to_cube({}), 0.5)


def test_the_search_starts_at_x0():
    start = {name: 0.1 * (i + 1) for i, name in enumerate(NAMES)}
    study = optuna.create_study(sampler=sampler(x0=start, sigma0=1e-9))
    study.optimize(objective, n_trials=1)
    assert study.trials[0].params == pytest.approx(start, abs=1e-7)


def test_the_intersection_is_optunas():
    a, b, c = FloatDistribution(0, 1), IntDistribution(0, 1), CategoricalDistribution(["u", "v"])
    shown = [
        {"y": a, "x": a, "k": c, "n": b},
        {"x": a, "y": a, "k": c, "n": a},  # another order; n is no longer a whole number
        {"x": a, "k": c, "z": a},
    ]
    ours = Intersection()
    for i, distributions in enumerate(shown):
        ours.narrow(distributions)
        trials = [
            optuna.create_trial(
                params={n: d.to_external_repr(0) for n, d in ds.items()}, distributions=ds, value=0
            )
            for ds in shown[: i + 1]
        ]
        theirs = optuna.search_space.intersection_search_space(trials)
        assert ours.searched() == {n: d for n, d in theirs.items() if n != "k"}
    assert list(ours.searched()) == ["x"]
