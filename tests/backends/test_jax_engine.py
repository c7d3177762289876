"""The JAX engine: the candidates and states of the array engine, compiled and on the device."""

import copy
import pickle

import numpy as np
import pytest

import fmnes
from fmnes.algorithms import METHODS
from fmnes.engines import registration
from fmnes.engines.jax_engine import JaxEngine

pytestmark = pytest.mark.arrays
DIM = 12
LINEAR = [name for name, module in METHODS.items() if module.LINEAR]


def ellipsoid(x):
    """On the host, so that two searches rank equal candidates alike."""
    x = np.asarray(x, np.float64)
    return np.sum(10 ** (3 * np.arange(DIM) / (DIM - 1)) * x * x, axis=1)


def optimizers(jax_library, method, dtype=np.float64, **options):
    """The same search on NumPy arrays and on JAX arrays."""
    x0 = np.linspace(1, 3, DIM)
    sigma0 = np.linspace(0.5, 2, DIM)  # no two axes are equal: eigenvectors are unique
    return [
        fmnes.Optimizer(array(x0, dtype), sigma0, method=method, rng=3, **options)
        for array in (np.asarray, jax_library.array)
    ]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_served(jax_library, method):
    _, opt = optimizers(jax_library, method)
    row = registration(method, opt.setup.mean)
    assert row.name == "jax"
    assert row.engine is JaxEngine


@pytest.mark.parametrize("method", METHODS)
def test_it_follows_the_array_engine(jax_library, method):
    """Rounding apart, which 30 generations of a search amplify to some 1e4 units.

    One generation of CMA-ES, whose next candidates depend on the signs of eigenvectors, which a
    library is free to choose: its covariance matrix has none.
    """
    ours, theirs = optimizers(jax_library, method)
    for _ in range(1 if method == "cma-es" else 30):
        x, y = ours.ask(), theirs.ask()
        assert jax_library.holds(y)
        np.testing.assert_allclose(y, x, rtol=1e-10, atol=1e-10)
        f = ellipsoid(x)
        ours.tell(f)
        theirs.tell(f)
    assert theirs.result.fun == ours.result.fun
    np.testing.assert_allclose(theirs.result.x, ours.result.x, rtol=1e-10, atol=1e-10)
    if method == "cma-es":
        np.testing.assert_allclose(theirs.result.shape.C, ours.result.shape.C, rtol=1e-10)
    for column in ("sigma", "deviation_min", "deviation_max", "condition", "phase"):
        np.testing.assert_allclose(
            theirs.result.history[column], ours.result.history[column], rtol=1e-8
        )


@pytest.mark.parametrize("method", LINEAR)
def test_single_precision(jax_library, method):
    """Draws made in float32 are the rounded ones but for the last digits.

    Not with full matrices: libraries choose the signs of eigenvectors differently.
    """
    ours, theirs = optimizers(jax_library, method, np.float32)
    for _ in range(3):
        x, y = ours.ask(), theirs.ask()
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-4)
        f = ellipsoid(x)
        ours.tell(f)
        theirs.tell(f)


@pytest.mark.parametrize("method", METHODS)
def test_some_candidates_are_rows_of_all(jax_library, method):
    _, opt = optimizers(jax_library, method)
    x = np.asarray(opt.ask())
    last = opt.popsize
    for rows in (slice(0, 1), slice(1, last - 1), slice(last - 1, last)):
        assert np.array_equal(opt.ask(rows=rows), x[rows])
    filled = np.empty((last, DIM))
    assert np.array_equal(opt.ask(out=filled), x)
    opt.tell(opt.ask(), ellipsoid(x))  # which compares them with those that it proposed


def test_draws_made_again_give_the_same_search(jax_library):
    stored = optimizers(jax_library, fmnes.CRFMNES())[1]
    made_again = optimizers(jax_library, fmnes.CRFMNES(store_draws=False))[1]
    for _ in range(5):
        x, y = stored.ask(), made_again.ask()
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-12)
        last = stored.popsize
        assert np.array_equal(made_again.ask(rows=slice(last - 2, last)), y[last - 2 :])
        f = ellipsoid(x)
        stored.tell(f)
        made_again.tell(f)
    np.testing.assert_allclose(made_again.result.x, stored.result.x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["cr-fm-nes", "cma-es"])
def test_the_best_candidate_is_the_one_evaluated(jax_library, method):
    _, opt = optimizers(jax_library, method)
    seen = {}
    for _ in range(20):
        x = np.asarray(opt.ask())
        f = ellipsoid(x)
        seen |= dict(zip(f.tolist(), x, strict=True))
        opt.tell(f)
    assert np.array_equal(opt.result.x, seen[min(seen)])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))])
def test_a_copy_goes_its_own_way_to_the_same_end(jax_library, again):
    _, opt = optimizers(jax_library, "cr-fm-nes")
    opt.ask()
    other = again(opt)
    for search in (opt, other):
        for _ in range(3):
            search.tell(ellipsoid(search.ask()))
    assert np.array_equal(other.result.x, opt.result.x)
    assert np.array_equal(other.ask(), opt.ask())


@pytest.mark.parametrize("where", ["host", "device"])
def test_infeasible_and_equal_values(jax_library, where):
    """Values of the host are surveyed there, values of the device by the device."""
    ours, theirs = optimizers(jax_library, "cr-fm-nes")
    number = np.arange(ours.popsize)
    for f in (
        np.full(ours.popsize, np.nan),
        np.full(ours.popsize, 1.0),
        np.where(number % 3, np.inf, 1.0),
        np.where(number % 4, 2.0, np.nan),
        number[::-1] * (1e308 / ours.popsize),
        np.where(number == 3, -np.inf, 1.0),
    ):
        ours.ask()
        ours.tell(f)
        theirs.ask()
        theirs.tell(f if where == "host" else jax_library.array(f, np.float64))
        np.testing.assert_allclose(theirs.ask(), ours.ask(), rtol=1e-12, atol=1e-12)
        for name, value in ours.record.last._asdict().items():
            np.testing.assert_allclose(getattr(theirs.record.last, name), value, rtol=1e-12)
        np.testing.assert_allclose(theirs.result.x, ours.result.x, rtol=1e-12)
    assert theirs.result.nfailed == ours.result.nfailed
    assert theirs.stop() == ours.stop()


def test_a_hundred_generations_in_double_precision(jax_library):
    """Within 1e-9 of the compiled kernels, with values computed where the candidates are."""
    ours, theirs = optimizers(jax_library, "cr-fm-nes")
    xp = jax_library.module
    weights = xp.asarray(10 ** (3 * np.arange(DIM) / (DIM - 1)))
    for _ in range(100):
        x, y = ours.ask(), theirs.ask()
        ours.tell(ellipsoid(x))
        theirs.tell((weights * y * y).sum(axis=1))
    x, y = np.asarray(ours.ask()), np.asarray(theirs.ask())
    assert np.abs(y - x).max() < 1e-9 * np.abs(x).max()
    np.testing.assert_allclose(theirs.result.fun, ours.result.fun, rtol=1e-9)


def test_the_best_value_may_come_from_the_host_or_from_the_device(jax_library):
    """In single precision: a value of the host between two numbers of the device stays the best."""
    _, opt = optimizers(jax_library, "cr-fm-nes", np.float32)
    third = np.full(opt.popsize, 1 / 3)
    above, below = np.float32(1 / 3), np.nextafter(np.float32(1 / 3), np.float32(0))
    assert float(below) < 1 / 3 < float(above)
    best = []
    for f in (third, np.float32([above] * opt.popsize), np.float32([below] * opt.popsize)):
        opt.ask()
        opt.tell(f if f.dtype == np.float64 else jax_library.module.asarray(f))
        best.append(opt.result.fun)
    assert best == [1 / 3, 1 / 3, float(below)]


@pytest.mark.parametrize("told", ["device", "host"])
def test_a_generation_moves_bytes_in_proportion_to_the_population(jax_library, monkeypatch, told):
    """None of size d, in either direction: all transfers are explicit, and counted."""
    import jax

    moved = {"put": 0, "get": 0}
    put, get = jax.device_put, jax.device_get

    def counted_put(value, *where):
        moved["put"] += sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(value))
        return put(value, *where)

    def counted_get(value):
        moved["get"] += sum(leaf.nbytes for leaf in jax.tree.leaves(value))
        return get(value)

    x0 = jax_library.module.full(3000, 3.0)
    opt = fmnes.Optimizer(x0, 1.0, method="cr-fm-nes", rng=1)
    sphere = jax.jit(lambda x: (x**2).sum(axis=1))
    opt.tell(sphere(opt.ask()) if told == "device" else get(sphere(opt.ask())))
    monkeypatch.setattr(jax, "device_put", counted_put)
    monkeypatch.setattr(jax, "device_get", counted_get)
    generations, compiled = 5, opt._engine._step.tell._cache_size()
    with jax.transfer_guard("disallow"):  # implicit ones
        for _ in range(generations):
            f = sphere(opt.ask())
            opt.tell(f if told == "device" else get(f))
    assert opt._engine._step.tell._cache_size() == compiled  # by the first generation, once
    if told == "device":
        assert moved["put"] == 0
        assert moved["get"] == generations * 15 * 8  # the figures of a generation
    else:
        assert moved["put"] <= generations * (opt.popsize + 1) * 8
        assert moved["get"] <= generations * 15 * 8


@pytest.mark.parametrize("method", METHODS)
def test_nothing_of_size_d_crosses_to_the_host(jax_library, method):
    import jax

    if jax.default_backend() == "cpu":
        pytest.skip("JAX's transfer guard does not watch arrays that are on the host already")
    opt = fmnes.Optimizer(jax_library.module.full(50, 3.0), 1.0, method=method, rng=1)
    sphere = jax.jit(lambda x: (x**2).sum(axis=1))
    for _ in range(3):
        with jax.transfer_guard_device_to_host("disallow"):  # implicit transfers, as np.asarray
            x = opt.ask()
            opt.tell(jax.device_get(sphere(x)))


@pytest.mark.parametrize(
    ("method", "step"), [("cr-fm-nes", "tell"), ("cr-fm-nes", "sample"), ("xnes", "refresh")]
)
@pytest.mark.parametrize("told", ["device", "host"])
def test_a_generation_that_fails_can_be_told_again(jax_library, method, step, told):
    (_, whole), (_, opt) = (optimizers(jax_library, method) for _ in range(2))

    def fails(*args):
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

    x = whole.ask()
    f = jax_library.array(ellipsoid(x), np.float64) if told == "device" else ellipsoid(x)
    whole.tell(f)
    opt.ask()
    steps = opt._engine._step
    opt._engine._step = steps._replace(**{step: fails})
    with pytest.raises(RuntimeError, match="out of memory"):
        opt.tell(f)
    opt._engine._step = steps
    opt.tell(f)
    np.testing.assert_array_equal(opt.ask(), whole.ask())
    assert (opt.nit, opt.result.fun) == (whole.nit, whole.result.fun)
    np.testing.assert_array_equal(opt.result.x, whole.result.x)


def test_checkpoints_move_between_libraries(jax_library, tmp_path):
    """Saved with JAX arrays and continued with NumPy or PyTorch arrays, and the other way round."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-arrays")
    ours, theirs = optimizers(jax_library, "cr-fm-nes")

    def generations(opt):
        for _ in range(5):
            opt.tell(ellipsoid(opt.ask()))
        return np.asarray(opt.ask())

    for opt, name in ((ours, "numpy"), (theirs, "jax")):
        generations(opt)
        opt.save(tmp_path / name)
    on_jax = jax_library.module.empty(0)
    moved = [
        fmnes.Optimizer.load(tmp_path / "jax", like=np.empty(0)),
        fmnes.Optimizer.load(tmp_path / "jax", like=torch.empty(0)),
        fmnes.Optimizer.load(tmp_path / "numpy", like=on_jax),
        fmnes.Optimizer.load(tmp_path / "jax"),
    ]
    assert [type(opt.ask()) for opt in moved] == [
        np.ndarray,
        torch.Tensor,
        type(on_jax),
        type(on_jax),
    ]
    whole = generations(ours)
    for opt in moved:
        np.testing.assert_allclose(generations(opt), whole, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(opt.result.fun, ours.result.fun, rtol=1e-10)
