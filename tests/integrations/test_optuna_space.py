"""Optuna's parameters and the variables of the search."""

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from fmnes.integrations._optuna_space import Intersection, SearchedSpace  # noqa: E402
from optuna_studies import NAMES, objective, sampler  # noqa: E402  # once it is there

ALL = {
    "a": FloatDistribution(-0.7, 0.1),
    "b": FloatDistribution(1e-7, 0.3, log=True),
    "c": IntDistribution(-3, 11),
    "d": IntDistribution(2, 9, log=True),
    "e": FloatDistribution(0.1, 0.7, step=0.2),
    "f": IntDistribution(3, 9, step=2),
    "g": CategoricalDistribution(["u", "v"]),
    "h": CategoricalDistribution([None, 1.5, "w", True]),
}


def test_values_with_steps_count_the_steps():
    space = SearchedSpace({"n": ALL["f"], "q": FloatDistribution(-1, 1, step=0.5)})
    variables = space.variables({})
    assert variables.integrality.all()
    assert variables.bounds.lb.tolist() == [0, 0]
    assert variables.bounds.ub.tolist() == [3, 4]
    assert [space.to_params(np.array([k, k]))["n"] for k in range(4)] == [3, 5, 7, 9]
    assert space.to_params(np.array([0.0, 3.0]))["q"] == 0.5
    assert space.deviations(0.25) == {"n": 1.0, "q": 1.25}


def test_logarithmic_ranges():
    space = SearchedSpace(
        {"r": FloatDistribution(1e-4, 1, log=True), "n": IntDistribution(1, 4, log=True)}
    )
    assert space.to_params(np.array([0.5, 0.5]))["r"] == pytest.approx(1e-2, rel=1e-14)
    # A whole number n has all that rounds to it: log(n + 1/2) - log(n - 1/2) of log 9.
    u = (np.arange(10_000) + 0.5) / 10_000
    n = [space.to_params(np.array([0.0, v]))["n"] for v in u]
    for k in (1, 2, 3, 4):
        share = np.log((k + 0.5) / (k - 0.5)) / np.log(9)
        assert abs(n.count(k) / 10_000 - share) < 2e-4


def test_the_ends_of_the_variables_are_the_ends_of_the_ranges():
    numbers = {name: d for name, d in ALL.items() if name not in "gh"}
    space = SearchedSpace(numbers)
    bounds = space.variables({}).bounds
    assert space.to_params(bounds.lb) == {name: d.low for name, d in numbers.items()}
    top = space.to_params(bounds.ub)
    assert top == pytest.approx({name: d.high for name, d in numbers.items()}, rel=1e-15)
    assert all(top[name] <= d.high for name, d in numbers.items())


@pytest.mark.parametrize("option", [None, 1.5, "w", True])
def test_to_vector_is_the_inverse(option):
    space = SearchedSpace(ALL)
    values = {"a": 0.05, "b": 1e-3, "c": 7, "d": 4, "e": 0.5, "f": 7, "g": "v", "h": option}
    found = space.to_params(space.to_vector(values))
    assert list(found) == list(values)
    categories = found.pop("g"), found.pop("h")
    assert categories == (values.pop("g"), values.pop("h"))
    assert type(categories[1]) is type(option)
    assert found == pytest.approx(values, rel=1e-14)


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
        assert ours.searched() == theirs
    assert list(ours.searched()) == ["k", "x"]
