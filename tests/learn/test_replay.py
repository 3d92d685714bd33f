"""Agents that replay: the compiled buffer, windows, updates and averages are those of a plain loop."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

import gqlab as gq
from helpers.agent_loops import Step, Walk, coder
from helpers.replay_loops import references, replayed

STEPS = 260


def check(agent: gq.Agent, log: list[Step]) -> None:
    expected = replayed(agent, log)
    assert expected.n_updates == agent.n_updates
    assert np.abs(expected.theta).max() > 0.1
    for found, wanted in (
        (agent.theta, expected.theta),
        (agent.omega, expected.omega),
        (agent.theta_average, expected.average),
    ):
        scale = max(np.abs(expected.theta).max(), np.abs(wanted).max())
        np.testing.assert_allclose(found.ravel(), wanted, rtol=0, atol=1e-12 * scale)
    assert np.array_equal(agent.model.theta, agent.theta_average)
    exact = np.sum([x.remembered for x in expected.windows], axis=0)  # what the loop added up on its way
    np.testing.assert_allclose(expected.total, exact, atol=1e-9)


def agent_of(env: Any, algorithm: Any, *, encoder: Any = None, **settings: Any) -> gq.Agent:
    how: dict[str, Any] = {"discount": 0.95, "epsilon": 0.3, "seed": 4} | settings
    return gq.Agent(env, coder() if encoder is None else encoder, algorithm, **how)


PLAIN = {
    "Q-learning": gq.QLearning(0.2),
    "QRC, projected": gq.QRC(0.2, 0.2, beta=0.7, radius=1.0),
    "Greedy-GQ, falling": gq.GreedyGQ(gq.Decay(0.3, after=100), gq.Decay(0.2, after=50)),
    "expected Sarsa": gq.Sarsa(0.2),
}
REDUCED = {
    "SAGA-Q": gq.SAGAQLearning(0.2),
    "SAGA-Greedy-GQ": gq.SAGAGreedyGQ(0.2, 0.05),
    "SAGA-Greedy-GQ, projected": gq.SAGAGreedyGQ(0.3, 0.1, radius=1.0),
    "VR-Greedy-GQ": gq.VRGreedyGQ(0.2, 0.05, batch_size=30),
}
CORRECTED = ("SAGA-Greedy-GQ", "SAGA-Greedy-GQ, projected", "VR-Greedy-GQ")
WAYS = {
    "growing": gq.Replay(updates=2, n_step=1),
    "three steps, by θ": gq.Replay(updates=3, n_step=3, average=0.0),
    "a window, cut": gq.Replay(updates=1.5, n_step=4, size=37, cut=True, average=0.05),
    "now and then": gq.Replay(updates=0.3, n_step=2, size=5, average=0.3),
}


#: With others of the same kind these show what each does; make long has all.
SHORT = {("Q-learning", way) for way in WAYS} | {("SAGA-Q", way) for way in WAYS} | {("VR-Greedy-GQ", "a window, cut")}
CASES = [
    pytest.param(name, way, marks=[] if (name, way) in SHORT else [pytest.mark.long], id=f"{name}, {way}")
    for name in PLAIN | REDUCED
    for way in WAYS
]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_the_compiled_agent_is_the_plain_loop(name, way):
    env = Walk(limit=12)
    algorithm = (PLAIN | REDUCED)[name]
    first = -1.0 if algorithm.radius == np.inf else 0.0  # else θ would begin outside the ball
    # Where the correction is to the digit, no two actions may be as good as each other: that is for rounding to decide.
    target = gq.Softmax(2.0) if name in CORRECTED else gq.Greedy()
    agent = agent_of(env, algorithm, replay=WAYS[way], initial_value=first, target=target).learn(STEPS)
    assert {(step.terminated, step.truncated) for step in env.log} == {(False, False), (True, False), (False, True)}
    check(agent, env.log)
    agent._make_room(100)
    before = references(agent)
    agent.learn(30)
    assert references(agent) == before  # compiled code releases no array that it was lent, and keeps none


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_environments_side_by_side_are_the_plain_loop(mode):
    log: list[Step] = []
    kinds = [lambda e=e: Walk(log, e, limit=9 + e) for e in range(3)]
    env = gymnasium.vector.SyncVectorEnv(kinds, autoreset_mode=gymnasium.vector.AutoresetMode[mode])
    replay = gq.Replay(updates=1, n_step=3, size=50, average=0.1)
    agent = agent_of(env, gq.SAGAQLearning(0.2), replay=replay).learn(STEPS)
    assert agent.num_timesteps == len(log)
    check(agent, log)
    data = agent.buffer.to_chunk()
    known = {tuple(step.observation): step for step in log}
    assert len(data) >= 50
    for k in range(len(data)):
        step = known[tuple(data.observations[k])]
        assert (data.actions[k], data.rewards[k], data.terminated[k]) == (step.action, step.reward, step.terminated)
        assert np.array_equal(data.next_observations[k], step.next_observation)
        inside = k + 1 < len(data) and data.episode[k + 1] == data.episode[k]
        assert not inside or np.array_equal(data.observations[k + 1], step.next_observation)


ENCODERS = {
    "dense": gq.Fourier(1),
    "another library's": PolynomialFeatures(2).fit(np.zeros((1, 2))),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ENCODERS)
def test_dense_features_begin_at_an_offset_that_the_model_keeps(name, tmp_path):
    env = Walk(limit=12)
    replay = gq.Replay(updates=2, n_step=3, average=0.05)
    algorithm = gq.SAGAGreedyGQ(0.05, 0.01)
    agent = agent_of(env, algorithm, encoder=ENCODERS[name], replay=replay, initial_value=2.5)
    assert agent.model.q([0.1, 0.2]).tolist() == [2.5] * 3
    agent.learn(STEPS)
    check(agent, env.log)
    assert agent.model.offset == 2.5
    agent.model.save(tmp_path / "model.npz")
    again = gq.LinearQ.load(tmp_path / "model.npz", encoder=agent.encoder)
    assert np.array_equal(again.q([0.1, 0.2]), agent.model.q([0.1, 0.2]))
    assert np.array_equal(agent.buffer.to_chunk().observations[0], env.log[0].observation)


def test_an_initial_value_is_where_learning_begins_without_replay_too():
    agent = agent_of(Walk(), gq.Sarsa(0.1), initial_value=-3.0)
    np.testing.assert_allclose(agent.model.q([0.3, -0.2]), [-3.0] * 3, rtol=1e-12)
    with pytest.raises(ValueError, match=r"initial_value is -3: θ begins outside the ball of radius 1"):
        agent_of(Walk(), gq.QLearning(0.1, radius=1.0), initial_value=-3.0)


def test_it_acts_by_the_average_and_expected_sarsa_by_the_epsilon_of_the_time():
    seen = []

    def note(agent: gq.Agent) -> None:
        env = agent.env
        place = env.place if env.steps else env.log[-1].next_observation
        seen.append((agent.model.q(place), agent._live.action.item(0), env.steps))

    replay = gq.Replay(updates=2, n_step=1, average=0.01)
    agent = agent_of(Walk(limit=10), gq.QLearning(0.2), epsilon=0.0, replay=replay).learn(400, callback=note)
    # θ̄ has moved a little since the choice: only clear cases can be told.
    clear = [(q, a) for q, a, steps in seen if steps and np.sort(q)[-1] - np.sort(q)[-2] > 0.05]
    assert len(clear) > 100
    assert all(q.argmax() == a for q, a in clear)
    assert not np.array_equal(agent.theta, agent.theta_average)
    env = Walk(limit=12)
    falling = gq.LinearDecay(0.9, 0.1, over=150)
    check(agent_of(env, gq.Sarsa(0.2), replay=replay, epsilon=falling).learn(STEPS), env.log)


def test_the_newest_are_drawn_more_often():
    env = Walk(limit=12)
    replay = gq.Replay(updates=2, n_step=2, sampling="recent", average=0.05)
    check(agent_of(env, gq.QLearning(0.2), replay=replay).learn(STEPS), env.log)


@pytest.mark.long
@pytest.mark.parametrize("size", [None, 1500])
@pytest.mark.parametrize("name", ["SAGA-Q", "SAGA-Greedy-GQ"])
def test_after_a_hundred_thousand_updates_it_is_still_the_dense_loop(name, size):
    env = Walk(limit=40)
    replay = gq.Replay(updates=25, n_step=3, size=size, average=0.002)
    target = gq.Softmax(2.0) if name in CORRECTED else gq.Greedy()
    agent = agent_of(env, REDUCED[name], replay=replay, target=target).learn(4100)
    assert agent.n_updates > 10**5
    check(agent, env.log)
