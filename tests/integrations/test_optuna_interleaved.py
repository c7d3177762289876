"""FmnesSampler in workers of which one goes on at a time, to its next call of the storage.

Who that is, chance decides; now and then it decides that some shall stand still for long. So in
seconds there are more ways to meet than threads find in hours.
"""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
from optuna_studies import (  # noqa: E402  # once it is there
    check_course,
    check_nothing_twice,
    generations,
    objective,
    sampler,
)

WORKERS, TRIALS = 8, 20


class Turns:
    """Whose turn it is."""

    def __init__(self, seed):
        self._rng = random.Random(seed)
        self._changed = threading.Condition()
        self._speed = dict.fromkeys(range(WORKERS), 1.0)
        self._whose = 0

    def take(self, me):
        """Let somebody go on, and wait until it is me."""
        with self._changed:
            if self._rng.random() < 0.01:
                self._speed = {who: self._rng.choice([0.001, 1, 1]) for who in self._speed}
            self._pass_on()
            self._changed.wait_for(lambda: self._whose == me)

    def leave(self, me):
        """For good."""
        with self._changed:
            del self._speed[me]
            self._pass_on()

    def _pass_on(self):
        if self._speed:
            (self._whose,) = self._rng.choices([*self._speed], [*self._speed.values()])
        self._changed.notify_all()


class Storage(optuna.storages.InMemoryStorage):
    """Waits for its turn before each call and after it."""

    def __init__(self, turns):
        super().__init__()
        self._turns, self.local = turns, threading.local()

    def _in_turn(self, call, *args, **kwargs):
        me = getattr(self.local, "worker", None)
        if me is None:
            return call(*args, **kwargs)
        self._turns.take(me)
        result = call(*args, **kwargs)
        self._turns.take(me)
        return result

    def create_new_trial(self, *args, **kwargs):
        return self._in_turn(super().create_new_trial, *args, **kwargs)

    def get_all_trials(self, *args, **kwargs):
        return self._in_turn(super().get_all_trials, *args, **kwargs)

    def set_trial_system_attr(self, *args, **kwargs):
        return self._in_turn(super().set_trial_system_attr, *args, **kwargs)

    def set_trial_state_values(self, *args, **kwargs):
        return self._in_turn(super().set_trial_state_values, *args, **kwargs)


def interleaved(seed):
    """A study after all workers have ended."""
    turns = Turns(seed)
    storage = Storage(turns)
    study = optuna.create_study(storage=storage, study_name="s")

    def work(me):
        storage.local.worker = me
        try:
            mine = optuna.load_study(storage=storage, study_name="s", sampler=sampler(me))
            mine.optimize(objective, n_trials=TRIALS)
        finally:
            turns.leave(me)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, range(WORKERS)))
    return study


@pytest.mark.parametrize("seed", range(10))
def test_whoever_stands_still_all_follow_one_course(seed):
    study = interleaved(seed)
    assert len(study.trials) == WORKERS * TRIALS
    check_nothing_twice(study)
    head, _ = next(generations(study.trials))
    # Of 20 generations; candidates that are evaluated twice, and spare ones, are of no use.
    assert check_course(study, head["seed"]) >= 6
