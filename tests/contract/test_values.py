"""Bad values of the objective, and forms of x0, through `minimize`."""

import numpy as np
import pytest

import fmnes
from contract.common import arrays, sphere, start

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
    of_x0 = 2 if method == "auto" else 1  # auto looks whether the objective is noisy
    assert result.nfailed == result.nfev == of_x0 + start(method, DIM).popsize
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
        (lambda x: sphere(x)[:-1], r"shape \(11,\)"),
        (lambda x: sphere(x)[:, None], r"shape \(12, 1\)"),
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
    assert run(sphere, popsize=popsize, maxfevals=1e3, maxiter=np.int32(2)).nfev == 18
