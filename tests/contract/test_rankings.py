"""Whatever is told, the state stays finite until a rule with a name ends the search.

The tolerances are switched off, so that searches go where they would not be let: what is left
are the limits of the arithmetic (condition, scale, sigma-underflow, and a mean or a deviation
that can no longer be resolved).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fmnes
from contract.common import arrays, ellipsoid, sphere
from property_tests import examples

NEVER = 10**9
ENDLESS = fmnes.Stopping(
    tolx=0, tolfun=0, tolsigmaup=np.inf, flat=NEVER, stagnation=NEVER, infeasible=NEVER
)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def begin(method, dim, dtype, popsize=None, sigma0=2.0):
    x0 = np.full(dim, min(3.0, 3.0 * sigma0), dtype)  # near enough for sigma0 to be resolved
    return fmnes.Optimizer(x0, sigma0, method=method, rng=1, popsize=popsize, stopping=ENDLESS)


def directions(opt, x):
    """The candidates in units of the distribution along the coordinates, about the mean."""
    step = x.astype(np.float64) - opt._state.mean.astype(np.float64)
    return step / (np.max(np.abs(step)) or 1.0)


def obey(opt, adversary, generations):
    """Tell what an adversary says, until the generations are over or a rule ends the search."""
    for generation in range(generations):
        x = opt.ask()
        assert x.dtype == opt.setup.mean.dtype
        assert np.isfinite(x).all(), generation
        opt.tell(adversary(opt, x, generation))
        if held := opt.stop():
            return set(held)
        for name, value in arrays(opt._state).items():
            assert np.isfinite(value).all(), (generation, name)
    return set()


# --- Adversaries: each pulls the distribution one way for as long as it is let --------------------


def along(axis):
    return lambda opt, x, g: directions(opt, x)[:, axis]


def far(opt, x, g):
    return -sphere(directions(opt, x))


def near(opt, x, g):
    return sphere(directions(opt, x))


def stretch_one(opt, x, g):
    return -np.abs(directions(opt, x)[:, 0])


def squeeze_one(opt, x, g):
    return np.abs(directions(opt, x)[:, 0])


def stretch_all_together(opt, x, g):
    return -np.abs(np.sum(directions(opt, x), axis=1))


def squeeze_all_together(opt, x, g):
    return np.abs(np.sum(directions(opt, x), axis=1))


def breathe(opt, x, g):
    """In and out, slowly enough that every learning rate follows."""
    return (-1) ** (g // 20) * sphere(directions(opt, x))


def turn(opt, x, g):
    """Another coordinate each generation, and half of the population infeasible."""
    f = directions(opt, x)[:, g % x.shape[1]]
    return np.where(np.arange(len(f)) % 2 == g % 2, np.inf, f)


def first_is_best(opt, x, g):
    """By index, which is by sign in an antithetic population."""
    return np.arange(len(x), dtype=float)


def one_feasible(opt, x, g):
    f = np.full(len(x), np.inf)
    f[g % len(x)] = 0.0
    return f


def one_better(opt, x, g):
    return np.where(np.arange(len(x)) == g % len(x), 0.0, 1.0)


def none_feasible(opt, x, g):
    return np.full(len(x), np.inf)


def all_failed(opt, x, g):
    """After one generation that went well: a first one of NaN ends the search."""
    return np.full(len(x), np.nan) if g else sphere(x)


ADVERSARIES = [
    along(0),
    far,
    near,
    stretch_one,
    squeeze_one,
    stretch_all_together,
    squeeze_all_together,
    breathe,
    turn,
    first_is_best,
    one_feasible,
    one_better,
    none_feasible,
    all_failed,
]


adversaries = pytest.mark.parametrize(
    "adversary", ADVERSARIES, ids=lambda f: f.__name__.strip("<>")
)


@adversaries
@dtypes
def test_adversaries(method, dtype, adversary):
    for dim, generations in ((1, 80), (10, 60)):
        obey(begin(method, dim, dtype), adversary, generations)


@pytest.mark.slow
@adversaries
@dtypes
def test_patient_adversaries(method, dtype, adversary):
    for dim in (1, 2, 3, 5, 20):
        obey(begin(method, dim, dtype), adversary, 1_000)


@pytest.mark.parametrize("method", [name for name in fmnes.METHODS if name != "r1-nes"])
def test_an_expanding_search_ends_before_numbers_do(method):
    """In float32, where the way is short. (R1-NES expands along v alone, which has a limit.)"""
    ended = obey(begin(method, 3, np.float32), far, 5_000)
    assert ended & {"scale", "condition"}


@pytest.mark.parametrize("slope", [lambda x: x[:, 0], lambda x: -sphere(x)], ids=["plane", "dome"])
@dtypes
def test_a_slope_without_end_is_left(method, dtype, slope):
    """With the tolerances as they are by default."""
    x0 = np.full(5, 3.0, dtype)
    result = fmnes.minimize(slope, x0, 2.0, method=method, rng=1, maxiter=5_000, vectorized=True)
    assert result.status in ("sigma-up", "condition")
    assert not result.success


def test_a_contracting_search_ends_before_numbers_do(method):
    ended = obey(begin(method, 3, np.float32), near, 5_000)
    assert ended & {"tolx", "sigma-underflow", "condition"}


# --- Rankings without sense -----------------------------------------------------------------------

values = st.one_of(
    st.integers(-2, 2).map(float),  # ties
    st.floats(allow_nan=True, allow_infinity=True).filter(lambda f: f != -np.inf),
    st.sampled_from([np.inf, np.nan, 0.0, -0.0, 1e308, -1e308, 5e-324]),
)


@examples(15)
@given(data=st.data())
def test_any_ranking(method, data):
    """Some rankings that hypothesis makes up, told over and over in turn."""
    dim = data.draw(st.integers(1, 20), "dim")
    dtype = data.draw(st.sampled_from([np.float64, np.float32]), "dtype")
    popsize = data.draw(st.sampled_from([None, 2, 4, 6, 20]), "popsize")
    sigma0 = data.draw(st.sampled_from([2.0, 1e-30, 1e30]), "sigma0")
    opt = begin(method, dim, dtype, popsize, sigma0)
    n = opt.popsize
    rankings = data.draw(st.lists(st.lists(values, min_size=n, max_size=n), min_size=1, max_size=4))
    obey(opt, lambda opt, x, g: np.array(rankings[g % len(rankings)]), 100)


@examples(10)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 20), levels=st.integers(1, 12))
def test_random_rankings(method, seed, dim, levels):
    """Random values on few levels, some candidates infeasible, some failed."""
    rng = np.random.default_rng(seed)
    spoiled = rng.uniform(0, 1, 2) ** 2

    def told(opt, x, g):
        f = rng.integers(levels, size=len(x)).astype(float)
        f[rng.random(len(x)) < spoiled[0]] = np.inf
        f[rng.random(len(x)) < spoiled[1]] = np.nan
        return f

    obey(begin(method, dim, rng.choice([np.float64, np.float32])), told, 120)


# --- Objectives that CR-FM-NES cannot represent ---------------------------------------------------


def rotated(scales, seed):
    """sum scales y^2 in coordinates that are turned at random."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(scales), len(scales)))).Q
    return lambda x: np.sum(scales * (x @ Q) ** 2, axis=-1)


def discus(dim, condition):
    return np.array([condition] + [1.0] * (dim - 1))


def two_axes(dim, condition):
    return np.array([condition] * (dim // 2) + [1.0] * (dim - dim // 2))


unrepresentable = pytest.mark.parametrize("scales", [discus, two_axes], ids=["discus", "two-axes"])


def crawl(dtype, scales, generations):
    """CR-FM-NES gets somewhere, and nothing breaks on the way."""
    fun = rotated(scales, seed=len(scales))
    medians = []

    def told(opt, x, g):
        f = fun(x.astype(np.float64))
        medians.append(np.median(f))
        return f

    obey(begin("cr-fm-nes", len(scales), dtype), told, generations)
    assert min(medians) < 1e-2 * medians[0]


@unrepresentable
@pytest.mark.parametrize("condition", [1e4, 1e12])
@pytest.mark.parametrize("dim", [2, 10, 40])
@dtypes
def test_cr_fm_nes_on_what_it_cannot_represent(dtype, dim, condition, scales):
    """One short axis, or many long ones, in any direction."""
    crawl(dtype, scales(dim, condition), 200)


@pytest.mark.slow
@unrepresentable
@pytest.mark.parametrize("condition", [1e4, 1e12])
@pytest.mark.parametrize("dim", [2, 3, 5, 10, 40, 100])
@dtypes
def test_cr_fm_nes_for_long_on_what_it_cannot_represent(dtype, dim, condition, scales):
    crawl(dtype, scales(dim, condition), 3_000)


@pytest.mark.parametrize("dim", [5, 10, 20])
def test_the_paper_variant_on_what_it_can_represent(dim):
    """No promise beyond that; the ellipsoid is its home."""
    opt = fmnes.Optimizer(
        np.full(dim, 3.0), 2.0, method=fmnes.CRFMNES(variant="paper"), rng=1, ftarget=1e-8
    )
    while not opt.stop():
        opt.tell(ellipsoid(opt.ask()))
    assert opt.result.status == "ftarget"
