"""fmnes.scipy_method, called by scipy.optimize.minimize: the same search, SciPy's contract."""

import numpy as np
import pytest

import fmnes
from fmnes.records.status import Status

scipy_optimize = pytest.importorskip("scipy.optimize", reason="needs the extra scipy")
Bounds, OptimizeResult = scipy_optimize.Bounds, scipy_optimize.OptimizeResult
OptimizeWarning = scipy_optimize.OptimizeWarning

X0 = np.array([3.0, -2.0, 1.0, 0.5])


def minimize(fun, x0=X0, *args, **kwargs):
    return scipy_optimize.minimize(fun, x0, *args, method=fmnes.scipy_method, **kwargs)


def ellipsoid(x, power=3.0):
    return float(np.sum(10 ** (power * np.arange(x.size) / (x.size - 1)) * x**2))


def rosen(x):  # SciPy's own, as a function that the processes of workers can find
    return float(scipy_optimize.rosen(x))


# --- The same search ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ftarget": 1e-9},
        {"maxfevals": 300},
        {"maxiter": 20},
        {"popsize": 20, "method": "sep-cma", "maxfevals": 500},
        {"method": fmnes.CRFMNES(variant="paper"), "maxiter": 30},
        {"restarts": 2, "ftarget": -1.0, "maxfevals": 20_000},
        {"stopping": fmnes.Stopping(tolx=1e-3)},
    ],
)
def test_it_is_fmnes_minimize_to_the_bit(options):
    ours = fmnes.minimize(ellipsoid, X0, 2.0, args=(2.0,), rng=5, **options)
    theirs = minimize(ellipsoid, X0, (2.0,), options={"sigma0": 2.0, "rng": 5, **options})
    assert type(theirs) is OptimizeResult
    np.testing.assert_array_equal(theirs.x, ours.x)
    for name in ("fun", "nfev", "nit", "success", "message", "nfailed"):
        assert theirs[name] == getattr(ours, name), name
    assert isinstance(theirs.result, fmnes.Result)
    assert theirs.result.status == ours.status


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(-4.0, 4.0),
        Bounds(np.full(4, -4.0), [4.0] * 4, keep_feasible=True),
        [(-4, 4)] * 4,
        np.array([[-4.0, 4.0]] * 4),
    ],
)
def test_bounds_give_sigma0(bounds):
    """A sixth of the width, whichever way the bounds are written."""
    expected = fmnes.minimize(ellipsoid, X0, 8 / 6, bounds=[(-4, 4)] * 4, rng=5, maxiter=30)
    result = minimize(ellipsoid, bounds=bounds, options={"rng": 5, "maxiter": 30})
    np.testing.assert_array_equal(result.x, expected.x)
    assert result.fun == expected.fun


def test_widths_may_differ_and_be_none():
    low, high = np.array([-4.0, -20.0, 1.0, -1.0]), np.array([4.0, 40.0, 1.0, 2.0])
    seen = []
    minimize(
        lambda x: seen.append(x) or ellipsoid(x),
        bounds=Bounds(low, high),
        options={"rng": 1, "maxiter": 1, "popsize": 400},
    )
    x = np.array(seen)
    assert np.all((x >= low) & (x <= high))
    assert np.all(x[:, 2] == 1.0)
    # Far from its bounds a variable is normal around x0 (and wider along the initial v, at most
    # by a few tenths here); the others are bent at their bounds.
    assert x[:, 1].std() == pytest.approx(60 / 6, rel=0.5)
    assert x[:, 1].mean() == pytest.approx(-2.0, abs=1.5)


def test_open_bounds_with_sigma0():
    bounds = [(0.25, None), (None, -1.0), (None, None), (-np.inf, np.inf)]
    result = minimize(ellipsoid, bounds=bounds, options={"sigma0": 1.0, "rng": 1})
    np.testing.assert_allclose(result.x, [0.25, -1.0, 0.0, 0.0], atol=1e-6)
    assert (result.success, result.status) == (True, 0)


def test_without_sigma0():
    result = minimize(ellipsoid, options={"rng": 1})
    assert result.result.restarts[0].sigma0 == pytest.approx(np.median(np.abs(X0)) / 3)
    assert result.success


def test_tol():
    loose = minimize(ellipsoid, tol=1e-3, options={"sigma0": 2.0, "rng": 1})
    stopping = fmnes.Stopping(tolx=1e-3, tolfun=1e-3)
    expected = fmnes.minimize(ellipsoid, X0, 2.0, rng=1, stopping=stopping)
    assert (loose.nfev, loose.fun) == (expected.nfev, expected.fun)
    with pytest.raises(ValueError, match=r"^tol: expected None .*, got "):
        minimize(ellipsoid, tol=1e-3, options={"sigma0": 2.0, "stopping": stopping})


# --- The result -----------------------------------------------------------------------------------


def test_status_is_a_number():
    def run(**options):
        result = minimize(ellipsoid, options={"sigma0": 2.0, "rng": 1, **options})
        assert type(result.status) is int
        return result.success, result.status, result.message

    assert run() == (True, 0, Status.TOLX.sentence)
    assert run(ftarget=1.0) == (True, 0, Status.FTARGET.sentence)
    assert run(maxfevals=100) == (False, 1, Status.MAXFEVALS.sentence)
    assert run(maxiter=3) == (False, 2, Status.MAXITER.sentence)
    *failed, message = run(timeout=1e-9)
    assert failed == [False, 3]
    assert message.startswith(Status.TIMEOUT.sentence)  # and says that no candidate has a value


def test_it_prints():
    text = str(minimize(ellipsoid, options={"sigma0": 2.0, "maxiter": 3, "rng": 1}))
    assert " status: 2" in text
    assert "   nfev: 26" in text


def test_other_functions_of_scipy_take_it():
    """Whatever calls minimize: here basinhopping."""
    result = scipy_optimize.basinhopping(
        lambda x: float(np.sum(x**2 + 5 * np.sin(3 * x))),
        np.array([2.0, -2.0]),
        niter=2,
        rng=1,
        minimizer_kwargs={"method": fmnes.scipy_method, "options": {"sigma0": 0.3, "rng": 1}},
    )
    assert result.lowest_optimization_result.success
    assert result.fun <= result.lowest_optimization_result.fun


# --- The callback ---------------------------------------------------------------------------------


def test_callback_of_x():
    seen = []
    result = minimize(
        ellipsoid, callback=seen.append, options={"sigma0": 2.0, "rng": 1, "maxiter": 9}
    )
    assert len(seen) == result.nit == 9
    np.testing.assert_array_equal(seen[-1], result.x)
    assert ellipsoid(seen[3]) >= ellipsoid(seen[-1])  # each its own array


def test_callback_of_a_result():
    seen = []

    def callback(intermediate_result):
        assert type(intermediate_result) is OptimizeResult
        seen.append((intermediate_result.nit, intermediate_result.fun))

    result = minimize(ellipsoid, callback=callback, options={"sigma0": 2.0, "rng": 1, "maxiter": 9})
    assert [nit for nit, _ in seen] == list(range(1, 10))
    assert seen[-1][1] == result.fun


@pytest.mark.parametrize("new", [False, True])
def test_callback_ends_the_search(new):
    calls = []

    def old_style(xk):
        calls.append(xk)
        if len(calls) == 5:
            raise StopIteration

    def new_style(*, intermediate_result):
        old_style(intermediate_result.x)

    callback = new_style if new else old_style
    result = minimize(ellipsoid, callback=callback, options={"sigma0": 2.0, "rng": 1})
    assert (result.nit, result.success, result.status) == (5, False, 99)
    assert result.message == fmnes.Status.CALLBACK.sentence


# --- SciPy's contract with the objective ----------------------------------------------------------


def test_the_objective_may_keep_and_change_x():
    kept = []

    def rude(x):
        kept.append(x)
        value = ellipsoid(x)
        x[:] = np.nan
        return np.array([value])  # SciPy takes an array of one number

    result = minimize(rude, options={"sigma0": 2.0, "rng": 5, "maxiter": 20})
    expected = fmnes.minimize(ellipsoid, X0, 2.0, rng=5, maxiter=20)
    assert result.fun == expected.fun
    assert len({id(x) for x in kept}) == result.nfev


def test_vectorized_and_workers():
    options = {"sigma0": 2.0, "rng": 5, "maxiter": 5}
    one = minimize(rosen, options=options)
    two = minimize(rosen, options={**options, "workers": 2})
    rows = minimize(
        lambda x: np.array([rosen(row) for row in x]), options={**options, "vectorized": True}
    )
    assert one.fun == two.fun == rows.fun


def test_an_integer_start():
    assert minimize(ellipsoid, [3, -2], options={"sigma0": 2.0, "rng": 1}).success


# --- What is not ours -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jac", lambda x: 2 * x),
        ("hess", lambda x: 2 * np.eye(4)),
        ("hessp", lambda x, p: 2 * p),
    ],
)
def test_derivatives_are_not_used(name, value):
    with pytest.warns(RuntimeWarning, match=rf"does not use derivatives \({name}\)") as caught:
        minimize(ellipsoid, options={"sigma0": 2.0, "maxiter": 2}, **{name: value})
    assert caught[0].filename == __file__


def test_a_function_with_its_gradient():
    """jac=True: SciPy takes the value out."""
    options = {"sigma0": 2.0, "rng": 5, "maxiter": 20}
    with pytest.warns(RuntimeWarning, match="does not use derivatives"):
        result = minimize(lambda x: (ellipsoid(x), 2 * x), jac=True, options=options)
    assert result.fun == fmnes.minimize(ellipsoid, X0, 2.0, rng=5, maxiter=20).fun


@pytest.mark.parametrize(
    "constraints",
    [
        {"type": "ineq", "fun": lambda x: x[0]},
        [{"type": "ineq", "fun": lambda x: x[0]}],
        scipy_optimize.LinearConstraint(np.eye(4), 0, 1),
    ],
)
def test_constraints_are_used(constraints):
    """The minimum of the ellipsoid is 0, with and without them."""
    options = {"sigma0": 2.0, "rng": 1, "ftarget": 1e-6}
    result = minimize(ellipsoid, constraints=constraints, options=options)
    assert result.success
    assert result.maxcv == 0
    assert result.x[0] >= -1e-7


def test_an_unknown_option_is_a_warning():
    with pytest.warns(OptimizeWarning, match=r"Unknown solver options: ftol, maxfev \(.*maxfevals"):
        result = minimize(
            ellipsoid, options={"sigma0": 2.0, "maxiter": 2, "maxfev": 7, "ftol": 1.0}
        )
    assert result.nit == 2


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"options": {"sigma0": -1.0}}, "sigma0"),
        ({"options": {"sigma0": 1.0}, "bounds": [(0, 1)] * 4}, "x0"),
        ({"options": {"sigma0": 1.0}, "bounds": [(0, 1)] * 3}, "bounds"),
        ({"options": {"sigma0": 1.0}, "tol": -1.0}, "tol"),
        ({"bounds": [(0, 1)] * 3}, "bounds"),
    ],
)
def test_errors_name_the_argument(arguments, name):
    with pytest.raises(ValueError, match=f"^{name}: expected .*, got "):
        minimize(ellipsoid, **arguments)
