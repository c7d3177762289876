"""Who evaluates which candidate: kept in the trials themselves, the same for every process.

A trial that evaluates a candidate holds a claim, in its system attribute "fmnes":

    {"generation": 41, "row": 3}

A generation is named after the number of the trial that opened it. That trial's claim also says
what the state before it is made of, which is all that there is of a state in the storage:

    {..., "opens": 9, "after": "9f3c...", "seed": 1}       the first of a search with these settings
    {..., "opens": 41, "after": 9, "told": [9, 10, ...]}   the trials whose values were told, by row

A trial may change its mind about what it evaluates, but not about what it opened: by the time that
it looks around, others may be in that generation, or have left it behind.

Draws are addressed by (seed, generation, row), so whoever reads the trials in order has the same
state to the bit. Rows from ``popsize`` on are spare candidates of the same distribution, which are
not told: for those who ask while all others are being evaluated.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from fmnes.integrations._optuna_space import Intersection

KEY = "fmnes"
OPENING = "opens", "after", "seed", "told"  # what a claim keeps when its trial takes another row
Claim = dict[str, Any]


def claim_of(trial: FrozenTrial) -> Claim | None:
    """The claim that a trial holds, if any."""
    return trial.system_attrs.get(KEY)


class Ledger:
    """The claims of a study's trials. Finished trials are read once, the others every time."""

    def __init__(self) -> None:
        self.trials: list[FrozenTrial] = []
        self.completed = 0
        self.common = Intersection()
        self._unfinished: list[int] = []
        self._live: list[FrozenTrial] = []  # that are not finished and hold a claim
        self._finished: dict[int, list[FrozenTrial]] = defaultdict(list)  # by generation
        self._openers: dict[int | str, list[FrozenTrial]] = defaultdict(list)  # finished; by after

    def read(self, study: Study) -> None:
        """Take in what happened since the last time.

        From the storage: a study that a pruner filtered has only some of the trials.
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
        claim = claim_of(trial)
        if claim is not None:
            self._finished[claim["generation"]].append(trial)
            if _opens(trial, claim):
                self._openers[claim["after"]].append(trial)

    def opener(self, after: int | str) -> FrozenTrial | None:
        """The trial that opened the generation that comes after another.

        Two processes may open one at the same time. Then the one that more trials joined counts,
        and between equals the first: all processes come to follow the same one.
        """
        openers = self._openers[after].copy()
        for trial in self._live:
            claim = claim_of(trial)
            if claim is not None and _opens(trial, claim) and claim["after"] == after:
                openers.append(trial)
        return max(openers, key=lambda t: (len(list(self._of(t.number))), -t.number), default=None)

    def claims(self, generation: int, but: int) -> dict[int, list[FrozenTrial]]:
        """The trials of a generation by row, each in order, without trial number ``but``."""
        rows: dict[int, list[FrozenTrial]] = defaultdict(list)
        for trial in sorted(self._of(generation), key=lambda t: t.number):
            if trial.number != but:
                rows[trial.system_attrs[KEY]["row"]].append(trial)
        return rows

    def _of(self, generation: int) -> Iterator[FrozenTrial]:
        yield from self._finished[generation]
        yield from (t for t in self._live if t.system_attrs[KEY]["generation"] == generation)


def _opens(trial: FrozenTrial, claim: Claim) -> bool:
    """Whether the trial opened a generation; a retried one has the claim of another."""
    return claim.get("opens") == trial.number


def settled(claims: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The trial whose value stands for a row; None while it has none.

    A failed trial counts if nobody tries again.
    """
    for trial in claims:
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
            return trial
    failed = all(trial.state == TrialState.FAIL for trial in claims)
    return claims[0] if claims and failed else None


def ranks(trials: Sequence[FrozenTrial], sign: float) -> list[float]:
    """What is told: 0 for the best and so on, equal for equal trials, inf where there is no value.

    Completed trials come first, by value; then pruned ones, as far as they got; then those that
    break a constraint, by how much. The methods see nothing but ranks in any case.
    """
    keys = [_key(trial, sign) for trial in trials]
    order = {key: float(i) for i, key in enumerate(sorted({k for k in keys if k is not None}))}
    return [math.inf if key is None else order[key] for key in keys]


def _key(trial: FrozenTrial, sign: float) -> tuple[int, int, float] | None:
    if trial.state == TrialState.COMPLETE and trial.value is not None:
        violation = sum(max(0.0, excess) for excess in trial.constraints.values())
        if violation > 0:
            return 2, 0, violation
        return None if sign * trial.value == math.inf else (0, 0, sign * trial.value)
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        step, value = max(trial.intermediate_values.items())
        return None if math.isnan(value) else (1, -step, sign * value)
    return None
