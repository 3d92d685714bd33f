"""Values and average rewards of policies, and exact quantities of many θ at once."""

from __future__ import annotations

import numpy as np

import gqlab as gq
from conftest import assert_close, problem_of


def test_average_reward_and_value_by_simulating_the_distribution(vector):
    """Push the state distribution through the chain many times: an independent way to both numbers."""
    problem = problem_of(vector)
    mdp = problem.mdp
    theta = np.array([e["theta"] for e in vector["exact"]])
    average, value = problem.exact.average_reward(theta), problem.exact.value(theta)
    for k in range(2):
        pi = problem.policy(theta[k])
        rewards = (pi[..., None] * mdp.transition * mdp.reward).sum(axis=(1, 2))
        p = problem.exact.stationary if mdp.initial is None else mdp.initial
        P2 = np.linalg.matrix_power(0.5 * (np.eye(mdp.n_states) + mdp.chain(pi)), 2**30)  # lazy: aperiodic, same limit
        assert_close(average[k], p @ P2 @ rewards, 1e-6)
        V = np.zeros(mdp.n_states)
        for _ in range(2000):
            V = np.einsum("sa,sat->s", pi, mdp.transition * (mdp.reward + mdp.discount * V))
        assert_close(value[k], V, 1e-9)


def test_average_reward_of_policies_with_different_classes_in_one_batch():
    """Two absorbing states; the greedy policy picks the way at state 0: rewards 1 and 2, by the sign of θ."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 1] = P[2, :, 2] = 1
    P[1:, 1] = [[0.5, 0.5, 0], [0.5, 0, 0.5]]  # action 1 leads back: the uniform behaviour has one class
    r = np.broadcast_to(np.array([0.0, 1.0, 2.0])[:, None], (3, 2))
    phi = np.array([[[1.0, 0], [-1, 0]], [[0, 1], [0, -1]], [[0, 1], [0, -1]]])
    problem = gq.Problem(gq.FiniteMDP(P, r, 0.9, initial=[1, 0, 0]), phi, target=gq.Greedy())
    assert_close(problem.exact.average_reward([[1.0, 1], [-1, 1]]), [1.0, 2.0], 1e-12)


def test_optimal_value_solves_the_bellman_equation(vector):
    problem = problem_of(vector)
    mdp, V = problem.mdp, problem.exact.optimal_value
    Q = (mdp.transition * (mdp.reward + mdp.discount * V)).sum(axis=-1)
    assert_close(Q.max(axis=-1), V, 1e-10)
    theta = np.array([e["theta"] for e in vector["exact"]])
    assert (problem.exact.value(theta) <= V + 1e-9).all()


def test_frozen_lake_optimum_is_the_known_one():
    """Without slipping the goal is 6 steps away: V(start) = γ⁵."""
    mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95, is_slippery=False)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=8, kind="gaussian"))
    assert_close(problem.exact.optimal_value[0], 0.95**5, 1e-12)


def test_batches_of_any_shape(garnet_problem):
    theta = np.random.default_rng(0).normal(size=(2, 3, 4))
    exact = garnet_problem.exact
    for function, tail in (
        (exact.mspbe, ()),
        (exact.gradient, (4,)),
        (exact.omega_star, (4,)),
        (exact.value, (5,)),
        (exact.average_reward, ()),
    ):
        whole = function(theta)
        assert whole.shape == (2, 3, *tail)
        assert_close(function(theta[1, 2]), whole[1, 2], 1e-13)
        assert function(np.empty((0, 4))).shape == (0, *tail)
    assert garnet_problem.policy(theta).shape == (2, 3, 5, 3)


def test_large_batches_are_cut_and_give_the_same(garnet_problem, monkeypatch):
    theta = np.random.default_rng(0).normal(size=(100, 4))
    whole = garnet_problem.exact.gradient(theta)
    monkeypatch.setattr("gqlab.exact.exact.BATCH_NUMBERS", 50)
    assert_close(garnet_problem.exact.gradient(theta), whole, 1e-13)


def test_average_reward_without_an_initial_distribution_starts_from_mu():
    """Two absorbing states under the greedy policy, which the behaviour policy visits unequally."""
    P = np.zeros((2, 2, 2))
    P[0, 0, 0] = P[1, 0, 1] = 1  # action 0 stays
    P[0, 1], P[1, 1] = [0.5, 0.5], [1.0, 0.0]  # action 1 may move
    phi = np.array([[[1.0], [0.0]], [[1.0], [0.0]]])
    problem = gq.Problem(gq.FiniteMDP(P, [[1.0, 1.0], [5.0, 5.0]], 0.9), phi, target=gq.Greedy())
    mu = problem.exact.stationary
    assert abs(mu[0] - 2 / 3) < 1e-12  # out of 0 with 1/4, out of 1 with 1/2
    assert_close(problem.exact.average_reward([1.0]), mu @ [1.0, 5.0], 1e-12)


def test_average_reward_of_almost_deterministic_policies():
    """A softmax so sharp that it leaves a transient state once in 10^26 steps, and one whose moves underflow."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 0] = P[0, 1, 1] = 1
    P[1, :, 2] = P[2, :, 1] = 1
    phi = np.array([[[1.0, 0], [-1.0, 0]], [[0, 1], [0, -1]], [[0, 1], [0, 1]]])
    restart = gq.FiniteMDP(P, [[0.0, 0], [1, 1], [3, 3]], 0.9, initial=[1, 0, 0])
    back = restart.transition.copy()
    back[2, 1] = [1.0, 0, 0]  # the behaviour's chain needs one class: action 1 leads back
    problem = gq.Problem(gq.FiniteMDP(back, restart.reward, 0.9, initial=[1, 0, 0]), phi)
    value = problem.exact.average_reward([[30.0, 0.0], [300.0, 0.0], [-30.0, 400.0]])
    assert np.isfinite(value).all()
    wide = gq.garnet(12, 3, 2, seed=3)
    sharp = gq.Problem(wide, gq.random_features(wide, dim=4, kind="gaussian"))
    theta = np.random.default_rng(0).normal(size=(50, 4))
    theta *= 1000 / np.linalg.norm(theta, axis=-1, keepdims=True)
    reward = sharp.exact.average_reward(theta)
    assert ((reward >= 0) & (reward <= 1)).all()
