"""Integer variables: values, the margin and its equations, and problems of integers."""

import math
from statistics import NormalDist

import array_api_strict
import numpy as np
import pytest

import fmnes
from fmnes.variables.discrete import Discrete, least_probability

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


LIBRARIES = [
    *(("numpy", dtype) for dtype in ("float32", "float64")),
    *(("array_api_strict", dtype) for dtype in ("float32", "float64")),
    *(pytest.param("torch", dtype, marks=pytest.mark.arrays) for dtype in ("float32", "float64")),
    # JAX has float64 only after a switch for the whole process.
    pytest.param("jax.numpy", "float32", marks=pytest.mark.arrays),
]


@pytest.mark.parametrize(("library", "dtype"), LIBRARIES)
def test_any_array_library(library, dtype):
    xp = pytest.importorskip(library)
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
    """A binary variable, one of eight values, a real, and choices of three and of four options."""
    low, high = np.array([0.0, -3, 0, 0, 0]), np.array([1.0, 4, 0, 0, 0])
    is_integer = np.array([1, 1, 0, 0, 0], bool)
    like = xp.zeros(5, dtype=xp.float64)
    return Discrete.build(xp, like, low, high, is_integer, ((3, 3), (4, 4)))


def transcribed_margin(centre, deviations):
    """(2) and (3) of `variables.discrete`, variable by variable."""
    alpha = 1 - 0.73 ** (1 / 4)
    centre, s = [*centre[:2], 0, 0, 0], [*deviations[:3], 1.0, 1.0]
    for j, low, high, tail in ((0, 0, 1, alpha), (1, -3, 4, alpha / 2)):
        q = NORMAL.inv_cdf(1 - tail)
        s[j] = max(s[j], 1 / (2 * q))
        centre[j] = min(max(centre[j], low + 0.5 - q * s[j]), high - 0.5 + q * s[j])
    return centre, s


def transcribed_shift(centre, s, e, w):
    """(5) of `variables.discrete`, candidate by candidate."""
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
    return shift


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_the_margin_and_what_the_centre_learns_are_the_equations(xp):
    rng, discrete = np.random.default_rng(1), records(xp)
    for _ in range(50):
        centre, deviations = 3 * rng.standard_normal(5), np.exp(2 * rng.standard_normal(5))
        kept, scale = discrete.kept(xp.asarray(centre), xp.asarray(deviations))
        expected, s = transcribed_margin(centre, deviations)
        np.testing.assert_allclose(np.asarray(kept), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.asarray(scale) * deviations, s, rtol=1e-12)
        e = expected + np.asarray(s) * rng.standard_normal((6, 5))
        w = rng.dirichlet(np.ones(6))
        shift = discrete.shift(kept, xp.asarray(np.asarray(s)), xp.asarray(e), xp.asarray(w))
        # The normal distribution function is an approximation to 3e-4.
        reference = np.array(transcribed_shift(expected, s, e, w))
        np.testing.assert_allclose(np.asarray(shift), reference, rtol=3e-3, atol=3e-3)


def test_every_integer_leaves_its_value_with_the_promised_probability():
    """Wherever the centre is and however small the deviations are."""
    rng, discrete, alpha = np.random.default_rng(1), records(), least_probability(4)
    for size in np.logspace(-12, 3, 60):
        centre, deviations = 4 * rng.standard_normal(5), np.full(5, size)
        centre, scale = discrete.kept(centre, deviations)
        s = scale * deviations
        for j, low, high in ((0, 0, 1), (1, -3, 4)):
            v = min(max(round(centre[j]), low), high)
            law = NormalDist(centre[j], s[j])
            below = law.cdf(v - 0.5) if v > low else 0.0
            above = 1 - law.cdf(v + 0.5) if v < high else 0.0
            least = alpha if low < v < high or high - low == 1 else alpha / 2
            assert below + above >= 0.999 * least


def wide(low=-3, high=16):
    bounds = np.array([float(low)]), np.array([float(high)])
    return Discrete.build(np, np.zeros(1), *bounds, np.array([True]))


def test_nine_or_more_values_mirror_at_the_ends_of_the_range():
    walk = [*range(-3, 17), *range(16, -4, -1)]  # there and back, both ends twice
    e = np.arange(-3.0 - 40, -3.0 + 80)[:, None]
    assert wide().rounded(e)[:, 0].tolist() == walk * 3
    few = Discrete.build(np, np.zeros(1), np.zeros(1), np.full(1, 7.0), np.array([True]))
    assert few.rounded(np.array([[-9.0], [3.2], [12.0]]))[:, 0].tolist() == [0, 3, 7]


def test_mirrored_integers_keep_their_margin_and_learn_by_the_equations():
    rng, discrete = np.random.default_rng(1), wide()
    alpha = least_probability(1)
    for size in np.exp(rng.uniform(-9, 4, 200)):
        centre, scale = discrete.kept(30 * rng.standard_normal(1), np.array([size]))
        s = scale * size
        assert s <= 10  # half the number of values
        v = discrete.rounded(centre)[0]
        e = (centre + s * rng.standard_normal(100_000)[:, None])[:, 0]
        same = discrete.rounded(e[:, None])[:, 0] == v
        assert np.mean(~same) > 0.98 * alpha / 2
        # Thresholds by search: the numbers around the centre at which the value changes.
        grid = centre[0] + np.arange(-2.2, 2.2, 1e-4)
        equal = discrete.rounded(grid[:, None])[:, 0] == v
        a = grid[: len(grid) // 2][~equal[: len(grid) // 2]].max()
        b = grid[len(grid) // 2 :][~equal[len(grid) // 2 :]].min()
        law, w = NormalDist(centre[0], s[0]), np.full(9, 1 / 9)
        inside = s[0] ** 2 * (law.pdf(a) - law.pdf(b)) / (law.cdf(b) - law.cdf(a))
        moves = np.where(same[:9], inside, e[:9] - centre[0])
        shift = discrete.shift(centre, s, e[:9, None], w)
        np.testing.assert_allclose(shift[0], moves.mean(), rtol=5e-3, atol=5e-3 * max(1, s[0]))


@pytest.mark.parametrize("centre", [-30.0, -4.0, 3.0, 18.0, 31.0])
def test_the_image_of_a_value_that_is_nearest_to_the_centre(centre):
    discrete = wide()
    margin = discrete.start(np.zeros(1), np.ones(1))
    margin = margin._replace(centre=np.array([centre]), scale=np.array([2.0]))
    for value in range(-3, 17):
        y = discrete.search_of(margin, np.ones(1), np.array([float(value)]))
        e = discrete.latent(margin, np.ones(1), y)
        assert discrete.rounded(e)[0] == value
        assert abs(e[0] - centre) < 20


@pytest.mark.parametrize("method", ["auto", "cr-fm-nes", "sep-cma", "vd-cma"])
@pytest.mark.parametrize(("most", "optimum"), [(100, 1), (1000, 999), (10_000, 100), (1000, 0)])
def test_an_optimum_near_the_end_of_a_wide_range_is_found(method, most, optimum):
    """Without the mirrors, the search ends on the plateau beyond the range, with success."""
    for dim in (1, 5, 20):
        result = fmnes.minimize(
            lambda x: ((x - optimum) ** 2).sum(axis=-1),
            *([most / 2] * dim,),
            bounds=[(0, most)] * dim,
            integrality=1,
            method=method,
            vectorized=True,
            ftarget=0,
            maxfevals=1500 + 300 * dim,
            rng=1,
        )
        assert result.fun == 0, dim


def test_the_centre_stays_where_it_is_on_average_without_selection():
    """Equal weights for many candidates: the expectation of (5) is 0."""
    rng, discrete = np.random.default_rng(1), records()
    centre, s = np.array([0.2, 1.3, 0, 0, 0]), np.array([0.4, 0.3, 1, 1, 1])
    count = 400_000
    e = centre + s * rng.standard_normal((count, 5))
    shift = discrete.shift(centre, s, e, np.full(count, 1 / count))
    assert np.abs(shift).max() < 3e-3


def test_latent_numbers_are_those_of_the_search_for_reals():
    discrete = records()
    margin = discrete.start(np.array([0.0, 0, 0, -1, 2]), np.ones(5))
    margin = margin._replace(centre=np.array([5.0, 5, 0, 0, 0]), scale=np.full(5, 2.0))
    y = np.array([0.0, 1, 2, -3, 4])
    assert discrete.latent(margin, np.ones(5), y).tolist() == [3, 5, 2, 0, 3]
    assert discrete.latent_mean(margin, np.ones(5))[[0, 1, 2, 4]].tolist() == [5, 5, 1, 2]


# === Problems ===


@pytest.mark.parametrize("method", METHODS)
def test_one_max(method):
    target = np.random.default_rng(5).integers(0, 2, 100)
    more = {"bounds": [(0, 1)] * 100, "integrality": 1, "vectorized": True, "rng": 1}
    more |= {"ftarget": 0, "maxfevals": 8000, "stopping": fmnes.Stopping(tolx=0, tolfun=0)}
    assert fmnes.minimize(one_max(target), np.full(100, 0.5), method=method, **more).success


@pytest.mark.parametrize("method", ["auto", "cr-fm-nes"])
def test_one_max_with_a_thousand_binaries(method):
    target = np.random.default_rng(5).integers(0, 2, 1000)
    more = {"bounds": [(0, 1)] * 1000, "integrality": 1, "vectorized": True, "rng": 2}
    more |= {"ftarget": 0, "maxfevals": 40_000, "method": method}
    assert fmnes.minimize(one_max(target), np.full(1000, 0.5), **more).success


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


@pytest.mark.parametrize("x0", [0.5, 0.6, 1.4, 1.8])
@pytest.mark.parametrize("bound", [(0.5, 1.8), (0.5, 2.8), (-0.2, 9.7)])
def test_x0_between_a_bound_and_the_first_integer_inside(bound, x0):
    """x0 lies inside the bounds, and is rounded to an integer inside."""
    seen = []

    def fun(x):
        seen.append(x.copy())
        return float((x**2).sum())

    options = {"bounds": [bound, (-2, 2)], "integrality": [1, 0], "maxiter": 5, "rng": 1}
    result = fmnes.minimize(fun, [x0, 1.0], 0.5, **options)
    low, high = np.ceil(bound[0]), np.floor(bound[1])
    assert any(np.array_equal(x, [np.clip(np.round(x0), low, high), 1.0]) for x in seen)
    assert all(x[0] == np.round(x[0]) and low <= x[0] <= high for x in seen)
    assert low <= result.mean[0] <= high
    with pytest.raises(ValueError, match=r"got x0\[0\] = 10.0 outside \["):
        fmnes.minimize(fun, [10, 1], 0.5, **options)
