"""Gymnasium environments that are stepped together until each has played one episode."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Act = Callable[[Floats], Any]  # observations (n, k) to n actions

MODES = ("sync", "async", "vector_entry_point")  # those of gymnasium.make_vec


class Environments(Protocol):
    """Several environments of the same kind."""

    n: int

    def play(self, act: Act, seeds: Sequence[int]) -> Floats:
        """Play one episode in each environment, from these seeds, and return the n returns."""

    def close(self) -> None:
        """Close the environments."""


def open_environments(env: Any, n: int, mode: str | None) -> Environments:
    """Open ``n`` environments for the arguments ``env`` and ``vectorization_mode``."""
    if mode is None:
        return SeparateEnvironments([make(env) for _ in range(n)])
    if isinstance(env, str):
        return VectorEnvironments(gymnasium.make_vec(env, n, mode))
    kind = gymnasium.vector.SyncVectorEnv if mode == "sync" else gymnasium.vector.AsyncVectorEnv
    return VectorEnvironments(kind([env] * n))


def make(env: Any) -> Any:
    """Make one environment from its id, or with the function that makes it."""
    return gymnasium.make(env) if isinstance(env, str) else env()


class SeparateEnvironments:
    """Separate environments, each of which is stepped until its episode ends."""

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


class VectorEnvironments:
    """A vector environment; environments that end early begin a new episode, which is ignored."""

    def __init__(self, vector: Any) -> None:
        self._vector, self.n = vector, vector.num_envs
        parallel = gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv
        self._seeds_each = isinstance(vector.unwrapped, parallel)  # others take one seed for all

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
