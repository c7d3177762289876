"""FmnesSampler in real studies: its candidates, what it is told, what it leaves to others."""

import importlib.util
import json
import logging
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import fmnes
from benchmark_modules import BENCHMARKS, load

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
from optuna.trial import TrialState  # noqa: E402

from fmnes.integrations._optuna_claims import ranks  # noqa: E402
from fmnes.integrations.optuna import FmnesSampler  # noqa: E402
from optuna_studies import (  # noqa: E402  # once it is there
    DIM,
    NAMES,
    POPSIZE,
    SPACE,
    bowl,
    check_course,
    claim,
    generations,
    objective,
    point,
    rows,
    sampler,
    suggest,
)

# --- Candidates -----------------------------------------------------------------------------------


def minimised(method, n):
    """The candidates of minimize, which also evaluates x0: the sampler does not."""
    x0 = np.full(DIM, 0.5)
    opt = fmnes.Optimizer(x0, 1 / 6, bounds=[(0, 1)] * DIM, method=method, rng=1, maxfevals=n)
    seen = []
    while not opt.stop():
        seen.extend(x := opt.ask())
        opt.tell([bowl(row) for row in x])
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
    np.testing.assert_array_equal([point(t) for t in study.trials], minimised("auto", 96))


def test_ask_and_tell_are_optimize():
    study = optuna.create_study(sampler=sampler())
    while len(study.trials) < 96:
        batch = [study.ask(SPACE) for _ in range(POPSIZE)]
        for trial in reversed(batch):  # any order
            study.tell(trial, bowl(point(trial)))
    np.testing.assert_array_equal([point(t) for t in study.trials], minimised("auto", 96))


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


# --- What is told ---------------------------------------------------------------------------------


def frozen(value=None, state=TrialState.COMPLETE, reports=(), constraint=None):
    trial = optuna.create_trial(
        state=state, value=value, intermediate_values=dict(reports), system_attrs={}
    )
    if constraint is not None and hasattr(trial, "set_constraint"):  # since Optuna 5
        trial.set_constraint("c", constraint)
    elif constraint is not None:
        trial.system_attrs["constraints"] = [constraint]
    return trial


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


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")  # Optuna 5 prefers Trial.set_constraint
def test_constraints_of_the_independent_sampler_count():
    """The only way to state constraints in Optuna 4; Optuna 5 still has it."""
    tpe = optuna.samplers.TPESampler(constraints_func=lambda trial: [0.45 - trial.params["x0"]])
    study = optuna.create_study(sampler=sampler(independent_sampler=tpe))
    study.optimize(objective, n_trials=400)
    kept = [t for t in study.trials if t.params["x0"] >= 0.45]
    best = min(kept, key=lambda t: t.value)
    np.testing.assert_allclose(point(best), [0.45, 0.3, 0.3, 0.3, 0.3], atol=0.02)
    assert len(kept) > 100  # the search stays at the edge; without constraints it is at 0.3


def test_constraints_func():
    """Two constraints, both active at the best point."""
    asked = []

    def constraints(trial):
        asked.append(trial.number)
        return 0.45 - trial.params["x0"], trial.params["x1"] - 0.2

    study = optuna.create_study(sampler=sampler(constraints_func=constraints))
    study.optimize(objective, n_trials=400)
    assert asked == list(range(400))
    kept = [t for t in study.trials if max(constraints(t)) <= 0]
    best = min(kept, key=lambda t: t.value)
    np.testing.assert_allclose(point(best), [0.45, 0.2, 0.3, 0.3, 0.3], atol=0.02)
    assert study.best_trial.number == best.number  # Optuna knows the constraints too


@pytest.mark.parametrize(("wrong", "message"), [([np.nan], "without NaN"), (["a"], "numbers")])
def test_wrong_values_of_constraints_func(wrong, message):
    study = optuna.create_study(sampler=sampler(constraints_func=lambda trial: wrong))
    with pytest.raises((TypeError, ValueError), match=f"constraints_func.*{message}"):
        study.optimize(objective, n_trials=1)
    with pytest.raises(TypeError, match="constraints_func: expected a function"):
        sampler(constraints_func=3)


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

    # Hyperband divides the trials by the study's name.
    study = optuna.create_study(sampler=sampler(), pruner=pruner, study_name="s")
    study.optimize(slow, n_trials=400)
    assert sum(t.state == TrialState.PRUNED for t in study.trials) > 20
    assert len(list(generations(study.trials))) == 400 // POPSIZE
    assert len(set(rows(study))) == 400
    assert study.best_value < 1e-4


def test_enqueued_trials_with_some_parameters_are_not_told():
    study = optuna.create_study(sampler=sampler())
    for number in range(40):
        if number % 5 == 2:
            study.enqueue_trial({"x0": 0.123})
        study.optimize(objective, n_trials=1)
    enqueued = [t for t in study.trials if t.params["x0"] == 0.123]
    assert len(enqueued) == 8
    assert all(claim(t) is None for t in enqueued)
    assert check_course(study) == (40 - 8) // POPSIZE


def test_enqueued_trials_take_part_as_points_from_elsewhere():
    """The course of the study is that of an Optimizer which the trials are injected into."""
    study, good = optuna.create_study(sampler=sampler()), dict.fromkeys(NAMES, 0.31)
    bad = dict.fromkeys(NAMES, 0.9)
    study.enqueue_trial(bad)
    study.optimize(objective, n_trials=13)
    study.enqueue_trial(good)
    study.optimize(objective, n_trials=40)
    trials = study.trials
    heads = [head for head, _ in generations(trials)]
    assert heads[0]["injected"] == [0]
    assert [head["injected"] for head in heads[1:] if "injected" in head] == [[13]]
    opt = fmnes.Optimizer(np.full(len(NAMES), 0.5), 1 / 6, bounds=[(0, 1)] * len(NAMES), rng=1)
    for head, of_it in generations(trials):
        if "told" in head:
            opt.tell([trials[number].value for number in head["told"]])
        for number in head.get("injected", ()):
            opt.inject(point(trials[number]))
        x = opt.ask()
        for trial in of_it:
            np.testing.assert_array_equal(point(trial), x[claim(trial)["row"]])


def test_a_study_with_enqueued_trials_resumes_exactly(tmp_path):
    """A sampler that knows nothing but the storage proposes what the first would have."""
    found = []
    for pieces in ((40,), (7, 1, 32)):
        file = optuna.storages.journal.JournalFileBackend(f"{tmp_path}/{len(pieces)}.log")
        storage = optuna.storages.JournalStorage(file)
        study = optuna.create_study(storage=storage, study_name="s", sampler=sampler())
        for i in range(12):
            study.enqueue_trial(dict.fromkeys(NAMES, 0.02 * i))
        for n_trials in pieces:
            again = optuna.load_study(storage=storage, study_name="s", sampler=sampler())
            again.optimize(objective, n_trials=n_trials)
        found.append([t.params for t in again.trials])
        injected = [n for head, _ in generations(again.trials) for n in head.get("injected", ())]
        assert len(injected) == len(set(injected)) == POPSIZE  # the best of twelve, no more
    assert found[0] == found[1]


# --- Integers and categories ----------------------------------------------------------------------


def test_integers_keep_a_chance_to_change():
    """The first variables mislead until the last ones are found; rounding alone gets stuck."""

    def objective(trial):
        n = [trial.suggest_int(f"n{i}", 0, 20) for i in range(4)]
        x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(4)]
        return sum(abs(v - 13) for v in n) + 100 * sum((v - 0.3) ** 2 for v in x)

    study = optuna.create_study(sampler=FmnesSampler(seed=1))
    study.optimize(objective, n_trials=800)
    assert [study.best_params[f"n{i}"] for i in range(4)] == [13] * 4
    late = study.trials[-200:]
    assert len({t.params["n0"] for t in late}) > 1  # the margin


def test_categories_are_searched(caplog):
    kinds = ["a", "b", "c", None, 2.5]

    def objective(trial):
        found = [trial.suggest_categorical(f"k{i}", kinds) for i in range(6)]
        flags = [trial.suggest_categorical(f"f{i}", [True, False]) for i in range(6)]
        return sum(v is not None for v in found) + sum(flags)

    study = optuna.create_study(sampler=FmnesSampler(seed=1))
    with caplog.at_level(logging.WARNING, "fmnes"):
        study.optimize(objective, n_trials=600)
    assert study.best_value == 0  # one of 10^6
    assert not caplog.records


@pytest.mark.skipif(
    not hasattr(optuna.Trial, "set_constraint"), reason="Trial.set_constraint is new in Optuna 5"
)
def test_set_constraint():
    """The objective itself states the constraints, also that of an integer."""

    def objective(trial):
        x = suggest(trial)
        n = trial.suggest_int("n", 0, 9)
        trial.set_constraint("x0", 0.45 - x[0])
        trial.set_constraint("n", 4 - n)
        return bowl(x) + 0.1 * n

    study = optuna.create_study(sampler=FmnesSampler(seed=1))
    study.optimize(objective, n_trials=600)
    best = study.best_trial  # Optuna's: the best that keeps the constraints
    assert best.params["n"] == 4
    np.testing.assert_allclose(point(best), [0.45, 0.3, 0.3, 0.3, 0.3], atol=0.03)


# --- Parameters that are not searched -------------------------------------------------------------


def test_parameters_that_not_all_trials_have_are_sampled_by_another(caplog):
    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float("x", 0, 1)
        return x + (trial.suggest_float("y", 0, 1) if kind == "b" else 0.5)

    study = optuna.create_study(sampler=FmnesSampler(seed=1))
    with caplog.at_level(logging.WARNING, "fmnes"):
        study.optimize(objective, n_trials=40)
    names = [record.args[0] for record in caplog.records if record.args[0] == "y"]
    assert len(names) == 1  # once, not in every trial


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
    ("name", "value", "error"),
    [
        ("method", "nope", ValueError),
        ("x0", [1.0], TypeError),
        ("sigma0", 0.0, ValueError),
        ("sigma0", float("inf"), ValueError),
        ("sigma0", None, TypeError),
        ("popsize", 1, ValueError),
        ("seed", -1, ValueError),
        ("n_startup_trials", 1.5, TypeError),
        ("independent_sampler", 3, TypeError),
        ("warn_independent_sampling", "no", TypeError),
        ("search_space", {"x": (0, 1)}, TypeError),
    ],
)
def test_wrong_arguments_are_named(name, value, error):
    with pytest.raises(error, match=rf"^{name}.*: expected .*, got "):
        FmnesSampler(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("x0", {"x0": 2.0}), ("popsize", 7)])
def test_arguments_that_do_not_fit_the_space(name, value):
    study = optuna.create_study(sampler=sampler(**{name: value}))
    with pytest.raises(ValueError, match=rf"^{name}.*: expected .*, got "):
        study.ask(SPACE)
    assert claim(study.trials[0]) is None


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=FmnesSampler())
    with pytest.raises(ValueError, match=r"^study: .*, got 2"):
        study.optimize(lambda trial: (suggest(trial)[0], 1.0), n_trials=1)


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    source = types.ModuleType("copy")
    path = sys.modules["fmnes.integrations.optuna"].__file__
    with open(path) as file, pytest.raises(ImportError, match=r"pip install 'fmnes\[optuna\]'"):
        exec(compile(file.read(), path, "exec"), vars(source))
