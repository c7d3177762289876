"""Linear policies for robots of MuJoCo: Ant (105 x 8 weights) and Humanoid (348 x 17).

The torques are W (observation), clipped to their range. The value is minus the return of one
episode of 200 steps, which starts from the state of the trial's seed. H. Mania, A. Guy, B. Recht:
"Simple random search of static linear policies is competitive for reinforcement learning" (2018).
The versions v5 of Gymnasium have fewer observations than the v4 of earlier publications, whose
policies have 888 and 6392 weights.
"""

import numpy as np

from leaderboard.trials import Problem, Vector

STEPS = 200


def problem(robot: str, seed: int) -> Problem:
    """Return the problem; it starts with no torques."""
    import gymnasium

    env = gymnasium.make(robot, max_episode_steps=STEPS)
    observed, torques = env.observation_space.shape[0], env.action_space.shape[0]
    low, high = env.action_space.low, env.action_space.high

    def value(x: Vector) -> float:
        W = x.reshape(torques, observed)
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            action = np.clip(W @ observation, low, high)
            observation, reward, ended, cut, _ = env.step(action)
            total, over = total + float(reward), ended or cut
        return -total

    def start(number: int) -> Vector:
        shape = observed * torques
        return 0.01 * np.random.default_rng([seed, number]).standard_normal(shape) * (number > 0)

    side = np.full(observed * torques, 1.0)
    return Problem(value, start, 0.05, -side, side)
