"""Rewards and discounted values of given policies, in NumPy float64; ``policy`` is (..., S, A)."""

from __future__ import annotations

import numpy as np

from gqlab import chains
from gqlab.checks import FloatArray
from gqlab.mdp import FiniteMDP


def expected_reward(mdp: FiniteMDP) -> FloatArray:
    """r(s,a) = E[r(s,a,s')], (S, A); 0 in terminal states, which have no transitions."""
    return np.asarray((mdp.transition * mdp.reward).sum(axis=-1))


def policy_value(mdp: FiniteMDP, policy: FloatArray) -> FloatArray:
    """V = (I − Γ_π)⁻¹ r_π, (..., S), with Γ_π(s,s') = Σ_a π(a|s) P(s'|s,a) γ(s,a,s')."""
    rewards = (policy * expected_reward(mdp)).sum(axis=-1)
    gamma = np.einsum("...sa,sat->...st", policy, mdp.transition * mdp.discount)
    return np.asarray(np.linalg.solve(np.eye(mdp.n_states) - gamma, rewards[..., None])[..., 0])


def action_value(mdp: FiniteMDP, value: FloatArray) -> FloatArray:
    """Q(s,a) = r(s,a) + E[γ V(s')], (..., S, A), of a value V (..., S); 0 in terminal states."""
    return expected_reward(mdp) + np.einsum("sat,...t->...sa", mdp.transition * mdp.discount, value, optimize=True)


def optimal_value(mdp: FiniteMDP) -> FloatArray:
    """The largest discounted value in every state, (S,), by policy iteration."""
    policy = np.eye(mdp.n_actions)[np.zeros(mdp.n_states, dtype=int)]
    while True:
        V = policy_value(mdp, policy)
        Q = action_value(mdp, V)
        kept = (policy * Q).sum(axis=-1)
        # An action replaces another only if it gains more than rounding: policies do not repeat.
        better = Q.max(axis=-1) > kept + 1e-12 * (1 + np.abs(kept))
        if not better.any():
            return V
        policy[better] = np.eye(mdp.n_actions)[Q.argmax(axis=-1)[better]]


def average_reward(mdp: FiniteMDP, policy: FloatArray, start: FloatArray) -> FloatArray:
    """The long-run average reward of each of n policies (n, S, A), started from the distribution ``start``: (n,)."""
    K = mdp.chain(policy)
    rewards, out = expected_reward(mdp), np.empty(len(policy))
    # Chains with the same possible moves have the same classes: one batch for each such set.
    moves = np.packbits((K > 0).reshape(len(policy), -1), axis=-1)
    _, group = np.unique(moves, axis=0, return_inverse=True)
    for k in range(group.max() + 1):
        members = np.flatnonzero(group == k)
        mu = chains.long_run_distribution(K[members], start)
        out[members] = np.einsum("ns,nsa,sa->n", mu, policy[members], rewards)
    return out
