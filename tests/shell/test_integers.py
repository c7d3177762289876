"""Integer variables: values, the margin and its equations, and problems of integers."""

import math
from statistics import NormalDist

import array_api_strict
import numpy as np
import pytest

import fmnes
from fmnes._discrete import Discrete, Margin, least_probability

NORMAL = NormalDist()
METHODS = ["auto", "cr-fm-nes", "sep-cma", "vd-cma"]
BOUNDS = [(0, 1), (-3, 4), (0.5, 2.5), (-5.0, 5.0), (7, 7)]
INTEGRALITY = [1, 1, 1, 0, 1]


def one_max(target):
    return lambda x: np.abs(x - target).sum(axis=-1)


def mixed(x):
    """A quadratic bowl whose optimum is (1, -2, 2, 0.3, 7)."""
    return ((x - [1, -2, 2, 0.3, 7]) ** 2 * [1, 1, 3, 10, 1]).sum(axis=-1)


# === Values ===


@pytest.mark.parametrize("method", fmnes.METHODS)
def test_every_method_searches_among_integers(method):
    opt = fmnes.Optimizer(
        [0, 0, 1, 0.0, 7], method=method, bounds=BOUNDS, integrality=INTEGRALITY, rng=1
    )
    low, high = np.array([0, -3, 1, -5, 7]), np.array([1, 4, 2, 5, 7])
    seen = []
    while opt.nit < 120:
        x = opt.ask()
        seen.append(x)
        opt.tell(mixed(x))
    x = np.concatenate(seen)
    assert ((low <= x) & (x <= high)).all()
    whole = x[:, [0, 1, 2, 4]]
    assert (whole == np.round(whole)).all()
    assert (x[:, 3] != np.round(x[:, 3])).any()
    for j, values in ((0, {0, 1}), (1, {-3, -2, -1, 0}), (2, {1, 2})):
        assert values <= set(x[:, j])
    assert opt.result.fun == mixed(opt.result.x)
    assert opt.result.x[[0, 1, 2, 4]].tolist() == [1, -2, 2, 7]
    assert (opt.result.mean[:3] == np.round(opt.result.mean[:3])).all()
    assert opt.result.stds[4] == 0


@pytest.mark.parametrize("method", METHODS)
def test_without_integers_nothing_changes(method):
    def run(**more):
        return fmnes.minimize(mixed, [0.5] * 5, 1.0, method=method, maxiter=30, rng=1, **more)

    plain, zeros = run(), run(integrality=np.zeros(5))
    assert plain.x.tobytes() == zeros.x.tobytes()
    assert plain.mean.tobytes() == zeros.mean.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy", "array_api_strict"])
def test_any_array_library(library, dtype):
    xp = pytest.importorskip(library)
    if library == "jax.numpy" and dtype == "float64":
        pytest.skip("JAX has float64 only after a switch for the whole process")
    x0 = xp.asarray([0.0, 0, 1, 0.0, 7], dtype=getattr(xp, dtype))
    opt = fmnes.Optimizer(x0, bounds=BOUNDS, integrality=INTEGRALITY, rng=1)
    for _ in range(10):
        x = opt.ask()
        assert x.dtype == x0.dtype
        opt.tell(mixed(np.asarray(x, dtype=np.float64)))
        whole = np.asarray(x)[:, [0, 1, 2, 4]]
        assert (whole == np.round(whole)).all()
    assert opt.result.fun < mixed(np.array([0.0, 0, 1, 0, 7]))
    assert type(opt.result.x) is type(x0)


# === Equations ===


def records(xp=np):
    """A binary variable, one of eight values, a real, and choices of two and of three options."""
    low, high = np.array([0.0, -3, 0, 0, 0, 0, 0, 0]), np.array([1.0, 4, 0, 0, 0, 0, 0, 0])
    is_integer = np.array([1, 1, 0, 0, 0, 0, 0, 0], bool)
    like = xp.zeros(8, dtype=xp.float64)
    return Discrete.build(xp, like, low, high, is_integer, ((3, 4), (5, 6, 7)))


def transcribed_margin(centre, deviations):
    """(2), (3) and (4) of `_discrete`, variable by variable."""
    alpha = 1 - 0.73 ** (1 / 4)
    centre, s = list(centre), list(deviations)
    for j, low, high, tail in ((0, 0, 1, alpha), (1, -3, 4, alpha / 2)):
        q = NORMAL.inv_cdf(1 - tail)
        s[j] = max(s[j], 1 / (2 * q))
        centre[j] = min(max(centre[j], low + 0.5 - q * s[j]), high - 0.5 + q * s[j])
    for options in ((3, 4), (5, 6, 7)):
        q = NORMAL.inv_cdf(1 - alpha / (len(options) - 1))
        leader = max(centre[k] for k in options)
        for k in options:
            s[k] = 1.0
            centre[k] = -min(leader - centre[k], q * math.sqrt(2))
    return centre, s


def transcribed_shift(centre, s, e, w):
    """(5) and (6) of `_discrete`, candidate by candidate."""
    shift = [0.0] * len(centre)
    for weight, row in zip(w, e, strict=True):
        for j, low, high in ((0, 0, 1), (1, -3, 4)):
            v = min(max(round(centre[j]), low), high)
            if min(max(round(row[j]), low), high) != v:
                shift[j] += weight * (row[j] - centre[j])
                continue
            a = -math.inf if v == low else (v - 0.5 - centre[j]) / s[j]
            b = math.inf if v == high else (v + 0.5 - centre[j]) / s[j]
            mass = NORMAL.cdf(b) - NORMAL.cdf(a)
            shift[j] += weight * s[j] * (NORMAL.pdf(a) - NORMAL.pdf(b)) / mass
        for options in ((3, 4), (5, 6, 7)):
            leader = max(options, key=lambda k: centre[k])
            winner = max(options, key=lambda k: row[k])
            if winner != leader:
                shift[leader] += weight * (row[leader] - centre[leader])
                shift[winner] += weight * (row[winner] - centre[winner])
                continue
            for k in set(options) - {leader}:
                g = (centre[leader] - centre[k]) / math.sqrt(2)
                pull = NORMAL.pdf(g) / NORMAL.cdf(g) / math.sqrt(2)
                shift[leader] += weight * pull
                shift[k] -= weight * pull
    return shift


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_the_margin_and_what_the_centre_learns_are_the_equations(xp):
    rng, discrete = np.random.default_rng(1), records(xp)
    for _ in range(50):
        centre, deviations = 3 * rng.standard_normal(8), np.exp(2 * rng.standard_normal(8))
        kept, scale = discrete.kept(xp.asarray(centre), xp.asarray(deviations))
        expected, s = transcribed_margin(centre, deviations)
        np.testing.assert_allclose(np.asarray(kept), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.asarray(scale) * deviations, s, rtol=1e-12)
        e = expected + np.asarray(s) * rng.standard_normal((6, 8))
        w = rng.dirichlet(np.ones(6))
        shift = discrete.shift(kept, xp.asarray(np.asarray(s)), xp.asarray(e), xp.asarray(w))
        # The normal distribution function is an approximation to 3e-4.
        reference = np.array(transcribed_shift(expected, s, e, w))
        reference[2] = 0
        np.testing.assert_allclose(np.asarray(shift), reference, rtol=3e-3, atol=3e-3)


def test_every_integer_leaves_its_value_with_the_promised_probability():
    """Wherever the centre is and however small the deviations are."""
    rng, discrete, alpha = np.random.default_rng(1), records(), least_probability(4)
    for size in np.logspace(-12, 3, 60):
        centre, deviations = 4 * rng.standard_normal(8), np.full(8, size)
        centre, scale = discrete.kept(centre, deviations)
        s = scale * deviations
        for j, low, high in ((0, 0, 1), (1, -3, 4)):
            v = min(max(round(centre[j]), low), high)
            law = NormalDist(centre[j], s[j])
            below = law.cdf(v - 0.5) if v > low else 0.0
            above = 1 - law.cdf(v + 0.5) if v < high else 0.0
            least = alpha if low < v < high or high - low == 1 else alpha / 2
            assert below + above >= 0.999 * least


def test_the_centre_stays_where_it_is_on_average_without_selection():
    """Equal weights for many candidates: the expectation of (5) and (6) is 0."""
    rng, discrete = np.random.default_rng(1), records()
    centre, s = np.array([0.2, 1.3, 0, 0, -0.8, 0, -0.5, -2.0]), np.ones(8)
    s[:2] = 0.4, 0.3
    count = 400_000
    e = centre + s * rng.standard_normal((count, 8))
    shift = discrete.shift(centre, s, e, np.full(count, 1 / count))
    # (6) looks at pairs of options, so that three options of similar chances are approximate.
    assert np.abs(shift[:5]).max() < 3e-3
    assert np.abs(shift[5:]).max() < 0.1


def test_latent_numbers_are_those_of_the_search_for_reals():
    discrete = records()
    margin = Margin(np.full(8, 5.0), np.full(8, 2.0), np.zeros(8))
    y = np.arange(8.0)
    assert discrete.latent(margin, np.ones(8), y).tolist() == [3, 5, 2, 9, 11, 13, 15, 17]


# === Problems ===


@pytest.mark.parametrize("method", METHODS)
def test_one_max(method):
    target = np.random.default_rng(5).integers(0, 2, 100)
    more = {"bounds": [(0, 1)] * 100, "integrality": 1, "vectorized": True, "rng": 1}
    more |= {"ftarget": 0, "maxfevals": 8000, "stopping": fmnes.Stopping(tolx=0, tolfun=0)}
    assert fmnes.minimize(one_max(target), np.full(100, 0.5), method=method, **more).success


def test_one_max_with_a_thousand_binaries():
    target = np.random.default_rng(5).integers(0, 2, 1000)
    more = {"bounds": [(0, 1)] * 1000, "integrality": 1, "vectorized": True, "rng": 2}
    more |= {"ftarget": 0, "maxfevals": 40_000}
    assert fmnes.minimize(one_max(target), np.full(1000, 0.5), method="sep-cma", **more).success


@pytest.mark.parametrize("method", ["auto", "cr-fm-nes"])
def test_reals_converge_beside_244_integers(method):
    """The problem of pycma#305: a sphere of 256 variables, of which 12 are real."""
    more = {"bounds": [(-5, 5)] * 256, "integrality": [1] * 244 + [0] * 12, "rng": 1}
    more |= {"ftarget": 1e-6, "maxfevals": 12_000, "vectorized": True, "method": method}
    assert fmnes.minimize(lambda x: (x**2).sum(axis=-1), [0.12] * 256, 0.2, **more).success


def test_queens_on_a_board_of_1024_squares():
    """Counts of each row and column should be 1, those of each diagonal at most 1."""
    n = 32
    row, column = np.divmod(np.arange(n * n), n)
    lines = [row, n + column, 2 * n + row + column, 5 * n - 2 + row - column]
    counts = np.zeros((6 * n - 2, n * n))
    for line in lines:
        counts[line, np.arange(n * n)] = 1

    def conflicts(x):
        queens = x @ counts.T
        off = np.abs(queens[:, : 2 * n] - 1).sum(axis=1)
        return off + np.maximum(queens[:, 2 * n :] - 1, 0).sum(axis=1)

    more = {"bounds": [(0, 1)] * n**2, "integrality": 1, "vectorized": True, "rng": 1}
    result = fmnes.minimize(conflicts, np.full(n * n, 1 / n), maxfevals=8000, **more)
    # One queen in each row and column, placed at random, has 16 conflicts in the median.
    assert result.fun < 16


def test_fewer_evaluations_than_cma_es_with_margin_of_the_package_cmaes():
    cmaes = pytest.importorskip("cmaes")
    dim, low, high = 20, -10, 10
    integrality = np.arange(dim) % 2
    scales = 10 ** (3 * np.arange(dim) / (dim - 1))

    def fun(x):
        return float((scales * (x - 3) ** 2).sum())

    start, bounds = np.full(dim, -6.0), np.array([[low, high]] * dim)
    peer = cmaes.CMAwM(start, 3.0, bounds, np.where(integrality == 1, 1.0, 0.0), seed=1)
    best, spent = math.inf, 0
    while best > 1e-6 and spent < 40_000:
        told = []
        for _ in range(peer.population_size):
            evaluated, x = peer.ask()
            told.append((x, fun(evaluated)))
        peer.tell(told)
        spent += len(told)
        best = min(best, *(value for _, value in told))
    more = {"bounds": bounds, "integrality": integrality, "ftarget": 1e-6, "rng": 1}
    result = fmnes.minimize(fun, start, 3.0, maxfevals=40_000, **more)
    assert result.success
    assert result.nfev < spent


# === Together with the rest ===


def search(**more):
    arguments = {"bounds": [(0, 9)] * 6, "integrality": [1, 1, 1, 0, 0, 0], "rng": 3}
    return fmnes.minimize(bowl, [4.0] * 6, **arguments, **more)


def bowl(x):
    return float(((x - [1, 8, 3, 2.5, 6.5, 4]) ** 2).sum())


def test_workers_restarts_and_resumed_runs_have_the_same_result(tmp_path):
    more = {"maxfevals": 600, "restarts": 1}
    plain = search(**more)
    assert plain.x[:3].tolist() == [1, 8, 3]
    np.testing.assert_array_equal(search(workers=2, **more).x, plain.x)
    path = tmp_path / "c.npz"
    search(checkpoint=path, maxfevals=200, restarts=1)
    resumed = search(checkpoint=path, **more)
    assert (resumed.fun, resumed.nfev) == (plain.fun, plain.nfev)
    np.testing.assert_array_equal(resumed.x, plain.x)
    with pytest.raises(ValueError, match="integrality or choices"):
        fmnes.minimize(
            bowl, [4.0] * 6, bounds=[(0, 9)] * 6, integrality=1, restarts=1, rng=3, checkpoint=path
        )


def test_a_saved_search_goes_on_with_identical_results(tmp_path):
    opt = fmnes.Optimizer([4.0] * 6, bounds=[(0, 9)] * 6, integrality=[1, 1, 1, 0, 0, 0], rng=3)
    for _ in range(10):
        opt.tell([bowl(x) for x in opt.ask()])
    opt.save(tmp_path / "s.npz")
    other = fmnes.Optimizer.load(tmp_path / "s.npz")
    for _ in range(10):
        np.testing.assert_array_equal(opt.ask(), other.ask())
        for one in (opt, other):
            one.tell([bowl(x) for x in one.ask()])
    np.testing.assert_array_equal(opt.result.x, other.result.x)


def test_rows_are_those_of_the_whole_population():
    opt = fmnes.Optimizer([4.0] * 6, bounds=[(0, 9)] * 6, integrality=[1, 1, 1, 0, 0, 0], rng=3)
    for _ in range(5):
        x = opt.ask()
        np.testing.assert_array_equal(opt.ask(rows=slice(2, 5)), x[2:5])
        np.testing.assert_array_equal(opt.population().rows(), x)
        opt.tell(x, [bowl(one) for one in x])


def test_the_first_point_is_rounded():
    seen = []
    fmnes.minimize(
        lambda x: seen.append(x.copy()) or bowl(x),
        [4.4] * 6,
        bounds=[(0, 9)] * 6,
        integrality=[1] * 3 + [0] * 3,
        maxiter=1,
        rng=1,
    )
    assert any(np.allclose(x, [4, 4, 4, 4.4, 4.4, 4.4]) for x in seen)
    assert all((x[:3] == np.round(x[:3])).all() for x in seen)


def test_constraints_with_integers():
    result = fmnes.minimize(
        *(lambda x: float(-x.sum()), [0.0] * 4),
        bounds=[(0, 9)] * 4,
        integrality=[1, 1, 1, 0],
        constraints={"type": "ineq", "fun": lambda x: 20.5 - x.sum()},
        maxfevals=3000,
        rng=1,
    )
    assert (result.x[:3] == np.round(result.x[:3])).all()
    assert result.fun == pytest.approx(-20.5, abs=0.05)
