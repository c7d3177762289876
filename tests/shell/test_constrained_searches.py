"""Searches with constraints: every way to evaluate, files, warm starts, points from elsewhere."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from scipy import optimize

import fmnes
from constrained_problems import FORMS, sphere, sphere_above_1


def told(opt, generations=1):
    for _ in range(generations):
        x = opt.ask()
        opt.tell((x**2).sum(axis=1), constraints=1 - x[:, :2])
    return opt


def test_ask_and_tell_saves_loads_and_copies_exactly(tmp_path):
    opt = told(fmnes.Optimizer([3.0] * 6, 1.0, constraints=2, rng=1), 30)
    opt.save(tmp_path / "search.npz")
    for other in (fmnes.Optimizer.load(tmp_path / "search.npz"), pickle.loads(pickle.dumps(opt))):
        a, b = told(other, 40).result, None
        twin = told(fmnes.Optimizer([3.0] * 6, 1.0, constraints=2, rng=1), 70)
        b = twin.result
        for name in ("x", "mean", "constr", "multipliers"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
        assert (a.fun, a.sigma) == (b.fun, b.sigma)


def test_result_as_json():
    result = told(fmnes.Optimizer([3.0] * 3, 1.0, constraints=2, rng=1), 9).result
    again = fmnes.Result.from_dict(result.to_dict())
    for name in ("constr", "multipliers"):
        assert np.array_equal(getattr(again, name), getattr(result, name))
    assert again.constr_violation == result.constr_violation
    assert "violation" in str(result)


@pytest.mark.parametrize("how", ["vectorized", "workers", "map"])
def test_every_way_to_evaluate_gives_the_same_result(how):
    alone = fmnes.minimize(sphere_above_1, [3.0] * 5, 1.0, constraints=2, rng=1, maxiter=20)
    options = {
        "vectorized": {"vectorized": True},
        "workers": {"workers": 2},
        "map": {"workers": fmnes.Evaluator.from_map(map)},
    }[how]
    fun = (lambda x: ((x**2).sum(1), 1 - x[:, :2])) if how == "vectorized" else sphere_above_1
    other = fmnes.minimize(fun, [3.0] * 5, 1.0, constraints=2, rng=1, maxiter=20, **options)
    np.testing.assert_allclose(other.x, alone.x, rtol=1e-12)
    np.testing.assert_allclose(other.multipliers, alone.multipliers, rtol=1e-9)


class EndsAfter:
    """An objective that raises after some evaluations, and remembers their number."""

    def __init__(self, calls):
        self.left, self.calls = calls, 0

    def __call__(self, x):
        if self.left == 0:
            raise OSError("power failure")
        self.left -= 1
        self.calls += 1
        return sphere_above_1(x)


@pytest.mark.parametrize("calls", [5, 83])
def test_a_search_that_was_ended_resumes_with_the_same_result(tmp_path, calls):
    options = {"constraints": 2, "rng": 1, "maxiter": 30, "restarts": 1}
    whole = fmnes.minimize(sphere_above_1, [3.0] * 6, 1.0, **options)
    options["checkpoint"] = tmp_path / "run.npz"
    first = EndsAfter(calls)
    with pytest.raises(OSError, match="power failure") as info:
        fmnes.minimize(first, [3.0] * 6, 1.0, **options)
    assert info.value.result.nfev == calls
    assert math.isfinite(info.value.result.fun)
    rest = EndsAfter(10**9)
    resumed = fmnes.minimize(rest, [3.0] * 6, 1.0, **options)
    assert rest.calls == whole.nfev - calls  # nothing is evaluated twice
    for name in ("x", "constr", "multipliers"):
        assert np.array_equal(getattr(resumed, name), getattr(whole, name)), name


def test_another_number_of_constraints_does_not_resume(tmp_path):
    options = {"rng": 1, "maxiter": 2, "checkpoint": tmp_path / "run.npz"}
    fmnes.minimize(sphere_above_1, [3.0] * 6, 1.0, constraints=2, **options)
    with pytest.raises(ValueError, match=r"differs in .*number, kinds or tolerances of the constr"):
        fmnes.minimize(sphere, [3.0] * 6, 1.0, **options)


def test_scipy_method():
    result = optimize.minimize(
        sphere, [3.0] * 4, method=fmnes.scipy_method, constraints=FORMS["dict"], tol=1e-9,
        options={"sigma0": 1.0, "rng": 1},
    )  # fmt: skip
    assert result.success
    assert result.maxcv == 0
    np.testing.assert_allclose(result.x, [1, 1, 0, 0], atol=1e-4)


@pytest.mark.arrays
@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_array_libraries(library):
    xp = pytest.importorskip(library)
    opt = fmnes.Optimizer(xp.ones(4) * 3.0, 1.0, constraints=2, rng=1)
    while not opt.stop() and opt.nit < 200:
        x = opt.ask()
        opt.tell((x**2).sum(1), constraints=1 - x[:, :2])
    assert opt.result.constr_violation == 0.0
    np.testing.assert_allclose(np.asarray(opt.result.x), [1, 1, 0, 0], atol=2e-2)


def contradictory(x):
    return sphere(x), [1 - x[0], x[0]]  # x[0] >= 1 and x[0] <= 0


def test_a_search_without_a_feasible_candidate_says_so():
    result = fmnes.minimize(contradictory, [3.0] * 4, 1.0, constraints=2, rng=1, maxfevals=20_000)
    assert not result.success
    assert result.constr_violation > 0
    assert "feasible candidate" in result.message
    assert "noisy" not in result.message
    running = fmnes.Optimizer([3.0] * 4, 1.0, constraints=2, rng=1).result
    assert "feasible" not in running.message


@pytest.mark.parametrize("end", [{"maxfevals": 500}, {}], ids=["early", "converged"])
def test_a_warm_start_takes_over_the_multipliers(end):
    """Without them, it looks for them again: 601 evaluations after convergence, and not 441."""

    def search(x0, **options):
        return fmnes.minimize(sphere_above_1, x0, constraints=2, rng=2, **options)

    first = search([3.0] * 4, sigma0=1.0, **end)
    forgotten = search(dataclasses.replace(first, multipliers=None))
    more = search(first)
    assert more.success
    np.testing.assert_allclose(more.x, [1, 1, 0, 0], atol=1e-5)
    np.testing.assert_allclose(more.multipliers, 2.0, rtol=1e-3)
    assert more.nfev < forgotten.nfev
    moved = FORMS["dict"] | {"args": (2.0,)}
    other = fmnes.minimize(sphere, first, 0.5, constraints=moved, rng=1)
    np.testing.assert_allclose(other.multipliers, 4.0, rtol=1e-3)


def test_a_warm_start_with_multipliers_of_linear_functions():
    """f + lambda g is constant: nothing shows how large the penalties have to be."""

    def search(x0, sigma0, bound):
        fun = lambda x: (x[0] + x.sum(), [*(bound - x), 3 - x[0] - x[1]])  # noqa: E731
        return fmnes.minimize(fun, x0, sigma0, constraints=5, rng=1, maxfevals=8000)

    first = search([3.0] * 4, 1.0, 1.0)
    moved = search(first, 0.5, 2.0)
    assert moved.success
    np.testing.assert_allclose(moved.x, 2.0, atol=1e-6)


def test_a_warm_start_with_multipliers_resumes_from_its_checkpoint(tmp_path):
    first = fmnes.minimize(sphere_above_1, [3.0] * 4, 1.0, constraints=2, rng=2, maxfevals=500)
    options = {"constraints": 2, "rng": 1, "checkpoint": tmp_path / "run.npz"}
    whole = fmnes.minimize(sphere_above_1, first, constraints=2, rng=1, maxiter=20)
    fmnes.minimize(sphere_above_1, first, maxiter=5, **options)
    resumed = fmnes.minimize(sphere_above_1, first, maxiter=20, **options)
    np.testing.assert_array_equal(resumed.x, whole.x)
    np.testing.assert_array_equal(resumed.multipliers, whole.multipliers)
    changed = dataclasses.replace(first, multipliers=np.ones(2))
    with pytest.raises(ValueError, match="multipliers"):
        fmnes.minimize(sphere_above_1, changed, maxiter=20, **options)


def test_functions_get_x0_as_a_candidate_of_the_search():
    """Integers are rounded, and a Result from outside of the bounds is not used as it is."""
    seen = []

    def area(x):
        seen.append(x.copy())
        assert (x[:2] == np.round(x[:2])).all()
        assert not x.flags.writeable
        return x[0] * x[1]

    constraints = optimize.NonlinearConstraint(area, 6, np.inf)
    options = {"bounds": [(0, 9)] * 3, "integrality": [1, 1, 0], "constraints": constraints}
    result = fmnes.minimize(sphere, [2.4, 3.7, 0.5], rng=1, maxiter=60, **options)
    np.testing.assert_allclose(seen[0], [2, 4, 0.5])
    assert sorted(result.x[:2]) == [2, 3]
    seen.clear()
    far = fmnes.minimize(sphere, [-5.5, 20.5, 3.0], 1.0, rng=1, maxiter=1)
    fmnes.minimize(sphere, dataclasses.replace(far, mean=np.ones(3)), maxiter=1, rng=1, **options)
    np.testing.assert_allclose(seen[0], [1, 1, 1])


@pytest.mark.parametrize("how", [{}, {"vectorized": True}, {"workers": 2}])
def test_points_from_elsewhere_have_constraints_too(how):
    """The best point is injected without a value, and evaluated with its constraints."""

    def callback(result, inject):
        if result.nit == 3:
            inject([1.0, 1.0, 0.0, 0.0])
            with pytest.raises(TypeError, match="f: expected None for a search with constraints"):
                inject([1.0, 1.0, 0.0, 0.0], 2.0)

    fun = sphere_above_1_in_rows if "vectorized" in how else sphere_above_1
    result = fmnes.minimize(
        fun, [3.0] * 4, 1.0, constraints=2, callback=callback, maxiter=5, rng=1, **how
    )
    assert result.fun == 2.0
    np.testing.assert_array_equal(result.x, [1, 1, 0, 0])
    np.testing.assert_array_equal(result.constr, 0)


def sphere_above_1_in_rows(x):
    return (x**2).sum(axis=1), 1 - x[:, :2]


def test_a_start_from_data_with_constraints():
    """Points that violate them have the value inf: the search starts at the feasible ones."""
    x = np.random.default_rng(1).normal(1.0, 1.0, (300, 4))
    feasible = (x[:, :2] >= 1).all(axis=1)
    f = np.where(feasible, sphere_above_1_in_rows(x)[0], np.inf)
    opt = fmnes.Optimizer((x, f), constraints=2, rng=1)
    assert (opt.result.mean[:2] >= 1).all()
    result = fmnes.minimize(sphere_above_1, (x, f), constraints=2, rng=1)
    assert result.success
    np.testing.assert_allclose(result.x, [1, 1, 0, 0], atol=1e-5)


def test_withdrawn_candidates_with_constraints():
    opt = fmnes.Optimizer([3.0] * 4, 1.0, constraints=2, rng=1)
    x = opt.ask()
    opt.withdraw([0, 3])
    f, g = sphere_above_1_in_rows(x)
    f[0], g[3] = -99.0, np.nan  # neither counts
    opt.tell(f, constraints=g)
    others = np.delete(np.arange(opt.popsize), [0, 3])
    assert opt.result.fun == min(f[i] for i in others if (g[i] <= 0).all())
    assert (opt.nfev, opt.result.nfailed) == (opt.popsize - 2, 0)
