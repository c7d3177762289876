"""Policy search: the return of a policy in an environment of Gymnasium, as an objective.

M. Towers et al.: "Gymnasium: a standard interface for reinforcement learning environments" (2024);
H. Mania, A. Guy, B. Recht: "Simple random search of static linear policies is competitive for
reinforcement learning", NeurIPS 2018, whose linear policies on normalised observations these are.

Needs ``pip install 'fmnes[gymnasium]'``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmnes import _checks as checks
from fmnes.integrations._policies import Policy, read_policy

try:
    import gymnasium

    from fmnes.integrations._episodes import MODES, Environments, make, open_environments
except ImportError as error:
    raise ImportError(
        "fmnes.integrations.gymnasium: expected Gymnasium to be installed: "
        "pip install 'fmnes[gymnasium]'"
    ) from error

Floats = NDArray[np.float64]


class PolicyObjective:
    """Minus the mean return of a policy, as a function of the policy's parameters.

    Parameters
    ----------
    env : str or callable
        The id of an environment, or a function without arguments that makes one, such as
        ``functools.partial(gymnasium.make, "HalfCheetah-v5", max_episode_steps=200)``. Observations
        are a vector (a one-dimensional `Box`), actions a `Discrete` choice or a vector.
    policy : "linear", sequence of int, or torch.nn.Module
        Outputs from observations: an affine map; a network with tanh layers of these widths, in
        NumPy; or a module of yours, one row in and one row out for each observation. Of a
        `Discrete` choice the largest output is taken; a `Box` has its bounds at the outputs -1
        and 1, and outputs beyond are clipped (an unbounded one takes the outputs as they are).
    episodes : int
        Episodes over which returns are averaged. They start from ``reset(seed=seed + i)``, i = 0,
        1, ..., the same for all candidates.
    seed : int
        Of the first episode, and of the random actions below.
    normalize : int, or pair of arrays
        Episodes of random actions before the search, from which the mean and the standard
        deviation of every observation are taken; policies see observations so normalised. 0
        leaves them as they are. A pair (mean, std) is what another objective has found.
    vectorization_mode : {None, "sync", "async", "vector_entry_point"}
        None steps environments one by one, and none whose episode has ended: the quickest, unless
        the environment has a vectorised version of its own. The others are those of
        `gymnasium.make_vec`: "sync" and "async" give the same values; "vector_entry_point", only
        with an id, has one seed for all its environments, so that candidates do not start from
        the same states and the value of one depends on its place: a noisy objective.

    Attributes
    ----------
    x0 : array of shape (d,)
        Where to start: zeros, or the parameters that a module has.
    mean, std : arrays
        What observations are normalised with.

    Notes
    -----
    A call with one candidate, shape (d,), gives a float: for ``workers``. A call with many, shape
    (n, d), steps all their environments together and gives n values: for ``vectorized=True``.

    The statistics are taken once and then stay, unlike the running ones of Mania et al.: so the
    objective is a function, the same for every candidate, worker and resumed search. For an affine
    policy they are only a choice of coordinates, and the search adapts its own to that.

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
        if not isinstance(env, str) and not callable(env):
            raise TypeError(f"env: expected an id or a function that makes one, got {env!r}")
        self.episodes = _count("episodes", episodes, 1)
        self.seed = _count("seed", seed, 0)
        if vectorization_mode is not None:
            modes = MODES if isinstance(env, str) else MODES[:2]
            checks.choice("vectorization_mode", vectorization_mode, modes)
        self._env, self._mode = env, vectorization_mode
        self._environments: Environments | None = None
        with make(env) as probe:
            self._actions = _Actions(probe.action_space)
            shape = getattr(probe.observation_space, "shape", None)
            if not shape or len(shape) != 1:
                raise ValueError(
                    "env: expected observations that are a vector (gymnasium.wrappers has "
                    f"FlattenObservation), got {probe.observation_space}"
                )
            self.mean, self.std = _statistics(probe, shape, normalize, self.seed)
        self._policy: Policy = read_policy(policy, shape[0], self._actions.size)
        self.x0: Floats = self._policy.x0

    def __call__(self, x: Any) -> Any:
        """Minus the mean return: of one candidate a float, of many an array."""
        rows = np.atleast_2d(np.asarray(x, np.float64))
        values = -self._returns(rows, range(self.seed, self.seed + self.episodes)).mean(axis=1)
        return values if np.ndim(x) == 2 else float(values[0])

    def returns(self, x: ArrayLike, *, episodes: int, seed: int) -> Floats:
        """The returns of one candidate in other episodes: what was learnt beyond those seen."""
        first = _count("seed", seed, 0)
        row = np.asarray(x, np.float64)[None, :]
        seeds = range(first, first + _count("episodes", episodes, 1))
        return np.array([self._returns(row, [start])[0, 0] for start in seeds])

    def act(self, x: ArrayLike, observation: ArrayLike) -> Any:
        """The action of a candidate, shape (d,), on one observation: to watch or to deploy it."""
        step = self._policy.prepare(np.asarray(x, np.float64)[None, :])
        seen = (np.asarray(observation, np.float64)[None, :] - self.mean) / self.std
        return self._actions.of(step(seen))[0]

    def close(self) -> None:
        """Close the environments of this process; the next call makes new ones."""
        if self._environments is not None:
            self._environments.close()
            self._environments = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_environments": None}  # a worker makes its own

    def _returns(self, rows: Floats, seeds: Sequence[int]) -> Floats:
        """One row for each candidate, one column for each episode; all are stepped together."""
        if rows.shape[1] != len(self.x0):
            raise ValueError(f"x: expected {len(self.x0)} parameters, got {rows.shape[1]}")
        n = len(rows) * len(seeds)
        if self._environments is None or self._environments.n != n:
            self.close()
            self._environments = open_environments(self._env, n, self._mode)
        step = self._policy.prepare(np.repeat(rows, len(seeds), axis=0))

        def act(seen: Floats) -> Any:
            return self._actions.of(step((seen - self.mean) / self.std))

        returns = self._environments.play(act, list(seeds) * len(rows))
        return returns.reshape(len(rows), len(seeds))


class _Actions:
    """Actions of a space, from the outputs of a policy."""

    def __init__(self, space: Any) -> None:
        self._discrete = isinstance(space, gymnasium.spaces.Discrete)
        if self._discrete:
            self.size, self._first = int(space.n), int(space.start)
            return
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise ValueError(f"env: expected actions of Discrete or a vector of Box, got {space}")
        self.size, self._dtype = space.shape[0], space.dtype
        bounded = np.isfinite(space.low) & np.isfinite(space.high)
        self._bound = np.where(bounded, 1.0, np.inf)
        self._middle = np.where(bounded, space.low / 2 + space.high / 2, 0.0)
        self._half = np.where(bounded, space.high / 2 - space.low / 2, 1.0)

    def of(self, outputs: Floats) -> Any:
        """One row of outputs, one action."""
        if self._discrete:
            return self._first + outputs.argmax(axis=1)
        inside = np.clip(outputs, -self._bound, self._bound)
        return (self._middle + self._half * inside).astype(self._dtype)


def _statistics(
    env: Any, shape: tuple[int, ...], normalize: Any, seed: int
) -> tuple[Floats, Floats]:
    """What observations are normalised with: given, or seen under random actions."""
    if isinstance(normalize, tuple):
        given = [np.asarray(part, np.float64) for part in normalize]
        if [part.shape for part in given] != [shape, shape] or not (given[1] > 0).all():
            raise ValueError(
                f"normalize: expected a mean and a std > 0 of shape {shape}, got {given}"
            )
        return given[0], given[1]
    if not _count("normalize", normalize, 0):
        return np.zeros(shape), np.ones(shape)
    seen = []
    env.action_space.seed(seed)
    for episode in range(normalize):
        observation, _ = env.reset(seed=seed + episode)
        ended = truncated = False
        while not (ended or truncated):
            seen.append(observation)
            observation, _, ended, truncated, _ = env.step(env.action_space.sample())
    std = np.std(seen, axis=0, dtype=np.float64)
    return np.mean(seen, axis=0, dtype=np.float64), np.where(std > 0, std, 1.0)


def _count(name: str, value: Any, least: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: expected an integer >= {least}, got {value!r}")
    return int(value)
