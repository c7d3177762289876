"""Which trial evaluates which candidate: stored in the trials, so that every process agrees.

A trial that evaluates a candidate holds a claim, in its system attribute "fmnes":

    {"generation": 41, "row": 3}

A generation is named after the number of the trial that opened it. The claim of that trial also
says how to compute the state of the method before that generation:

    {..., "opens": 9, "after": "9f3c...", "seed": 1}       the start of a search with these settings
    {..., "opens": 41, "after": 9, "told": [9, 10, ...]}   the trials whose values are told, by row

If enqueued trials take part in that generation, it lists them as "injected". They have the first
rows, which nobody claims.

A trial may choose another candidate to evaluate, but its opening stays: other trials may already
be in that generation, or past it.

Draws depend only on (seed, generation, row), so every process that reads the trials in order
computes exactly the same state. Rows from ``popsize`` on are spare candidates of the same
distribution. They are never told; trials evaluate them when all other rows are taken.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from fmnes import _checks as checks
from fmnes.integrations._optuna_space import Intersection

KEY = "fmnes"
OPENING = (
    "opens",
    "after",
    "seed",
    "told",
    "injected",
)  # what a claim keeps when its trial takes another row
Claim = dict[str, Any]


def claim_of(trial: FrozenTrial) -> Claim | None:
    """Return the claim that a trial holds, if any."""
    return trial.system_attrs.get(KEY)


class TrialClaims:
    """The claims of a study's trials. It reads finished trials once, and the others every time."""

    def __init__(self) -> None:
        self.trials: list[FrozenTrial] = []
        self.completed = 0
        self.enqueued: list[FrozenTrial] = []  # completed trials whose parameters the user gave
        self.common = Intersection()
        self._unfinished: list[int] = []
        self._live: list[FrozenTrial] = []  # unfinished trials that hold a claim
        self._finished: dict[int, list[FrozenTrial]] = defaultdict(list)  # by generation
        self._openers: dict[int | str, list[FrozenTrial]] = defaultdict(list)  # finished; by after

    def read(self, study: Study) -> None:
        """Read what changed since the last call.

        From the storage, because a pruner may hide some trials from the study.
        """
        seen = len(self.trials)
        self.trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        numbers = [*self._unfinished, *range(seen, len(self.trials))]
        self._unfinished = []
        self._live = []
        for trial in map(self.trials.__getitem__, numbers):
            if trial.state.is_finished():
                self._file(trial)
            else:
                self._unfinished.append(trial.number)
                if claim_of(trial) is not None:
                    self._live.append(trial)

    def _file(self, trial: FrozenTrial) -> None:
        if trial.state == TrialState.COMPLETE:
            self.completed += 1
            self.common.narrow(trial.distributions)
            if trial.system_attrs.get("fixed_params") and claim_of(trial) is None:
                self.enqueued.append(trial)
        claim = claim_of(trial)
        if claim is not None:
            self._finished[claim["generation"]].append(trial)
            if _opens(trial):
                self._openers[claim["after"]].append(trial)

    def opener(self, after: int | str) -> FrozenTrial | None:
        """Return the trial that opened the generation after another one.

        Two processes may open it at the same time. Then the one that more trials joined counts, or
        the first if they are equal, so that all processes end up with the same one.
        """
        live = [t for t in self._live if _opens(t) and t.system_attrs[KEY]["after"] == after]
        openers = [*self._openers[after], *live]
        return max(openers, key=lambda t: (len(list(self._in(t.number))), -t.number), default=None)

    def by_row(self, generation: int, but: int) -> dict[int, list[FrozenTrial]]:
        """Return the trials of a generation by row, in order, without trial number ``but``."""
        rows: dict[int, list[FrozenTrial]] = defaultdict(list)
        for trial in sorted(self._in(generation), key=lambda t: t.number):
            if trial.number != but:
                rows[trial.system_attrs[KEY]["row"]].append(trial)
        return rows

    def _in(self, generation: int) -> Iterator[FrozenTrial]:
        yield from self._finished[generation]
        yield from (t for t in self._live if t.system_attrs[KEY]["generation"] == generation)


def _opens(trial: FrozenTrial) -> bool:
    """Return whether the trial opened a generation; a retried trial has the claim of another."""
    return bool(trial.system_attrs[KEY].get("opens") == trial.number)


def has_all(trial: FrozenTrial, space: Mapping[str, BaseDistribution]) -> bool:
    """Return whether the user gave all parameters of a space for an enqueued trial."""
    given = trial.system_attrs.get("fixed_params", {})
    return space.keys() <= given.keys() and all(
        trial.distributions.get(name) == distribution for name, distribution in space.items()
    )


def settled(trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """Return the trial whose value counts for a row; None while there is none.

    A failed trial counts if no other trial evaluates the row.
    """
    for trial in trials:
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
            return trial
    failed = all(trial.state == TrialState.FAIL for trial in trials)
    return trials[0] if trials and failed else None


def ranks(
    trials: Sequence[FrozenTrial], sign: float, merits: Mapping[int, float] | None = None
) -> list[float]:
    """Return what is told: 0 for the best trial, 1 for the next, inf for trials without a value.

    Completed trials come first, ordered by value; then pruned trials, those that got furthest
    first; then trials that violate a constraint, ordered by the violation. With ``merits``, by
    trial number, completed trials are ordered by these. Equal trials have equal ranks. Nothing is
    lost: the methods use only the ranks of values.
    """
    keys = [_key(trial, sign, merits or {}) for trial in trials]
    order = {key: float(i) for i, key in enumerate(sorted({k for k in keys if k is not None}))}
    return [math.inf if key is None else order[key] for key in keys]


def _key(
    trial: FrozenTrial, sign: float, merits: Mapping[int, float]
) -> tuple[int, int, float] | None:
    if trial.number in merits:
        merit = merits[trial.number]
        return (0, 0, merit) if merit < math.inf else None  # NaN too
    if trial.state == TrialState.COMPLETE and trial.value is not None:
        violation = sum(max(0.0, excess) for excess in constraints_of(trial).values())
        if violation > 0:
            return 2, 0, violation
        return None if sign * trial.value == math.inf else (0, 0, sign * trial.value)
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        step, value = max(trial.intermediate_values.items())
        return None if math.isnan(value) else (1, -step, sign * value)
    return None


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """Return how much a trial exceeds each constraint, by name.

    Optuna 5 has `FrozenTrial.constraints`. In Optuna 4, samplers with a ``constraints_func`` store
    a list.
    """
    if hasattr(trial, "constraints"):
        return dict(trial.constraints)
    stored = trial.system_attrs.get("constraints") or []
    return {str(i): value for i, value in enumerate(stored)}


def store_constraints(
    study: Study,
    trial: FrozenTrial,
    state: TrialState,
    constraints_func: Callable[[FrozenTrial], Sequence[float]],
) -> None:
    """Store what ``constraints_func`` returns for a trial where Optuna's own samplers store it."""
    if state not in (TrialState.COMPLETE, TrialState.PRUNED):
        return
    stored: tuple[float, ...] | None = None
    try:
        values = checks.numbers("constraints_func", constraints_func(trial), "a list of numbers")
        if values.ndim != 1 or np.isnan(values).any():
            raise ValueError(
                f"constraints_func: expected a list of numbers without NaN, got {values.tolist()!r}"
            )
        stored = tuple(values.tolist())
    finally:  # None says that it failed, as with the samplers of Optuna
        study._storage.set_trial_system_attr(trial._trial_id, "constraints", stored)
