"""Policy search: the return of a policy in a Gymnasium environment, as an objective.

M. Towers et al.: "Gymnasium: a standard interface for reinforcement learning environments" (2024).
The linear policies on normalised observations follow H. Mania, A. Guy, B. Recht: "Simple random
search of static linear policies is competitive for reinforcement learning", NeurIPS 2018.

Needs ``pip install 'fmnes[gymnasium]'``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes.integrations._rl_policies import Policy, read_policy

try:
    import gymnasium

    from fmnes.integrations._episodes import MODES, Environments, make, open_environments
except ImportError as error:
    raise ImportError(
        "fmnes.integrations.gymnasium needs Gymnasium: pip install 'fmnes[gymnasium]'"
    ) from error

Floats = NDArray[np.float64]


class PolicyObjective:
    """Minus the mean return of a policy, as a function of the policy's parameters.

    Parameters
    ----------
    env : str or callable
        The id of an environment, or a function without arguments that makes one, such as
        ``functools.partial(gymnasium.make, "HalfCheetah-v5", max_episode_steps=200)``. Observations
        must be vectors (a one-dimensional `Box`), actions `Discrete` or vectors (`Box`).
    policy : "linear", sequence of int, or torch.nn.Module
        How outputs are computed from observations: by an affine map; by a network in NumPy with
        tanh layers of these widths; or by your module, which maps each row of observations to a row
        of outputs. A `Discrete` action is the index of the largest output. For a `Box`, the outputs
        -1 and 1 mean its bounds, and outputs beyond them are clipped; an unbounded `Box` uses the
        outputs directly.
    episodes : int
        Number of episodes over which the return is averaged. Episode i = 0, 1, ... starts from
        ``reset(seed=seed + i)``, for all candidates alike.
    seed : int
        Seed of the first episode, and of the random actions for ``normalize``.
    normalize : int, or pair of arrays
        Number of episodes with random actions before the search, to estimate the mean and the
        standard deviation of each observation. Policies see normalised observations. 0 means no
        normalisation. A pair (mean, std) reuses the statistics of another objective.
    vectorization_mode : {None, "sync", "async", "vector_entry_point"}
        None steps environments one by one, as long as their episodes last. This is the fastest,
        unless the environment has a vectorised version. The others are those of
        `gymnasium.make_vec`. "sync" and "async" give the same values as None. "vector_entry_point"
        needs an id and uses one seed for all environments: candidates start from different states,
        and the value of a candidate depends on its row, so the objective is noisy.

    Attributes
    ----------
    x0 : array of shape (d,)
        Initial parameters: zeros, or the current parameters of a module.
    mean, std : arrays
        Statistics with which observations are normalised.

    Notes
    -----
    A call with one candidate, shape (d,), returns a float: use it with ``workers``. A call with
    many, shape (n, d), steps all their environments together and returns n values: use it with
    ``vectorized=True``.

    The statistics are computed once and then fixed, unlike the running ones of Mania et al., so
    that the objective is the same function for every candidate, worker and resumed search. For an
    affine policy they are only a change of coordinates, to which the search adapts.

    Examples
    --------
    >>> import fmnes
    >>> from fmnes.integrations.gymnasium import PolicyObjective
    >>> objective = PolicyObjective("CartPole-v1", episodes=3, seed=1)
    >>> result = fmnes.minimize(objective, objective.x0, 1.0, ftarget=-500, rng=1, workers=2)
    >>> result.fun
    -500.0
    """

    def __init__(
        self,
        env: str | Callable[[], Any],
        policy: Any = "linear",
        *,
        episodes: int = 1,
        seed: int = 0,
        normalize: int | tuple[ArrayLike, ArrayLike] = 0,
        vectorization_mode: str | None = None,
    ) -> None:
        if not isinstance(env, str):
            checks.function("env", env)
        self.episodes = checks.integer("episodes", episodes, least=1)
        self.seed = checks.integer("seed", seed, least=0)
        if vectorization_mode is not None:
            modes = MODES if isinstance(env, str) else MODES[:2]
            checks.choice("vectorization_mode", vectorization_mode, modes)
        self._env, self._mode = env, vectorization_mode
        self._environments: Environments | None = None
        with make(env) as probe:
            self._actions = _Actions(probe.action_space)
            shape = probe.observation_space.shape  # None for spaces such as Dict
            if shape is None or len(shape) != 1:
                raise ValueError(
                    "env: expected observations that are a vector (see "
                    f"gymnasium.wrappers.FlattenObservation), got {probe.observation_space}"
                )
            self.mean, self.std = _statistics(probe, shape, normalize, self.seed)
        self._policy: Policy = read_policy(policy, shape[0], self._actions.size)
        self.x0: Floats = self._policy.x0

    def __call__(self, x: Any) -> Any:
        """Return minus the mean return: a float for one candidate, an array for many."""
        rows = np.atleast_2d(np.asarray(x, np.float64))
        values = -self._returns(rows, range(self.seed, self.seed + self.episodes)).mean(axis=1)
        return values if np.ndim(x) == 2 else float(values[0])

    def returns(self, x: ArrayLike, *, episodes: int, seed: int) -> Floats:
        """Return the returns of one candidate in other episodes, to test how it generalises."""
        first, row = checks.integer("seed", seed, least=0), self._row(x)
        seeds = range(first, first + checks.integer("episodes", episodes, least=1))
        return np.array([self._returns(row, [start])[0, 0] for start in seeds])

    def act(self, x: ArrayLike, observation: ArrayLike) -> Any:
        """Return the action of a candidate, shape (d,), for one observation."""
        step = self._policy.prepare(self._row(x))
        seen = (np.asarray(observation, np.float64)[None, :] - self.mean) / self.std
        return self._actions.choose(step(seen))[0]

    def close(self) -> None:
        """Close the environments of this process; the next evaluation opens new ones."""
        if self._environments is not None:
            self._environments.close()
            self._environments = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_environments": None}  # a worker opens its own

    def _row(self, x: ArrayLike) -> Floats:
        """Return one candidate as an array of shape (1, d)."""
        row = checks.numbers("x", x, "the parameters of a policy")
        if row.shape != self.x0.shape:
            raise ValueError(f"x: expected shape {self.x0.shape}, got shape {row.shape}")
        return row[None, :]

    def _returns(self, rows: Floats, seeds: Sequence[int]) -> Floats:
        """Return the returns of all episodes, shape (candidates, episodes), played together."""
        if rows.shape[1] != len(self.x0):
            raise ValueError(f"x: expected {len(self.x0)} parameters, got {rows.shape[1]}")
        n = len(rows) * len(seeds)
        if self._environments is None or self._environments.n != n:
            self.close()
            self._environments = open_environments(self._env, n, self._mode)
        step = self._policy.prepare(np.repeat(rows, len(seeds), axis=0))

        def act(seen: Floats) -> Any:
            return self._actions.choose(step((seen - self.mean) / self.std))

        returns = self._environments.play(act, list(seeds) * len(rows))
        return returns.reshape(len(rows), len(seeds))


class _Actions:
    """Chooses actions of a space from the outputs of a policy."""

    def __init__(self, space: Any) -> None:
        self._discrete = isinstance(space, gymnasium.spaces.Discrete)
        if self._discrete:
            self.size, self._first = int(space.n), int(space.start)
            return
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise ValueError(f"env: expected Discrete actions or a vector of Box, got {space}")
        self.size, self._dtype = space.shape[0], space.dtype
        bounded = np.isfinite(space.low) & np.isfinite(space.high)
        self._bound = np.where(bounded, 1.0, np.inf)
        self._middle = np.where(bounded, space.low / 2 + space.high / 2, 0.0)
        self._half = np.where(bounded, space.high / 2 - space.low / 2, 1.0)

    def choose(self, outputs: Floats) -> Any:
        """Return one action for each row of outputs."""
        if self._discrete:
            return self._first + outputs.argmax(axis=1)
        inside = np.clip(outputs, -self._bound, self._bound)
        return (self._middle + self._half * inside).astype(self._dtype)


def _statistics(
    env: Any, shape: tuple[int, ...], normalize: Any, seed: int
) -> tuple[Floats, Floats]:
    """Return mean and std of the observations: as given, or estimated with random actions."""
    if isinstance(normalize, tuple):
        given = [checks.numbers("normalize", part, "a mean and a std") for part in normalize]
        if [part.shape for part in given] != [shape, shape] or not (given[1] > 0).all():
            raise ValueError(
                f"normalize: expected a mean and a std > 0 of shape {shape}, got {given}"
            )
        checks.all_finite("normalize", np.array(given))
        return given[0], given[1]
    count = checks.integer("normalize", normalize, least=0)
    if count == 0:
        return np.zeros(shape), np.ones(shape)
    seen = []
    env.action_space.seed(seed)
    for episode in range(count):
        observation, _ = env.reset(seed=seed + episode)
        ended = truncated = False
        while not (ended or truncated):
            seen.append(observation)
            observation, _, ended, truncated, _ = env.step(env.action_space.sample())
    std = np.std(seen, axis=0, dtype=np.float64)
    return np.mean(seen, axis=0, dtype=np.float64), np.where(std > 0, std, 1.0)
