"""What may be given as a policy, and what its answers are held against."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gqlab as gq
from gqlab.policies import as_policy, drawn

TABLE = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
STATES = np.array([[2.0], [0.0], [1.0]])


def looked_up(observations):
    return TABLE[observations[:, 0].astype(int)]


KINDS = {
    "function": looked_up,
    "FixedPolicy": gq.FixedPolicy(TABLE),
    "array": TABLE,
    "lists": TABLE.tolist(),
    "object": SimpleNamespace(probabilities=looked_up),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_its_probabilities(kind):
    policy = as_policy("target", KINDS[kind], 2, 1)
    np.testing.assert_array_equal(policy.probabilities(STATES), TABLE[[2, 0, 1]])
    assert policy.best(STATES).tolist() == [0, 1, 0]
    actions, p = policy.draw(np.repeat(STATES, 1000, axis=0), np.random.default_rng(0))
    assert actions[2000:].max() == 0  # of probability 1
    np.testing.assert_array_equal(p, np.repeat(TABLE[[2, 0, 1]], 1000, axis=0)[np.arange(3000), actions])
    assert abs(actions[1000:2000].mean() - 0.75) < 0.07  # five standard deviations


def test_an_operator_makes_a_policy_of_values_at_hand():
    q = np.log([[1.0, 3.0]])
    policy = as_policy("policy", gq.Softmax(1.0), 2, q=lambda rows: np.repeat(q, len(rows), axis=0))
    np.testing.assert_allclose(policy.probabilities(STATES), [[0.25, 0.75]] * 3)


def test_actions_instead_of_probabilities_serve_where_a_policy_acts():
    policy = as_policy("policy", lambda rows: (rows[:, 0] > 0).astype(int), 2)
    assert policy.best(STATES).tolist() == [1, 0, 1]
    actions, p = policy.draw(STATES, np.random.default_rng(0))
    assert (actions.tolist(), p) == ([1, 0, 1], None)
    with pytest.raises(ValueError, match=r"policy\(observations\) has shape \(3,\), expected probabilities \(3, 2\)$"):
        policy.probabilities(STATES)


@pytest.mark.parametrize("chance", [0.0, 0.2, np.nextafter(0.3, 0), 0.5, 0.9999999999999999, 1.0])
def test_no_action_of_probability_0_is_drawn(chance):
    p = np.array([[0.0, 0.3, 0.0, 0.1 + 0.6 - 1e-12, 0.0]])
    assert drawn(p, np.array([chance])).item() == (1 if chance < 0.3 else 3)


ROWS = np.zeros((2, 3))
BAD = [
    (3, "target is 3, expected a policy: a LinearQ, an Agent, a function of observations, a FixedPolicy or a table of probabilities"),
    (gq.Greedy, "target is <class 'gqlab.operators.epsilon_greedy.Greedy'>, expected a policy: a LinearQ, an Agent, a function of observations, a FixedPolicy or a table of probabilities"),
    (gq.Softmax(2.0), "target is Softmax(sigma=2.0), which makes a policy of action values; expected a policy: a LinearQ, an Agent, a function of observations, a FixedPolicy or a table of probabilities"),
    (gq.FixedPolicy([[0.5, 0.5]]), "target is FixedPolicy(1 state, 2 actions), a policy for observations of 1 numbers, expected 3"),
    (gq.FixedPolicy([[0.5, 0.25, 0.25]]), "target is FixedPolicy(1 state, 3 actions), a policy of 3 actions, expected 2"),
    ([0.5, 0.5], "target has shape (2,), expected (*, *)"),
    ([[0.5, 0.5], [0.5, 0.6]], "target[1] sums to 1.1, expected 1"),
    ([[0.5, np.nan]], "target[0, 1] is nan, expected a finite number"),
    (lambda rows: [[0.5, 0.5], [0.5, 0.25]], "target(observations)[1] sums to 0.75, expected 1"),
    (lambda rows: [[0.5, 0.5], [1.5, -0.5]], "target(observations)[1, 1] is -0.5, a negative probability"),
    (lambda rows: [[0.5, 0.5], [np.nan, 0.5]], "target(observations)[1, 0] is nan, expected a finite number"),
    (lambda rows: np.full((2, 3), 1 / 3), "target(observations) has shape (2, 3), expected probabilities (2, 2)"),
    (lambda rows: "left", "target(observations) is not an array of numbers, but of <U4"),
    (lambda rows: rows[0, 9], "target failed for observations of shape (2, 3): IndexError: index 9 is out of bounds for axis 1 with size 3"),
    (SimpleNamespace(probabilities=lambda rows: [1.0]), "target.probabilities(observations) has shape (1,), expected probabilities (2, 2)"),
    (SimpleNamespace(probabilities=looked_up, n_actions=5), "target is namespace(probabilities=<function looked_up"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "message"), BAD, ids=range(len(BAD)))
def test_bad_policies_are_refused_in_one_line(value, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        as_policy("target", value, 2, 3).probabilities(ROWS)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("state", [3.0, -1.0, 0.5])
def test_a_table_names_the_observation_that_it_does_not_know(state):
    rows = np.array([[0.0], [state]])
    with pytest.raises(
        ValueError, match=rf"target: its table has the states 0, ..., 2, but observation 1 is {state:g}$"
    ):
        as_policy("target", TABLE, 2, 1).probabilities(rows)


def test_actions_are_checked_too():
    for answer, message in (
        ([0, 2], r"policy\(observations\)\[1\] is 2, expected at least 0 and below 2"),
        ([0.5, 0], r"policy\(observations\)\[0\] is 0.5, expected a whole number"),
        ([0], r"policy\(observations\) has shape \(1,\), expected probabilities \(2, 2\), or an action for each"),
        (0, r"policy\(observations\) has shape \(\), expected probabilities \(2, 2\), or an action for each"),
    ):
        with pytest.raises(ValueError, match=message):
            as_policy("policy", lambda rows, answer=answer: answer, 2).best(ROWS)
