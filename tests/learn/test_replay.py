"""Agents that replay: the compiled buffer, windows, updates and averages are those of a plain loop."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

import gqlab as gq
from helpers.agent_loops import Step, Walk, coder
from helpers.replay_loops import replayed

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
WAYS = {
    "growing": gq.Replay(updates=2, n_step=1),
    "three steps, by θ": gq.Replay(updates=3, n_step=3, average=0.0),
    "a window, cut": gq.Replay(updates=1.5, n_step=4, size=37, cut=True, average=0.05),
    "now and then": gq.Replay(updates=0.3, n_step=2, size=5, average=0.3),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PLAIN | REDUCED)
def test_the_compiled_agent_is_the_plain_loop(name, way):
    env = Walk(limit=12)
    agent = agent_of(env, (PLAIN | REDUCED)[name], replay=WAYS[way], initial_value=-1.0).learn(STEPS)
    assert {(step.terminated, step.truncated) for step in env.log} == {(False, False), (True, False), (False, True)}
    check(agent, env.log)
