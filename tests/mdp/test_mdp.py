"""Finite MDPs: the tables of toy-text environments, chains and their classes."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

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


def test_what_is_given_is_copied_and_closed():
    P = VECTORS[0]["transition"]
    mdp = problem_of(VECTORS[0]).mdp
    with pytest.raises(ValueError, match="read-only"):
        mdp.transition[0, 0, 0] = 1.0
    assert_close(mdp.transition, P, 1e-15)


def test_a_table_in_which_a_state_ends_the_episode_by_one_action_only_is_refused():
    table = {0: {0: [(0.2, 1, 0.0, False), (0.8, 0, 0.0, False)], 1: [(0.5, 1, 0.0, True), (0.5, 0, 0.0, False)]},
             1: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 0, 0.0, False)]}}  # fmt: skip
    read = toy_text.read_table(table)
    with pytest.raises(ValueError, match="arriving in state 1 ends the episode only sometimes"):
        toy_text.reachable(read, np.array([True, False]))
