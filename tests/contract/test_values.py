"""Bad values and bad inputs, through `minimize`; every message names the argument."""

import numpy as np
import pytest
from contract.common import arrays, sphere, start

import fmnes

DIM = 6
X0 = np.full(DIM, 3.0)


def run(fun, x0=X0, sigma0=2.0, **options):
    options = {"rng": 1, "maxfevals": 20_000, **options}
    return fmnes.minimize(fun, x0, sigma0, **options)


class Counted:
    """An objective that knows how often it was called, and misbehaves on a given call."""

    def __init__(self, answer, at):
        self.answer, self.at, self.calls = answer, at, 0

    def __call__(self, x):
        self.calls += 1
        if self.calls == self.at:
            return self.answer(x) if callable(self.answer) else self.answer
        return sphere(x)


# --- NaN and infinities ---------------------------------------------------------------------------


def test_nan_now_and_then(method):
    """Ranked last, counted, and no hindrance."""
    rng, failed = np.random.default_rng(0), 0

    def fun(x):
        nonlocal failed
        nan = rng.random(len(x)) < 0.2
        failed += nan.sum()
        return np.where(nan, np.nan, sphere(x))

    result = run(fun, method=method, ftarget=1e-8, vectorized=True)
    assert result.status == "ftarget"
    assert result.nfailed == failed > 0
    assert np.isfinite(result.history["best"]).all()


def test_nan_always(method):
    result = run(lambda x: np.nan, method=method)
    assert result.status == "infeasible"
    assert not result.success
    assert result.nit == 1
    assert result.nfailed == result.nfev == start(method, DIM).popsize
    assert result.fun == np.inf
    assert np.isfinite(result.x).all()


def test_nan_from_the_second_generation_on(method):
    """The best of the first stays."""
    calls = 0

    def fun(x):
        nonlocal calls
        calls += 1
        return sphere(x) if calls == 1 else np.full(len(x), np.nan)

    result = run(fun, method=method, vectorized=True, maxfevals=None)
    assert result.status in ("infeasible", "condition")
    assert not result.success
    assert np.isfinite(result.fun)
    assert sphere(result.x) == result.fun


def test_half_of_the_space_infeasible(method):
    """Half of the first population, too: x0 lies on the border."""

    def fun(x):
        return np.where(x[:, 0] > 3, np.inf, sphere(x))

    result = run(fun, method=method, ftarget=1e-8, vectorized=True)
    assert result.status == "ftarget"
    assert result.nfailed == 0


def test_infeasible_always(method):
    """After a hundred generations, or when the distribution has shrunk to nothing in search."""
    result = run(lambda x: np.inf, method=method)
    assert result.status == "infeasible"
    assert not result.success
    assert 1 < result.nit <= 100
    assert result.nfailed == 0
    assert result.fun == np.inf
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.sigma)


def test_minus_infinity_once(method):
    seen = []

    def fun(x):
        if len(seen) == 0 and x[0] < 2:
            seen.append(x.copy())
            return -np.inf
        return sphere(x)

    result = run(fun, method=method)
    assert result.status == "unbounded"
    assert result.fun == -np.inf
    np.testing.assert_array_equal(result.x, seen[0])


# --- What is no real number -----------------------------------------------------------------------

NO_NUMBERS = {
    "none": (None, "NoneType"),
    "complex": (1 + 2j, "complex"),
    "complex array": (np.array(1 + 2j), "ndarray"),
    "shape (3,)": (np.ones(3), r"shape \(3,\)"),
    "shape (0,)": (np.ones(0), r"shape \(0,\)"),
    "str": ("1.0", "str"),
    "list": ([1.0], "list"),
}


@pytest.mark.parametrize(("answer", "came"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_no_number_is_a_type_error_that_names_the_candidate(answer, came):
    fun = Counted(answer, at=4)
    with pytest.raises(TypeError, match=rf"^fun: expected a real number for candidate 3, .*{came}"):
        run(fun)
    assert fun.calls == 4


@pytest.mark.parametrize(("answer", "came"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_no_number_is_a_failure_where_failures_are_penalized(answer, came):
    evaluator = fmnes.Evaluator(on_error="penalize")
    result = run(Counted(answer, at=4), workers=evaluator, ftarget=1e-8)
    assert result.status == "ftarget"
    assert result.nfailed == 1
    assert "candidate 3" in result.first_error


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: np.array([sphere(x)]),
        lambda x: np.array(sphere(x)),
        lambda x: np.array([[sphere(x)]]),
        lambda x: np.float32(sphere(x)),
        lambda x: round(1e6 * sphere(x)),
        lambda x: sphere(x) > 1,
    ],
    ids=["shape (1,)", "shape ()", "shape (1, 1)", "float32", "int", "bool"],
)
def test_whatever_holds_one_real_number_is_taken(answer):
    result = run(answer, maxiter=5)
    assert isinstance(result.fun, float)
    assert result.fun == float(np.asarray(answer(result.x)).item())


@pytest.mark.parametrize(
    ("values", "came"),
    [
        (lambda x: None, "NoneType"),
        (lambda x: 0.0, r"shape \(\)"),
        (lambda x: sphere(x)[:-1], r"shape \(9,\)"),
        (lambda x: sphere(x)[:, None], r"shape \(10, 1\)"),
        (lambda x: sphere(x.T), r"shape \(6,\)"),
        (lambda x: sphere(x) * 1j, "complex"),
        (lambda x: ["1.0"] * len(x), "list of dtype <U3"),
        (lambda x: [None] + [1.0] * (len(x) - 1), "candidate 0, got NoneType"),
    ],
)
def test_a_vectorized_objective_returns_one_number_each(values, came):
    with pytest.raises(TypeError, match=rf"^fun: expected a.*{came}"):
        run(values, vectorized=True)


# --- Exceptions -----------------------------------------------------------------------------------


def broken(x):
    raise ZeroDivisionError("the simulator broke")


def test_an_exception_propagates_and_the_search_is_saved_first(tmp_path):
    path = tmp_path / "run.npz"
    fun = Counted(broken, at=25)
    with pytest.raises(ZeroDivisionError, match="the simulator broke"):
        run(fun, popsize=10, checkpoint=path, ftarget=1e-8)
    rescued = run(sphere, popsize=10, checkpoint=path, ftarget=1e-8, resume="must")
    unharmed = run(sphere, popsize=10, ftarget=1e-8)
    assert rescued.nfev == unharmed.nfev
    np.testing.assert_array_equal(rescued.x, unharmed.x)


def test_an_exception_is_a_failure_where_failures_are_penalized():
    result = run(Counted(broken, at=25), workers=fmnes.Evaluator(on_error="penalize"), ftarget=1e-8)
    assert result.status == "ftarget"
    assert result.nfailed == 1
    assert "ZeroDivisionError: the simulator broke" in result.first_error
    assert "in broken" in result.first_error


def test_an_exception_is_forgotten_where_a_retry_helps():
    fun = Counted(broken, at=25)
    result = run(fun, workers=fmnes.Evaluator(retries=1), ftarget=1e-8)
    assert result.status == "ftarget"
    assert result.nfailed == 0
    assert result.first_error is None
    assert fun.calls == result.nfev + 1


# --- Plateaus and sizes ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_constant_moves_nothing(method, dtype):
    """Mean, sigma, D, v, paths: to the bit what they were; and it ends by itself."""
    opt = start(method, DIM, dtype=dtype)
    before = arrays(opt._state)
    while not opt.stop():
        opt.ask()
        opt.tell(np.full(opt.popsize, 42.0))
    assert list(opt.stop()) == ["flat"]
    assert opt.nit == 20
    for name, value in arrays(opt._state).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    result = run(lambda x: 42.0, X0.astype(dtype), method=method)
    assert (result.status, result.fun, result.success) == ("flat", 42.0, False)


def test_a_plateau_on_the_way_moves_nothing(method):
    opt = start(method, DIM)
    for _ in range(10):
        opt.tell(sphere(opt.ask()))
    before = arrays(opt._state)
    opt.ask()
    opt.tell(np.zeros(opt.popsize))
    for name, value in arrays(opt._state).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_terraces(method):
    """Values in whole numbers: the search goes down to the lowest, where it ends as converged."""
    result = run(lambda x: np.floor(sphere(x)), method=method, vectorized=True, maxfevals=None)
    assert result.fun == 0
    assert result.status == "tolfun"
    assert result.success
    assert sphere(result.mean) < 10


@pytest.mark.parametrize("factor", [1e307, 1e-290])
def test_values_of_any_size_take_the_same_evaluations(method, factor):
    """f / 1e3 so that nothing overflows; down to 1e-10 / 1e3 * 1e-290, still a normal number."""
    plain, scaled = (
        run(
            lambda x, c=c: c * (sphere(x) / 1e3),
            method=method,
            ftarget=c * 1e-13,
            vectorized=True,
        )
        for c in (1.0, factor)
    )
    assert plain.status == scaled.status == "ftarget"
    assert plain.nfev == scaled.nfev
    np.testing.assert_array_equal(plain.x, scaled.x)


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_no_absolute_tolerance_ends_a_search(factor):
    plain, scaled = (run(lambda x, c=c: c * sphere(x), maxiter=80) for c in (1.0, factor))
    assert plain.status == scaled.status == "maxiter"
    np.testing.assert_array_equal(plain.mean, scaled.mean)


# --- Arguments: refused before the first evaluation -----------------------------------------------


class Never:
    """An objective that must not be called."""

    def __call__(self, x):
        raise AssertionError("evaluated before the arguments were checked")


REFUSED = {
    "d = 0": ({"x0": []}, ValueError, r"^x0: expected .* d >= 1, got shape \(0,\)"),
    "x0 of shape (d, 1)": ({"x0": X0[:, None]}, ValueError, r"^x0: .* got shape \(6, 1\)"),
    "x0 of shape (1, d)": ({"x0": X0[None, :]}, ValueError, r"^x0: .* got shape \(1, 6\)"),
    "x0 a number": ({"x0": 3.0}, ValueError, r"^x0: .* got shape \(\)"),
    "x0 NaN": ({"x0": [3.0, np.nan]}, ValueError, r"^x0: .* got x0\[1\] = nan"),
    "x0 inf": ({"x0": [np.inf, 3.0]}, ValueError, r"^x0: .* got x0\[0\] = inf"),
    "x0 complex": ({"x0": X0 * 1j}, TypeError, r"^x0: expected real numbers .* complex128"),
    "x0 complex list": ({"x0": [1j, 2.0]}, TypeError, r"^x0: expected a vector of real numbers"),
    "x0 text": ({"x0": ["a", "b"]}, TypeError, r"^x0: expected a vector of real numbers, got list"),
    "x0 ragged": ({"x0": [[1.0], [1.0, 2.0]]}, TypeError, r"^x0: expected a vector of real"),
    "x0 None": ({"x0": None}, (TypeError, ValueError), r"^x0: expected"),
    "x0 float16": ({"x0": X0.astype(np.float16)}, TypeError, r"^x0: .* got dtype float16"),
    "sigma0 = 0": ({"sigma0": 0}, ValueError, r"^sigma0: expected .* > 0, got sigma0 = 0.0"),
    "sigma0 < 0": ({"sigma0": -1.0}, ValueError, r"^sigma0: .* got sigma0 = -1.0"),
    "sigma0 NaN": ({"sigma0": np.nan}, ValueError, r"^sigma0: .* got sigma0 = nan"),
    "sigma0 inf": ({"sigma0": np.inf}, ValueError, r"^sigma0: .* got sigma0 = inf"),
    "sigma0 None": ({"sigma0": None}, TypeError, r"^sigma0: expected a number or a vector, got no"),
    "sigma0 text": ({"sigma0": "x"}, TypeError, r"^sigma0: .* got 'x'"),
    "sigma0 complex": ({"sigma0": 1j}, TypeError, r"^sigma0: .* got 1j"),
    "sigma0 too long": ({"sigma0": [1.0] * 7}, ValueError, r"^sigma0: .* got shape \(7,\)"),
    "sigma0[2] = 0": ({"sigma0": [1, 1, 0, 1, 1, 1]}, ValueError, r"^sigma0: .* sigma0\[2\] = 0"),
    "popsize odd": ({"popsize": 9}, ValueError, r"^popsize: expected an even number .* got 9"),
    "popsize 1": ({"popsize": 1}, ValueError, r"^popsize: expected at least 2, got 1"),
    "popsize 0": ({"popsize": 0}, ValueError, r"^popsize: expected at least 2, got 0"),
    "popsize < 0": ({"popsize": -4}, ValueError, r"^popsize: expected at least 2, got -4"),
    "popsize 4.5": ({"popsize": 4.5}, TypeError, r"^popsize: expected a whole number, got 4.5"),
    "popsize text": ({"popsize": "8"}, TypeError, r"^popsize: expected a whole number, got '8'"),
    "method": ({"method": "cmaes"}, ValueError, r"^method: expected one of cr-fm-nes, .*'cmaes'"),
    "method a class": ({"method": fmnes.CRFMNES}, TypeError, r"^method: .* add parentheses"),
    "method None": ({"method": None}, TypeError, r"^method: expected a name .* got None"),
    "ftarget NaN": ({"ftarget": np.nan}, ValueError, r"^ftarget: expected a number, got nan"),
    "ftarget text": ({"ftarget": "0"}, TypeError, r"^ftarget: expected a number, got '0'"),
    "maxfevals 1": ({"maxfevals": 1}, ValueError, r"^maxfevals: expected at least 10, got 1"),
    "maxfevals text": ({"maxfevals": "9"}, TypeError, r"^maxfevals: expected a whole number"),
    "maxiter 0": ({"maxiter": 0}, ValueError, r"^maxiter: expected at least 1, got 0"),
    "timeout 0": ({"timeout": 0}, ValueError, r"^timeout: expected a number > 0, got 0"),
    "bounds short": ({"bounds": [(0, 9)] * 5}, ValueError, r"^bounds: expected 6 pairs"),
    "bounds crossed": ({"bounds": [(9, 0)] * 6}, ValueError, r"^bounds\[0\]: expected low <= high"),
    "bounds NaN": ({"bounds": [(np.nan, 9)] * 6}, ValueError, r"^bounds: expected .* got NaN"),
    "bounds a number": ({"bounds": 3}, TypeError, r"^bounds: expected 6 pairs .* got int"),
    "x0 outside": ({"bounds": [(0, 1)] * 6}, ValueError, r"^x0: .* x0\[0\] = 3 outside \[0, 1\]"),
    "restarts < 0": ({"restarts": -1}, ValueError, r"^restarts: expected at least 0, got -1"),
    "restarts text": ({"restarts": "2"}, TypeError, r"^restarts: expected a whole number"),
    "rng text": ({"rng": "seed"}, (TypeError, ValueError), r"^rng: expected None, an int"),
    "callback": ({"callback": 3}, TypeError, r"^callback: expected a function, got 3"),
    "args": ({"args": [1]}, TypeError, r"^args: expected a tuple such as \(a,\), got \[1\]"),
    "resume": ({"resume": "yes"}, ValueError, r"^resume: expected one of 'auto', 'must', 'never'"),
    "stopping": ({"stopping": {}}, TypeError, r"^stopping: expected fmnes.Stopping"),
    "workers 0": ({"workers": 0}, ValueError, r"^(pool|workers): expected at least 1"),
    "workers text": ({"workers": "2"}, TypeError, r"^(pool|workers): expected None, a number"),
    "workers and vectorized": (
        {"workers": 2, "vectorized": True},
        ValueError,
        r"^workers: expected None with vectorized=True",
    ),
    "fun": ({"fun": 3}, TypeError, r"^fun: expected a function, got 3"),
}


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_before_any_evaluation(wrong, error, message):
    options = {"fun": Never(), "x0": X0, "sigma0": 2.0, "rng": 1, **wrong}
    with pytest.raises(error, match=message):
        fmnes.minimize(**options)


def test_an_option_that_does_not_exist():
    for name in ("popsizes", "tolx", "options"):
        with pytest.raises(TypeError, match=name):
            fmnes.minimize(Never(), X0, 2.0, **{name: 1})


# --- Forms of x0 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x0",
    [[3.0] * DIM, (3,) * DIM, np.full(DIM, 3), np.full(DIM, 3, np.int8), X0[::-1], [True] * DIM],
    ids=["list", "tuple of int", "int64", "int8", "a view", "bool"],
)
def test_forms_of_x0(x0):
    result = run(sphere, x0, maxiter=5)
    same = run(sphere, np.array(x0, np.float64), maxiter=5)
    assert result.x.dtype == np.float64
    np.testing.assert_array_equal(result.x, same.x)


def test_float32_stays_float32():
    """The objective sees it too."""
    seen = set()

    def fun(x):
        seen.add(x.dtype)
        return sphere(x)

    result = run(fun, X0.astype(np.float32), ftarget=1e-8)
    assert result.status == "ftarget"
    assert {result.x.dtype, result.mean.dtype} == seen == {np.dtype(np.float32)}


def test_a_read_only_x0_is_enough():
    x0, sigma0 = X0.copy(), np.full(DIM, 2.0)
    x0.flags.writeable = sigma0.flags.writeable = False
    result = run(sphere, x0, sigma0, maxiter=5)
    np.testing.assert_array_equal(x0, X0)
    assert result.x.flags.writeable


@pytest.mark.parametrize("popsize", [8, 8.0, np.int64(8)], ids=repr)
def test_forms_of_a_whole_number(popsize):
    assert run(sphere, popsize=popsize, maxfevals=1e3, maxiter=np.int32(2)).nfev == 16
