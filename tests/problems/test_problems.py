"""Finite problems, operators and exact values against independent computations."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from scipy.special import softmax

import gqlab as gq
from conftest import VECTORS, assert_close, problem_of
from gqlab.mdp import chains, toy_text

TOY_TEXT = [
    ("FrozenLake-v1", {}, 16, 5),
    ("FrozenLake-v1", {"is_slippery": False}, 16, 5),
    ("FrozenLake-v1", {"map_name": "8x8"}, 64, 11),
    ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": False}, 64, 11),
    ("CliffWalking-v1", {}, 38, 1),
    ("CliffWalking-v1", {"is_slippery": True}, 38, 1),
    ("Taxi-v4", {}, 404, 4),
    ("Taxi-v4", {"is_rainy": True}, 404, 4),
]


@pytest.mark.parametrize(("env_id", "kwargs", "n_states", "n_terminal"), TOY_TEXT, ids=str)
def test_toy_text_environments_are_read_exactly(env_id, kwargs, n_states, n_terminal):
    mdp = gq.FiniteMDP.from_gymnasium(env_id, discount=0.9, **kwargs)
    assert (mdp.n_states, mdp.terminal.sum()) == (n_states, n_terminal)
    env = gymnasium.make(env_id, **kwargs).unwrapped
    back = {int(s): k for k, s in enumerate(mdp.state_ids)}
    for s in mdp.state_ids[~mdp.terminal]:
        for a in range(mdp.n_actions):
            P, rewards = np.zeros(n_states), np.zeros(n_states)
            for probability, s_next, reward, terminated in env.P[s][a]:
                P[back[s_next]] += probability  # every successor of a kept state is kept
                rewards[back[s_next]] += probability * reward
                assert terminated == mdp.terminal[back[s_next]]
            assert_close(mdp.transition[back[s], a], P, 1e-12)
            assert np.abs(mdp.reward[back[s], a] * P - rewards).max() < 1e-12
    assert (mdp.discount[:, :, mdp.terminal] == 0).all()
    assert (mdp.discount[:, :, ~mdp.terminal] == 0.9).all()
    assert_close(mdp.initial, env.initial_state_distrib[mdp.state_ids], 1e-12)
    uniform = np.full((n_states, mdp.n_actions), 1 / mdp.n_actions)
    mu = mdp.stationary(uniform)
    assert_close(mu @ mdp.chain(uniform), mu, 1e-12)
    assert (mu[mdp.terminal] == 0).all()


def test_the_taxi_that_is_left_is_the_one_that_drives():
    """The states that it leaves out: the passenger waits at the destination, and the taxi is not the one that came."""
    mdp = gq.FiniteMDP.from_gymnasium("Taxi-v4", discount=0.95)
    env = gymnasium.make("Taxi-v4").unwrapped
    places = np.array([env.decode(int(s)) for s in range(500)])  # row, column, passenger, destination
    delivered = places[:, 2] == places[:, 3]
    at_stand = np.array([(row, column) == env.locs[goal] for row, column, _, goal in places])
    assert mdp.state_ids.tolist() == np.flatnonzero(~delivered | at_stand).tolist()
    assert mdp.state_ids[mdp.terminal].tolist() == np.flatnonzero(delivered & at_stand).tolist()


def test_what_gymnasium_says_of_an_environment_that_it_has_is_passed_on():
    with pytest.warns(UserWarning, match="Using the latest versioned environment `Taxi-v4`"):
        mdp = gq.FiniteMDP.from_gymnasium("Taxi")
    assert mdp.n_states == 404


@pytest.mark.parametrize("seed", range(20))
def test_garnets_are_what_their_name_says(seed):
    mdp = gq.garnet(6, 2, 3, discount=0.8, seed=seed)
    assert ((mdp.transition > 0).sum(axis=-1) == 3).all()
    assert ((mdp.reward >= 0) & (mdp.reward <= 1)).all()
    assert len(np.unique(mdp.reward)) == mdp.reward.size
    K = mdp.chain(np.full((6, 2), 0.5))
    assert (np.linalg.matrix_power(K, 60) > 0).all()  # irreducible and aperiodic


def test_garnets_repeat_by_seed():
    assert np.array_equal(gq.garnet(seed=3).transition, gq.garnet(seed=3).transition)
    assert not np.array_equal(gq.garnet(seed=3).transition, gq.garnet(seed=4).transition)


@pytest.mark.parametrize("kind", ["uniform", "gaussian"])
def test_features_have_unit_rows(kind):
    phi = gq.random_features(gq.garnet(seed=0), dim=6, kind=kind, seed=1)
    assert_close(np.linalg.norm(phi, axis=-1), np.ones((5, 3)), 1e-14)
    assert (phi.min() > 0) == (kind == "uniform")


def test_periods_and_classes():
    ring = np.roll(np.eye(4, dtype=bool), 1, axis=1)
    assert chains.period(ring) == 4
    assert chains.period(ring | np.eye(4, dtype=bool)) == 1
    two = np.zeros((5, 5), dtype=bool)
    two[0, [1, 3]] = two[1, 2] = two[2, 1] = two[3, 3] = two[4, 0] = True
    assert sorted(c.tolist() for c in chains.recurrent_classes(two)) == [[1, 2], [3]]


def test_a_rare_state_has_full_relative_accuracy():
    """Two states, p out of 0 and q out of 1: μ = (q, p)/(p + q), to the last digits however small p is."""
    p, q = 1e-200, 0.5
    mu = chains.stationary_distribution(np.array([[1.0, p], [q, 1 - q]]))
    assert_close(mu[1], p / (p + q), 1e-14)


def test_long_run_distribution_of_a_chain_with_two_ends():
    """Gambler's ruin with fair coin from the middle of {0, …, 4}: half the runs end on either side."""
    K = np.zeros((5, 5))
    K[0, 0] = K[4, 4] = 1
    for s in (1, 2, 3):
        K[s, s - 1] = K[s, s + 1] = 0.5
    assert_close(chains.long_run_distribution(K, np.eye(5)[1]), [0.75, 0, 0, 0, 0.25], 1e-12)


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


@pytest.mark.parametrize("kappa", [0.01, 1.0, 5.0, 200.0])
def test_mellowmax_policy_is_the_softmax_that_attains_its_value(kappa):
    q = np.random.default_rng(0).normal(size=(50, 4, 3)) * 3
    q[0] = 1.5  # all values equal
    q[1, :, 0] = q[1, :, 1]  # ties
    operator = gq.Mellowmax(kappa)
    pi = operator.policy(q)
    assert_close(pi.sum(axis=-1), np.ones((50, 4)), 1e-12)
    assert_close((pi * q).sum(axis=-1), operator.value(q), 1e-9)
    sigma = np.log(pi[2:, :, 0] / pi[2:, :, 1]) / (q[2:, :, 0] - q[2:, :, 1])  # a softmax has one σ a state
    again = softmax(sigma[..., None] * q[2:], axis=-1)
    safe = np.abs(pi[2:]).min(axis=-1) > 1e-9
    assert_close(again[safe], pi[2:][safe], 1e-6)
    if kappa == 0.01:
        assert_close(pi[0], np.full((4, 3), 1 / 3), 1e-12)


def test_policies_of_every_operator_are_distributions():
    q = np.random.default_rng(0).normal(size=(6, 5, 3))
    table = np.random.default_rng(1).dirichlet(np.ones(3), size=5)
    for operator in (gq.Softmax(2.0), gq.Mellowmax(4.0), gq.Greedy(), gq.EpsilonGreedy(0.3), gq.FixedPolicy(table)):
        pi = operator.policy(q)
        assert pi.shape == q.shape
        assert (pi >= 0).all()
        assert_close(pi.sum(axis=-1), np.ones((6, 5)), 1e-12)
        assert_close((pi * q).sum(axis=-1), operator.value(q), 1e-9)


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


def test_what_is_given_is_copied_and_closed():
    P = VECTORS[0]["transition"]
    mdp = problem_of(VECTORS[0]).mdp
    with pytest.raises(ValueError, match="read-only"):
        mdp.transition[0, 0, 0] = 1.0
    assert_close(mdp.transition, P, 1e-15)


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


def test_a_table_in_which_a_state_ends_the_episode_by_one_action_only_is_refused():
    table = {0: {0: [(0.2, 1, 0.0, False), (0.8, 0, 0.0, False)], 1: [(0.5, 1, 0.0, True), (0.5, 0, 0.0, False)]},
             1: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 0, 0.0, False)]}}  # fmt: skip
    read = toy_text.read_table(table)
    with pytest.raises(ValueError, match="arriving in state 1 ends the episode only sometimes"):
        toy_text.reachable(read, np.array([True, False]))


def test_behaviour_rows_of_terminal_states_are_not_read():
    mdp = problem_of(VECTORS[6]).mdp
    behavior = np.array(VECTORS[6]["behavior"])
    behavior[mdp.terminal] = 0.0
    problem = gq.Problem(mdp, VECTORS[6]["features"], behavior)
    assert_close(problem.exact.stationary, VECTORS[6]["stationary"], 1e-12)
