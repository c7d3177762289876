"""Points from elsewhere that an Optimizer is given, and candidates that are withdrawn."""

import numpy as np
import pytest

import fmnes
from fmnes.engines.injected import shortened

METHODS = fmnes.METHODS


def sphere(x):
    return (x**2).sum(axis=-1)


def ellipsoid(x):
    return (10.0 ** np.linspace(0, 3, x.shape[-1]) * x**2).sum(axis=-1)


def run(opt, generations, fun=ellipsoid):
    for _ in range(generations):
        opt.tell(fun(opt.ask()))
    return opt


@pytest.mark.parametrize("method", METHODS)
def test_draws_of_steps_are_the_draws_that_made_them(method):
    opt = run(fmnes.Optimizer(np.full(6, 3.0), 1.0, method=method, rng=1), 30)
    algorithm, params, state = METHODS[method], opt._params, opt._state
    z = np.random.default_rng(1).normal(size=(5, 6))
    steps = algorithm.transform(params, state, z)
    np.testing.assert_allclose(algorithm.draws_of(params, state, steps), z, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_injecting_the_candidates_of_a_twin_changes_nothing(method):
    """The first rows are drawn by the search itself or injected: the same up to rounding."""
    opt, twin = (
        run(fmnes.Optimizer(np.full(8, 3.0), 1.0, method=method, rng=1, popsize=12), 20)
        for _ in range(2)
    )
    x = opt.ask()
    twin.inject(x[0])
    twin.inject(x[1:3])
    np.testing.assert_allclose(twin.ask(), x, rtol=1e-9, atol=1e-9)
    opt.tell(ellipsoid(x))
    twin.tell(ellipsoid(x))
    for name, value in opt._state._asdict().items():
        np.testing.assert_allclose(
            getattr(twin._state, name), value, rtol=1e-6, atol=1e-8, err_msg=name
        )
    assert twin.nfev == opt.nfev
    assert twin.result.fun == opt.result.fun


def test_a_good_point_is_evaluated_as_it_is_and_found_in_the_result():
    opt = fmnes.Optimizer(np.full(10, 3.0), 1.0, rng=1)
    opt.inject(np.zeros(10))
    x = opt.ask()
    assert (x[0] == 0).all()
    assert opt.known == {}
    opt.tell(sphere(x))
    assert opt.result.fun == 0
    assert (opt.result.x == 0).all()
    assert not (opt.ask()[0] == 0).all()  # it took part in one generation


def test_a_far_point_moves_the_mean_no_further_than_a_candidate_could():
    """One generation with the point at distance 1e2 or 1e6: the same step."""
    means = []
    for distance in (1e2, 1e6):
        opt = fmnes.Optimizer(np.zeros(20), 1.0, rng=1)
        opt.inject(np.r_[distance, np.zeros(19)], f=-1.0)
        opt.tell(1 + sphere(opt.ask()))
        means.append(opt.result.mean)
    np.testing.assert_allclose(means[0], means[1], rtol=1e-6, atol=1e-12)
    assert 0.3 < means[0][0] < 6.5


def test_shortened():
    z = np.array([[3.0, 4.0], [0.3, 0.4]])
    longest = np.sqrt(2) + 1  # sqrt(d) + 2 d / (d + 2)
    expected = [[longest * 0.6, longest * 0.8], [0.3, 0.4]]
    np.testing.assert_allclose(shortened(z), expected)


def test_known_values_need_no_evaluation():
    opt = fmnes.Optimizer(np.full(10, 3.0), 1.0, rng=1, popsize=12)
    points = np.random.default_rng(1).normal(size=(3, 10))
    opt.inject(points, sphere(points))
    x, known = opt.ask(), opt.known
    assert known == dict(enumerate(sorted(sphere(points))))  # the best first
    values = np.array([np.nan if i in known else sphere(row) for i, row in enumerate(x)])
    opt.tell(values)
    assert opt.result.fun == min(sphere(points))
    assert opt.result.nfailed == 0
    assert opt.nfev == 9  # without those that were known


def test_points_beyond_half_of_a_generation_wait():
    opt = fmnes.Optimizer(np.full(10, 3.0), 1.0, rng=1, popsize=12)
    points = np.arange(50.0).reshape(5, 10)
    opt.inject(points)
    first = opt.ask()
    assert (first[:3] == points[:3]).all()  # half of six pairs
    opt.tell(sphere(first))
    assert (opt.ask()[:2] == points[3:]).all()


def test_many_points_with_values_take_part_in_a_few_generations():
    """A thousand of them: the best popsize, the best first, after the points without a value."""
    opt = fmnes.Optimizer(np.full(10, 3.0), 1.0, rng=1)
    points = np.random.default_rng(1).normal(2.0, 1.0, (1000, 10))
    opt.inject(points, sphere(points))
    opt.inject(np.full(10, 0.7))
    seen, rows = [], []
    for _ in range(20):
        x = opt.ask()
        rows.append(x[0])
        seen += opt.known.values()
        opt.tell(sphere(x))
    assert (rows[0] == 0.7).all()
    assert seen == sorted(sphere(points))[: opt.popsize]
    assert opt.nfev == 20 * opt.popsize - len(seen)


@pytest.mark.parametrize("method", ["cr-fm-nes", "cma-es"])
def test_a_thousand_good_points_save_evaluations(method):
    """Of a search that is further; the median of seven searches."""
    points, nfev = np.random.default_rng(1).normal(0.0, 0.1, (1000, 10)), {}
    for injected in (False, True):
        spent = []
        for seed in range(7):
            opt = fmnes.Optimizer(np.full(10, 30.0), 1.0, rng=seed, ftarget=1e-8, method=method)
            if injected:
                opt.inject(points, ellipsoid(points))
            while not opt.stop():
                run(opt, 1)
            spent.append(opt.nfev)
        nfev[injected] = np.median(spent)
    assert nfev[True] < 0.95 * nfev[False]


def test_tell_names_inject_for_points_of_somebody_else():
    opt = fmnes.Optimizer([3.0] * 5, 1.0, rng=1)
    x = opt.ask()
    with pytest.raises(ValueError, match=r"evaluated elsewhere to inject\(x, f\)"):
        opt.tell(x + 1, sphere(x + 1))


@pytest.mark.parametrize("moment", ["waiting", "asked"])
@pytest.mark.parametrize("method", ["cr-fm-nes", "auto", "cma-es"])
def test_saved_searches_continue_with_their_points(tmp_path, method, moment):
    def build():
        opt = run(fmnes.Optimizer(np.full(8, 3.0), 1.0, method=method, rng=1, popsize=8), 5)
        opt.inject(np.ones((5, 8)) * np.arange(5)[:, None], [5.0, np.nan, 3.0, 2.0, 1.0])
        if moment == "asked":
            opt.ask()
            opt.withdraw([4, 7])
        return opt

    opt = build()
    opt.save(tmp_path / "search.npz")
    loaded = fmnes.Optimizer.load(tmp_path / "search.npz")
    assert (loaded.ask() == opt.ask()).all()
    a, b = run(opt, 6).result, run(loaded, 6).result
    assert (a.x == b.x).all()
    assert (a.mean == b.mean).all()


def test_points_with_bounds():
    opt = fmnes.Optimizer([0.5] * 4, 0.2, bounds=[(0, 1), (0, 1), (0.5, 0.5), (0, 1)], rng=1)
    point = np.array([0.1, 0.99, 0.5, 0.0])
    opt.inject(point)
    np.testing.assert_allclose(opt.ask()[0], point, atol=1e-12)
    for wrong in ([0.1, 1.2, 0.5, 0.0], [0.1, 0.2, 0.4, 0.0]):
        with pytest.raises(ValueError, match="expected points inside the bounds, got x"):
            opt.inject(wrong)


def test_points_with_integers():
    def fun(x):
        return sphere(x - np.array([7, -3, 0.5, 0.5]))

    bounds = [(-10, 10)] * 4
    opt = fmnes.Optimizer([0.0] * 4, 2.0, bounds=bounds, integrality=[1, 1, 0, 0], rng=1)
    run(opt, 3, fun)
    point = np.array([7.0, -3.0, 0.4, 0.6])
    opt.inject(point)
    np.testing.assert_allclose(opt.ask()[0], point, atol=1e-9)
    run(opt, 1, fun)
    assert opt.result.fun <= fun(point) + 1e-9


def test_points_of_a_space_are_dicts():
    space = fmnes.Space({"layers": fmnes.Int(1, 8), "act": fmnes.Choice(["relu", "gelu", "elu"])})
    opt = fmnes.Optimizer(space, rng=1)
    wanted = {"layers": 7, "act": "elu"}
    opt.inject(wanted)
    assert opt.ask()[0] == wanted
    with pytest.raises(ValueError, match="x: expected names among layers, act"):
        opt.inject({"layer": 7})


@pytest.mark.parametrize("f", [None, -100.0])
@pytest.mark.parametrize("x", [[12, 1], [-1, 1], [2.5, 1], [[2, 1], [3, 0.9]]])
def test_points_between_or_beyond_the_integers_are_refused(x, f):
    """The value belongs to x, and not to the integers next to it."""
    opt = fmnes.Optimizer([4.0, 4.0], 2.0, bounds=[(0, 9)] * 2, integrality=1, rng=1)
    with pytest.raises(ValueError, match=r"x: expected points with an integer .* got x\["):
        opt.inject(x, f if np.ndim(x) == 1 else None)
    assert opt.known == {}


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"layers": 3}, "x: expected a value of every variable, got none of act, rate"),
        (
            {"layers": 3.5, "act": "elu", "rate": 0.1},
            r"x\['layers'\]: expected values of Int\(low=1",
        ),
        ({"layers": 9, "act": "elu", "rate": 0.1}, "expected numbers between 1 and 8"),
        ({"layers": 3, "act": "elu", "rate": 0.25}, r"x\['rate'\]: expected values of .*got 0.25"),
    ],
)
def test_wrong_points_of_a_space(point, message):
    choice = fmnes.Choice(["relu", "gelu", "elu"])
    rate = fmnes.Real(0.1, 0.9, step=0.1)
    space = fmnes.Space({"layers": fmnes.Int(1, 8), "act": choice, "rate": rate})
    opt = fmnes.Optimizer(space, rng=1)
    for step in range(1, 10):  # steps of a real number are integers up to rounding
        opt.inject({"layers": 8, "act": "elu", "rate": step / 10}, f=1.0)
    with pytest.raises(ValueError, match=message):
        opt.inject(point, f=1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0],), r"x: expected shape \(3,\) or \(n, 3\), got shape \(2,\)"),
        (([np.nan, 1.0, 1.0],), "x: expected finite numbers"),
        (([1.0, 1.0, 1.0], [1.0, 2.0]), "f: expected 1 values"),
        ((["a", "b", "c"],), "x: expected a point"),
    ],
)
def test_wrong_points(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fmnes.Optimizer([1.0] * 3, 1.0).inject(*arguments)


def test_values_of_points_are_refused_if_there_are_constraints():
    opt = fmnes.Optimizer([1.0] * 3, 1.0, constraints=1, rng=1)
    with pytest.raises(TypeError, match="f: expected None for a search with constraints"):
        opt.inject([1.0] * 3, 2.0)
    opt.inject([1.0] * 3)
    x = opt.ask()
    opt.tell(sphere(x), constraints=-x[:, :1])
    assert opt.result.fun <= 3.0


# --- Withdrawn candidates -------------------------------------------------------------------------


def test_withdrawn_candidates_have_no_value_and_do_not_count():
    opt = fmnes.Optimizer(np.full(10, 3.0), 1.0, rng=1)
    x = opt.ask()
    f = sphere(x)
    best = int(np.argmin(f))
    opt.withdraw(best)
    f[best] = -1e9  # ignored
    opt.tell(f)
    assert opt.result.fun == np.sort(f)[1]
    assert opt.result.nfailed == 0
    assert opt.nfev == opt.popsize - 1


def test_withdrawn_candidates_neither_attract_nor_repel():
    """Half of all candidates lost at random: the search still converges, a little later."""
    opt, rng = fmnes.Optimizer(np.full(10, 3.0), 1.0, rng=1, ftarget=1e-8), np.random.default_rng(1)
    while not opt.stop():
        x = opt.ask()
        lost = np.flatnonzero(rng.random(opt.popsize) < 0.3)
        if 0 < len(lost) < opt.popsize:
            opt.withdraw(lost)
        opt.tell(np.where(np.isin(np.arange(opt.popsize), lost), np.nan, sphere(x)))
    assert opt.result.success
    assert opt.nfev < 6000


def test_wrong_withdrawals():
    opt = fmnes.Optimizer(np.full(4, 3.0), 1.0, rng=1)
    with pytest.raises(RuntimeError, match="withdraw: expected a call of ask"):
        opt.withdraw(0)
    opt.ask()
    with pytest.raises(ValueError, match=f"from 0 to {opt.popsize - 1}, got {opt.popsize}"):
        opt.withdraw(opt.popsize)
    with pytest.raises(ValueError, match="at least one that is left"):
        opt.withdraw(range(opt.popsize))


@pytest.mark.arrays
@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_array_libraries(library):
    xp = pytest.importorskip(library)
    opt = fmnes.Optimizer(xp.ones(6) * 3.0, 1.0, rng=1)
    opt.inject(np.zeros(6))
    x = opt.ask()
    opt.tell((x**2).sum(1))
    assert opt.result.fun == 0.0
    run(opt, 3, lambda x: (x**2).sum(1))
