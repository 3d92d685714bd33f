"""The agent's compiled step is the formulas: the very steps that it saw, once more in NumPy."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

import gqlab as gq
from conftest import assert_close
from gqlab.learn.agent.core import features_of
from gqlab.learn.fit import passes
from gqlab.learn.fit.passes import Passes, values_of
from gqlab.operators.switch import join_operators
from gqlab.rules.gradient import Samples
from gqlab.rules.memory import Sizes
from gqlab.samples.tables import per_problem
from helpers.agent_loops import A, Step, Walk, coder, updates

STEPS = 700


@pytest.fixture(autouse=True)
def _keep_all_traces(monkeypatch):
    """Without dropping small entries, which is the one thing that the formulas do not have."""
    monkeypatch.setattr(passes, "LEAST_TRACE", 0.0)


ALGORITHMS = {
    "GQ(.8)": gq.GreedyGQ(0.2, 0.1, trace=0.8),
    "GQ(.8), projected": gq.GreedyGQ(0.2, 0.1, trace=0.8, radius=1.5),
    "GQ(1)": gq.GreedyGQ(0.1, 0.05, trace=1.0),
    "QRC(.5)": gq.QRC(0.2, 0.2, beta=0.7, trace=0.5),
    "QRC(.9), projected": gq.QRC(0.2, 0.2, beta=1.0, trace=0.9, radius=1.0),
    "Q(.9)": gq.QLearning(0.2, trace=0.9),
    "Greedy-GQ": gq.GreedyGQ(0.2, 0.1),
    "QRC": gq.QRC(0.2, 0.2, beta=0.7, radius=1.0),
    "Q-learning": gq.QLearning(0.2),
    "Sarsa(.9)": gq.Sarsa(0.2, trace=0.9),
}


def check(agent: gq.Agent, log: list[Step]) -> None:
    theta, omega = updates(agent, log, agent.algorithm, agent.target)
    assert len(log) == agent.num_timesteps == agent.n_updates
    assert {(step.terminated, step.truncated) for step in log} == {(False, False), (True, False), (False, True)}
    assert np.abs(theta).max() > 0.1
    assert_close(agent.theta.ravel(), theta)
    if agent.algorithm.has_omega:
        assert_close(agent.omega.ravel(), omega)
    else:
        assert not agent.omega.any()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_compiled_step_is_the_formula(name):
    env = Walk(limit=10**6 if name.startswith("Sarsa") else 12)  # the next action of a cut episode is seen by nobody
    agent = gq.Agent(env, coder(), ALGORITHMS[name], discount=0.95, epsilon=0.3, seed=4).learn(STEPS)
    if not name.startswith("Sarsa"):
        check(agent, env.log)
        return
    theta, _ = updates(agent, env.log, agent.algorithm, agent.target)
    assert_close(agent.theta.ravel(), theta)


@pytest.mark.long
def test_traces_are_not_cut_where_the_target_explores_itself():
    env = Walk(limit=12)
    target = gq.Softmax(3.0)
    agent = gq.Agent(env, coder(), gq.GreedyGQ(0.2, 0.1, trace=0.8), target=target, epsilon=0.3, seed=4).learn(STEPS)
    check(agent, env.log)


@pytest.mark.long
def test_sarsa_with_dense_features_bootstraps_where_an_episode_is_cut_off():
    env = Walk(limit=12)
    encoder = PolynomialFeatures(2).fit(np.zeros((1, 2)))
    agent = gq.Agent(env, encoder, gq.Sarsa(0.05, trace=0.9), discount=0.9, epsilon=0.0, seed=2).learn(STEPS)
    check(agent, env.log)


def test_an_episode_that_is_cut_off_is_not_an_end():
    """The same steps, with the cuts told as ends, lead elsewhere."""
    env = Walk(limit=12)
    agent = gq.Agent(env, coder(), gq.QLearning(0.2), discount=0.95, seed=1).learn(STEPS)
    steps = [step._replace(terminated=step.terminated or step.truncated) for step in env.log]
    theta, _ = updates(agent, steps, agent.algorithm, agent.target)
    assert np.abs(agent.theta.ravel() - theta).max() > 0.05


MODES = [gymnasium.vector.AutoresetMode.NEXT_STEP, gymnasium.vector.AutoresetMode.SAME_STEP]


@pytest.mark.parametrize("mode", MODES, ids=["next step", "same step"])
@pytest.mark.parametrize("algorithm", [gq.QRC(0.2, 0.2, trace=0.8), gq.QLearning(0.2)], ids=["QRC(.8)", "Q-learning"])
def test_vector_environments_give_the_steps_of_their_members(mode, algorithm):
    """Steps that only begin an episode are no transitions; the last observation of an episode is its own."""
    log: list[Step] = []
    env = gymnasium.vector.SyncVectorEnv([lambda e=e: Walk(log, e, limit=9 + e) for e in range(3)], autoreset_mode=mode)
    agent = gq.Agent(env, coder(), algorithm, discount=0.95, epsilon=0.3, seed=4).learn(STEPS)
    assert {step.env for step in log} == {0, 1, 2}
    check(agent, log)
    ends = [step for step in log if step.terminated or step.truncated]
    assert len(agent.episodes) == len(ends)
    assert sum(agent.episodes.lengths) <= len(log)
    rewards = {e: np.cumsum([step.reward for step in log if step.env == e]) for e in range(3)}
    counted = {
        e: [k for k, s in enumerate(s for s in log if s.env == e) if s.terminated or s.truncated] for e in range(3)
    }
    returns = np.concatenate([np.diff(rewards[e][counted[e]], prepend=0.0) for e in range(3)])
    np.testing.assert_allclose(np.sort(agent.episodes.returns), np.sort(returns))


def samples_of(agent: gq.Agent, log: list[Step]) -> Samples:
    """The steps of a log as a table."""
    n = len(log)
    features = features_of(agent.encoder, 2 * n, A)
    rows = np.array([s for step in log for s in (step.observation, step.next_observation)])
    features.places[:] = agent.encoder.encode_batch(rows).ravel()
    first = 2 * A * np.arange(n)
    return Samples(
        features=features,
        operator=join_operators([agent.target], [2 * n * A], [agent.target.compiled], np.float64),
        row=(first + [step.action for step in log]).astype(np.uint32),
        next_row=(first + A).astype(np.uint32),
        reward=np.array([step.reward for step in log]),
        discount=np.array([0.0 if step.terminated else agent.discount for step in log]),
        behavior=np.zeros(1),
        first_row=per_problem([0]),
        first_sample=per_problem([0]),
    )


@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(gq.QRC(0.2, 0.1, radius=1.0), id="QRC"),
        pytest.param(gq.VRGreedyGQ(0.2, 0.1, batch_size=100, radius=1.0), id="VR", marks=pytest.mark.long),
    ],
)
def test_an_agent_makes_the_updates_of_a_pass_over_its_steps(algorithm):
    env = Walk(limit=12)
    agent = gq.Agent(env, coder(), algorithm, discount=0.95, seed=3).learn(STEPS)
    samples, kind = samples_of(agent, env.log), algorithm.estimator
    sizes = Sizes(agent.theta.size, A, 2 * STEPS, STEPS, STEPS)
    run = Passes(samples, sizes, algorithm, kind, values_of(algorithm, kind), seed=3)
    run.advance(STEPS)
    assert agent.n_updates == STEPS
    np.testing.assert_allclose(agent.theta.ravel(), run.theta, rtol=0, atol=1e-12)
    np.testing.assert_allclose(agent.omega.ravel(), run.omega, rtol=0, atol=1e-12)


@pytest.mark.long
def test_variance_reduction_makes_its_epochs_on_the_last_batch():
    """Algorithm 1 in NumPy, on the steps that the agent saw and the indices that it drew."""
    from helpers.agent_loops import features
    from helpers.plain_loops import projected

    M, radius = 50, 1.0
    env = Walk(limit=12)
    algorithm = gq.VRGreedyGQ(0.3, 0.2, batch_size=M, radius=radius)
    agent = gq.Agent(env, coder(), algorithm, discount=0.95, seed=3).learn(3 * M + 20)
    assert (agent.n_updates, agent.waiting) == (3 * M, 20)

    def gradients(step: Step, theta: np.ndarray, omega: np.ndarray) -> np.ndarray:
        phi, phi_next = (
            features(agent.encoder, step.observation)[step.action],
            features(agent.encoder, step.next_observation),
        )
        q = phi_next @ theta
        discount = 0.0 if step.terminated else 0.95
        delta = step.reward + discount * q.max() - phi @ theta
        phi_hat = agent.target.weights(q) @ phi_next
        return np.array([-delta * phi + discount * (omega @ phi) * phi_hat, (phi @ omega - delta) * phi])

    theta = omega = np.zeros(agent.theta.size)
    for m, drawn in enumerate(gq.check.batch_indices(algorithm, 3 * M, seed=3)):
        batch = env.log[m * M : (m + 1) * M]
        reference = np.array([gradients(step, theta, omega) for step in batch])
        for j in drawn:
            G, H = gradients(batch[j], theta, omega) - reference[j] + reference.mean(axis=0)
            theta, omega = projected(theta - 0.3 * G, radius), projected(omega - 0.2 * H, radius)
    assert_close(agent.theta.ravel(), theta)
    assert_close(agent.omega.ravel(), omega)
