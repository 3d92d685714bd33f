"""Collecting from environments, and Minari's data sets."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import gqlab as gq
from gqlab.data.assemble import ARRAYS


class Counter(gymnasium.Env):
    """The observation counts steps; the episode terminates after 3, or by action 1 is cut off at once."""

    observation_space = Box(0, 100, (1,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.array([0.0]), {}

    def step(self, action):
        self.t += 1
        return np.array([float(self.t)]), 10.0 + self.t, self.t == 3, action == 1, {}


def test_the_steps_of_the_environment_are_kept():
    actions = iter([0, 0, 0, 1, 0, 0, 1, 0])
    chunk = gq.collect(Counter(), lambda rows: [next(actions)], n_steps=8).to_chunk()
    assert chunk.observations[:, 0].tolist() == [0, 1, 2, 0, 0, 1, 2, 0]
    assert chunk.next_observations[:, 0].tolist() == [1, 2, 3, 1, 1, 2, 3, 1]
    assert chunk.rewards.tolist() == [11, 12, 13, 11, 11, 12, 13, 11]
    assert chunk.actions.tolist() == [0, 0, 0, 1, 0, 0, 1, 0]
    # in row 6 both ended it: then it is terminated; the last row is cut off because nobody looks on
    assert chunk.terminated.tolist() == [False, False, True, False, False, False, True, False]
    assert chunk.truncated.tolist() == [False, False, False, True, False, False, False, True]
    assert chunk.episode.tolist() == [0, 0, 0, 1, 2, 2, 2, 3]
    assert chunk.probability is None


def test_a_time_limit_is_not_a_termination():
    chunk = gq.collect("MountainCar-v0", n_steps=450, seed=0).to_chunk()
    assert np.flatnonzero(chunk.truncated).tolist() == [199, 399, 449]
    assert not chunk.terminated.any()


@pytest.mark.parametrize("env", ["CartPole-v1", "FrozenLake-v1", "Blackjack-v1"])
def test_the_same_seed_gives_the_same_data(env):
    one, two, other = (gq.collect(env, n_steps=300, seed=seed) for seed in (5, 5, 6))
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one.to_chunk(), name), getattr(two.to_chunk(), name))
    assert one.fingerprint == two.fingerprint != other.fingerprint


def test_all_actions_alike_unless_a_policy_says_otherwise():
    chunk = gq.collect("Acrobot-v1", n_steps=600).to_chunk()
    assert set(chunk.probability) == {1 / 3}
    assert np.bincount(chunk.actions).min() > 150


def test_probabilities_of_a_policy_are_drawn_from_and_kept():
    """2,000 draws of probability 0.8: the share is within 5 standard deviations, 0.045."""
    data = gq.collect("CartPole-v1", lambda rows: np.where(rows[:, 2:3] > 0, [0.2, 0.8], [1.0, 0.0]), n_steps=4000)
    chunk = data.to_chunk()
    right = chunk.observations[:, 2] > 0
    assert not chunk.actions[~right].any()
    assert abs(chunk.actions[right].mean() - 0.8) < 0.045
    np.testing.assert_array_equal(chunk.probability, np.where(right, np.where(chunk.actions == 1, 0.8, 0.2), 1.0))


def test_observations_of_several_parts_become_one_vector():
    class Parts(Counter):
        observation_space = Dict(place=Box(0, 1, (2,)), room=Discrete(3))

        def reset(self, **kwargs):
            super().reset(**kwargs)
            return {"place": np.array([0.25, 0.5]), "room": 2}, {}

        def step(self, action):
            _, *rest = super().step(action)
            return {"place": np.array([0.5, 0.75]), "room": 1}, *rest

    chunk = gq.collect(Parts(), n_steps=2, seed=3).to_chunk()
    assert chunk.observations[0].tolist() == [0.25, 0.5, 2]
    assert chunk.next_observations[0].tolist() == [0.5, 0.75, 1]


def test_single_precision_is_kept():
    assert gq.collect("CartPole-v1", n_steps=10).to_chunk().observations.dtype == np.float32
    assert gq.collect("FrozenLake-v1", n_steps=10).to_chunk().observations.dtype == np.float64


def test_a_progress_bar_is_there_when_asked_for(capsys):
    gq.collect("CartPole-v1", n_steps=2500, progress=True)
    gq.collect("CartPole-v1", n_steps=10, progress=False)


BAD = [
    ({"env": 3}, "env is 3, expected the name of a Gymnasium environment, or one (not a vector of them)"),
    ({"env": "NoSuch-v7"}, "env is 'NoSuch-v7': Environment `NoSuch` doesn't exist."),
    ({"env": "Pendulum-v1"}, "env: space is Box(-2.0, 2.0, (1,), float32): continuous actions are not supported, expected Discrete(n) or MultiDiscrete"),
    ({"n_steps": 0}, "n_steps is 0, expected at least 1"),
    ({"seed": -1}, "seed is -1, expected at least 0 and below 4294967296"),
    ({"policy": 3}, "policy is 3, expected a policy: a LinearQ, an Agent, a function of observations, a FixedPolicy or a table of probabilities"),
    ({"policy": lambda rows: [2]}, "policy(observations)[0] is 2, expected at least 0 and below 2"),
    ({"policy": lambda rows: [0.5]}, "policy(observations)[0] is 0.5, expected a whole number"),
    ({"policy": lambda rows: [[0.5, 0.6]]}, "policy(observations)[0] sums to 1.1, expected 1"),
    ({"policy": lambda rows: [0.5, 0.5]}, "policy(observations) has shape (2,), expected probabilities (1, 2), or an action for each"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input(changes, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        gq.collect(**{"env": "CartPole-v1", "n_steps": 10, **changes})
    assert str(error.value) == message


# --- Minari ---------------------------------------------------------------------------------------------------------


def minari_like(action_space=None, observation_space=None, **changes):
    """What gqlab reads of a Minari data set: an episode has one observation more than actions."""
    episodes = [
        SimpleNamespace(observations=np.array([[0.0], [1.0], [2.0]]), actions=np.array([0, 1]), rewards=np.array([0.5, 1]),
                        terminations=np.array([False, True]), truncations=np.array([False, False])),
        SimpleNamespace(observations=np.array([[5.0], [6.0]]), actions=np.array([2]), rewards=np.array([2.0]),
                        terminations=np.array([False]), truncations=np.array([True])),
    ]  # fmt: skip
    vars(episodes[0]).update(changes)
    return SimpleNamespace(
        iterate_episodes=lambda: iter(episodes),
        action_space=action_space or Discrete(4),
        observation_space=observation_space or Box(-9, 9, (1,)),
        spec=SimpleNamespace(dataset_id="made/up-v0"),
    )


def test_minari_episodes_become_transitions():
    data = gq.Transitions.from_minari(minari_like())
    chunk = data.to_chunk()
    assert chunk.observations[:, 0].tolist() == [0, 1, 5]
    assert chunk.next_observations[:, 0].tolist() == [1, 2, 6]
    assert chunk.actions.tolist() == [0, 1, 2]
    assert chunk.terminated.tolist() == [False, True, False]
    assert chunk.truncated.tolist() == [False, False, True]
    assert chunk.episode.tolist() == [0, 0, 1]
    assert (data.n_actions, data.description) == (4, "Minari: made/up-v0")


def test_minari_data_that_cannot_be_used():
    with pytest.raises(ValueError, match=r"dataset: space is Box.*continuous actions are not supported"):
        gq.Transitions.from_minari(minari_like(action_space=Box(-1, 1, (1,))))
    with pytest.raises(ValueError, match=r"terminated\[1\] is True, and truncated\[1\] too"):
        gq.Transitions.from_minari(minari_like(truncations=np.array([False, True])))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": np.zeros((2, 1))}, "dataset: episode 0 has 2 observations for 2 rewards, expected 3"),
        ({"observations": np.zeros((4, 1))}, "dataset: episode 0 has 4 observations for 2 rewards, expected 3"),
        ({"actions": np.array([0])}, "dataset: episode 0 has 1 actions for 2 rewards, expected 2"),
        ({"terminations": np.array([False])}, "dataset: episode 0 has 1 terminations for 2 rewards, expected 2"),
        ({"truncations": np.zeros(3, bool)}, "dataset: episode 0 has 3 truncations for 2 rewards, expected 2"),
    ],
)
def test_the_parts_of_a_minari_episode_belong_together(changes, message):
    """The lengths of all episodes together may fit: 3 and 5 observations for 3 actions each."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        gq.Transitions.from_minari(minari_like(**changes))


def test_a_minari_data_set_is_read_by_its_name(tmp_path):
    """In a process of its own: Minari and what it imports warn."""
    for package in ("minari", "h5py"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    code = """
import numpy as np, minari, gymnasium as gym
from minari.data_collector import EpisodeBuffer
import gqlab as gq
observations = np.array([[0.0], [1.0], [2.0]], np.float32)
buffer = EpisodeBuffer(observations=observations, actions=np.array([0, 1]), rewards=np.array([0.5, 1.0]),
                       terminations=np.array([False, True]), truncations=np.array([False, False]))
minari.create_dataset_from_buffers("made/up-v0", [buffer], action_space=gym.spaces.Discrete(2),
                                   observation_space=gym.spaces.Box(-9, 9, (1,)))
chunk = gq.Transitions.from_minari("made/up-v0").to_chunk()
assert chunk.next_observations[:, 0].tolist() == [1, 2] and chunk.terminated.tolist() == [False, True]
try:
    gq.Transitions.from_minari("no/such-v0")
except ValueError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "MINARI_DATASETS_PATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dataset is 'no/such-v0': ")
