"""A worker of a cluster: an object that some engine keeps for us, and whose methods it calls."""

import os
import pickle
import socket
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fmnes
from fmnes import kernels
from fmnes._optimizer import Optimizer
from fmnes._population import Population
from fmnes.evaluate._cargo import ignore_interrupts
from fmnes.evaluate._guard import ELSEWHERE, Answer, Task, attempt, evaluate_chunk
from fmnes.evaluate._outcome import Failure


def identity() -> dict[str, Any]:
    """What has to be the same everywhere for updates to have the same bits."""
    opt = Optimizer(np.linspace(-1.0, 1.0, 50), 0.5, rng=1, popsize=8)
    for values in np.arange(24.0).reshape(3, 8)[:, ::-1]:
        opt.ask()
        opt.tell(values)
    return {
        "fmnes": fmnes.__version__,
        "numpy": np.__version__,
        "kernels": kernels.in_use,
        "probe": zlib.crc32(opt.result.mean),  # of a small search: shows whatever else differs
    }


class Replica:
    """Holds the state of a search: builds candidates, evaluates them, and goes on as told."""

    def __init__(self) -> None:
        ignore_interrupts()
        self._population: Population | None = None
        self._task: Task | None = None

    def join(self) -> tuple[dict[str, Any], str]:
        """Who this is, and where."""
        return identity(), f"process {os.getpid()} on {socket.gethostname()}"

    def hold(self, objective: bytes) -> Answer:
        """Load the objective."""
        task = attempt(pickle.loads, objective)
        if isinstance(task, Failure):
            return Answer((), refused=("objective", task))
        self._task = task
        return Answer(())

    def follow(self, checkpoint: bytes, journal: Sequence[NDArray[np.float64]]) -> int:
        """Begin anew from the checkpoint, if there is one; then update once for each of the values.

        Returns the fingerprint of the state.
        """
        if checkpoint:
            self._population = pickle.loads(checkpoint)  # noqa: S301  from the driver
            self._population.stays = True
        if self._population is None:
            return -1  # as no state has it
        for values in journal:
            self._population.advance(values)
        return self._population.fingerprint()

    def work(self, generation: int, candidates: Sequence[int], seconds: float) -> Answer:
        """Evaluate candidates of this generation."""
        population, task = self._population, self._task
        if population is None or task is None or population.address.generation != generation:
            return Answer((), missing=True)

        def row(k: int) -> Any:
            return population.row(candidates[k])

        return evaluate_chunk(task, candidates, row, seconds, ELSEWHERE)
