"""minimize and Optimizer with arrays of other libraries: what goes in comes out."""

import pickle
import warnings

import numpy as np
import pytest
from array_api_compat import array_namespace

import fmnes
from backends.common import ellipsoid, to_numpy

DIM = 6
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def x0_of(library, dtype=np.float64):
    return library.array(np.full(DIM, 3.0), dtype)


def sphere(x):
    """With the functions of x's own library."""
    return array_namespace(x).sum(x * x, axis=-1)


def assert_belongs(library, value, dtype, shape):
    assert library.holds(value)
    assert tuple(value.shape) == shape
    assert np.dtype(dtype).name in str(value.dtype)


@dtypes
@pytest.mark.parametrize("vectorized", [True, False])
def test_minimize_end_to_end(library, dtype, vectorized):
    seen = []

    def fun(x):
        seen.append(x)
        return sphere(x)

    result = fmnes.minimize(
        fun,
        x0_of(library, dtype),
        2.0,
        ftarget=1e-2,
        maxfevals=2_000,
        rng=1,
        vectorized=vectorized,
    )
    assert result.status == "ftarget"
    popsize = result.restarts[0].popsize
    first, last = ((2 + popsize, DIM), (popsize, DIM)) if vectorized else ((DIM,), (DIM,))
    assert_belongs(library, seen[0], dtype, first)  # with x0, twice
    assert_belongs(library, seen[-1], dtype, last)
    assert len(seen) == (result.nit if vectorized else 2 + result.nit * popsize)
    assert_belongs(library, result.x, dtype, (DIM,))
    assert_belongs(library, result.mean, dtype, (DIM,))
    assert type(result.fun) is float
    assert f"fun: {result.fun:.10g}" in str(result)


def test_every_method_takes_numpys_steps(method, library):
    """The same seed, the same draws: the same search, but for rounding."""
    results = [
        fmnes.minimize(ellipsoid, x0, sigma0, method=method, rng=1, maxiter=12, vectorized=True)
        for x0, sigma0 in (
            (np.full(DIM, 3.0), np.exp(np.linspace(0, 1, DIM))),
            (x0_of(library), library.array(np.exp(np.linspace(0, 1, DIM)), np.float64)),
        )
    ]
    assert_belongs(library, results[1].x, np.float64, (DIM,))
    if method == "cma-es" and library.name != "array-api-strict":
        return  # whose candidates depend on the signs that a library gives its eigenvectors
    ours, theirs = results
    assert theirs.fun == pytest.approx(ours.fun, rel=1e-9)
    np.testing.assert_allclose(to_numpy(theirs.mean), ours.mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(theirs.history["sigma"], ours.history["sigma"], rtol=1e-10)
    np.testing.assert_array_equal(theirs.history["phase"], ours.history["phase"])


@dtypes
def test_values_may_be_of_any_kind(library, dtype):
    """Of the library, of NumPy, or a list; one search."""
    means = []
    for convert in (lambda f: f, to_numpy, lambda f: to_numpy(f).tolist()):
        opt = fmnes.Optimizer(x0_of(library, dtype), 2.0, rng=1)
        for _ in range(3):
            x = opt.ask()
            assert_belongs(library, x, dtype, (opt.popsize, DIM))
            opt.tell(x, convert(sphere(x)))
        means.append(to_numpy(opt.result.mean))
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0], means[2])


def test_ties_and_infinities_in_single_precision(library):
    """Values that float32 cannot tell apart are told apart: ranks are taken in float64."""
    f = 1 + np.arange(10) * 1e-12
    f[3] = np.inf
    means = []
    for values in (f, np.where(np.isinf(f), np.inf, np.arange(10.0))):
        opt = fmnes.Optimizer(x0_of(library, np.float32), 2.0, rng=1, popsize=10)
        opt.ask()
        opt.tell(values)
        means.append(to_numpy(opt.result.mean))
    np.testing.assert_array_equal(means[0], means[1])
    assert np.max(np.abs(means[0] - 3)) > 0.1


@dtypes
@pytest.mark.parametrize("name", ["cr-fm-nes", "fm-nes", "cma-es", "snes"])
def test_saved_and_pickled(library, dtype, name, tmp_path):
    opt = fmnes.Optimizer(x0_of(library, dtype), 2.0, method=name, rng=1, bounds=[(-9, 9)] * DIM)
    for _ in range(3):
        opt.tell(ellipsoid(opt.ask()))
    path = tmp_path / "search.npz"
    opt.save(path)
    others = [fmnes.Optimizer.load(path), pickle.loads(pickle.dumps(opt))]
    for _ in range(3):
        opt.tell(ellipsoid(opt.ask()))
        for other in others:
            other.tell(ellipsoid(other.ask()))
    for other in others:
        assert_belongs(library, other.ask(), dtype, (opt.popsize, DIM))
        assert_belongs(library, other.result.x, dtype, (DIM,))
        np.testing.assert_array_equal(to_numpy(other.result.mean), to_numpy(opt.result.mean))
        np.testing.assert_array_equal(to_numpy(other.ask()), to_numpy(opt.ask()))


@dtypes
@pytest.mark.parametrize(
    ("low", "high", "start", "sigma0", "slope"),
    [
        (-1.0, 0.1, 0.05, 0.3, -1.0),  # the float32 nearest to 0.1 is larger
        (0.7, 1.0, 0.8, 0.3, 1.0),  # and the one nearest to 0.7 is smaller
        (300.0, 300.0001, 300.0, 1e-4, 1.0),  # four numbers of 32 bits
        (-1e30, 1e15, 0.0, 1e12, -1.0),  # squares of the distances to these bounds overflow
    ],
)
def test_all_candidates_lie_inside(library, dtype, low, high, start, sigma0, slope):
    """The optimum is on a bound, and the search gets there."""
    x0 = library.array(np.full(DIM, start), dtype)
    opt = fmnes.Optimizer(x0, sigma0, bounds=[(low, high)] * DIM, rng=1)
    for _ in range(60):
        x = to_numpy(opt.ask())
        assert np.isfinite(x).all()
        assert x.min() >= low
        assert x.max() <= high
        opt.tell(slope * np.sum(x, axis=1))
    for point in (opt.result.x, opt.result.mean):
        assert low <= to_numpy(point).min() <= to_numpy(point).max() <= high


@dtypes
def test_bounds(library, dtype):
    """A corner, a face, a variable that is fixed, and one without bounds."""
    bounds = [(2.0, 9.0), (2.0, None), (None, 9.0), (3.0, 3.0), (None, None), (-9.0, 9.0)]
    target = np.array([2.0, 2.0, 0.0, 3.0, 0.0, 0.0])
    low, high = (np.array([b[k] if b[k] is not None else (-1) ** (1 - k) * np.inf for b in bounds])
                 for k in (0, 1))  # fmt: skip
    seen = []

    def fun(x):
        seen.append(to_numpy(x))
        return sphere(x)

    result = fmnes.minimize(
        fun, x0_of(library, dtype), 1.0, bounds=bounds, rng=1, vectorized=True, maxiter=60
    )
    assert_belongs(library, result.x, dtype, (DIM,))
    seen = np.concatenate(seen)
    assert ((seen >= low) & (seen <= high)).all()
    np.testing.assert_allclose(to_numpy(result.x), target, atol=0.1)


def test_a_warm_start(library):
    first = fmnes.minimize(sphere, x0_of(library), 2.0, rng=1, maxiter=10, vectorized=True)
    second = fmnes.minimize(sphere, first, rng=2, maxiter=10, vectorized=True)
    assert_belongs(library, second.x, np.float64, (DIM,))
    assert second.fun < first.fun


def test_restarts_and_callbacks(library):
    seen = []
    result = fmnes.minimize(
        lambda x: sphere(x) * 0 + 1.0,
        x0_of(library),
        2.0,
        rng=1,
        restarts=1,
        vectorized=True,
        stopping=fmnes.Stopping(flat=2),
        callback=lambda intermediate_result: seen.append(intermediate_result.x),
    )
    assert len(result.restarts) == 2
    assert len(seen) == result.nit == 4
    assert all(library.holds(x) for x in seen)


def test_rows(library):
    opt = fmnes.Optimizer(x0_of(library), 2.0, rng=1)
    opt.tell(ellipsoid(opt.ask()))
    parts = [opt.ask(rows=slice(0, 3)), opt.ask(rows=slice(3, None))]
    whole = to_numpy(opt.ask())
    assert all(library.holds(part) for part in parts)
    np.testing.assert_allclose(np.concatenate([to_numpy(p) for p in parts]), whole, rtol=1e-14)


def test_bad_values_are_named_here_too(library):
    with pytest.raises(TypeError, match=r"^fun: .*candidate 0"):
        fmnes.minimize(lambda x: x, x0_of(library), 2.0)
    with pytest.raises(TypeError, match=r"^fun: .*12"):
        fmnes.minimize(lambda x: x, x0_of(library), 2.0, vectorized=True)
    bad = library.array([3.0, np.nan], np.float64)
    with pytest.raises(ValueError, match=r"^x0: .*x0\[1\] = nan"):
        fmnes.minimize(sphere, bad, 2.0)


def test_integers_become_double_precision(library):
    x0 = library.array(np.full(DIM, 3), np.int32)
    assert_belongs(library, fmnes.Optimizer(x0, 2.0, rng=1).ask(), np.float64, (10, DIM))


def test_the_callers_arrays_are_untouched(library):
    x0, sigma0 = x0_of(library), library.array(np.full(DIM, 2.0), np.float64)
    fmnes.minimize(sphere, x0, sigma0, rng=1, maxiter=3, vectorized=True)
    np.testing.assert_array_equal(to_numpy(x0), np.full(DIM, 3.0))
    np.testing.assert_array_equal(to_numpy(sigma0), np.full(DIM, 2.0))


# --- What one library has of its own --------------------------------------------------------------


@pytest.mark.arrays
def test_torch_values_with_gradients():
    """The values of a network carry gradients, which nobody asked for here."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-arrays")
    weight = torch.ones(DIM, dtype=torch.float64, requires_grad=True)
    x0 = torch.full((DIM,), 3.0, dtype=torch.float64)
    for vectorized in (True, False):
        result = fmnes.minimize(
            lambda x: torch.sum(weight * x * x, dim=-1),
            x0,
            2.0,
            rng=1,
            maxiter=3,
            vectorized=vectorized,
        )
        assert not result.x.requires_grad
    opt = fmnes.Optimizer(x0.clone().requires_grad_(), 2.0, rng=1)
    x = opt.ask()
    assert not x.requires_grad
    opt.tell(torch.sum(weight * x * x, dim=-1))


@pytest.mark.arrays
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_values_in_bfloat16_and_lists_of_them(name):
    """NumPy has no bfloat16, and does not read tensors with gradients or on a GPU."""
    module = pytest.importorskip(name, reason=f"{name} is not installed: make test-arrays")
    xp = module if name == "torch" else module.numpy
    x0 = xp.full((DIM,), 3.0, dtype=xp.float32)
    numbers = np.arange(fmnes.Optimizer(x0, 2.0, rng=1).popsize) / 4
    values = xp.asarray(numbers, dtype=xp.bfloat16)
    told = [values, list(values), [float(value) for value in values]]
    if name == "torch":
        told.append([value.float().requires_grad_() for value in values])
    found = []
    for f in told:
        opt = fmnes.Optimizer(x0, 2.0, rng=1)
        opt.ask()
        opt.tell(f)
        found.append(to_numpy(opt.ask()))
    assert all(np.array_equal(x, found[0]) for x in found)
    with pytest.raises(TypeError, match="f: expected an array of"):
        opt.tell([values, values[:2]])


@pytest.mark.arrays
def test_loading_moves_points_from_elsewhere_and_the_best_extra_point(tmp_path):
    """A search with queued points and with constraints, whose best point the engine has not."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-arrays")
    for options in ({}, {"constraints": 1}):
        opt = fmnes.Optimizer(np.full(DIM, 3.0), 1.0, rng=1, **options)
        x = opt.ask()
        more = {"constraints": x[:, :1] - 10} if options else {}
        opt.tell(sphere(x), **more)
        opt.inject(np.zeros((2, DIM)))
        opt.save(tmp_path / "search.npz")
        moved = fmnes.Optimizer.load(tmp_path / "search.npz", like=torch.empty(0))
        assert isinstance(moved.result.x, torch.Tensor)
        np.testing.assert_array_equal(to_numpy(moved.result.x), opt.result.x)
        x = moved.ask()
        assert isinstance(x, torch.Tensor)
        np.testing.assert_allclose(to_numpy(x), opt.ask(), rtol=1e-12, atol=1e-12)


@pytest.mark.arrays
def test_jax_without_x64():
    """A new JAX has float32 only: a float32 search, and no warning about what it lacks."""
    jax = pytest.importorskip("jax", reason="JAX is not installed: make test-arrays")
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fmnes.minimize(
            jax.jit(sphere),
            jax.numpy.full(DIM, 3.0),
            2.0,
            rng=1,
            ftarget=1e-2,
            maxfevals=2_000,
            vectorized=True,
        )
        assert result.status == "ftarget"
        assert result.x.dtype.name == "float32"
