"""`fmnes.jax`: pure functions under jit, scan and vmap, compared with `fmnes.Optimizer`."""

import warnings

import numpy as np
import pytest

import fmnes
from fmnes.algorithms import METHODS
from fmnes.draws import draw_seed

pytestmark = pytest.mark.arrays
DIM, GENERATIONS = 12, 30
WEIGHTS = 10 ** (3 * np.arange(DIM) / (DIM - 1))
X0, SIGMA0 = np.linspace(1, 3, DIM), np.linspace(0.5, 2, DIM)  # no two axes are equal


@pytest.fixture(scope="module")
def jax(jax_library):
    import jax

    return jax


@pytest.fixture(scope="module")
def fj(jax):
    import fmnes.jax

    return fmnes.jax


def key_of(jax, rng):
    """The key whose draws are those of an Optimizer with this seed."""
    seed = draw_seed(rng)
    return jax.random.wrap_key_data(np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32))


def ellipsoid(x):
    return (WEIGHTS * x * x).sum(axis=-1)


def settings_of(method):
    """auto as it can be compiled: never with a full matrix."""
    return fmnes.Auto(axes=1) if method == "auto" else METHODS[method].Settings()


def generation(fj, search, _=None):
    return fj.tell(search, ellipsoid(fj.ask(search)))


@pytest.mark.parametrize("method", METHODS)
def test_a_scan_follows_an_optimizer_on_numpy_arrays(jax, fj, method):
    """Rounding apart. CMA-ES only until its first eigenvectors: a library chooses their signs."""
    opt = fmnes.Optimizer(X0, SIGMA0, method=settings_of(method), rng=3)
    search = fj.init(key_of(jax, 3), X0, SIGMA0, method=settings_of(method))
    scanned = jax.jit(lambda s: jax.lax.scan(lambda s, _: generation(fj, s), s, length=GENERATIONS))
    last, metrics = scanned(search)
    for _ in range(GENERATIONS):
        opt.tell(ellipsoid(opt.ask()))
    upto = 1 if method == "cma-es" else GENERATIONS
    history = opt.result.history
    np.testing.assert_allclose(metrics.best[:upto], history["best"][:upto], rtol=1e-7)
    np.testing.assert_allclose(metrics.sigma[:upto], history["sigma"][:upto], rtol=1e-7)
    np.testing.assert_allclose(metrics.median[:upto], history["median"][:upto], rtol=1e-7)
    assert metrics.best[-1] < metrics.best[0]
    assert int(last.generation) == GENERATIONS
    assert int(last.nfev) == opt.nfev == int(metrics.nfev[-1])
    if method != "cma-es":
        np.testing.assert_allclose(fj.mean(last), opt.result.mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(fj.best(last), opt.result.x, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", [list, np.asarray, "jax"])
def test_a_shape_in_the_settings_is_static_data(jax, fj, kind):
    """As a list or an array of either library; equal settings share one compiled program."""
    make = jax.numpy.asarray if kind == "jax" else kind
    compiled = jax.jit(lambda search: generation(fj, search)[0])
    D, directions = np.linspace(1, 2, X0.size), (np.ones(X0.size), np.full(X0.size, 0.5))
    found, programs = [], []
    for v in (directions[0], directions[0].copy(), directions[1]):
        method = fmnes.CRFMNES(D=make(D), v=make(v))
        search = fj.init(key_of(jax, 3), X0, SIGMA0, method=method)
        found.append(compiled(compiled(search)))
        programs.append(compiled._cache_size())
    assert programs[0] == programs[1] < programs[2]
    opt = fmnes.Optimizer(X0, SIGMA0, method=fmnes.CRFMNES(D=D, v=directions[0]), rng=3)
    for _ in range(2):
        opt.tell(ellipsoid(opt.ask()))
    np.testing.assert_allclose(fj.mean(found[1]), opt.result.mean, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_shardings_split_the_variables_and_nothing_else(jax, fj, method):
    """Also if other axes have as many numbers: an axis is split if it grows with the variables."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("n",))

    def search(dim):
        settings = fmnes.Auto(axes=2) if method == "auto" else method
        return fj.init(key_of(jax, 3), np.ones(dim), 1.0, method=settings, popsize=8)

    for dim in (2, 3, 4):
        found = jax.tree.leaves(fj.shardings(search(dim), mesh, "n"))
        arrays = jax.tree_util.tree_leaves_with_path(search(dim))
        larger = jax.tree.leaves(search(dim + 2))
        for sharding, (path, array), other in zip(found, arrays, larger, strict=True):
            name = jax.tree_util.keystr(path)
            # The window of the stopping rules is longer for more variables.
            split = array.ndim > 0 and other.shape[0] > array.shape[0] and "rule_state" not in name
            assert tuple(sharding.spec) == (("n",) if split else ()), name


# --- One small program, compiled once, for everything else ----------------------------------------

SMALL = {"w": np.full((2, 2), 1.0, np.float32), "b": np.zeros(2, np.float32)}
LOOSE = fmnes.Stopping(tolx=0.2, flat=3, infeasible=4)


@pytest.fixture(scope="module")
def small(jax, fj):
    """(init, ask, tell) of one small search, under jit."""

    def init(key, w=SMALL["w"]):
        x0 = {"w": w, "b": SMALL["b"]}
        return fj.init(key, x0, 0.5, method="cr-fm-nes", ftarget=1e-3, stopping=LOOSE)

    return jax.jit(init), jax.jit(fj.ask), jax.jit(fj.tell)


def sphere(x):
    return (x["w"] ** 2).sum(axis=(-1, -2)) + (x["b"] ** 2).sum(axis=-1)


def told_values(kind, popsize, generation):
    number = np.arange(popsize, dtype=float)
    return {
        "flat": np.ones(popsize),
        "then flat": number if generation == 0 else np.ones(popsize),
        "nan": np.full(popsize, np.nan),
        "infeasible": np.full(popsize, np.inf),
        "some": np.where(number % 3 == 0, np.inf, np.where(number % 3 == 1, np.nan, number)),
        "unbounded": np.where(number == 3, -np.inf, number),
        "target": number * 1e-3,
        "far": 100 + number,
    }[kind]


@pytest.mark.parametrize(
    "kind", ["flat", "then flat", "nan", "infeasible", "some", "unbounded", "target", "far"]
)
def test_reasons_are_those_of_an_optimizer(jax, small, kind):
    init, _, tell = small
    search = init(key_of(jax, 5))
    x0 = np.concatenate([SMALL["b"], SMALL["w"].ravel()])
    options = {"method": "cr-fm-nes", "ftarget": 1e-3, "stopping": LOOSE}
    opt = fmnes.Optimizer(x0, 0.5, rng=5, **options)
    for number in range(8):
        values = told_values(kind, opt.popsize, number)
        opt.ask()
        opt.tell(values)
        search, metrics = tell(search, values)
        flags = {name.replace("_", "-") for name, flag in metrics.reasons._asdict().items() if flag}
        assert flags == {name.replace("_", "-") for name in opt.stop()}, number
        assert bool(metrics.stop) == bool(search.stopped) == bool(flags)
        last = opt.record.last
        assert (int(metrics.feasible), int(metrics.failed)) == (last.feasible, last.nan)
        np.testing.assert_equal(float(metrics.median), last.median)
        np.testing.assert_equal(float(metrics.best), opt.record.best_f)


def test_convergence_is_a_reason(jax, small):
    init, ask, tell = small
    search = init(jax.random.key(1), np.full((2, 2), 100.0, np.float32))
    while not search.stopped:
        search, metrics = tell(search, sphere(ask(search)))
    assert metrics.reasons.ftarget or metrics.reasons.tolx


def test_vmap_runs_searches_with_restarts_as_one_by_one(jax, fj, small):
    """A search that has stopped starts again from its own point, with other draws."""
    init, ask, tell = small
    starts = jax.numpy.stack([jax.numpy.full((2, 2), 0.2 * n) for n in range(1, 4)])
    starts = starts.astype("float32")
    keys = jax.random.split(jax.random.key(7), 3)

    def step(search, w):
        search, metrics = fj.tell(search, sphere(fj.ask(search)))
        again = {"w": w, "b": SMALL["b"]}
        return fj.restart(search, again, 0.5, when=metrics.stop), metrics

    together = jax.jit(jax.vmap(step))
    searches, runs = jax.vmap(init)(keys, starts), []
    for _ in range(60):
        searches, metrics = together(searches, starts)
        runs.append(metrics.stop)
    stops = np.sum(runs, axis=0)
    assert stops.min() > 0
    again = jax.jit(lambda search, w: fj.restart(search, {"w": w, "b": SMALL["b"]}, 0.5))
    for n in range(3):
        search = init(keys[n], starts[n])
        for number in range(60):
            search, metrics = tell(search, sphere(ask(search)))
            assert bool(metrics.stop) == bool(runs[number][n])
            search = again(search, starts[n]) if metrics.stop else search
        same = jax.tree.map(lambda leaf, n=n: leaf[n], searches)
        assert np.array_equal(search.words, same.words)
        assert int(search.words[3]) >> 12 == 2 * stops[n]  # the stream of the run
        np.testing.assert_allclose(same.state.mean, search.state.mean, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(same.best_f, search.best_f, rtol=1e-3)


@pytest.mark.parametrize("method", ["auto", "snes"])
def test_restarts_of_other_methods_under_vmap(jax, fj, method):
    """auto has its 64 axes here; together and one by one, the same searches start again."""
    starts = jax.numpy.asarray([[0.5, 0.5, 0.5], [2.0, 2.0, 2.0]])

    def run(key, x0):
        search = fj.init(key, x0, 0.3, method=method, ftarget=0.1)

        def step(search, _):
            search, metrics = fj.tell(search, jax.numpy.sum(fj.ask(search) ** 2, axis=1))
            return fj.restart(search, x0, 0.3, when=metrics.stop), metrics.stop

        search, stopped = jax.lax.scan(step, search, length=30)
        return search.state.mean, search.best_f, stopped.sum()

    keys = jax.random.split(jax.random.key(3), 2)
    together = jax.jit(jax.vmap(run))(keys, starts)
    compiled = jax.jit(run)
    alone = [compiled(key, x0) for key, x0 in zip(keys, starts, strict=True)]
    for mine, others in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(mine, np.stack(others), rtol=1e-8)
    assert together[2].min() >= 1
    assert together[1].max() <= 0.1


def test_a_while_loop_stops_by_itself(jax, fj, small):
    init, _, _ = small

    def body(search):
        return fj.tell(search, sphere(fj.ask(search)))[0]

    run = jax.jit(lambda s: jax.lax.while_loop(lambda s: ~s.stopped, body, s))
    search = run(init(jax.random.key(2)))
    assert search.stopped
    assert 0 < search.generation < 200


def test_some_candidates_are_rows_of_all(jax, fj, small):
    init, ask, _ = small
    search = init(jax.random.key(3))
    all_ = ask(search)
    some = jax.jit(fj.ask, static_argnames="count")(search, search.popsize - 3, count=3)
    for name, rows in some.items():
        np.testing.assert_allclose(rows, all_[name][-3:], rtol=1e-6, atol=1e-7)


def test_parameters_keep_their_shapes_and_dtypes(jax, fj):
    x0 = {
        "scalar": 0.5,
        "half": np.ones((2, 3), np.float16),
        "brain": jax.numpy.ones(4, "bfloat16"),
        "list": [np.zeros((1, 2, 1), np.float32), np.zeros(0, np.float32)],
    }
    sigma0 = {"scalar": 1.0, "half": np.full((2, 3), 2.0), "brain": 3.0, "list": [4.0, 1.0]}
    with jax.enable_x64(False):
        search = jax.jit(lambda key: fj.init(key, x0, sigma0, method="snes"))(jax.random.key(1))
        assert search.dim == 1 + 6 + 4 + 2
        assert search.state.mean.dtype == "float32"
        for tree, lead in ((jax.jit(fj.ask)(search), (search.popsize,)), (fj.best(search), ())):
            jax.tree.map(
                lambda leaf, old, lead=lead: np.testing.assert_equal(
                    (leaf.shape, leaf.dtype),
                    (lead + np.shape(old), jax.numpy.result_type(old)),
                ),
                tree,
                x0,
            )
        # Leaves are in the order of their names: "brain", "half", "list", "scalar".
        np.testing.assert_allclose(search.initial, [3] * 4 + [2] * 6 + [4] * 2 + [1], rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x0": {"n": np.arange(3)}}, r"x0\['n'\]: expected floating-point numbers, got int"),
        ({"x0": np.zeros(0)}, "x0: expected at least one number"),
        ({"x0": {"n": np.array([0.0, np.nan])}}, r"x0\['n'\]: expected finite numbers, got nan"),
        ({"sigma0": 0.0}, "sigma0: expected finite numbers > 0, got 0.0"),
        ({"sigma0": {"a": 1.0}}, "sigma0: expected a number, or the structure"),
        ({"popsize": 7}, "popsize: expected an even number"),
        ({"method": "adam"}, "method: expected one of"),
        ({"stopping": 3}, "stopping: expected fmnes.Stopping"),
        ({"ftarget": "low"}, "ftarget: expected a number"),
    ],
)
def test_wrong_arguments_of_init(jax, fj, change, message):
    arguments = {"x0": np.zeros(3), "sigma0": 1.0, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        fj.init(jax.random.key(0), **arguments)


def test_wrong_arguments_of_the_others(jax, fj, small):
    init, _, _ = small
    search = init(jax.random.key(1))
    with pytest.raises(ValueError, match=r"values: expected an array of shape \(10,\)"):
        fj.tell(search, np.zeros(3))
    with pytest.raises(TypeError, match="values: expected real numbers, got complex"):
        fj.tell(search, np.zeros(10) * 1j)
    with pytest.raises(ValueError, match="x0: expected the structure"):
        fj.restart(search, np.zeros(6), 1.0)
    with pytest.raises(ValueError, match=r"key: expected one key, got keys of shape \(2,\)"):
        fj.init(jax.random.split(jax.random.key(0)), np.zeros(3), 1.0)


def test_older_keys_are_seeds_too(jax, fj):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = jax.random.PRNGKey(9)
    a, b = (fj.init(key, np.zeros(3), 1.0) for key in (old, jax.random.key(9)))
    assert np.array_equal(a.words, b.words)
    assert a.words[0] == 9
