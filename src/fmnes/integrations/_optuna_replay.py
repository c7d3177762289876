"""A search in a study, recomputed from the claims of its trials."""

import dataclasses
import hashlib
import json
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from fmnes._optimizer import Optimizer
from fmnes.constraints import lagrangian
from fmnes.integrations._optuna_claims import (
    KEY,
    OPENING,
    Claim,
    TrialClaims,
    constraints_of,
    has_all,
    ranks,
    settled,
)
from fmnes.integrations._optuna_space import SearchedSpace


class ReplayedSearch:
    """The state of a method after the generations told so far, computed from the trials alone."""

    def __init__(
        self,
        space: SearchedSpace,
        claims: TrialClaims,
        settings: Any,
        x0: Mapping[str, Any],
        sigma0: float,
        popsize: int | None,
        sign: float,
    ) -> None:
        self.space, self._claims, self._sign = space, claims, sign
        self._variables, self._sigma0 = space.variables(x0), sigma0
        self._settings, self._popsize = settings, popsize
        self._name = self._digest()
        self._restart()

    def _digest(self) -> str:
        """Return a name for this search; one with other settings in the study has another name."""
        content = [
            self.space.to_json(),
            type(self._settings).__name__,
            dataclasses.asdict(self._settings),
            self._variables.start(),
            self._sigma0,
            self._popsize,
            *(["integers and choices"] if self.space.is_discrete else ()),  # were rounded before
        ]
        text = json.dumps(content, default=lambda array: np.asarray(array).tolist())
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _restart(self) -> None:
        self.generation: int | str = self._name  # until a trial opened the first generation
        self._previous: int | str = ""
        self._begin(seed=0)  # checks the settings before a trial claims anything

    def _begin(self, seed: int) -> None:
        self._optimizer = Optimizer(
            self._variables,
            self.space.deviations(self._sigma0),
            method=self._settings,
            popsize=self._popsize,
            rng=seed,
        )
        self._injected: tuple[int, ...] = ()  # trials in the first rows of this generation
        self._used: set[int] = set()  # those of all generations
        self._populations: dict[int, NDArray[np.float64]] = {}
        self._constraints: tuple[str, ...] = ()  # their names, once trials have some
        self._has_feasible = False  # a trial of these constraints satisfies all of them
        self._lagrangian = lagrangian.initial(np.zeros(0, bool))

    # === The state of the search ===

    def follow(self) -> bool:
        """Advance to the newest generation; False if it depends on a trial that is not seen yet."""
        if self.generation != self._name:
            opener = self._claims.opener(self._previous)
            if opener is None or opener.number != self.generation:  # of two, the other one counts
                self._restart()
        while (opener := self._claims.opener(self.generation)) is not None:
            claim = opener.system_attrs[KEY]
            if self.generation == self._name:
                self._begin(claim["seed"])
            else:
                told = [self._claims.trials[number] for number in claim["told"]]
                if not all(trial.state.is_finished() for trial in told):
                    return False
                self._optimizer.ask(rows=slice(1))  # tell needs an ask before it
                self._optimizer.tell(ranks(told, self._sign, self._merits(told)))
            self._previous, self.generation = self.generation, opener.number
            self._populations = {}
            self._inject(claim.get("injected", ()))
        return True

    def _inject(self, numbers: Sequence[int]) -> None:
        """Let enqueued trials take the first rows of a generation; `tell` has their values."""
        self._injected = tuple(numbers)
        self._used.update(numbers)
        for number in numbers:
            x = self.space.to_vector(self._searched(self._claims.trials[number]))
            self._optimizer.inject(self._variables.decode(x))

    def _searched(self, trial: FrozenTrial) -> dict[str, Any]:
        return {name: trial.params[name] for name in self.space.space}

    def _to_inject(self) -> list[int]:
        """Return the enqueued trials that take part in the next generation, the best first.

        Only the best popsize of all enqueued trials ever do: they must not hold up the search.
        """
        space, optimizer = self.space.space, self._optimizer
        found = [t for t in self._claims.enqueued if has_all(t, space)]
        ranked = sorted(zip(ranks(found, self._sign), (t.number for t in found), strict=True))
        best = [number for rank, number in ranked[: optimizer.popsize] if rank < math.inf]
        return [number for number in best if number not in self._used][: optimizer.most_injected]

    def _merits(self, told: Sequence[FrozenTrial]) -> dict[int, float]:
        """Return the augmented Lagrangian of completed trials by number, and update it.

        Empty if trials have no constraints, or not all of them the same ones: then violations
        alone decide.
        """
        completed = [t for t in told if t.state == TrialState.COMPLETE and t.value is not None]
        names = {tuple(sorted(constraints_of(trial))) for trial in completed}
        if len(names) != 1 or names == {()}:
            return {}
        (constraints,) = names
        if constraints != self._constraints:
            self._constraints, self._has_feasible = constraints, False
            self._lagrangian = lagrangian.initial(np.zeros(len(constraints), bool))
        f = np.array([self._sign * float(trial.value or 0.0) for trial in completed])
        rows = [constraints_of(trial) for trial in completed]
        g = np.array([[row[name] for name in constraints] for row in rows])
        self._has_feasible |= bool((g <= 0).all(axis=1).any())
        optimizer, unchanged = self._optimizer, None
        if optimizer.setup.discrete is not None:
            points = [self.space.to_vector(self._searched(trial)) for trial in completed]
            unchanged = optimizer.unchanged(np.array(points))
        self._lagrangian, merits = lagrangian.after(
            self._lagrangian, optimizer.dim, f, g, unchanged, found=self._has_feasible
        )
        return {trial.number: float(m) for trial, m in zip(completed, merits, strict=True)}

    def params(self, row: int) -> dict[str, Any]:
        """Return the parameters of a candidate of this generation, or of a spare one."""
        k, row = divmod(row, self._optimizer.popsize)
        if k not in self._populations:
            # Spare candidates use the random streams of later runs: there are no restarts here.
            twin = {**self._optimizer.to_saved(), "run": k, "injected": None}
            source = self._optimizer if k == 0 else Optimizer.from_saved(twin)
            self._populations[k] = np.asarray(source.ask_vectors())
        return self.space.to_params(self._populations[k][row])

    # === What a trial evaluates ===

    def choose(self, number: int, seed: int | None, before: Claim | None) -> tuple[Claim, set[int]]:
        """Return a claim for trial ``number``, and the trials that are known to hold the same row.

        The row is a free one; if there is none, one whose trial is overdue; otherwise that of a
        spare candidate. ``before`` is an earlier claim of this trial that did not hold, because
        another trial took the same row or opened a generation at the same time. Then the row is
        chosen at random, and the trial does not open another generation.
        """
        opened = {key: before[key] for key in OPENING if key in before} if before else {}
        injected = self._to_inject()
        opening: Claim = {"generation": number, "row": len(injected), "opens": number}
        opening |= {"after": self.generation, **({"injected": injected} if injected else {})}
        if self.generation == self._name:
            if seed is None:
                seed = int(np.random.default_rng().integers(2**32))
            return {**opening, "seed": seed}, set()
        popsize = self._optimizer.popsize
        by_row = self._claims.by_row(int(self.generation), but=number)
        given = [self._claims.trials[i] for i in self._injected]
        others = range(len(given), popsize)
        winners = [*given, *(settled(by_row.get(row, ())) for row in others)]
        told = [trial.number for trial in winners if trial is not None]
        if len(told) == popsize and not opened:
            return {**opening, "told": told}, set()
        rows = [row for row in others if row not in by_row]
        if not rows:
            rows = _overdue(by_row, winners)
        if not rows:
            spare = max(popsize, max(by_row) + 1)
            rows = list(range(spare, spare + popsize))
        row = random.SystemRandom().choice(rows) if before else rows[0]
        return {"generation": self.generation, "row": row, **opened}, _numbers(by_row.get(row, ()))

    def holds(self, number: int, claim: Claim, known: set[int]) -> bool:
        """Return whether a trial's claim is its own, now that all other trials can see it."""
        if self.generation != claim["generation"]:
            return False
        by_row = self._claims.by_row(int(self.generation), but=number)
        return _numbers(by_row.get(claim["row"], ())) == known


def _numbers(trials: Sequence[FrozenTrial]) -> set[int]:
    return {trial.number for trial in trials}


def _overdue(by_row: dict[int, list[FrozenTrial]], winners: list[FrozenTrial | None]) -> list[int]:
    """Return rows whose last trial a whole population has overtaken: its process may be dead."""
    finished = [t.number for trials in by_row.values() for t in trials if t.state.is_finished()]
    return [
        row
        for row, winner in enumerate(winners)
        if winner is None and sum(n > by_row[row][-1].number for n in finished) >= len(winners)
    ]
