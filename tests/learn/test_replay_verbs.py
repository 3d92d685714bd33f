"""What an agent does with what it keeps besides updates: logs, solving anew; and what bad input gets."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from gqlab.learn.agent.keeping import FIRST, LAST
from helpers.agent_loops import Step, Walk, coder
from helpers.replay_loops import references, replayed

REPLAY = gq.Replay(updates=2, n_step=3, average=0.05)
FOURIER = gq.Fourier(1)


def agent_of(algorithm: Any = None, replay: Any = REPLAY, env: Any = None, **settings: Any) -> gq.Agent:
    how: dict[str, Any] = {"discount": 0.9, "epsilon": 0.2, "seed": 4} | settings
    encoder = how.pop("encoder", coder())
    algorithm = gq.QLearning(0.2) if algorithm is None else algorithm
    return gq.Agent(Walk(limit=12) if env is None else env, encoder, algorithm, replay=replay, **how)


def log_of(steps: list[Step]) -> gq.Transitions:
    return gq.Transitions.from_arrays(
        np.array([step.observation for step in steps]),
        [step.action for step in steps],
        [step.reward for step in steps],
        np.array([step.next_observation for step in steps]),
        [step.terminated for step in steps],
        [step.truncated for step in steps],
        n_actions=3,
    )


def ended(steps: list[Step]) -> list[Step]:
    """Without the episode that goes on."""
    last = max(k for k, step in enumerate(steps) if step.terminated or step.truncated)
    return steps[: last + 1]


# --- Logs -----------------------------------------------------------------------------------------------------------


def test_a_log_is_learned_from_like_steps_and_the_agent_goes_on_live():
    env = Walk(limit=12)
    agent_of(env=env).learn(300)
    log = ended(env.log)
    agent = agent_of()
    agent._make_room(len(log))
    before = references(agent)
    agent.learn_from(log_of(log))
    assert references(agent) == before  # compiled code releases no array that it was lent, and keeps none
    assert agent.num_timesteps == 0
    expected = replayed(agent, log)
    assert agent.n_updates == expected.n_updates > 500
    np.testing.assert_allclose(agent.theta.ravel(), expected.theta, atol=1e-12)
    data, again = log_of(log).to_chunk(), agent.buffer.to_chunk()
    for name in ("observations", "actions", "rewards", "terminated", "truncated", "episode"):
        assert np.array_equal(getattr(data, name), getattr(again, name)), name
    agent.learn(50)
    assert agent.buffer.n_rows == len(log) + 50
    marks = agent._live.stream.marks
    assert marks[LAST] - marks[FIRST] >= len(log) + 50 - 2


def test_a_log_fills_a_window_and_may_come_in_pieces_of_episodes():
    env = Walk(limit=12)
    agent_of(env=env).learn(400)
    pieces = env.log[:7] + env.log[9:60] + env.log[100:400]  # steps are missing: their trajectories end there
    agent = agent_of(replay=gq.Replay(updates=0.5, n_step=4, size=90)).learn(20).learn_from(log_of(pieces))
    marks = agent._live.stream.marks
    assert marks[LAST] - marks[FIRST] == 90
    kept = agent.buffer.to_chunk()
    assert np.array_equal(kept.observations[-1], pieces[-1].observation)
    assert kept.truncated[-1] or kept.terminated[-1]
    agent.learn(300)
    assert 90 <= agent.buffer.n_rows <= 93


def test_what_is_kept_can_be_judged_and_written(tmp_path):
    agent = agent_of().learn(300)
    assert gq.health(agent.buffer, agent.encoder, discount=0.9)
    agent.buffer.to_parquet(tmp_path / "buffer.parquet")
    assert gq.Transitions.from_parquet(tmp_path / "buffer.parquet").fingerprint == agent.buffer.fingerprint


# --- Least squares --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [gq.FittedQ(1e-3), gq.LSPI(1e-3), gq.LeastSquaresGreedyGQ()], ids=repr)
def test_a_refit_is_the_fit_of_the_same_rows(algorithm, tmp_path):
    replay = gq.Refit(every=200)
    agent = agent_of(algorithm, replay, encoder=FOURIER).learn(350)
    assert agent.n_updates == 1
    first = agent_of(algorithm, replay, encoder=FOURIER).learn(200)
    rows = first.buffer
    model = gq.fit(rows, first.encoder, algorithm, discount=0.9)
    np.testing.assert_allclose(first.theta, model.theta, rtol=1e-6, atol=1e-8)
    assert np.array_equal(first.model.theta, first.theta)
    agent.save(tmp_path / "agent.npz")
    again = gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))
    assert again.algorithm == algorithm
    assert np.array_equal(agent.learn(200).theta, again.learn(200).theta)
    assert again.n_updates == 2


def test_a_refit_takes_windows_of_several_steps_and_a_log():
    env = Walk(limit=12)
    agent_of(env=env).learn(250)
    agent = agent_of(gq.FittedQ(1e-3), gq.Refit(every=1000, n_step=3, size=150), encoder=FOURIER)
    agent.learn_from(log_of(ended(env.log)))
    assert agent.n_updates == 1
    expected = replayed(agent_of(replay=gq.Replay(updates=1, n_step=3, size=150), encoder=FOURIER), [])
    for step in ended(env.log):
        expected.add_step(step, None)
    phi, K = np.array([x.phi for x in expected.windows]), agent.encoder.n_features_out_
    theta = np.zeros(3 * K)
    for _ in range(200):
        V = np.array([(x.phi_next @ theta).max() for x in expected.windows])
        y = np.array([x.reward + x.discount * v for x, v in zip(expected.windows, V, strict=True)])
        theta = np.linalg.solve(phi.T @ phi / len(phi) + 1e-3 * np.eye(3 * K), phi.T @ y / len(phi))
    np.testing.assert_allclose(agent.theta.ravel(), theta, rtol=1e-7, atol=1e-9)


# --- What bad input gets --------------------------------------------------------------------------------------------

SETTINGS = {
    "no updates": (gq.Replay, {"updates": 0}, "updates is 0"),
    "too many updates": (gq.Replay, {"updates": 1e9}, "updates is 1000000000.0"),
    "no step": (gq.Replay, {"n_step": 0}, "n_step is 0"),
    "half a step": (gq.Replay, {"n_step": 1.5}, "n_step is 1.5"),
    "a window smaller than n": (gq.Replay, {"n_step": 5, "size": 4}, "size is 4, less than n_step = 5"),
    "no size": (gq.Replay, {"size": 0}, "size is 0"),
    "another sampling": (gq.Replay, {"sampling": "best"}, "sampling is 'best'"),
    "cut": (gq.Replay, {"cut": 1}, "cut is 1, expected True or False"),
    "an average of 1": (gq.Replay, {"average": 1.0}, "average is 1"),
    "never": (gq.Refit, {"every": 0}, "every is 0"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_make_no_sense_are_told(name):
    kind, given, message = SETTINGS[name]
    with pytest.raises(ValueError, match=re.escape(message)) as told:
        kind(**given)
    assert "\n" not in str(told.value)


REFUSED = {
    "traces": (gq.Sarsa(0.1, trace=0.9), REPLAY, "trace is 0.9: with replay there are no traces"),
    "no finite sum": (gq.ActorCritic(0.1, 0.1), REPLAY, "which has no form over transitions that are kept"),
    "a solver": (gq.FittedQ(), REPLAY, "which has no form over transitions that are kept"),
    "no solver": (gq.QLearning(0.1), gq.Refit(), "with Refit, expected a solver such as FittedQ()"),
    "no replay": (gq.QLearning(0.1), 16, "replay is 16, expected a gqlab.Replay or a gqlab.Refit"),
    "SAGA without replay": (gq.SAGAQLearning(0.1), None, "SAGAQLearning"),
    "a mean over the newest": (
        gq.SAGAQLearning(0.1),
        gq.Replay(sampling="recent"),
        "sampling is 'recent': the mean of",
    ),
    "growth": (gq.VRGreedyGQ(growth=2.0), REPLAY, "growth is 2: with replay epochs grow with what is kept"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_told(name):
    algorithm, replay, message = REFUSED[name]
    with pytest.raises(ValueError, match=re.escape(message)) as told:
        agent_of(algorithm, replay)
    assert "\n" not in str(told.value)


class Changing(Walk):
    """After 30 steps its observations have another shape, or are no numbers."""

    bad: Any = (0.0, 0.0, 0.0)

    def step(self, action: int) -> Any:
        place, *rest = super().step(action)
        return (np.array(self.bad) if len(self.log) == 30 else place), *rest


@pytest.mark.parametrize("bad", [(0.0, 0.0, 0.0), (np.nan, 0.0)], ids=["shape", "NaN"])
def test_observations_that_change_leave_the_agent_as_it_was(bad):
    env = Changing(limit=1000)
    env.bad = bad
    agent = agent_of(env=env)
    with pytest.raises(ValueError, match="observation") as told:
        agent.learn(100)
    assert "\n" not in str(told.value)
    before = agent_of(env=Walk(limit=1000)).learn(29)
    assert np.array_equal(agent.theta, before.theta)
    assert agent.buffer.fingerprint == before.buffer.fingerprint
    agent.learn(50)  # with a new episode: the one that broke off counts as cut off
    data = agent.buffer.to_chunk()
    assert data.truncated[28]
    assert np.isfinite(data.observations).all()
    assert np.isfinite(agent.theta).all()


def test_an_agent_without_replay_keeps_nothing():
    agent = gq.Agent(Walk(), coder(), gq.QLearning(0.1))
    with pytest.raises(ValueError, match="buffer: this agent keeps no transitions"):
        _ = agent.buffer
    with pytest.raises(ValueError, match="data: this agent keeps no transitions"):
        agent.learn_from(log_of([Step(0, np.zeros(2), 0, 0.0, np.zeros(2), True, False)]))
    with pytest.raises(ValueError, match="buffer: nothing is kept yet"):
        _ = agent_of().buffer
    with pytest.raises(ValueError, match="data has 2 actions and observations of 1 numbers, this agent needs 3 and 2"):
        agent_of().learn_from(gq.Transitions.from_arrays([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0]))


def test_an_agent_that_replays_and_diverges_says_so():
    with pytest.warns(RuntimeWarning, match="the agent diverged in step"):
        agent = agent_of(gq.QLearning(300.0)).learn(5000)
    assert agent.num_timesteps < 5000
    assert np.isfinite(agent.theta).all()
