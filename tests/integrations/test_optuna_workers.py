"""FmnesSampler on disk, in threads and processes, and with trials that never end."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
from optuna.distributions import FloatDistribution  # noqa: E402
from optuna.storages import JournalStorage  # noqa: E402
from optuna.storages.journal import JournalFileBackend  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from fmnes.integrations.optuna import FmnesSampler  # noqa: E402
from optuna_studies import (  # noqa: E402  # once it is there
    POPSIZE,
    SPACE,
    bowl,
    check_course,
    check_nothing_twice,
    claim,
    generations,
    objective,
    point,
    rows,
    sampler,
)

# --- Studies on disk ------------------------------------------------------------------------------


@pytest.fixture
def url(tmp_path):
    """In memory where there is such a file system: SQLite waits for the disk at every number."""
    with tempfile.TemporaryDirectory(dir=next(filter(os.path.isdir, ["/dev/shm", tmp_path]))) as d:
        yield f"sqlite:///{d}/study.db"


@pytest.mark.parametrize("seed", [99, None])
def test_a_resumed_study_is_the_same_study(tmp_path, seed):
    """Whatever seed the sampler that goes on has: the search in the study has its own."""

    def on_disk():
        return JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))

    whole = optuna.create_study(sampler=sampler(1))
    whole.optimize(objective, n_trials=27)
    first = optuna.create_study(storage=on_disk(), study_name="s", sampler=sampler(1))
    first.optimize(objective, n_trials=12)
    for n in (5, 10):
        again = optuna.load_study(storage=on_disk(), study_name="s", sampler=sampler(seed))
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


# Of 200 trials, whoever is stalled by the scheduler: a candidate is handed out again once a
# population has overtaken it, and the one who takes it may be stalled as well.
FEWEST = 200 // (3 * POPSIZE + 5)


def test_threads():
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=200, n_jobs=4)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 200
    check_nothing_twice(study)
    assert check_course(study) >= FEWEST


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
    assert check_course(study, head["seed"]) >= FEWEST


WORKER = """
import sys
import optuna
sys.path.insert(0, {folder!r})
import optuna_studies as t
seed = int(sys.argv[1])
study = optuna.load_study(storage={url!r}, study_name="s", sampler=t.sampler(seed))
study.optimize(t.objective, n_trials=16)
"""


def test_processes(url, request):
    """Two, with different seeds, from the first trial on."""
    study = optuna.create_study(storage=url, study_name="s", sampler=sampler())
    code = WORKER.format(folder=str(request.path.parents[1]), url=url)
    workers = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", code, str(seed)], stderr=-1)
        for seed in (1, 2)
    ]
    errors = [worker.communicate()[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], errors
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 32
    check_nothing_twice(study)
    head, _ = next(generations(study.trials))
    assert check_course(study, head["seed"]) >= 2


class Storage(optuna.storages.InMemoryStorage):
    """Calls ``hook`` once, just before a claim is written: what another process does meanwhile.

    And ``afterwards`` just after one is.
    """

    hook = afterwards = None

    def set_trial_system_attr(self, *args):
        hook, self.hook = self.hook, None
        if hook is not None:
            hook()
        super().set_trial_system_attr(*args)
        hook, self.afterwards = self.afterwards, None
        if hook is not None:
            hook()


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


@pytest.mark.parametrize("meanwhile", range(1, 3 * POPSIZE + 2))
def test_a_slow_opener_takes_nothing_back(meanwhile):
    """What it opened stays, when others evaluated its row meanwhile and went on from there."""
    storage, one, two = two_processes(POPSIZE)
    storage.afterwards = lambda: two.optimize(objective, n_trials=meanwhile)
    one.optimize(objective, n_trials=1)
    two.optimize(objective, n_trials=POPSIZE)
    assert check_course(one) == 3 + max(0, (meanwhile - 2) // POPSIZE)


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
    assert claim(two.trials[-1]) == {"generation": one.trials[-3].number, "row": 2}
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
    name = "RetryHeartbeatStaleTrialCallback"  # until 4.8: RetryFailedTrialCallback
    retry = getattr(optuna.storages, name, None) or optuna.storages.RetryFailedTrialCallback
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        retry()(study, failed)
    study.optimize(objective, n_trials=20)
    again = study.trials[lost.number + 1]
    assert (again.params, claim(again)) == (failed.params, claim(failed))
    told = {n for t in study.trials for n in claim(t).get("told", ())}
    assert again.number in told
    assert lost.number not in told
    check_course(study)
