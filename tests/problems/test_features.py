"""Feature tables: what a row stands for, and which rows are zero."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from conftest import VECTORS, assert_close, problem_of
from helpers.refusals import refused

#: A ring of three states with a way in from state 3 that nothing leads back to, and a terminal state 4.
P = np.zeros((5, 2, 5))
P[0, :, 1] = P[1, :, 2] = P[3, :, 0] = 1.0
P[2, 0, 0] = P[2, 1, 4] = 1.0


def ring() -> gq.FiniteMDP:
    return gq.FiniteMDP(P, np.ones((5, 2)), 0.9, np.arange(5) == 4, [0.5, 0.5, 0, 0, 0])


def toy_text(env_id: str, **kwargs: object) -> gq.FiniteMDP:
    return gq.FiniteMDP.from_gymnasium(env_id, discount=0.95, **kwargs)


LAKES = {
    "lake": lambda: toy_text("FrozenLake-v1"),
    "dry lake": lambda: toy_text("FrozenLake-v1", is_slippery=False),
    "large lake": lambda: toy_text("FrozenLake-v1", map_name="8x8"),
    "cliff": lambda: toy_text("CliffWalking-v1"),
    "slippery cliff": lambda: toy_text("CliffWalking-v1", is_slippery=True),
    "ring": ring,
    "garnet": lambda: gq.garnet(seed=2),
    "vector": lambda: problem_of(VECTORS[6]).mdp,
}


@pytest.mark.parametrize("make", LAKES.values(), ids=LAKES)
def test_a_table_has_one_feature_for_every_pair_that_is_met_again_and_again(make):
    mdp = make()
    phi = gq.tabular_features(mdp)
    uniform = np.full(phi.shape[:2], 1 / mdp.n_actions)
    p = np.linalg.matrix_power(0.5 * (np.eye(mdp.n_states) + mdp.chain(uniform)), 2**20)[
        0
    ]  # the long run, by pushing on
    met = np.broadcast_to((p > 1e-12)[:, None] & ~mdp.terminal[:, None], uniform.shape)
    assert phi.shape[-1] == met.sum()
    assert np.array_equal(phi.sum(axis=-1), met)
    assert np.array_equal(phi[met], np.eye(met.sum()))  # in the order of the pairs
    problem = gq.Problem(mdp, phi)
    assert_close(problem.exact.feature_covariance, np.diag((p[:, None] * uniform)[met]), 1e-9)


@pytest.mark.parametrize("make", LAKES.values(), ids=LAKES)
def test_with_a_table_evaluation_is_exact(make):
    """The fixed point is Q of the target policy wherever the behaviour policy goes: two ways to one number."""
    mdp = make()
    table = np.random.default_rng(0).dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
    phi = gq.tabular_features(mdp)
    exact = gq.Problem(mdp, phi, target=gq.FixedPolicy(table)).exact
    met = phi.any(axis=-1)
    assert_close((phi @ exact.fixed_point)[met], exact.q(np.zeros(phi.shape[-1]))[met], 1e-9)


def test_actions_that_the_behaviour_policy_never_takes_have_no_feature():
    mdp = ring()
    behavior = np.tile([0.3, 0.7], (5, 1))
    behavior[1] = [1.0, 0.0]
    phi = gq.tabular_features(mdp, behavior)
    assert phi.any(axis=-1).tolist() == [[True, True], [True, False], [True, True], [False, False], [False, False]]
    assert gq.Problem(mdp, phi, behavior).exact.feature_covariance.shape == (5, 5)
    with pytest.raises(ValueError, match="rank 5 of 6"):
        _ = gq.Problem(mdp, gq.tabular_features(mdp), behavior).exact


def test_aggregated_states_share_their_features_action_by_action():
    phi = gq.aggregated_features(ring(), [1, 0, 1, 0, 7])  # the terminal state's label is not read
    assert phi.shape == (5, 2, 4)
    assert phi[:4].argmax(axis=-1).tolist() == [[2, 3], [0, 1], [2, 3], [0, 1]]
    assert (phi[:4].sum(axis=-1) == 1).all()
    assert not phi[4].any()
    assert gq.Problem(ring(), phi).exact.feature_covariance.shape == (4, 4)


def test_aggregated_pairs_share_their_feature():
    phi = gq.aggregated_features(ring(), np.array([[0, 1], [1, 2], [2, 0], [0, 0], [-1, -1]], dtype=np.int8))
    assert phi[:4].argmax(axis=-1).tolist() == [[0, 1], [1, 2], [2, 0], [0, 0]]
    assert phi.shape == (5, 2, 3)
    assert phi.sum() == 8


def test_every_pair_in_a_group_of_its_own_is_a_table():
    mdp = gq.garnet(seed=0)
    assert np.array_equal(gq.aggregated_features(mdp, np.arange(15).reshape(5, 3)), gq.tabular_features(mdp))
    assert np.array_equal(gq.aggregated_features(mdp, range(5)), gq.tabular_features(mdp))


def test_small_numbers_do_not_overflow():
    mdp = gq.garnet(n_states=100, n_actions=3, seed=0)
    groups = np.arange(100, dtype=np.uint8)
    assert np.array_equal(gq.aggregated_features(mdp, groups), gq.aggregated_features(mdp, groups.astype(int)))


CASES = {
    "no mdp": (lambda: gq.tabular_features("lake"), "mdp is 'lake', expected a FiniteMDP"),
    "behavior shape": (lambda: gq.tabular_features(ring(), np.ones((5, 3)) / 3), "behavior has shape (5, 3), expected (5, 2)"),
    "behavior sum": (lambda: gq.tabular_features(ring(), np.ones((5, 2))), "behavior[0] sums to 2, expected 1"),
    "behavior NaN": (lambda: gq.tabular_features(ring(), np.full((5, 2), np.nan)), "behavior[0, 0] is nan"),
    "classes": (
        lambda: gq.tabular_features(gq.FiniteMDP(np.eye(3)[:, None], np.zeros((3, 1)), 0.9)),
        "behavior: its chain has 3 recurrent classes, expected 1: states {0} and {1}",
    ),
    "no mdp to group": (lambda: gq.aggregated_features(5, [0]), "mdp is 5, expected a FiniteMDP"),
    "shape": (lambda: gq.aggregated_features(ring(), [0, 1]), "groups has shape (2,), expected (5,) or (5, 2)"),
    "shape of actions": (lambda: gq.aggregated_features(ring(), np.zeros((5, 3), int)), "groups has shape (5, 3), expected (5,) or (5, 2)"),
    "ragged": (lambda: gq.aggregated_features(ring(), [[0], [0, 1]]), "groups is not an array"),
    "fractions": (lambda: gq.aggregated_features(ring(), [0.0, 1, 1, 0, 0]), "groups has dtype float64, expected whole numbers"),
    "truth": (lambda: gq.aggregated_features(ring(), [True] * 5), "groups has dtype bool, expected whole numbers"),
    "negative": (lambda: gq.aggregated_features(ring(), [0, 1, -2, 0, 0]), "groups[2] is -2, expected at least 0"),
    "negative pair": (
        lambda: gq.aggregated_features(ring(), [[0, 1], [0, -1], [0, 0], [0, 0], [0, 0]]),
        "groups[1, 1] is -1, expected at least 0",
    ),
    "gap": (lambda: gq.aggregated_features(ring(), [0, 1, 3, 3, 0]), "groups has no 2, but 3: number the groups of states that are not terminal"),
    "gap at the start": (lambda: gq.aggregated_features(ring(), [4, 5, 5, 4, 0]), "groups has no 0, but 4:"),
    "huge": (lambda: gq.aggregated_features(ring(), [0, 10**15, 1, 0, 0]), "groups has no 2, but 1000000000000000:"),
    "terminal only": (lambda: gq.aggregated_features(ring(), [0, 2, 0, 0, 1]), "groups has no 1, but 2:"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_message(case):
    call, message = case
    with refused(message):
        call()
