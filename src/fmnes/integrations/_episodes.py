"""Environments of Gymnasium that are stepped together until each has played one episode."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Act = Callable[[Floats], Any]  # observations (n, k) to n actions

MODES = ("sync", "async", "vector_entry_point")  # those of gymnasium.make_vec


class Environments(Protocol):
    """Some environments of the same kind."""

    n: int

    def play(self, act: Act, seeds: Sequence[int]) -> Floats:
        """The return of one episode in each, which begin with these seeds."""

    def close(self) -> None:
        """Close them."""


def open_environments(env: Any, n: int, mode: str | None) -> Environments:
    """``n`` environments, as the arguments ``env`` and ``vectorization_mode`` say."""
    if mode is None:
        return Separate([make(env) for _ in range(n)])
    if isinstance(env, str):
        return Vector(gymnasium.make_vec(env, n, mode))
    kind = gymnasium.vector.SyncVectorEnv if mode == "sync" else gymnasium.vector.AsyncVectorEnv
    return Vector(kind([env] * n))


def make(env: Any) -> Any:
    """One environment: of an id, or of a function that makes it."""
    return gymnasium.make(env) if isinstance(env, str) else env()


class Separate:
    """Environments one by one: each rests when its episode has ended."""

    def __init__(self, environments: list[Any]) -> None:
        self._environments, self.n = environments, len(environments)

    def play(self, act: Act, seeds: Sequence[int]) -> Floats:
        totals, running = np.zeros(self.n), list(range(self.n))
        starts = zip(self._environments, seeds, strict=True)
        seen = np.array([env.reset(seed=seed)[0] for env, seed in starts], np.float64)
        while running:
            actions = act(seen)
            for i in list(running):
                seen[i], reward, ended, truncated, _ = self._environments[i].step(actions[i])
                totals[i] += reward
                if ended or truncated:
                    running.remove(i)
        return totals

    def close(self) -> None:
        for env in self._environments:
            env.close()


class Vector:
    """A vector environment, in which those that have ended begin anew until all have."""

    def __init__(self, vector: Any) -> None:
        self._vector, self.n = vector, vector.num_envs
        parallel = gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv
        self._seeds_each = isinstance(vector.unwrapped, parallel)  # others take one for all

    def play(self, act: Act, seeds: Sequence[int]) -> Floats:
        totals, running = np.zeros(self.n), np.ones(self.n, bool)
        seen, _ = self._vector.reset(seed=list(seeds) if self._seeds_each else seeds[0])
        while running.any():
            seen, rewards, ended, truncated, _ = self._vector.step(
                act(np.asarray(seen, np.float64))
            )
            totals[running] += rewards[running]
            running &= ~(ended | truncated)
        return totals

    def close(self) -> None:
        self._vector.close()
