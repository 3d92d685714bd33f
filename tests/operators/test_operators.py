"""The policies that operators make of action values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import gqlab as gq
from conftest import assert_close


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
