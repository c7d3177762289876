"""FmnesSampler in real studies: its candidates, its claims, and many who sample at once."""

import importlib.util
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from benchmark_modules import BENCHMARKS, load

import fmnes

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
from optuna.distributions import (  # noqa: E402  # only where it is installed
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.testing.pytest_samplers import (  # noqa: E402
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)
from optuna.trial import TrialState  # noqa: E402

from fmnes.integrations._optuna_ledger import ranks  # noqa: E402
from fmnes.integrations._optuna_space import Cube, Intersection  # noqa: E402
from fmnes.integrations.optuna import FmnesSampler  # noqa: E402

DIM = 5
NAMES = [f"x{i}" for i in range(DIM)]
SPACE = {name: FloatDistribution(0.0, 1.0) for name in NAMES}
POPSIZE = 8  # CR-FM-NES at d = 5


@pytest.fixture(autouse=True)
def _quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def suggest(trial):
    return np.array([trial.suggest_float(name, 0.0, 1.0) for name in NAMES])


def bowl(x):
    return float(np.sum((1 + np.arange(len(x))) * (x - 0.3) ** 2))


def objective(trial):
    return bowl(suggest(trial))


def sampler(seed=1, **settings):
    """From the first trial on, so that a study holds nothing but candidates."""
    return FmnesSampler(seed=seed, n_startup_trials=0, search_space=SPACE, **settings)


def point(trial):
    return np.array([trial.params[name] for name in NAMES])


def claim(trial):
    return trial.system_attrs.get("fmnes")


def generations(trials):
    """(claim of the opener, trials of the generation) in order, as the claims chain them."""
    openers = [t for t in trials if claim(t) and claim(t)["generation"] == t.number]
    after = next(claim(t)["after"] for t in openers if isinstance(claim(t)["after"], str))
    while found := [t for t in openers if claim(t)["after"] == after]:
        of_it = {
            t.number: [u for u in trials if claim(u) and claim(u)["generation"] == t.number]
            for t in found
        }
        after = max(of_it, key=lambda n: (len(of_it[n]), -n))  # of two, the one that most joined
        yield claim(trials[after]), of_it[after]


def check_course(study, seed=1, worst=np.inf):
    """Every trial evaluated the very candidate that its claim names, of the state told before it.

    Rebuilt here with fmnes.Optimizer from the values alone; returns the number of generations.
    """
    opt = fmnes.Optimizer(np.full(DIM, 0.5), 1 / 6, bounds=[(0, 1)] * DIM, rng=seed)
    trials, count = study.trials, 0
    for head, of_it in generations(trials):
        if "told" in head:
            told = [trials[number] for number in head["told"]]
            assert [claim(t)["row"] for t in told] == list(range(opt.popsize))
            opt.ask()
            opt.tell([worst if t.value is None else t.value for t in told])
        x = opt.ask()
        for t in of_it:
            row = claim(t)["row"]
            if row < opt.popsize and t.params:
                np.testing.assert_array_equal(point(t), x[row])
        count += 1
    return count


def rows(study):
    """(generation, row) of every trial."""
    return [(claim(t)["generation"], claim(t)["row"]) for t in study.trials if claim(t)]


# --- What Optuna asks of every sampler ------------------------------------------------------------


class TestContract(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """Optuna's own tests for samplers."""

    @pytest.fixture
    def sampler(self):
        return lambda: FmnesSampler(seed=1)

    # Categories are not ours: they are never in the space that we infer.
    def test_sample_relative_categorical(self, sampler):
        self.check_inferred(sampler(), {"x": CategoricalDistribution([1, 10])}, [])

    def test_sample_relative_mixed(self, sampler):
        space = {"x": FloatDistribution(0, 1), "y": CategoricalDistribution([1, 10])}
        self.check_inferred(sampler(), space, ["x"])

    def check_inferred(self, sampler, space, expected):
        study = optuna.create_study(sampler=sampler)
        study.tell(study.ask(space), 1.0)
        trial = study.ask(space)
        assert set(trial.params) == set(space)
        assert list(trial.relative_params) == expected


# --- Candidates -----------------------------------------------------------------------------------


def minimised(method, n):
    seen = []
    fmnes.minimize(
        lambda x: seen.append(x.copy()) or bowl(x),
        np.full(DIM, 0.5),
        1 / 6,
        bounds=[(0, 1)] * DIM,
        method=method,
        rng=1,
        maxfevals=n,
    )
    return seen


def test_the_candidates_are_those_of_minimize(method):
    """To the bit, trial by trial: so all that is known of minimize holds for the sampler."""
    expected = minimised(method, 100)
    study = optuna.create_study(sampler=sampler(method=method))
    study.optimize(objective, n_trials=len(expected))
    np.testing.assert_array_equal([point(t) for t in study.trials], expected)


def test_maximize_mirrors_minimize():
    study = optuna.create_study(sampler=sampler(), direction="maximize")
    study.optimize(lambda trial: -objective(trial), n_trials=96)
    np.testing.assert_array_equal([point(t) for t in study.trials], minimised("cr-fm-nes", 96))


def test_ask_and_tell_are_optimize():
    study = optuna.create_study(sampler=sampler())
    while len(study.trials) < 96:
        batch = [study.ask(SPACE) for _ in range(POPSIZE)]
        for trial in reversed(batch):  # any order
            study.tell(trial, bowl(point(trial)))
    np.testing.assert_array_equal([point(t) for t in study.trials], minimised("cr-fm-nes", 96))


def test_a_seed_gives_the_same_study_again():
    def run(seed):
        study = optuna.create_study(sampler=FmnesSampler(seed=seed))
        study.optimize(mixed, n_trials=60)
        return [t.params for t in study.trials]

    assert run(3) == run(3)
    assert run(3) != run(4)


def test_without_a_seed_studies_differ():
    studies = [optuna.create_study(sampler=sampler(None), study_name="same") for _ in range(2)]
    for study in studies:
        study.optimize(objective, n_trials=2)
    assert studies[0].trials[1].params != studies[1].trials[1].params


def mixed(trial):
    x = trial.suggest_float("x", -5, 5)
    rate = trial.suggest_float("rate", 1e-6, 1e2, log=True)
    layers = trial.suggest_int("layers", 1, 30)
    width = trial.suggest_int("width", 8, 4096, log=True)
    even = trial.suggest_int("even", -10, 10, step=2)
    quarter = trial.suggest_float("quarter", 0, 10, step=0.25)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    return (
        (x - 1.5) ** 2
        + (np.log10(rate) + 3) ** 2
        + 0.1 * (layers - 12) ** 2
        + (np.log2(width) - 7) ** 2
        + (even + 4) ** 2
        + (quarter - 2.75) ** 2
        + (kind == "b")
    )


@pytest.mark.parametrize("seed", range(2))
def test_every_kind_of_parameter_is_searched(seed):
    settings = {"seed": seed, "warn_independent_sampling": False}
    study = optuna.create_study(sampler=FmnesSampler(**settings))
    study.optimize(mixed, n_trials=1200)
    best = study.best_params
    assert (best["layers"], best["even"], best["quarter"], best["kind"]) == (12, -4, 2.75, "a")
    assert abs(np.log2(best["width"]) - 7) < 0.05
    assert abs(best["x"] - 1.5) < 0.05
    assert abs(np.log10(best["rate"]) + 3) < 0.05


# --- The cube -------------------------------------------------------------------------------------


def test_every_whole_number_has_the_same_share():
    cube = Cube({"n": IntDistribution(3, 9, step=2), "q": FloatDistribution(-1, 1, step=0.5)})
    u = (np.arange(1000) + 0.5) / 1000
    n, q = zip(*(cube.to_params(np.full(2, v)).values() for v in u), strict=True)
    assert {value: n.count(value) for value in set(n)} == dict.fromkeys([3, 5, 7, 9], 250)
    assert {v: q.count(v) for v in set(q)} == dict.fromkeys([-1.0, -0.5, 0.0, 0.5, 1.0], 200)


def test_logarithmic_ranges():
    cube = Cube({"r": FloatDistribution(1e-4, 1, log=True), "n": IntDistribution(1, 4, log=True)})
    assert cube.to_params(np.array([0.5, 0.5]))["r"] == pytest.approx(1e-2, rel=1e-14)
    # A whole number n has all that rounds to it: log(n + 1/2) - log(n - 1/2) of log 9.
    u = (np.arange(10_000) + 0.5) / 10_000
    n = [cube.to_params(np.array([0.0, v]))["n"] for v in u]
    for k in (1, 2, 3, 4):
        share = np.log((k + 0.5) / (k - 0.5)) / np.log(9)
        assert abs(n.count(k) / 10_000 - share) < 2e-4


def test_the_ends_of_the_cube_are_the_ends_of_the_ranges():
    space = {
        "a": FloatDistribution(-0.7, 0.1),
        "b": FloatDistribution(1e-7, 0.3, log=True),
        "c": IntDistribution(-3, 11),
        "d": IntDistribution(2, 9, log=True),
        "e": FloatDistribution(0.1, 0.7, step=0.2),
    }
    cube = Cube(space)
    assert cube.to_params(np.zeros(5)) == {name: d.low for name, d in space.items()}
    top = cube.to_params(np.ones(5))
    assert top == pytest.approx({name: d.high for name, d in space.items()}, rel=1e-15)
    assert all(top[name] <= d.high for name, d in space.items())


def test_to_cube_is_the_inverse():
    space = {
        "a": FloatDistribution(-5, 3),
        "b": FloatDistribution(1e-7, 0.3, log=True),
        "c": IntDistribution(-3, 11),
        "d": IntDistribution(2, 9, log=True),
    }
    cube = Cube(space)
    values = {"a": 0.25, "b": 1e-3, "c": 7, "d": 4}
    assert cube.to_params(cube.to_cube(values)) == pytest.approx(values, rel=1e-14)
    np.testing.assert_array_equal(cube.to_cube({}), 0.5)


def test_the_search_starts_at_x0():
    start = {name: 0.1 * (i + 1) for i, name in enumerate(NAMES)}
    study = optuna.create_study(sampler=sampler(x0=start, sigma0=1e-9))
    study.optimize(objective, n_trials=1)
    assert study.trials[0].params == pytest.approx(start, abs=1e-7)


def test_the_intersection_is_optunas():
    a, b, c = FloatDistribution(0, 1), IntDistribution(0, 1), CategoricalDistribution(["u", "v"])
    shown = [
        {"y": a, "x": a, "k": c, "n": b},
        {"x": a, "y": a, "k": c, "n": a},  # another order; n is no longer a whole number
        {"x": a, "k": c, "z": a},
    ]
    ours = Intersection()
    for i, distributions in enumerate(shown):
        ours.narrow(distributions)
        trials = [
            optuna.create_trial(
                params={n: d.to_external_repr(0) for n, d in ds.items()}, distributions=ds, value=0
            )
            for ds in shown[: i + 1]
        ]
        theirs = optuna.search_space.intersection_search_space(trials)
        assert ours.searched() == {n: d for n, d in theirs.items() if n != "k"}
    assert list(ours.searched()) == ["x"]


# --- What is told ---------------------------------------------------------------------------------


def frozen(value=None, state=TrialState.COMPLETE, reports=(), constraint=None):
    return optuna.create_trial(
        state=state,
        value=value,
        intermediate_values=dict(reports),
        constraints=None if constraint is None else {"c": constraint},
    )


def test_ranks():
    pruned = TrialState.PRUNED
    trials = [
        frozen(3.0),
        frozen(-1.0, constraint=-2.0),  # kept
        frozen(3.0),  # equal to the first
        frozen(-9.0, constraint=0.5),  # broken
        frozen(-9.0, constraint=0.25),
        frozen(state=pruned, reports={0: 0.1, 1: 7.0}),
        frozen(state=pruned, reports={1: 5.0}),
        frozen(state=pruned, reports={0: -50.0}),  # did not get so far
        frozen(np.inf),
        frozen(-np.inf),
        frozen(state=TrialState.FAIL),
        frozen(state=pruned),
        frozen(state=pruned, reports={0: np.nan}),
    ]
    inf = np.inf
    assert ranks(trials, 1.0) == [2, 1, 2, 7, 6, 4, 3, 5, inf, 0, inf, inf, inf]
    # To be maximised: values and reports the other way, constraints as they were.
    assert ranks(trials, -1.0) == [1, 2, 1, 7, 6, 3, 4, 5, 0, inf, inf, inf, inf]


def test_failed_trials_are_infeasible():
    def crashes(trial):
        x = suggest(trial)
        if x[0] < 0.45:
            raise OSError
        return bowl(x)

    study = optuna.create_study(sampler=sampler())
    study.optimize(crashes, n_trials=400, catch=OSError)
    failed = [t.state == TrialState.FAIL for t in study.trials]
    assert sum(failed) > 20
    assert check_course(study) == 400 // POPSIZE
    # The minimum without failures is at 0.3; here on the edge of what works.
    np.testing.assert_allclose(point(study.best_trial), [0.45, 0.3, 0.3, 0.3, 0.3], atol=0.02)


@pytest.mark.parametrize(
    "pruner", [optuna.pruners.MedianPruner(n_startup_trials=2), optuna.pruners.HyperbandPruner()]
)
def test_pruned_trials_are_told_too(pruner):
    def slow(trial):
        x = suggest(trial)
        for step in range(4):
            trial.report(bowl(x) * (4 - step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return bowl(x)

    study = optuna.create_study(sampler=sampler(), pruner=pruner)
    study.optimize(slow, n_trials=400)
    assert sum(t.state == TrialState.PRUNED for t in study.trials) > 40
    assert len(list(generations(study.trials))) == 400 // POPSIZE
    assert len(set(rows(study))) == 400
    assert study.best_value < 1e-4


def test_enqueued_trials_are_not_told():
    study = optuna.create_study(sampler=sampler())
    for number in range(40):
        if number % 5 == 2:
            study.enqueue_trial({"x0": 0.123})
        study.optimize(objective, n_trials=1)
    enqueued = [t for t in study.trials if t.params["x0"] == 0.123]
    assert len(enqueued) == 8
    assert all(claim(t) is None for t in enqueued)
    assert check_course(study) == (40 - 8) // POPSIZE


# --- Studies on disk ------------------------------------------------------------------------------


@pytest.fixture
def url(tmp_path):
    """In memory where there is such a file system: SQLite waits for the disk at every number."""
    with tempfile.TemporaryDirectory(dir=next(filter(os.path.isdir, ["/dev/shm", tmp_path]))) as d:
        yield f"sqlite:///{d}/study.db"


@pytest.mark.parametrize("seed", [99, None])
def test_a_resumed_study_is_the_same_study(url, seed):
    """Whatever seed the sampler that goes on has: the search in the study has its own."""
    whole = optuna.create_study(sampler=sampler(1))
    whole.optimize(objective, n_trials=27)
    optuna.create_study(storage=url, study_name="s", sampler=sampler(1)).optimize(objective, 12)
    for n in (5, 10):
        again = optuna.load_study(storage=url, study_name="s", sampler=sampler(seed))
        again.optimize(objective, n_trials=n)
    assert [t.params for t in again.trials] == [t.params for t in whole.trials]
    assert [t.system_attrs for t in again.trials] == [t.system_attrs for t in whole.trials]


def test_a_pickled_sampler_goes_on():
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=20)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(objective, n_trials=20)
    assert check_course(study) == 40 // POPSIZE


def test_what_is_stored_is_small():
    """Numbers only, and as many in 200 variables as in 5."""
    space = {f"x{i}": FloatDistribution(0, 1) for i in range(200)}
    settings = {"seed": 1, "n_startup_trials": 0, "search_space": space}
    study = optuna.create_study(sampler=FmnesSampler(**settings))
    for _ in range(60):
        trial = study.ask(space)
        study.tell(trial, sum(trial.params.values()))
    sizes = [len(json.dumps(t.system_attrs)) for t in study.trials]
    assert max(sizes) < 300
    assert np.mean(sizes) < 60


def test_other_settings_are_another_search():
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=20)
    study.sampler = sampler(popsize=12)
    study.optimize(objective, n_trials=30)
    study.sampler = sampler()
    study.optimize(objective, n_trials=20)
    starts = [t.number for t in study.trials if isinstance(claim(t).get("after"), str)]
    assert starts == [0, 20]
    first = [(g, r) for g, r in rows(study) if g < 20 or g >= 50]
    assert len(first) == 40
    assert check_course(study) == 5


def test_one_sampler_for_one_study_after_the_other():
    shared = sampler()
    for _ in range(2):
        study = optuna.create_study(sampler=shared)
        study.optimize(objective, n_trials=20)
        assert check_course(study) == 3


# --- Many at once ---------------------------------------------------------------------------------


def check_nothing_twice(study):
    """Nobody evaluates what another does, unless that one was overtaken by a population."""
    taken = {}
    for number, claimed in enumerate(rows(study)):
        assert claimed not in taken or number > taken[claimed] + POPSIZE
        taken[claimed] = number


def test_threads():
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=200, n_jobs=4)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 200
    check_nothing_twice(study)
    assert check_course(study) > 10


def test_samplers_that_know_nothing_of_each_other():
    """As in processes, but in threads that are interrupted all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        storage = optuna.storages.InMemoryStorage()
        study = optuna.create_study(storage=storage, study_name="s")

        def work(seed):
            mine = optuna.load_study(storage=storage, study_name="s", sampler=sampler(seed))
            mine.optimize(objective, n_trials=40)

        with ThreadPoolExecutor(5) as pool:
            list(pool.map(work, range(5)))
    finally:
        sys.setswitchinterval(before)
    check_nothing_twice(study)
    head, _ = next(generations(study.trials))
    assert check_course(study, head["seed"]) > 10


WORKER = """
import sys
import optuna
sys.path.insert(0, {folder!r})
import test_optuna as t
optuna.logging.set_verbosity(optuna.logging.ERROR)
seed = int(sys.argv[1])
study = optuna.load_study(storage={url!r}, study_name="s", sampler=t.sampler(seed))
study.optimize(t.objective, n_trials=25)
"""


def test_processes(url, request):
    """Two, with different seeds, from the first trial on."""
    study = optuna.create_study(storage=url, study_name="s", sampler=sampler())
    code = WORKER.format(folder=str(request.path.parent), url=url)
    workers = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", code, str(seed)], stderr=-1)
        for seed in (1, 2)
    ]
    errors = [worker.communicate()[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], errors
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 50
    check_nothing_twice(study)
    head, _ = next(generations(study.trials))
    assert check_course(study, head["seed"]) >= 4


class Storage(optuna.storages.InMemoryStorage):
    """Calls ``hook`` once, just before a claim is written: what another process does meanwhile."""

    hook = None

    def set_trial_system_attr(self, *args):
        hook, self.hook = self.hook, None
        if hook is not None:
            hook()
        super().set_trial_system_attr(*args)


def two_processes(done):
    """Two studies on one storage, each with a sampler of its own; some trials are done."""
    storage = Storage()
    one = optuna.create_study(storage=storage, study_name="s", sampler=sampler(1))
    two = optuna.load_study(storage=storage, study_name="s", sampler=sampler(2))
    one.optimize(objective, n_trials=done)
    return storage, one, two


@pytest.mark.parametrize("done", [3, POPSIZE - 1])
def test_two_take_the_same_row_at_once(done):
    """Whoever writes second sees it, and takes another one; a spare one, if it was the last."""
    storage, one, two = two_processes(done)
    asked = []
    storage.hook = lambda: asked.append(two.ask(SPACE))
    asked.append(one.ask(SPACE))
    for trial in asked:
        one.tell(trial, bowl(point(trial)))
    one.optimize(objective, n_trials=30)
    assert len(set(rows(one))) == len(rows(one))
    assert check_course(one) >= 4


@pytest.mark.parametrize("done", [0, POPSIZE])
def test_two_open_a_generation_at_once(done):
    """One is joined by all, and at most the other's own trial is of no use."""
    storage = Storage()
    one = optuna.create_study(storage=storage, study_name="s", sampler=sampler(1))
    one.optimize(objective, n_trials=done)
    two = optuna.load_study(storage=storage, study_name="s", sampler=sampler(2))
    asked = []
    storage.hook = lambda: asked.append(two.ask(SPACE))
    asked.append(one.ask(SPACE))
    for trial in asked:
        one.tell(trial, bowl(point(trial)))
    for study in [one, two] * 20:
        study.optimize(objective, n_trials=1)
    told = {n for t in one.trials for n in claim(t).get("told", ())}
    assert len(told) >= (done + 42 - 1) // POPSIZE * POPSIZE - POPSIZE
    seeds = {claim(t)["seed"] for t in one.trials if "seed" in claim(t)}
    check_course(one, seed=seeds.pop() if len(seeds) == 1 else 1)


def test_a_late_opener_wins_nobody():
    """A process that stood still between reading and writing does not undo what others did."""
    storage, one, two = two_processes(POPSIZE)
    storage.hook = lambda: two.optimize(objective, n_trials=3 * POPSIZE)
    one.optimize(objective, n_trials=2 * POPSIZE)
    assert check_course(one) == 6


def test_a_trial_that_is_not_seen_yet_is_waited_for(monkeypatch):
    """A storage may show the attribute of a new trial before the state of an older one."""
    storage, one, two = two_processes(POPSIZE - 1)
    last = one.ask(SPACE)
    two.ask(SPACE)
    stale = storage.get_trial(last._trial_id)
    one.tell(last, bowl(point(last)))
    one.optimize(objective, n_trials=2)
    read, calls = storage.get_all_trials, []

    def lagging(*args, **kwargs):
        trials = read(*args, **kwargs)
        if kwargs.get("states") is None:
            calls.append(1)
            if len(calls) <= 3:
                trials[last.number] = stale
        return trials

    monkeypatch.setattr(storage, "get_all_trials", lagging)
    two.optimize(objective, n_trials=1)
    assert len(calls) > 3
    assert claim(two.trials[-1])["generation"] == one.trials[-3].number
    assert claim(two.trials[-1])["row"] in range(2, POPSIZE)
    check_course(one)


# --- Trials that never end, and those that are tried again ----------------------------------------


def test_a_killed_trial_is_evaluated_by_another():
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=3)
    lost = study.ask(SPACE)  # nobody will ever tell it
    study.optimize(objective, n_trials=5 * POPSIZE)
    row = claim(study.trials[lost.number])
    heirs = [t for t in study.trials if claim(t) == row and t.number != lost.number]
    assert [point(t).tolist() for t in heirs] == [point(lost).tolist()]
    # A population of others was finished first: four more rows, and four spare candidates.
    assert heirs[0].number == lost.number + POPSIZE + 1
    assert len([r for _, r in rows(study) if r >= POPSIZE]) == 4
    check_course(study)
    # Should it be told after all, it is too late to matter.
    study.tell(lost, 0.0)
    study.optimize(objective, n_trials=POPSIZE)
    check_course(study)
    assert lost.number not in {n for t in study.trials for n in claim(t).get("told", ())}


def test_spare_candidates_are_of_the_same_distribution():
    """While all rows are taken: other points, around the same mean, with the same deviation."""
    study = optuna.create_study(sampler=sampler(sigma0=0.01))
    trials = [study.ask(SPACE) for _ in range(100)]
    x = np.array([point(t) for t in trials])
    assert len(np.unique(x, axis=0)) == 100
    spare = x[POPSIZE:] - 0.5
    # The initial v is random: a deviation lies between 0.01 and, along v, a little more.
    assert np.all(np.abs(spare.mean(axis=0)) < 0.01)
    assert np.all(np.abs(spare.std(axis=0) / 0.01 - 1) < 0.8)


def test_a_trial_that_is_tried_again_counts():
    """As Optuna has it for trials whose process died: with all that the failed one had."""
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=3)
    lost = study.ask(SPACE)
    study.tell(lost, state=TrialState.FAIL)
    failed = study.trials[lost.number]
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        optuna.storages.RetryHeartbeatStaleTrialCallback()(study, failed)
    study.optimize(objective, n_trials=20)
    again = study.trials[lost.number + 1]
    assert (again.params, claim(again)) == (failed.params, claim(failed))
    told = {n for t in study.trials for n in claim(t).get("told", ())}
    assert again.number in told
    assert lost.number not in told
    check_course(study)


# --- Parameters that are not searched -------------------------------------------------------------


def test_categories_are_sampled_by_another(caplog):
    study = optuna.create_study(sampler=FmnesSampler(seed=1))
    with caplog.at_level(logging.WARNING, "fmnes"):
        study.optimize(mixed, n_trials=30)
    assert {t.params["kind"] for t in study.trials} == {"a", "b"}
    (record,) = caplog.records  # once, not in every trial
    assert "'kind' is sampled by RandomSampler" in record.message


def test_a_space_that_changes_is_searched_anew():
    def conditional(trial):
        x = suggest(trial)
        if trial.number >= 20:
            return bowl(x[:2]) + trial.suggest_float("y", 0, 1)
        return bowl(x)

    def smaller(trial):
        return bowl(np.array([trial.suggest_float(n, 0, 1) for n in NAMES[:2]]))

    study = optuna.create_study(sampler=FmnesSampler(seed=1, warn_independent_sampling=False))
    study.optimize(conditional, n_trials=30)
    study.optimize(smaller, n_trials=200)
    starts = [t.number for t in study.trials if claim(t) and "seed" in claim(t)]
    assert starts == [1, 31]  # y was never common to all
    assert min(t.value for t in study.trials[30:]) < 1e-6


# --- OptunaHub ------------------------------------------------------------------------------------


def test_the_package_for_optunahub():
    """What its registry wants of a package, and that it is our sampler that one gets."""
    folder = Path(__file__).parents[2] / "optunahub" / "package" / "samplers" / "fmnes"
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert names == {"LICENSE", "README.md", "__init__.py", "example.py", "requirements.txt"}
    spec = importlib.util.spec_from_file_location("of_the_hub", folder / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.FmnesSampler is FmnesSampler
    _, header, page = (folder / "README.md").read_text().split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in header.splitlines())
    assert list(fields) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert fields["tags"].startswith("[sampler, ")
    assert re.findall("^## (.+)$", page, re.MULTILINE) == [
        "Abstract",
        "Class or Function Names",
        "Installation",
        "Example",
        "Others",
    ]


# --- The page -------------------------------------------------------------------------------------


def test_the_table_is_that_of_the_stored_run():
    rows = json.loads((BENCHMARKS / "results" / "optuna.json").read_text())["rows"]
    assert load("optuna_sampler").table(rows) in (BENCHMARKS.parent / "docs/optuna.md").read_text()
    ours = [r["ms"] for r in rows if (r["sampler"], r["dim"]) == ("FmnesSampler", 1000)]
    assert max(ours) < 1.0


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "nope"}, ValueError, "method: expected one of"),
        ({"x0": [1.0]}, TypeError, "x0: expected a dict"),
        ({"sigma0": 0.0}, ValueError, "sigma0: expected a number > 0"),
        ({"sigma0": None}, TypeError, "sigma0: expected a number > 0, got None"),
        ({"popsize": 1}, ValueError, "popsize: expected at least 2"),
        ({"seed": -1}, ValueError, "seed: expected at least 0"),
        ({"n_startup_trials": 1.5}, TypeError, "n_startup_trials: expected a whole number"),
        ({"independent_sampler": 3}, TypeError, "independent_sampler: expected a sampler"),
        ({"search_space": {"x": (0, 1)}}, TypeError, "search_space['x']: expected a distribution"),
        ({"lr_adapt": True}, TypeError, "unexpected keyword"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error) as caught:
        FmnesSampler(**arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x0": {"x0": 2.0}}, "x0['x0']: expected one of FloatDistribution"),
        ({"popsize": 7}, "popsize: expected an even number"),
    ],
)
def test_arguments_that_do_not_fit_the_space(arguments, message):
    study = optuna.create_study(sampler=sampler(**arguments))
    with pytest.raises(ValueError, match="expected") as caught:
        study.ask(SPACE)
    assert message in str(caught.value)
    assert claim(study.trials[0]) is None


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=FmnesSampler())
    with pytest.raises(ValueError, match="study: expected one objective, got 2"):
        study.optimize(lambda trial: (suggest(trial)[0], 1.0), n_trials=1)


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    source = types.ModuleType("copy")
    path = sys.modules["fmnes.integrations.optuna"].__file__
    with open(path) as file, pytest.raises(ImportError, match=r"pip install 'fmnes\[optuna\]'"):
        exec(compile(file.read(), path, "exec"), vars(source))
