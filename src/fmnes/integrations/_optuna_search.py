"""One search in a study: follows the generations that the trials' claims tell of."""

import dataclasses
import hashlib
import json
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial

from fmnes._coordinates import Bounds
from fmnes._optimizer import Optimizer
from fmnes.integrations._optuna_ledger import KEY, OPENING, Claim, Ledger, ranks, settled
from fmnes.integrations._optuna_space import Cube


class Search:
    """The state of a method after the generations that were told, made from the trials alone."""

    def __init__(
        self,
        cube: Cube,
        ledger: Ledger,
        settings: Any,
        x0: Mapping[str, Any],
        sigma0: float,
        popsize: int | None,
        sign: float,
    ) -> None:
        self.cube, self._ledger, self._sign = cube, ledger, sign
        self._x0, self._sigma0 = cube.to_cube(x0), sigma0
        self._settings, self._popsize = settings, popsize
        self._name = self._digest()
        self._restart()

    def _digest(self) -> str:
        """What tells this search from one with other settings in the same study."""
        content = [
            self.cube.to_json(),
            type(self._settings).__name__,
            dataclasses.asdict(self._settings),
            self._x0,
            self._sigma0,
            self._popsize,
        ]
        text = json.dumps(content, default=lambda array: np.asarray(array).tolist())
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _restart(self) -> None:
        self.generation: int | str = self._name  # until one was opened
        self._previous: int | str = ""
        self._begin(seed=0)  # so that wrong settings are told of before there is a claim

    def _begin(self, seed: int) -> None:
        self._optimizer = Optimizer(
            self._x0,
            self._sigma0,
            method=self._settings,
            popsize=self._popsize,
            bounds=Bounds(0.0, 1.0),
            rng=seed,
        )
        self._populations: dict[int, NDArray[np.float64]] = {}

    # === Where the search stands ===

    def follow(self) -> bool:
        """Come to the newest generation; False where a trial that it tells of is not seen yet."""
        if self.generation != self._name:
            opener = self._ledger.opener(self._previous)
            if opener is None or opener.number != self.generation:  # we followed the other of two
                self._restart()
        while (opener := self._ledger.opener(self.generation)) is not None:
            claim = opener.system_attrs[KEY]
            if self.generation == self._name:
                self._begin(claim["seed"])
            else:
                told = [self._ledger.trials[number] for number in claim["told"]]
                if not all(trial.state.is_finished() for trial in told):
                    return False
                self._optimizer.ask(rows=slice(1))  # tell wants to be asked before
                self._optimizer.tell(ranks(told, self._sign))
            self._previous, self.generation = self.generation, opener.number
            self._populations = {}
        return True

    def params(self, row: int) -> dict[str, Any]:
        """The parameters of a candidate of this generation, or of a spare one."""
        k, row = divmod(row, self._optimizer.popsize)
        if k not in self._populations:
            # The streams of later runs are free for the spare ones: there are no restarts here.
            twin = {**self._optimizer.to_saved(), "run": k}
            source = self._optimizer if k == 0 else Optimizer.from_saved(twin)
            self._populations[k] = source.ask()
        return self.cube.to_params(self._populations[k][row])

    # === What a trial evaluates ===

    def choose(self, number: int, seed: int | None, before: Claim | None) -> tuple[Claim, set[int]]:
        """The claim for trial ``number``, and who is known to hold the same.

        A row that is free; else one whose trial is overdue; else a spare candidate. ``before`` is
        what the trial claimed when somebody else took the same one at the same time, or all others
        went on meanwhile: then by chance, and it does not open a second generation.
        """
        opened = {key: before[key] for key in OPENING if key in before} if before else {}
        opening = {"generation": number, "row": 0, "opens": number, "after": self.generation}
        if self.generation == self._name:
            if seed is None:
                seed = int(np.random.default_rng().integers(2**32))
            return {**opening, "seed": seed}, set()
        popsize = self._optimizer.popsize
        claims = self._ledger.claims(int(self.generation), but=number)
        winners = [settled(claims.get(row, ())) for row in range(popsize)]
        told = [trial.number for trial in winners if trial is not None]
        if len(told) == popsize and not opened:
            return {**opening, "told": told}, set()
        rows = [row for row in range(popsize) if row not in claims]
        if not rows:
            rows = _overdue(claims, winners)
        if not rows:
            spare = max(popsize, max(claims) + 1)
            rows = list(range(spare, spare + popsize))
        row = random.SystemRandom().choice(rows) if before else rows[0]
        return {"generation": self.generation, "row": row, **opened}, _holders(claims, row)

    def holds(self, number: int, claim: Claim, known: set[int]) -> bool:
        """Whether the claim of a trial is its own, now that all others can see it."""
        if self.generation != claim["generation"]:
            return False
        claims = self._ledger.claims(int(self.generation), but=number)
        return _holders(claims, claim["row"]) == known


def _holders(claims: dict[int, list[FrozenTrial]], row: int) -> set[int]:
    return {trial.number for trial in claims.get(row, ())}


def _overdue(claims: dict[int, list[FrozenTrial]], winners: list[FrozenTrial | None]) -> list[int]:
    """Rows whose last trial was overtaken by a whole population: its process may be dead."""
    finished = [t.number for trials in claims.values() for t in trials if t.state.is_finished()]
    return [
        row
        for row, winner in enumerate(winners)
        if winner is None and sum(n > claims[row][-1].number for n in finished) >= len(winners)
    ]
