"""What newcomers bring: Dict observations, transformers of their own, actions of every discrete kind, nothing chosen."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import gqlab as gq
from gqlab.encoders import encoder_from_dict
from gqlab.encoders.actions import Actions, actions_of
from gqlab.learn.environments import EnvPlan, env_of, recipe_of
from helpers.rooms import PairRoom, Room

SARSA = gq.Sarsa(0.25, trace=0.9)


def room_agent(env: str = "tests/Room-v0", steps: int = 600) -> gq.Agent:
    return gq.Agent(env, gq.TileCoder(4, bins=4), SARSA).learn(steps)


# --- A saved model in a Dict environment ------------------------------------------------------------------------------


def test_a_saved_model_acts_in_a_dict_environment(tmp_path):
    agent = room_agent()
    agent.model.save(tmp_path / "model.npz")
    model = gq.LinearQ.load(tmp_path / "model.npz")
    observation, _ = Room().reset(seed=0)
    assert model.predict(observation) == agent.predict(observation)
    assert model.q(observation).shape == (2,)
    assert gq.collect("tests/Room-v0", policy=model, n_steps=20).n_rows == 20
    assert gq.collect("tests/Room-v0", policy=agent, n_steps=20).n_rows == 20


# --- Transformers of scikit-learn after saving ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log():
    return gq.collect("CartPole-v1", n_steps=300, seed=0)


def saved(log, transformer, path) -> gq.LinearQ:
    model = gq.fit(log, transformer, gq.LSPI(), discount=0.9)
    model.save(path)
    return model


def test_a_transformer_that_learns_nothing_is_given_again_unfitted(log, tmp_path):
    polynomial = PolynomialFeatures(2)
    model = saved(log, polynomial, tmp_path / "model.npz")
    again = gq.LinearQ.load(tmp_path / "model.npz", encoder=polynomial)
    assert np.array_equal(again.q(np.ones(4)), model.q(np.ones(4)))


def test_a_transformer_of_other_data_is_refused(log, tmp_path):
    saved(log, make_pipeline(StandardScaler(), PolynomialFeatures(2)), tmp_path / "model.npz")
    other = make_pipeline(StandardScaler(), PolynomialFeatures(2)).fit(np.random.default_rng(0).random((50, 4)))
    with pytest.raises(ValueError, match="this Pipeline makes other features of 8 of 8 rows than that of the file did"):
        gq.LinearQ.load(tmp_path / "model.npz", encoder=other)
    with pytest.raises(ValueError, match="this PolynomialFeatures makes 35 features, that of the file made 15"):
        gq.LinearQ.load(tmp_path / "model.npz", encoder=PolynomialFeatures(3))
    rows = np.concatenate([log.to_chunk().observations, log.to_chunk().next_observations[~log.to_chunk().terminated]])
    same = make_pipeline(StandardScaler(), PolynomialFeatures(2)).fit(rows)
    gq.LinearQ.load(tmp_path / "model.npz", encoder=same)


# --- Mixed observations -----------------------------------------------------------------------------------------------


def test_a_discrete_number_in_a_dict_is_a_category():
    coder = gq.TileCoder(4, bins=4).for_space(Room.observation_space)
    tiles = [set(coder.encode(np.array([0.3, 0.4, room]))) for room in (1.0, 2.0, 3.0)]
    assert not tiles[0] & tiles[1]
    assert not tiles[1] & tiles[2]
    assert not tiles[0] & tiles[2]
    again = encoder_from_dict(json.loads(json.dumps(coder.to_dict())))
    assert all(set(again.encode(np.array([0.3, 0.4, room]))) == tiles[int(room) - 1] for room in (1.0, 2.0, 3.0))


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 11, 32, 49])
def test_no_shift_of_a_tiling_moves_a_category(n):
    coder = gq.TileCoder(8, bins=4, groups=[("kind",)]).for_space(Dict(kind=Discrete(n, start=-3), x=Box(0, 1)))
    tiles = [tuple(coder.encode(np.array([k, 0.5]))) for k in range(-3, n - 3)]
    assert all(len(set(column)) == n for column in zip(*tiles, strict=True))  # in every tiling


def test_tiles_are_grouped_by_names():
    space = Room.observation_space
    named = gq.TileCoder(4, bins=4, groups=["place", ("place[0]", "room")]).for_space(space)
    numbered = gq.TileCoder(4, bins=4, groups=[(0, 1), (0, 2)]).for_space(space)
    x = np.array([0.2, 0.9, 3.0])
    assert np.array_equal(named.encode(x), numbered.encode(x))
    again = encoder_from_dict(json.loads(json.dumps(named.to_dict())))
    assert np.array_equal(again.encode(x), numbered.encode(x))
    with pytest.raises(ValueError, match=r"groups\[0\]\[0\] is 'plaice', expected a name among place\[0\], place\[1\]"):
        gq.TileCoder(groups=["plaice"]).for_space(space)
    with pytest.raises(ValueError, match="as these observations have no names"):
        gq.TileCoder(groups=["x"], low=0, high=1).fit([[0.0]])


def test_tiles_are_grouped_by_the_columns_of_a_log(tmp_path):
    rows = ["episode,speed,height,action,reward"] + [f"{k // 5},{k % 3},{k % 4},{k % 2},1" for k in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    data = gq.Transitions.from_csv(tmp_path / "log.csv", {"observation": ["speed", "height"]}, ends="terminated")
    model = gq.fit(data, gq.TileCoder(2, bins=2, groups=["height", ("speed", "height")]), gq.LSPI(), discount=0.5)
    assert model.encoder.n_active_ == 4


def test_a_fit_knows_the_keys_and_categories_of_what_was_collected():
    data = gq.collect("tests/Room-v0", n_steps=60, seed=0)
    model = gq.fit(data, gq.TileCoder(2, bins=2, groups=["room", ("place", "room")]), gq.LSPI(), discount=0.5)
    rooms = [{"place": np.array([0.5, 0.5]), "room": room} for room in (1, 2, 3)]
    tiles = [set(model.encoder.encode(model.space.flatten(room))) for room in rooms]
    assert not tiles[0] & tiles[1]
    assert not tiles[1] & tiles[2]
    assert model.plot("room", at={"place[0]": 0.1}).get_xlabel() == "room"


def test_a_column_transformer_sees_the_names_of_a_dict(tmp_path):
    columns = ColumnTransformer(
        [("kind", OneHotEncoder(), ["room"]), ("rest", StandardScaler(), ["place[0]", "place[1]"])]
    )
    agent = gq.Agent("tests/Room-v0", columns, gq.Sarsa(0.1), seed=1).learn(300)
    assert agent.encoder.n_features_out_ == 5
    agent.model.save(tmp_path / "model.npz")
    observation, _ = Room().reset(seed=0)
    again = gq.LinearQ.load(tmp_path / "model.npz", encoder=agent.encoder.transformer_)
    assert np.array_equal(again.q(observation), agent.model.q(observation))


# --- Actions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("env", "best"), [("tests/Room-v0", 2), ("tests/PairRoom-v0", [1, 3])])
def test_actions_that_do_not_begin_at_0_are_what_the_environment_takes(env, best, tmp_path):
    agent = room_agent(env, 3000)
    agent.model.save(tmp_path / "model.npz")
    model = gq.LinearQ.load(tmp_path / "model.npz")
    inside = {"place": np.array([0.5, 0.5]), "room": 2}
    for one in (agent, model):
        assert np.array_equal(one.predict(inside)[0], best)
        assert one.evaluate(env, 3).mean == 2.0 if one is model else one.evaluate(n_episodes=3).mean == 2.0
    data = gq.collect(env, n_steps=600, seed=0)
    fitted = gq.fit(data, gq.TileCoder(2, bins=2), gq.LSPI(), discount=0.5)
    assert np.array_equal(fitted.predict(inside)[0], best)
    assert fitted.evaluate(env, 3).mean == 2.0


def test_a_vector_of_environments_takes_numbered_actions_too():
    envs = gymnasium.vector.SyncVectorEnv([Room, Room])
    assert gq.Agent(envs, gq.TileCoder(2, bins=2), SARSA).learn(100).num_timesteps >= 100


def test_actions_have_names_and_their_numbers_come_back():
    actions = actions_of(MultiDiscrete([2, 3], start=[5, 0]))
    assert actions.names == ("5, 0", "5, 1", "5, 2", "6, 0", "6, 1", "6, 2")
    assert actions.of([0, 5]).tolist() == [[5, 0], [6, 2]]
    assert Actions.from_dict(json.loads(json.dumps(actions.to_dict()))).names == actions.names
    with pytest.raises(ValueError, match="16,777,216 combinations, more than the 10,000"):
        actions_of(MultiDiscrete([8] * 8))
    for bad in (
        None,
        {},
        {"sizes": [0], "first": [0], "single": True},
        {"sizes": [9**9], "first": [0], "single": True},
    ):
        with pytest.raises(ValueError, match="expected sizes, first and single"):
            Actions.from_dict(bad)


# --- Nothing chosen ---------------------------------------------------------------------------------------------------


def test_an_agent_chooses_for_itself_and_says_what_it_took_from_random_steps(caplog):
    agent = gq.Agent("CartPole-v1")
    assert isinstance(agent.algorithm, gq.Sarsa)
    assert agent.encoder.groups == [*((i,) for i in range(4)), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert np.isclose(agent.encoder.low_[0], -4.8)
    assert np.isfinite(agent.encoder.high_).all()
    [record] = caplog.records
    assert "no bounds for number 1, number 3: they are taken from 1,000 random steps" in record.message
    caplog.clear()
    assert isinstance(gq.Agent("FrozenLake-v1").encoder, gq.OneHot)
    assert isinstance(gq.Agent("MountainCar-v0", replay=gq.Replay()).algorithm, gq.SAGAQLearning)
    assert not caplog.records


def test_discrete_numbers_together_are_a_table(caplog):
    caplog.set_level(logging.ERROR, "gqlab")
    encoder = gq.Agent("Blackjack-v1").encoder
    rows = np.array([[a, b, c] for a in range(32) for b in range(11) for c in range(2)], float)
    assert encoder.n_active_ == 1
    assert len(np.unique(encoder.encode_batch(rows))) == len(rows)


def test_too_many_numbers_are_refused():
    class Picture(Room):
        observation_space = Box(0, 1, (12, 12))

    with pytest.raises(ValueError, match="encoder is missing: an observation has 144 numbers"):
        gq.Agent(Picture())


# --- Environments with keywords and wrappers --------------------------------------------------------------------------


def test_an_environment_with_keywords_and_wrappers_is_made_again(tmp_path):
    plan = EnvPlan(
        "FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}, (("TimeLimit", {"max_episode_steps": 9}),)
    )
    recipe = json.loads(json.dumps(recipe_of(plan.make())))
    again = env_of(recipe)
    assert (again.observation_space.n, again.spec.max_episode_steps) == (64, 9)
    flat = EnvPlan("tests/Room-v0", wrappers=(("FlattenObservation", {}),)).make()
    agent = gq.Agent(flat, gq.TileCoder(2, bins=2), SARSA).learn(50)
    agent.save(tmp_path / "agent.npz")
    assert gq.Agent.load(tmp_path / "agent.npz").observation_size == 5


@pytest.mark.parametrize(
    ("wrappers", "message"),
    [
        ((("os", {}),), "gymnasium.wrappers has no 'os'"),
        ((("TimeLimit", {"steps": 3}),), "wrappers: TimeLimit: "),
        ((("common.os", {}),), "gymnasium.wrappers has no 'common.os'"),
    ],
)
def test_wrappers_are_those_of_gymnasium_alone(wrappers, message):
    with pytest.raises(ValueError, match=message):
        EnvPlan("CartPole-v1", wrappers=wrappers).make()


def test_environments_need_no_scikit_learn():
    code = """
import sys
class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "sklearn":
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
import gqlab as gq
assert gq.collect("FrozenLake-v1", n_steps=50).n_rows == 50
assert gq.evaluate([[0.25] * 4] * 16, "FrozenLake-v1", 3).mean <= 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tuples_of_discrete_spaces_have_categories():
    from gqlab.encoders import Flattener

    assert Flattener(Tuple([Discrete(3), Box(0, 1, (2,)), Discrete(4, start=2)])).categories == {0: (0, 3), 3: (2, 4)}
    assert Flattener(Discrete(3)).categories == {}
    assert PairRoom().action_space.nvec.tolist() == [2, 3]
