"""Policies in environments of Gymnasium: returns, seeds, and the same values on every route."""

import doctest
import functools
import pickle
import subprocess
import sys

import numpy as np
import pytest

import fmnes

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed (fmnes[gymnasium])")
torch = pytest.importorskip("torch", reason="PyTorch is not installed (fmnes[torch])")

from fmnes.integrations import gymnasium as integration  # noqa: E402
from fmnes.integrations.gymnasium import PolicyObjective  # noqa: E402

pytestmark = pytest.mark.examples


class Walk(gymnasium.Env):
    """A known walk: the state moves by the action, the reward is minus its distance from 3."""

    def __init__(self, action_space, length=4):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space, self._length = action_space, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._state, self._time = float(self.np_random.integers(10)), 0
        return self._seen(), {}

    def step(self, action):
        self._state += float(np.sum(action))
        self._time += 1
        ended = self._time == self._length
        return self._seen(), -abs(self._state - 3), ended, False, {}

    def _seen(self):
        return np.array([self._state, 1.0])


BOX = gymnasium.spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 2.0]), dtype=np.float64)
DISCRETE = gymnasium.spaces.Discrete(3, start=-1)


def walk_by_hand(start, action_of, length=4):
    """The return of a walk, without Gymnasium."""
    state, total = start, 0.0
    for _ in range(length):
        state += action_of(np.array([state, 1.0]))
        total -= abs(state - 3)
    return total


def start_of(seed):
    return float(np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).integers(10))


def pendulum(steps=30):
    return gymnasium.make("Pendulum-v1", max_episode_steps=steps)


def candidates(objective, n=3):
    return np.random.default_rng(1).normal(size=(n, len(objective.x0)))


# --- Values ---------------------------------------------------------------------------------------


def test_a_linear_policy_with_bounded_actions():
    objective = PolicyObjective(functools.partial(Walk, BOX), episodes=2, seed=5)
    x = candidates(objective)
    for row in x:
        W, b = row[:4].reshape(2, 2), row[4:]

        def act(seen, W=W, b=b):  # bounds [-1, 3] and [0, 2] at the outputs -1 and 1
            out = np.clip(W @ seen + b, -1, 1)
            return (1 + 2 * out[0]) + (1 + out[1])

        expected = -np.mean([walk_by_hand(start_of(seed), act) for seed in (5, 6)])
        assert objective(row) == pytest.approx(expected, rel=1e-13)


def test_a_network_with_discrete_actions():
    objective = PolicyObjective(functools.partial(Walk, DISCRETE), (5, 4), seed=3)
    assert len(objective.x0) == (2 * 5 + 5) + (5 * 4 + 4) + (4 * 3 + 3)
    for row in candidates(objective):
        W1, b1, W2, b2, W3, b3 = np.split(row, [10, 15, 35, 39, 51])

        def act(seen, layers=(W1, b1, W2, b2, W3, b3)):
            W1, b1, W2, b2, W3, b3 = layers
            hidden = np.tanh(W1.reshape(5, 2) @ seen + b1)
            hidden = np.tanh(W2.reshape(4, 5) @ hidden + b2)
            return float(np.argmax(W3.reshape(3, 4) @ hidden + b3)) - 1

        assert objective(row) == pytest.approx(-walk_by_hand(start_of(3), act), rel=1e-13)


def test_a_module_is_the_network_with_the_same_parameters():
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    ).double()
    ours, theirs = (PolicyObjective(pendulum, policy, seed=1) for policy in ((4,), module))
    x = candidates(ours)
    np.testing.assert_allclose(theirs(x), ours(x), rtol=1e-9)
    assert theirs(x[0]) == pytest.approx(ours(x[0]), rel=1e-9)
    np.testing.assert_array_equal(
        theirs.x0, np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])
    )


def test_normalised_observations():
    """Statistics of the walk's random actions; the same policy in other coordinates."""
    make = functools.partial(Walk, BOX)
    objective = PolicyObjective(make, normalize=20, seed=7)
    plain = PolicyObjective(make, seed=7)
    env, seen = make(), []
    env.action_space.seed(7)
    for episode in range(20):
        seen.append(env.reset(seed=7 + episode)[0])
        walked = [env.step(env.action_space.sample())[0] for _ in range(4)]
        seen += walked[:-1]  # no action follows the last
    np.testing.assert_allclose(objective.mean, np.mean(seen, axis=0), rtol=1e-13)
    np.testing.assert_allclose(objective.std, [np.std(seen, axis=0)[0], 1.0], rtol=1e-13)
    for row in candidates(objective):
        W = row[:4].reshape(2, 2) / objective.std
        moved = np.concatenate([W.ravel(), row[4:] - W @ objective.mean])
        assert objective(row) == pytest.approx(plain(moved), rel=1e-9)


def test_statistics_can_be_handed_on():
    found = PolicyObjective(pendulum, seed=1, normalize=2)
    given = PolicyObjective(pendulum, seed=1, normalize=(found.mean, found.std))
    x = candidates(found)
    np.testing.assert_array_equal(given(x), found(x))
    assert (PolicyObjective(pendulum, seed=1)(x) != found(x)).all()


def test_other_episodes():
    objective = PolicyObjective(pendulum, seed=1, episodes=2)
    x = candidates(objective)[0]
    seen = objective.returns(x, episodes=2, seed=1)
    assert -seen.mean() == objective(x)
    later = objective.returns(x, episodes=3, seed=2)
    assert later[0] == seen[1]
    assert len(set(later)) == 3


def test_act_is_what_is_played():
    objective = PolicyObjective(pendulum, "linear", seed=1, normalize=2)
    x = candidates(objective)[0]
    env, total, done = pendulum(), 0.0, False
    seen, _ = env.reset(seed=1)
    while not done:
        seen, reward, _, done, _ = env.step(objective.act(x, seen))
        total += reward
    assert -total == objective(x)


# --- Every route gives the same -------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, "sync", "async"])
def test_many_candidates_at_once_have_the_values_of_each(mode):
    objective = PolicyObjective(pendulum, (4,), episodes=2, seed=3)
    x = candidates(objective)
    each = [objective(row) for row in x]
    together = PolicyObjective(pendulum, (4,), episodes=2, seed=3, vectorization_mode=mode)
    np.testing.assert_array_equal(together(x), each)
    together.close()


def test_episodes_of_different_lengths():
    """CartPole ends when the pole falls: what comes after that does not count."""
    x = candidates(PolicyObjective("CartPole-v1"), 6)
    values = [
        PolicyObjective("CartPole-v1", seed=3, episodes=2, vectorization_mode=mode)(x)
        for mode in (None, "sync")
    ]
    np.testing.assert_array_equal(values[0], values[1])
    assert len(set(values[0])) > 1


def test_the_vectorised_version_of_an_environment():
    objective = PolicyObjective(
        "CartPole-v1", seed=3, episodes=2, vectorization_mode="vector_entry_point"
    )
    x = np.zeros((50, len(objective.x0)))  # always to the left: the pole falls within 8 to 10 steps
    values = objective(x)
    assert ((values <= -8) & (values >= -10.5)).all()
    np.testing.assert_array_equal(objective(x), values)


def test_workers_change_nothing():
    objective = PolicyObjective(pendulum, "linear", seed=1, normalize=1)
    options = {"maxiter": 4, "rng": 1}
    serial = fmnes.minimize(objective, objective.x0, 1.0, **options)
    parallel = fmnes.minimize(objective, objective.x0, 1.0, workers=2, **options)
    together = fmnes.minimize(objective, objective.x0, 1.0, vectorized=True, **options)
    for other in (parallel, together):
        np.testing.assert_array_equal(other.x, serial.x)
        np.testing.assert_array_equal(other.history["best"], serial.history["best"])


def test_it_can_be_pickled_in_use():
    objective = PolicyObjective(pendulum, "linear", seed=1, normalize=1)
    x = candidates(objective)[0]
    value = objective(x)
    assert pickle.loads(pickle.dumps(objective))(x) == value
    objective.close()
    assert objective(x) == value


def test_cart_pole_is_solved():
    objective = PolicyObjective("CartPole-v1", episodes=3, seed=1)
    result = fmnes.minimize(
        objective, objective.x0, 1.0, ftarget=-500, maxfevals=500, vectorized=True, rng=1
    )
    assert result.fun == -500
    assert objective.returns(result.x, episodes=20, seed=100).mean() >= 475  # its own threshold


# --- Errors ---------------------------------------------------------------------------------------


class Pictures(Walk):
    def __init__(self):
        super().__init__(BOX)
        self.observation_space = gymnasium.spaces.Box(0, 1, (2, 2))


def cart_pole(*args, **settings):
    return lambda: PolicyObjective("CartPole-v1", *args, **settings)


@pytest.mark.parametrize(
    ("make", "error", "name", "came"),
    [
        (lambda: PolicyObjective(3), TypeError, "env", "3"),
        (lambda: PolicyObjective(Pictures), ValueError, "env", "Box"),
        (
            lambda: PolicyObjective(lambda: Walk(gymnasium.spaces.MultiBinary(2))),
            ValueError,
            "env",
            "MultiBinary",
        ),
        (cart_pole("cubic"), ValueError, "policy", "'cubic'"),
        (cart_pole((0,)), ValueError, "policy", "0"),
        (cart_pole(torch.nn.Linear(4, 3)), ValueError, "policy", r"shape \(3,\)"),
        (cart_pole(episodes=0), ValueError, "episodes", "0"),
        (cart_pole(seed=-1), ValueError, "seed", "-1"),
        (cart_pole(normalize=1.5), TypeError, "normalize", "1.5"),
        (cart_pole(normalize=(np.zeros(4), np.zeros(4))), ValueError, "normalize", ""),
        (cart_pole(normalize=(np.full(4, np.nan), np.ones(4))), ValueError, "normalize", "nan"),
        (cart_pole(normalize=("zeros", "ones")), TypeError, "normalize", "'zeros'"),
        (
            lambda: PolicyObjective(pendulum, vectorization_mode="vector_entry_point"),
            ValueError,
            "vectorization_mode",
            "'vector_entry_point'",
        ),
        (lambda: cart_pole()()(np.zeros(3)), ValueError, "x", "3"),
        (lambda: cart_pole()().act(np.zeros(3), np.zeros(4)), ValueError, "x", "3"),
        (lambda: cart_pole()().returns("x", episodes=1, seed=1), TypeError, "x", "'x'"),
    ],
)
def test_errors_name_the_argument(make, error, name, came):
    with pytest.raises(error, match=f"^{name}: expected .*, got .*{came}"):
        make()


def test_the_examples_of_the_docstring():
    done = doctest.testmod(integration)
    assert done.attempted >= 5
    assert done.failed == 0


def test_without_gymnasium_it_says_what_to_install():
    code = "import sys; sys.modules['gymnasium'] = None; import fmnes.integrations.gymnasium"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'fmnes[gymnasium]'" in done.stderr
