"""`Auto(adapt="popsize")`: generations that grow where the values are noise, and shrink again."""

import copy
import logging

import numpy as np
import pytest

import fmnes
from cluster.common import LocalHost
from fmnes import Cluster, Evaluator

POPSIZES = fmnes.Auto(adapt="popsize")
DIM = 12


class Noisy:
    """A sphere with noise that depends on the point alone: an interruption does not change it."""

    def __init__(self, deviation=1.0, die_after=None):
        self.deviation, self.die_after, self.calls = deviation, die_after, 0

    def __call__(self, x):
        self.calls += 1
        if self.calls == self.die_after:
            raise KeyboardInterrupt
        seed = np.frombuffer(np.asarray(x, float).tobytes(), np.uint32)
        return float(x @ x) + self.deviation * np.random.default_rng(seed).normal()


def search(fun=None, method=POPSIZES, **options):
    options = {"maxfevals": 6000, "rng": 1, "sigma0": 1.0} | options
    return fmnes.minimize(fun or Noisy(), np.full(DIM, 3.0), method=method, **options)


def sizes(result):
    """The size of each generation; the first one has x0 in addition."""
    return np.diff(result.history["nfev"], prepend=1)


def assert_same(one, other):
    assert (one.nfev, one.nit, one.fun) == (other.nfev, other.nit, other.fun)
    for name in ("x", "mean", "stds"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("nfev", "sigma", "median"):
        np.testing.assert_array_equal(one.history[name], other.history[name])


@pytest.fixture(scope="module")
def whole():
    return search()


# === The sizes ===


def test_generations_grow_by_powers_of_two_and_each_evaluation_counts(whole):
    fun = Noisy()
    assert_same(search(fun), whole)
    assert fun.calls == whole.nfev <= 6000
    first = fmnes.METHODS["auto"].default_popsize(DIM)
    assert sizes(whole)[0] == first == whole.restarts[0].popsize
    powers = np.log2(sizes(whole) / first)
    assert set(np.abs(np.diff(powers))) == {0.0, 1.0}
    assert powers.min() == 0
    assert 3 <= powers.max() <= 6
    assert whole.nfev + sizes(whole)[-1] > 6000 - sizes(whole)[-1]  # no further one had room


@pytest.mark.parametrize("values", ["sphere", "ellipsoid"])
def test_without_noise_they_hardly_do(values):
    problem = fmnes.problems.PROBLEMS[values](40)
    options = {"ftarget": 1e-8, "rng": 1, "maxfevals": 40_000, "vectorized": True}
    fixed, adapted = (
        fmnes.minimize(problem, problem.x0, 2.0, method=fmnes.Auto(adapt=adapt), **options)
        for adapt in (None, "popsize")
    )
    assert adapted.success
    assert adapted.nfev <= 1.1 * fixed.nfev


def test_the_mean_of_a_noisy_sphere_is_far_better_than_with_one_size():
    """The problem of the issue: d = 40, noise variance 1, 8e4 evaluations."""

    def error(adapt):
        rng = np.random.default_rng(1)
        result = fmnes.minimize(
            lambda x: np.sum(x * x, axis=1) + rng.normal(size=len(x)),
            np.full(40, 3.0),
            2.0,
            method=fmnes.Auto(adapt=adapt),
            vectorized=True,
            maxfevals=80_000,
            rng=1,
        )
        return np.sum(result.mean**2)

    assert error("popsize") < error(None) / 20


def test_rastrigin_is_solved_without_a_popsize_of_ones_own():
    result = fmnes.minimize(
        lambda x: np.sum(x * x - 10 * np.cos(2 * np.pi * x) + 10, axis=1),
        np.full(40, 3.0),
        2.0,
        method=POPSIZES,
        vectorized=True,
        ftarget=1e-8,
        maxfevals=120_000,
        rng=1,
    )
    assert result.success
    assert sizes(result)[-1] < sizes(result).max()  # and it shrinks at the optimum


def test_the_size_is_never_above_64_times_the_first():
    method, least = fmnes.METHODS["auto"], 10
    params = method.params(DIM, 64 * least, POPSIZES)
    opt = fmnes.Optimizer(np.ones(DIM), 1.0, method=POPSIZES, popsize=64 * least, rng=1)
    state = opt._state._replace(
        m_averages=np.array([-1.0, 1.0, 1.0]), sigma_averages=np.array([0.0, 1.0]), D_signal=0.0
    )
    assert method.next_popsize(params, state, least) == (64 * least, state)
    assert method.next_popsize(params, state, 2 * least)[0] == 128 * least


# === The same bits ===


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_a_killed_search_resumes(share, whole, tmp_path):
    """With checkpoints at all generations, and with the first alone and a journal."""
    dies = int(share * whole.nfev)
    for every in (0.0, 1e9):
        path = fmnes.Checkpoint(tmp_path / f"run-{every}.npz", every=every)
        killed = search(Noisy(die_after=dies), checkpoint=path)
        assert killed.nfev < whole.nfev
        again = Noisy()
        assert_same(search(again, checkpoint=path), whole)
        assert again.calls == whole.nfev - dies + 1


def test_a_larger_budget_goes_on(whole, tmp_path):
    search(checkpoint=tmp_path / "run.npz", maxfevals=2500)
    assert_same(search(checkpoint=tmp_path / "run.npz"), whole)


def test_the_first_popsize_is_the_argument(tmp_path):
    path = tmp_path / "run.npz"
    part = search(checkpoint=path, popsize=8, maxfevals=2000)
    assert sizes(part).max() > 8
    assert search(checkpoint=path, popsize=8, maxfevals=2500).nfev > part.nfev
    with pytest.raises(ValueError, match=r"^checkpoint: .*popsize \(8 there\)"):
        search(checkpoint=path, popsize=16)


def test_workers_have_the_same(whole):
    assert_same(search(workers=2), whole)


def told(opt, fun, generations):
    for _ in range(generations):
        opt.tell([fun(x) for x in opt.ask()])
    return opt


def test_an_optimizer_is_saved_and_copied_at_any_generation(tmp_path):
    fun, path = Noisy(), tmp_path / "search.npz"
    opt = fmnes.Optimizer(np.full(DIM, 3.0), 1.0, method=POPSIZES, rng=1)
    found = {opt.popsize}
    while opt.popsize < 64:
        told(opt, fun, 1)
        if opt.popsize not in found:  # just changed
            found.add(opt.popsize)
            assert opt.ask().shape == (opt.popsize, DIM)
            opt.save(path)
            others = [fmnes.Optimizer.load(path), copy.copy(opt), copy.deepcopy(opt)]
            expected = told(copy.copy(opt), fun, 12)
            for other in others:
                told(other, fun, 12)
                assert (other.popsize, other.nfev) == (expected.popsize, expected.nfev)
                np.testing.assert_array_equal(other.ask(), expected.ask())
    assert len(found) >= 3


def test_points_that_wait_stay_when_the_size_changes():
    fun = Noisy()
    opt = fmnes.Optimizer(np.full(DIM, 3.0), 1.0, method=POPSIZES, rng=1)
    first = opt.popsize
    points = np.random.default_rng(1).normal(size=(100, DIM))
    opt.inject(points)
    seen = []
    while opt.popsize == first or len(seen) < 60:
        x = opt.ask()
        seen.extend(x[: min(opt.most_injected, 100 - len(seen))])
        opt.tell([fun(row) for row in x])
    np.testing.assert_array_equal(seen, points[: len(seen)])


def test_each_run_of_a_schedule_begins_with_its_own_size():
    result = search(restarts=2, maxfevals=12_000, stopping=fmnes.Stopping(stagnation=40))
    first = fmnes.METHODS["auto"].default_popsize(DIM)
    begun = [run.popsize for run in result.restarts]
    assert begun == [first * 2**k for k in range(len(begun))]
    assert len(begun) > 1
    assert sum(run.nfev for run in result.restarts) == result.nfev


@pytest.mark.parametrize("adapt", ["rates", "popsize"])
@pytest.mark.parametrize(
    ("x0", "options"),
    [
        (np.ones(3), {"constraints": 1}),
        (np.ones(3), {"integrality": [0, 1, 0], "bounds": [(0, 9)] * 3}),
        (fmnes.Space({"a": fmnes.Real(0, 1), "b": fmnes.Choice(["x", "y", "z"])}), {}),
    ],
    ids=["constraints", "integers", "choices"],
)
def test_searches_whose_ranking_changes_without_noise_do_not_adapt(adapt, x0, options):
    with pytest.raises(ValueError, match=rf"^adapt: expected .* constraints, .* got '{adapt}'$"):
        fmnes.minimize(never, x0, method=fmnes.Auto(adapt=adapt), **options)
    fmnes.Optimizer(x0, method=fmnes.Auto(adapt="noise"), **options)


# === What users see ===


def test_the_log_and_the_progress_tell_the_size(caplog, capsys):
    with caplog.at_level(logging.INFO, "fmnes"):
        result = search(progress=True)
    logged = [record.args for record in caplog.records if record.msg.startswith("popsize")]
    changed = np.flatnonzero(np.diff(sizes(result)))
    assert [size for size, _ in logged][: len(changed)] == sizes(result)[changed + 1].tolist()
    assert [generation for _, generation in logged][: len(changed)] == (changed + 2).tolist()
    assert f"popsize {logged[-1][0]}" in capsys.readouterr().err


# === Refusals ===


def never(x):
    raise AssertionError("fun: called")


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("asynchronous", {"asynchronous": True, "workers": 2}),
        ("asynchronous", {"workers": Evaluator(2, asynchronous=True)}),
        (
            "asynchronous",
            {"asynchronous": True, "workers": 2, "restarts": fmnes.IPOP(2, parallel=2)},
        ),
        ("restarts", {"restarts": fmnes.BIPOP(2)}),
        ("maxfevals", {"maxfevals": 12}),
    ],
)
def test_what_needs_one_size_is_refused_before_the_first_evaluation(argument, options):
    with pytest.raises(ValueError, match=rf"^{argument}: expected .*, got "):
        search(never, **options)


@pytest.mark.parametrize("name", [name for name in fmnes.METHODS if name != "auto"])
def test_adapt_of_a_method_that_has_none(name):
    with pytest.raises(TypeError, match="adapt"):
        fmnes.METHODS[name].Settings(adapt="popsize")
    with pytest.raises(TypeError, match="adapt"):
        fmnes.minimize(never, np.ones(DIM), 1.0, method=name, adapt="popsize")


def test_a_study_of_optuna_has_one_size():
    pytest.importorskip("optuna")
    from fmnes.integrations.optuna import FmnesSampler

    with pytest.raises(ValueError, match=r"^method: expected .*, got "):
        FmnesSampler(method=POPSIZES)


@pytest.mark.arrays
def test_a_compiled_program_of_jax_has_one_size():
    jax = pytest.importorskip("jax")
    import fmnes.jax

    with pytest.raises(ValueError, match=r"^method: expected .*, got "):
        fmnes.jax.init(jax.random.key(1), np.ones(DIM), 1.0, method=POPSIZES)


@pytest.mark.arrays
def test_a_search_on_tensors_changes_its_size_too():
    torch = pytest.importorskip("torch")
    found = []
    for like in (np.full(DIM, 3.0), torch.full((DIM,), 3.0, dtype=torch.float64)):
        opt, rng = fmnes.Optimizer(like, 1.0, method=POPSIZES, rng=1), np.random.default_rng(1)
        sizes = []
        for _ in range(90):
            assert len(opt.ask()) == opt.popsize
            sizes.append(opt.popsize)
            opt.tell(rng.normal(size=opt.popsize))
        found.append(sizes)
    assert max(found[0]) >= 8 * found[0][0]
    assert found[1] == found[0]


def test_a_cluster_follows_the_sizes():
    options = {"maxfevals": 3000}
    assert_same(search(workers=Cluster(LocalHost(2)), **options), search(**options))
