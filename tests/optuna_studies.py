"""Studies for the tests of FmnesSampler, and what must hold in each of them."""

import itertools

import numpy as np
import optuna
from optuna.distributions import FloatDistribution

import fmnes
from fmnes.integrations.optuna import FmnesSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)

DIM = 5
NAMES = [f"x{i}" for i in range(DIM)]
SPACE = {name: FloatDistribution(0.0, 1.0) for name in NAMES}
POPSIZE = 8  # CR-FM-NES at d = 5


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
    openers = [t for t in trials if claim(t) and claim(t).get("opens") == t.number]
    after = next(claim(t)["after"] for t in openers if isinstance(claim(t)["after"], str))
    while found := [t for t in openers if claim(t)["after"] == after]:
        of_it = {
            t.number: [u for u in trials if claim(u) and claim(u)["generation"] == t.number]
            for t in found
        }
        after = max(of_it, key=lambda n: (len(of_it[n]), -n))  # of two, the one that most joined
        yield claim(trials[after]), of_it[after]


def check_course(study, seed=1):
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
            opt.tell([np.inf if t.value is None else t.value for t in told])
        x = opt.ask()
        for t in of_it:
            row = claim(t)["row"]
            if row < opt.popsize and t.params:
                np.testing.assert_array_equal(point(t), x[row])
        count += 1
    return count


def check_nothing_twice(study):
    """Nobody evaluates what another does, unless that one was overtaken by a population.

    By their numbers alone one cannot tell who came second: a trial may have chosen late.
    """
    trials = [trial for trial in study.trials if claim(trial)]
    for a, b in itertools.combinations(trials, 2):
        if all(claim(a)[key] == claim(b)[key] for key in ("generation", "row")):
            assert overtaken(a, b, trials) or overtaken(b, a, trials), (a.number, b.number)


def overtaken(one, other, trials):
    """Whether a population of trials after ``one`` had ended when ``other`` took its row."""
    ended = [
        trial
        for trial in trials
        if claim(trial)["generation"] == claim(one)["generation"]
        and trial.number > one.number
        and trial is not other
        and trial.datetime_complete <= other.datetime_complete
    ]
    return len(ended) >= POPSIZE


def rows(study):
    """(generation, row) of every trial."""
    return [(claim(t)["generation"], claim(t)["row"]) for t in study.trials if claim(t)]
