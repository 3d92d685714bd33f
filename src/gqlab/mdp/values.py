"""Rewards and discounted values of given policies, in NumPy float64; ``policy`` is (..., S, A).

Small MDPs are solved as dense matrices, large ones as sparse systems (:mod:`gqlab.mdp.large_chains`). A residual ε of
V = r_π + Γ_π V leaves an error of V of at most ε/(1 − γ), with γ the largest sum of a row of Γ_π; and so does one of
Bellman's equation V = max_a (r + ΓV).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gqlab.mdp import chains, large_chains
from gqlab.mdp.finite import FiniteMDP
from gqlab.support.checks import FloatArray

#: The Bellman residual of large MDPs, relative to 1 + max |V|, and the rounds of policy iteration that may lead to it.
BELLMAN, MOST_ROUNDS = 1e-13, 500

#: The first rounds, in which policies are not solved exactly; and the sweeps of value iteration in all later ones.
QUICK_ROUNDS, SWEEPS = 25, 50

#: The sweeps of a quick round, and the share of the gap that it may leave at most.
PARTIAL, FALLS = 20, 0.3


def policy_value(mdp: FiniteMDP, policy: FloatArray) -> FloatArray:
    """V = (I − Γ_π)⁻¹ r_π, (..., S), with Γ_π(s,s') = Σ_a π(a|s) P(s'|s,a) γ(s,a,s')."""
    rewards = (policy * mdp.expected_reward).sum(axis=-1)
    if mdp.is_small:
        gamma = np.einsum("...sa,sat->...st", policy, mdp.transition * mdp.discount)
        return np.asarray(np.linalg.solve(np.eye(mdp.n_states) - gamma, rewards[..., None])[..., 0])
    pairs = zip(policy.reshape(-1, *policy.shape[-2:]), rewards.reshape(-1, mdp.n_states), strict=True)
    values = [large_chains.solve(_system(mdp, pi), r, "the policy's value") for pi, r in pairs]
    return np.array(values).reshape(rewards.shape)


def _system(mdp: FiniteMDP, policy: FloatArray) -> sparse.csr_array:
    """I − Γ_π."""
    gamma = mdp.over_actions(policy, mdp.arcs.probability * mdp.arcs.discount)
    return (sparse.eye_array(mdp.n_states, format="csr") - gamma).tocsr()


def action_value(mdp: FiniteMDP, value: FloatArray) -> FloatArray:
    """Q(s,a) = r(s,a) + E[γ V(s')], (..., S, A), of a value V (..., S); 0 in terminal states."""
    ahead = (mdp.discounted @ value.reshape(-1, mdp.n_states).T).T
    return mdp.expected_reward + ahead.reshape(*value.shape[:-1], mdp.n_states, mdp.n_actions)


def optimal_value(mdp: FiniteMDP) -> FloatArray:
    """The largest discounted value in every state, (S,), by policy iteration; modified for large MDPs."""
    if not mdp.is_small:
        return _modified_policy_iteration(mdp)
    policy = np.eye(mdp.n_actions)[np.zeros(mdp.n_states, dtype=int)]
    while True:
        V = policy_value(mdp, policy)
        Q = action_value(mdp, V)
        kept = (policy * Q).sum(axis=-1)
        # An action replaces another only if it gains more than rounding, so that no policy occurs twice.
        better = Q.max(axis=-1) > kept + 1e-12 * (1 + np.abs(kept))
        if not better.any():
            return V
        policy[better] = np.eye(mdp.n_actions)[Q.argmax(axis=-1)[better]]


def _modified_policy_iteration(mdp: FiniteMDP) -> FloatArray:
    """For ``QUICK_ROUNDS`` rounds policies are evaluated only approximately.

    If that does not converge, they are solved exactly, which always makes progress, with ``SWEEPS`` sweeps of value
    iteration in between: on a long line of states a round without them would propagate values by one state only. V is
    accepted when max |max_a Q − V| is as small as rounding allows: ``BELLMAN``. Where one discount holds everywhere,
    quick rounds are sweeps, as long as each brings the gap down by ``FALLS``; Krylov's method does the others.
    """
    V, before, gamma = np.zeros(mdp.n_states), np.inf, _only_discount(mdp)
    shape = mdp.n_states, mdp.n_actions
    for k in range(MOST_ROUNDS):
        for _ in range(1 if k < QUICK_ROUNDS else SWEEPS):
            Q = mdp.expected_reward + (mdp.discounted @ V).reshape(shape)
            best = Q.max(axis=-1)
            gap = float(np.abs(best - V).max())
            if gap <= BELLMAN * (1 + float(np.abs(V).max())):
                return best
            V = best
        if k < QUICK_ROUNDS and gamma is not None and gap <= FALLS * before:
            V, before = _swept(mdp, Q.argmax(axis=-1), best, gamma), gap
            continue
        policy = (Q.argmax(axis=-1)[:, None] == np.arange(mdp.n_actions)).astype(np.float64)
        rewards, A = (policy * mdp.expected_reward).sum(axis=-1), _system(mdp, policy)
        if k < QUICK_ROUNDS:
            V = best + large_chains.krylov(A, rewards - A @ best, 0.01)
        else:
            V = large_chains.solve(A, rewards, "the optimal value", best)
    raise ValueError(
        f"the optimal value: Bellman's residual is {gap:.1e} after {MOST_ROUNDS} rounds of policy iteration"
    )


def _only_discount(mdp: FiniteMDP) -> float | None:
    """γ where Σ_s' P(s'|s,a) γ(s,a,s') is the same everywhere, None where it is not."""
    sums = mdp.discounted @ np.ones(mdp.n_states)
    return float(sums[0]) if np.ptp(sums) <= 1e-12 else None


def _swept(mdp: FiniteMDP, actions: NDArray[np.intp], V: FloatArray, gamma: float) -> FloatArray:
    """V after ``PARTIAL`` sweeps of one policy.

    What all states still have to rise by alike is added at once: V + c is worth γ c more after a sweep, and c/(1 − γ)
    in the end. What is left differs between states, and falls as fast as the chain mixes (MacQueen's bounds).
    """
    rows = np.arange(mdp.n_states) * mdp.n_actions + actions
    gammas, rewards = mdp.discounted[rows], mdp.expected_reward.reshape(-1)[rows]
    rise = np.zeros(1)
    for _ in range(PARTIAL):
        new = rewards + gammas @ V
        rise, V = new - V, new
    return V + gamma / (1 - gamma) * (rise.max() + rise.min()) / 2


def average_reward(mdp: FiniteMDP, policy: FloatArray, start: FloatArray) -> FloatArray:
    """The long-run average reward of each of n policies (n, S, A), started from the distribution ``start``: (n,)."""
    rewards, out = mdp.expected_reward, np.empty(len(policy))
    if not mdp.is_small:
        for k, pi in enumerate(policy):
            mu = _long_run(mdp, pi, start)
            out[k] = mu @ (pi * rewards).sum(axis=-1)
        return out
    K = mdp.chain(policy)
    # Chains with the same possible moves have the same classes: one batch for each such set.
    moves = np.packbits((K > 0).reshape(len(policy), -1), axis=-1)
    _, group = np.unique(moves, axis=0, return_inverse=True)
    for k in range(group.max() + 1):
        members = np.flatnonzero(group == k)
        mu = chains.long_run_distribution(K[members], start)
        out[members] = np.einsum("ns,nsa,sa->n", mu, policy[members], rewards)
    return out


def _long_run(mdp: FiniteMDP, policy: FloatArray, start: FloatArray) -> FloatArray:
    """The long-run frequency of each state, (S,), of one policy in a large MDP."""
    K, S = mdp.sparse_chain(policy), mdp.n_states
    classes = chains.recurrent_classes(K)
    mu = large_chains.long_run_distribution(K, classes, np.append(start, np.zeros(K.shape[0] - S)))
    # Within each class the restart takes no time.
    for members in classes:
        whole, states = mu[members].sum(), members[members < S]
        if len(states) < len(members) and whole > 0:
            mu[states] *= whole / mu[states].sum()
    return mu[:S]
