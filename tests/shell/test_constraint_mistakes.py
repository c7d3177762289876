"""Constraints that fail, and mistakes: what is refused, and what a search survives."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse

import fmnes
from constrained_problems import FORMS, sphere, sphere_above_1


@pytest.mark.parametrize("bad", ["nan g", "nan f", "inf f", "inf g", "-inf f"])
def test_candidates_without_usable_values_rank_last(bad):
    def fun(x):
        f, g = sphere_above_1(x)
        if x[2] > 0.5:
            f = {"nan f": math.nan, "inf f": math.inf, "-inf f": -math.inf}.get(bad, f)
            g = g if bad.endswith("f") else g * {"nan g": math.nan, "inf g": math.inf}[bad]
            g = g + 9 if bad == "-inf f" else g  # outside of the domain
        return f, g

    result = fmnes.minimize(fun, [3.0, 3.0, 0.4, 1.0], 0.5, constraints=2, rng=1)
    assert result.success
    np.testing.assert_allclose(result.x, [1, 1, 0, 0], atol=1e-5)
    assert (result.nfailed > 0) == ("nan" in bad or bad == "inf g")


def test_a_candidate_with_an_infinite_constraint_is_not_the_best_one():
    """-inf is no usable value either: the candidate counts as failed."""

    def fun(x):
        f, g = sphere_above_1(x)
        return f, np.where(x[2] < 0.9, -np.inf, g)

    result = fmnes.minimize(fun, [3.0] * 4, 1.0, constraints=2, rng=1)
    assert result.x[2] >= 0.9
    assert result.nfailed > 0
    assert np.isfinite(result.constr).all()


def test_an_interrupted_generation_without_usable_values_has_no_best_candidate():
    """Of x0 there is a value; all others are infinite or have infinite constraints."""
    calls = []

    def fun(x):
        calls.append(1)
        if len(calls) == 6:
            raise OSError("power failure")
        f, g = 16.0, [0.5]
        return [(f, g), (math.inf, [-1.0]), (1.0, [-math.inf]), (f, g), (math.nan, [-1.0])][
            len(calls) - 1
        ]

    with pytest.raises(OSError, match="power failure") as info:
        fmnes.minimize(fun, [2.0] * 4, 1.0, constraints=1, rng=1)
    result = info.value.result
    assert (result.fun, result.constr_violation, result.nfev, result.nfailed) == (16.0, 0.5, 5, 2)


@pytest.mark.parametrize("kind", ["function", "pair", "tell"])
def test_a_constraint_that_is_true_or_false_is_refused(kind):
    """SciPy's >= 0 holds for True and for False."""
    opt = fmnes.Optimizer([3.0] * 4, 1.0, constraints=2)
    x = opt.ask()
    function = {"type": "ineq", "fun": lambda x: x[0] > 1}
    call = {
        "function": lambda: fmnes.minimize(sphere, [3.0] * 4, constraints=function),
        "pair": lambda: fmnes.minimize(lambda x: (16.0, x[:1] > 1), [3.0] * 4, constraints=1),
        "tell": lambda: opt.tell((x**2).sum(axis=1), constraints=x[:, :2] < 1),
    }[kind]
    with pytest.raises(TypeError, match=r"by how much"):
        call()


def test_penalized_failures_of_a_constraint_function():
    def broken(x):
        if x[2] > 0.6:
            raise ZeroDivisionError("no mesh")
        return x[:2] - 1

    start, sigma = [3.0, 3.0, 0.4, 1.0], 0.5
    options = {"constraints": {"type": "ineq", "fun": broken}, "rng": 1}
    with pytest.raises(ZeroDivisionError) as info:
        fmnes.minimize(sphere, start, sigma, **options)
    assert info.value.x[2] > 0.6
    assert any("constraints" in note for note in info.value.__notes__)
    workers = fmnes.Evaluator(on_error="penalize")
    result = fmnes.minimize(sphere, start, sigma, workers=workers, **options)
    assert result.success
    assert result.nfailed
    assert "no mesh" in result.first_error


def test_an_exception_at_x0_names_its_constraint():
    ok, broken = ({"type": "ineq", "fun": fun} for fun in (sphere, lambda x: 1 / 0))
    with pytest.raises(ZeroDivisionError) as info:
        fmnes.minimize(sphere, [3.0] * 4, 1.0, constraints=[ok, broken])
    assert any("constraints[1]" in note for note in info.value.__notes__)


def test_none_is_no_value_of_a_constraint():
    for g in (None, [None, 1.0], [1.0]):
        with pytest.raises(TypeError, match="with 2 constraints for candidate 0, got"):
            fmnes.minimize(lambda x, g=g: (sphere(x), g), [3.0] * 4, 1.0, constraints=2)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (
            3,
            r"\(f, g\) with 3 constraints for candidate 0, got constraints of shape \(2,\)",
        ),
        (fmnes.Constraints(equalities=1), r"with 1 constraint for candidate 0"),
        ({"type": "ineq", "fun": lambda x: [[1.0]]}, "a number or a vector of real numbers"),
        ({"type": "ineq", "fun": lambda x: "no"}, "a number or a vector of real numbers"),
        (
            optimize.LinearConstraint(np.ones((1, 7)), 0, 1),
            r"constraints.A: expected \d columns, one for each variable, got shape \(1, 7\)",
        ),
        (
            optimize.LinearConstraint([[1.0, math.nan, 0.0, 0.0]], 0, 1),
            r"^constraints.A: expected finite numbers, got nan$",
        ),
        (
            optimize.LinearConstraint(sparse.csr_array([[1.0, math.inf, 0.0, 0.0]]), 0, 1),
            r"^constraints.A: expected finite numbers, got inf$",
        ),
        ({"type": "le", "fun": sphere}, "'ineq', 'eq', got 'le'"),
        ({"type": "eq"}, "a dict with 'type' and 'fun'"),
        ("x > 0", "expected a NonlinearConstraint"),
        (optimize.NonlinearConstraint(sphere, 2, 1), "expected lb <= ub, got lb = 2"),
        (
            {"type": "ineq", "fun": lambda x: []},
            "constraints: expected at least one number, got none",
        ),
        (optimize.NonlinearConstraint(sphere, [0, 0], 1), r"shape \(1,\), as the constraint has"),
        (optimize.NonlinearConstraint(sphere, 0, math.nan), "expected lb <= ub"),
        (optimize.NonlinearConstraint(sphere, 0, 1, keep_feasible=True), "keep_feasible=False"),
        (0, "constraints: expected at least 1, got 0"),
    ],
)
def test_wrong_constraints_are_refused(constraints, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fmnes.minimize(sphere_above_1, [3.0] * 4, 1.0, constraints=constraints, maxiter=1)


def test_a_constraint_that_changes_its_length_is_refused():
    def changing(x):
        return np.ones(1 if (x == 3.0).all() else 2)

    with pytest.raises(TypeError, match=r"expected 1 numbers, as at x0, got shape \(2,\)"):
        fmnes.minimize(sphere, [3.0] * 4, 1.0, constraints={"type": "eq", "fun": changing})


@pytest.mark.parametrize(
    ("declared", "given", "message"),
    [
        (None, np.zeros((8, 1)), "expected no values, got"),
        (2, None, "expected values of 2 constraints, got none"),
        (2, np.zeros((8, 3)), r"shape \(8, 2\), got constraints of shape \(8, 3\)"),
        (1, np.full((8, 1), "a"), "real numbers"),
    ],
)
def test_tell_refuses_what_was_not_declared(declared, given, message):
    opt = fmnes.Optimizer([3.0] * 6, 1.0, constraints=declared, rng=1, popsize=8)
    x = opt.ask()
    with pytest.raises(TypeError, match=message):
        opt.tell((x**2).sum(1), constraints=given)


@pytest.mark.parametrize("wrong", [{}, {"inequalities": 1, "functions": FORMS["dict"]}])
def test_constraints_are_either_functions_or_numbers(wrong):
    with pytest.raises(ValueError, match="expected either functions or a number"):
        fmnes.Constraints(**wrong)


@pytest.mark.parametrize("wrong", [-1.0, [1.0, 2.0, 3.0], math.nan])
def test_wrong_tolerances(wrong):
    with pytest.raises(ValueError, match=r"^tolerance: expected .*, got "):
        fmnes.Optimizer([1.0], 1.0, constraints=fmnes.Constraints(inequalities=2, tolerance=wrong))
