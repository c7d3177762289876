"""Bounds: what is evaluated and returned lies inside, and optima on the boundary are found."""

import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import Bounds as SciPyBounds

import fmnes
from fmnes.variables.bounds import Box, Sides, read_bounds
from property_tests import examples


class Watched:
    """An objective that remembers the range of what it was asked to evaluate."""

    def __init__(self, fun):
        self.fun, self.low, self.high = fun, np.inf, -np.inf

    def __call__(self, x):
        self.low = np.minimum(self.low, x.min(axis=0))
        self.high = np.maximum(self.high, x.max(axis=0))
        return self.fun(x)


def sphere(x):
    return (x**2).sum(axis=-1)


def test_optimum_in_a_corner_of_100_variables():
    fun = Watched(sphere)
    result = fmnes.minimize(
        fun, np.full(100, 3.0), 1.0, bounds=[(1.0, 5.0)] * 100, vectorized=True, rng=1
    )
    assert result.fun - 100.0 <= 1e-8  # the true minimum: x = 1, f = 100
    assert result.success
    assert (fun.low >= 1.0).all()
    assert (fun.high <= 5.0).all()
    assert (result.x >= 1.0).all()
    assert (result.mean >= 1.0).all()


def test_half_of_the_bounds_active():
    d = 40
    optimum = np.where(np.arange(d) % 2, 2.0, 0.5)  # of the box [1, 4]^d: 2, and the bound 1
    fun = Watched(lambda x: sphere(x - optimum))
    result = fmnes.minimize(fun, np.full(d, 3.0), 1.0, bounds=[(1, 4)] * d, vectorized=True, rng=2)
    assert result.fun - d / 2 * 0.25 <= 1e-8
    assert (fun.low >= 1).all()
    assert (fun.high <= 4).all()
    np.testing.assert_allclose(result.x, np.maximum(optimum, 1.0), atol=1e-5)


@pytest.mark.parametrize("sides", [(0.5, None), (None, -0.5), (0.5, np.inf), (-np.inf, -0.5)])
def test_one_sided(sides):
    d = 20
    start = 3.0 if sides[0] not in (None, -np.inf) else -3.0
    fun = Watched(sphere)
    result = fmnes.minimize(fun, np.full(d, start), 1.0, bounds=[sides] * d, vectorized=True, rng=3)
    assert result.fun - d * 0.25 <= 1e-8
    assert (np.abs(result.x) >= 0.5).all()
    assert min(np.abs(fun.low).min(), np.abs(fun.high).min()) >= 0.5


def test_optimum_on_a_face_of_a_badly_scaled_ellipsoid():
    d = 30
    scale = 1000.0 ** (np.arange(d) / (d - 1))
    optimum = np.zeros(d)
    optimum[[0, d // 2, d - 1]] = -1.0  # below the bound 0 in a flat, a middle, a steep direction
    low = np.full(d, -5.0)
    low[[0, d // 2, d - 1]] = 0.0
    result = fmnes.minimize(
        lambda x: sphere(scale * (x - optimum)),
        np.full(d, 3.0),
        1.0,
        bounds=fmnes.Bounds(low, 5.0),
        vectorized=True,
        rng=4,
    )
    true = sphere(scale * (np.maximum(optimum, low) - optimum))
    assert (result.fun - true) / true <= 1e-12
    assert result.x[0] >= 0.0


@pytest.mark.parametrize("function", ["sphere", "ellipsoid", "rosenbrock"])
def test_a_box_that_is_never_touched_costs_nothing(function):
    problem = fmnes.problems.PROBLEMS[function](20)
    counts = {}
    for bounds in (None, [(-1e3, 1e3)] * 20):
        results = [
            fmnes.minimize(
                problem,
                problem.x0,
                problem.sigma0,
                bounds=bounds,
                ftarget=1e-8,
                maxfevals=200_000,
                vectorized=True,
                rng=seed,
            )
            for seed in range(3)
        ]
        counts[bounds is None] = sum(r.nfev for r in results)
    assert counts[False] <= 1.1 * counts[True]
    assert counts[False] == counts[True]  # the map is the identity there


def test_equal_bounds_take_a_variable_out_of_the_search():
    seen = []

    def fun(x):
        seen.append(x[:, 1].copy())
        return sphere(x - np.array([1.0, 0.0, 2.0]))

    bounds = [(-5, 5), (0.7, 0.7), (-5, 5)]
    opt = fmnes.Optimizer([0.0, 0.7, 0.0], 1.0, bounds=bounds, rng=1)
    assert opt.ask().shape[1] == 3
    assert opt.setup.mean.shape == (2,)
    result = fmnes.minimize(fun, [0.0, 0.7, 0.0], 1.0, bounds=bounds, vectorized=True, rng=1)
    assert all((column == 0.7).all() for column in seen)
    np.testing.assert_allclose(result.x, [1.0, 0.7, 2.0], atol=1e-6)


def test_forms_of_bounds_agree():
    low, high = np.array([-1.0, -np.inf, 0.0]), np.array([1.0, 2.0, np.inf])
    forms = [
        [(-1, 1), (None, 2), (0, None)],
        np.stack([low, high], axis=1),
        fmnes.Bounds(low, high),
        SciPyBounds(low, high),
        [[-1, 1], [-np.inf, 2], [0, np.inf]],
    ]
    for form in forms:
        np.testing.assert_array_equal(read_bounds(form, 3)[0], low)
        np.testing.assert_array_equal(read_bounds(form, 3)[1], high)
    np.testing.assert_array_equal(read_bounds(fmnes.Bounds(ub=3.0), 2)[1], [3.0, 3.0])


@pytest.mark.parametrize("side", [list, np.array])
def test_two_lists_for_two_variables_are_refused_because_they_have_two_meanings(side):
    # As pairs, the first variable lies in [-5, 0]; as lower and upper bounds, in [-5, 5].
    bounds = (side([-5.0, 0.0]), side([5.0, 10.0]))
    with pytest.raises(ValueError, match=r"bounds: .*pairs.*fmnes\.Bounds"):
        fmnes.minimize(sphere, [-1.0, 6.0], 1.0, bounds=bounds)
    for pairs in ([(-5, 0), (5, 10)], ((-5, 0), (5, 10)), [[-5, 0], [5, 10]], np.array(bounds)):
        np.testing.assert_array_equal(read_bounds(pairs, 2).low, [-5.0, 5.0])


@given(
    low=st.floats(-100, 99),
    width=st.floats(1e-3, 100),
    deviation=st.floats(1e-3, 100),
    kind=st.sampled_from(["both", "low", "high"]),
    y=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
)
def test_the_map_stays_inside_and_has_an_inverse(low, width, deviation, kind, y):
    lo = np.array([low if kind != "high" else -np.inf])
    hi = np.array([low + width if kind != "low" else np.inf])
    like = np.zeros(1)
    xp = array_namespace(like)
    box = Box.build(xp, like, Sides(lo, hi), np.array([deviation]))
    x = box.to_user(xp, np.array(y)[:, None])
    assert ((x >= lo) & (x <= hi)).all()
    back = box.to_user(xp, box.to_search(xp, x))
    np.testing.assert_allclose(back, x, rtol=1e-12, atol=1e-12 * (1 + abs(low) + width))
    # identity away from the faces, continuous slope at the seam
    margin = float(box.margin[0])
    inside = np.array([[np.maximum(lo, -1e3)[0] + 1.5 * margin]])
    if kind != "both" or width > 4 * margin:
        assert box.to_user(xp, inside)[0, 0] == inside[0, 0]


def test_the_slope_is_continuous_at_the_seam():
    like = np.zeros(1)
    xp = array_namespace(like)
    box = Box.build(xp, like, Sides(np.array([1.0]), np.array([5.0])), np.array([2.0]))
    for seam in (1.4, 4.6):  # margin 0.4
        y = seam + np.array([-1e-6, 0.0, 1e-6])[:, None]
        x = box.to_user(xp, y)[:, 0]
        slopes = np.diff(x) / 1e-6
        np.testing.assert_allclose(slopes, 1.0, atol=2e-6)


# --- sigma0 from the bounds -----------------------------------------------------------------------


def test_sigma0_is_a_sixth_of_the_range():
    """One range for each variable; a variable with equal bounds has none, and needs none."""
    bounds = [(-4.0, 5.0), (2.0, 2.0), (-1.0, 0.5)]
    x0 = [1.0, 2.0, 0.0]
    given = fmnes.minimize(sphere, x0, [1.5, 1.0, 0.25], bounds=bounds, rng=1, maxiter=30)
    result = fmnes.minimize(sphere, x0, bounds=bounds, rng=1, maxiter=30)
    np.testing.assert_array_equal(result.x, given.x)
    np.testing.assert_array_equal(result.history["sigma"], given.history["sigma"])
    opt = fmnes.Optimizer(x0, bounds=bounds)
    assert opt.result.sigma == pytest.approx(np.sqrt(1.5 * 0.25))


# --- Numbers of 32 bits, narrow boxes, large and small ones ---------------------------------------


def evaluated(x0, sigma0, bounds, slope=1.0, generations=100, **options):
    """All candidates on the way to a bound, in double precision."""
    opt = fmnes.Optimizer(x0, sigma0, bounds=bounds, rng=1, **options)
    seen = []
    for _ in range(generations):
        seen.append(opt.ask().astype(np.float64))
        opt.tell(slope * np.sum(seen[-1], axis=1))
        if opt.stop():
            break
    return np.concatenate([*seen, [opt.result.mean], [opt.result.x]])


@pytest.mark.parametrize("method", fmnes.METHODS)
def test_a_bound_that_float32_cannot_represent(method):
    """The float32 nearest to 0.1 is larger, the one nearest to 0.7 is smaller."""
    assert float(np.float32(0.1)) > 0.1
    assert float(np.float32(0.7)) < 0.7
    x = evaluated(np.full(3, 0.05, np.float32), 0.3, [(-1, 0.1)] * 3, slope=-1.0, method=method)
    assert x.max() <= 0.1
    x = evaluated(np.full(3, 0.8, np.float32), 0.3, [(0.7, 1)] * 3, method=method)
    assert x.min() >= 0.7


def test_a_narrow_box_in_float32():
    """Four numbers of 32 bits lie between these bounds, and all are reached."""
    x = evaluated(np.full(3, 300.0, np.float32), 1e-4, [(300, 300.0001)] * 3)
    assert np.isfinite(x).all()
    assert len(np.unique(x)) == 4
    assert x.min() >= 300
    assert x.max() <= 300.0001


@pytest.mark.parametrize(
    ("bounds", "fixed"), [((300, 300.00001), 300.0), ((0.1, 0.1), float(np.float32(0.1)))]
)
def test_one_number_between_the_bounds_fixes_a_variable(bounds, fixed):
    x0 = np.array([fixed, 0.0], np.float32)
    x = evaluated(x0, 1.0, [bounds, (-9, 9)], generations=20)
    assert (x[:, 0] == fixed).all()
    assert len(np.unique(x[:, 1])) > 50


@st.composite
def boxes(draw):
    """A type of numbers, a pair of bounds, a point inside, and an initial standard deviation.

    Bounds and deviations range over all scales that a search can hold, and boxes may be so narrow
    that few numbers lie inside.
    """
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    limit = 15 if dtype is np.float32 else 145  # as a power of ten
    size = 10.0 ** draw(st.floats(-limit, limit))
    low = size * draw(st.sampled_from([-1.0, -0.1, 0.0, 0.1, 1.0]))
    width = size * 10.0 ** draw(st.floats(np.log10(np.finfo(dtype).eps), 0))
    deviation = width * 10.0 ** draw(st.floats(-2, 4))
    assume(10.0**-limit < min(deviation, width / 10))  # smaller ones are refused
    high = low + width
    kind = draw(st.sampled_from(["both", "low", "high"]))
    x0 = dtype(draw(st.sampled_from([low, high, low + width / 2])))
    assume(low <= float(x0) <= high)
    assume(deviation > 2 * np.finfo(dtype).eps * max(abs(low), abs(high)))
    return dtype, (None if kind == "high" else low, None if kind == "low" else high), x0, deviation


@given(box=boxes(), method=st.sampled_from(list(fmnes.METHODS)))
@examples(150)
def test_all_candidates_lie_inside(box, method):
    """In both types of numbers; warnings are errors here, so nothing overflows either."""
    dtype, (low, high), x0, deviation = box
    bounds = [(low, high), (None, None)]
    start = np.array([x0, 0.0], dtype)
    opt = fmnes.Optimizer(start, deviation, bounds=bounds, method=method, rng=1)
    for _ in range(4):
        x = opt.ask().astype(np.float64)
        assert np.isfinite(x).all()
        assert (x[:, 0] >= (-np.inf if low is None else low)).all()
        assert (x[:, 0] <= (np.inf if high is None else high)).all()
        opt.tell(np.abs(x[:, 0] / deviation))
    for point in (opt.result.x, opt.result.mean):
        assert (-np.inf if low is None else low) <= float(point[0])
        assert float(point[0]) <= (np.inf if high is None else high)


def test_a_far_bound_changes_nothing_and_warns_of_nothing():
    """The square of the distance to these bounds is no finite number of 32 bits."""
    x0 = np.full(3, 3.0, np.float32)
    for bounds in ([(-1e30, 1e30)] * 3, [(-1e30, None)] * 3):
        np.testing.assert_array_equal(evaluated(x0, 1.0, bounds), evaluated(x0, 1.0, None))


def test_deviations_near_a_bound():
    """Against the variance of samples: far from the bound, on the parabola, and at its vertex."""
    d, margin = 3, 0.5
    sides = Sides(np.zeros(d), np.full(d, np.inf))
    box = Box.build(np, np.zeros(d), sides, np.full(d, margin))
    y, deviations = np.array([3.0, 0.25, -0.5]), np.array([0.02, 0.05, 0.05])
    z = np.random.default_rng(1).standard_normal((200_000, d))
    sampled = box.to_user(np, y + deviations * z).std(axis=0)
    np.testing.assert_allclose(box.deviations_to_user(np, y, deviations), sampled, rtol=0.01)
