"""What environments may give and what they must not, and what models and agents keep of them."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

import gqlab as gq
from gqlab.support.files import read_arrays, write_arrays
from helpers.agent_loops import Rooms, Walk, coder

SARSA = gq.Sarsa(0.3, trace=0.9)
CODER = coder().for_space(Walk.observation_space)


# --- Environments that do not keep to their spaces --------------------------------------------------------------------


class Odd(Walk):
    """The walk, with one thing that is not as it should be in every step."""

    def __init__(self, **odd: Any) -> None:
        super().__init__()
        self.odd = odd

    def step(self, action: int) -> Any:
        found = dict(
            zip(("observation", "reward", "terminated", "truncated", "info"), super().step(action), strict=True)
        )
        return tuple({**found, **self.odd}.values())


ODD = [
    ({"observation": np.zeros(1)}, "env: after step 1: observation has shape (1,), expected (2)"),
    ({"observation": 0.5}, "env: after step 1: observation has shape (), expected (2)"),
    ({"observation": np.zeros(3)}, "env: after step 1: observation has shape (3,), expected (2)"),
    (
        {"observation": np.array([1j, 0])},
        "env: after step 1: observation is not an array of numbers, but of complex128",
    ),
    ({"observation": None}, "env: after step 1: observation has shape (), expected (2)"),
    ({"reward": None}, "env: the reward of step 1 is None, expected a number"),
    ({"reward": "1"}, "env: the reward of step 1 is '1', expected a number"),
    ({"reward": np.zeros(1)}, "env: the reward of step 1 is array([0.]), expected a number"),
]


@pytest.mark.parametrize(("odd", "message"), ODD, ids=[message[:60] for _, message in ODD])
def test_what_an_environment_must_not_give_is_named(odd, message):
    model = gq.LinearQ(np.zeros((3, CODER.n_features_out_)), CODER)
    for act in (
        lambda: gq.Agent(Odd(**odd), coder(), SARSA).learn(5),
        lambda: gq.collect(Odd(**odd), n_steps=5),
        lambda: model.evaluate(Odd(**odd), 1),
    ):
        with pytest.raises(ValueError, match=r"^env: ") as error:
            act()
        assert str(error.value).replace(" of episode 0", "") == message


def test_a_dictionary_without_one_of_its_keys_is_named():
    class Half(Rooms):
        def step(self, action: int) -> Any:
            seen, *rest = super().step(action)
            return {"side": seen["side"]}, *rest

    tiles = gq.TileCoder(n_tilings=3, bins=[3, 3, 2])
    for act in (lambda: gq.Agent(Half(), tiles, SARSA).learn(5), lambda: gq.collect(Half(), n_steps=5)):
        with pytest.raises(
            ValueError, match=r"^env: after step 1: observation is .*, expected an entry 'place' in it$"
        ):
            act()


class Pair(gymnasium.vector.VectorEnv):
    """Two walks that step together and begin anew in the next step; what is told of them is converted by ``told``."""

    num_envs = 2
    single_observation_space, single_action_space = Walk.observation_space, Walk.action_space
    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}

    def __init__(self, told: Any) -> None:
        self.told, self.t = told, 0

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros((2, 2)), {}

    def step(self, actions):
        self.t += 1
        over = np.array([self.t % 5 == 0, self.t % 7 == 0])
        found = {
            "observation": np.full((2, 2), 0.1),
            "reward": np.ones(2),
            "terminated": over,
            "truncated": over & False,
        }
        return *self.told(found).values(), {}


def test_flags_of_a_vector_environment_may_be_whole_numbers():
    """With NEXT_STEP the step after an end only begins an episode: it counts for none."""
    agents = [
        gq.Agent(Pair(lambda f, kind=kind: {**f, "terminated": f["terminated"].astype(kind)}), coder(), SARSA).learn(60)
        for kind in (bool, np.int64, np.uint8)
    ]
    for agent in agents:
        assert agent.num_timesteps >= 60
        assert agent.episodes.lengths == agents[0].episodes.lengths
        np.testing.assert_array_equal(agent.theta, agents[0].theta)


TOLD = [
    (lambda f: {**f, "reward": np.ones(1)}, "env: its reward has shape (1,), expected (2,)"),
    (lambda f: {**f, "reward": None}, "env: its reward has shape (), expected (2,)"),
    (lambda f: {**f, "terminated": np.zeros(1, bool)}, "env: terminated has shape (1,), expected (2,)"),
    (lambda f: {**f, "truncated": np.array([0.5, 0.0])}, "env: truncated is array([0.5, 0. ]), expected truth values"),
    (lambda f: {**f, "terminated": np.array([2, 0])}, "env: terminated is array([2, 0]), expected truth values"),
    (lambda f: {**f, "observation": np.zeros((3, 2))}, "env: after step 0: 3 observations, expected 2"),
]


@pytest.mark.parametrize(("told", "message"), TOLD, ids=[message for _, message in TOLD])
def test_what_a_vector_environment_must_not_give_is_named(told, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared
        gq.Agent(Pair(told), coder(), SARSA).learn(20)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "made", [gq.OneHot(n_values=4), gq.OneHot(4).fit([[0]]), gq.OneHot().fit([[0], [1], [2], [3]])]
)
def test_an_encoder_that_takes_states_for_one_another_is_refused(made):
    with pytest.raises(ValueError, match=r"^encoder: OneHot has 4 of the 16 values 0, ..., 15 that number 0 of an obs"):
        gq.Agent("FrozenLake-v1", made, SARSA)


def test_whole_numbers_of_a_space_that_does_not_say_which_are_looked_at():
    class Floors(Walk):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)

        def reset(self, **kwargs: Any) -> Any:
            super().reset(**kwargs)
            self.floor = 0
            return np.array([0.0]), {}

        def step(self, action: int) -> Any:
            self.floor += 1
            return np.array([float(self.floor)]), 0.0, False, False, {}

    agent = gq.Agent(Floors(), gq.OneHot(n_values=4), SARSA)
    with pytest.raises(ValueError, match=r"^env: after step 4: observation\[0\] is 4, expected one of the 4 values 0"):
        agent.learn(20)
    assert agent.num_timesteps == 4


# --- What models own --------------------------------------------------------------------------------------------------


def test_a_model_and_an_agent_own_their_encoders():
    shared = gq.Fourier(2).fit([[-1.0, -1.0], [1.0, 1.0]])
    agent = gq.Agent(Walk(), shared, SARSA).learn(50)
    model, seen = gq.LinearQ(np.ones((3, 9)), shared), [[0.2, -0.3], [0.9, 0.1]]
    before, own = model.q(seen), agent.model.q(seen)
    shared.fit([[-5.0, 0.0], [5.0, 7.0]])
    shared.set_params(order=4)
    np.testing.assert_array_equal(model.q(seen), before)
    np.testing.assert_array_equal(agent.model.q(seen), own)
    assert (model.encoder.order, agent.encoder.order) == (2, 2)


def test_a_model_takes_what_its_environment_shows(tmp_path):
    """Dictionaries, one or batched, flattened vectors and rows: before and after it was saved."""
    env = Rooms()
    agent = gq.Agent(env, gq.TileCoder(n_tilings=3, bins=[3, 3, 2]), SARSA).learn(300)
    agent.model.save(tmp_path / "model.npz")
    one, many = {"place": np.array([0.1, 0.4]), "side": 1}, {"place": np.full((3, 2), 0.4), "side": np.array([0, 1, 1])}
    for model in (agent.model, gq.LinearQ.load(tmp_path / "model.npz")):
        np.testing.assert_array_equal(model.q(one), model.q(np.array([0.1, 0.4, 1.0])))
        np.testing.assert_array_equal(model.q(many), model.q(np.array([[0.4, 0.4, s] for s in (0, 1, 1)])))
        assert model.predict(one)[0] == agent.predict(one)[0] == model.q(one).argmax()
        assert model.predict(many)[0].tolist() == agent.predict(many)[0].tolist()
        np.testing.assert_array_equal(model.probabilities(many), agent.probabilities(many))
        assert model.value(one) == model.q(one).max()
        with pytest.raises(ValueError, match=r"^observation is \{'side': 1\}, expected an entry 'place' in it$"):
            model.predict({"side": 1})
        log = gq.collect(env, model, n_steps=50, seed=3)
        assert log.to_chunk().probability.min() == 1.0
        assert model.evaluate(Rooms(limit=20), 2).lengths.max() <= 20
    fitted = gq.fit(log, gq.TileCoder(3, [3, 3, 2]), gq.FittedQ(n_iterations=2))
    assert fitted.predict(one)[0] == fitted.q(one).argmax()
    assert gq.fit(log.split()[0], gq.TileCoder(3, 2), gq.FittedQ(n_iterations=2)).q(many).shape == (3, 3)


@pytest.mark.parametrize(
    "space", [[], 3, [["place", [2]]], [[["place"], [-1]]], [[["place"], [2]]], [[["a"], [2**40]]], {"a": 1}]
)
def test_the_space_of_a_crafted_file_gets_one_line(tmp_path, space):
    gq.LinearQ(np.zeros((3, CODER.n_features_out_)), CODER).save(tmp_path / "model.npz")
    arrays = read_arrays(tmp_path / "model.npz")
    header = {**json.loads(str(arrays["header"])), "space": space}
    write_arrays(tmp_path / "model.npz", {**arrays, "header": np.array(json.dumps(header))})
    if space == [[["place"], [2]]]:
        assert gq.LinearQ.load(tmp_path / "model.npz").q({"place": [0.0, 0.0]}).shape == (3,)
        return
    with pytest.raises(ValueError, match=r"npz: space (is|has) "):
        gq.LinearQ.load(tmp_path / "model.npz")
