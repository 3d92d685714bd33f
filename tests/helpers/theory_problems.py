"""Random small problems for the tests of the theory, from one seed."""

from __future__ import annotations

import numpy as np

import gqlab as gq


def random_problem(seed: int) -> gq.Problem:
    """2–4 states, 1–3 actions, features in the unit ball, any smooth operator, discounts per transition."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    d = int(rng.integers(1, min((S - 1) * A, 3) + 1))
    P = rng.dirichlet(np.full(S, rng.choice([0.3, 2.0])), size=(S, A))
    P = 0.9 * P + 0.1 / S  # ergodic
    terminal, initial = None, None
    if S > 2 and rng.random() < 0.3:
        terminal, initial = np.arange(S) == S - 1, np.append(rng.dirichlet(np.ones(S - 1)), 0.0)
    discount = rng.uniform(0, 0.99) if rng.random() < 0.5 else rng.uniform(0, 0.99, size=(S, A, S))
    mdp = gq.FiniteMDP(P, rng.uniform(-1, 1, size=(S, A, S)), discount, terminal, initial)
    phi = rng.standard_normal((S, A, d))
    phi /= np.linalg.norm(phi, axis=-1, keepdims=True)
    phi *= rng.uniform(0.3, 1.0, size=(S, A, 1)) if rng.random() < 0.5 else 1.0
    targets = [
        gq.Softmax(float(rng.uniform(0, 3))),
        gq.Mellowmax(float(rng.uniform(0.1, 5))),
        gq.FixedPolicy(rng.dirichlet(np.ones(A), size=S)),
    ]
    return gq.Problem(mdp, phi, rng.dirichlet(np.full(A, 3.0), size=S), targets[rng.integers(3)])


def benign_problem() -> gq.Problem:
    """Two states, one-hot features, a fixed policy, γ = 0.1: the theorem says something about it with R = 1."""
    mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    return gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))


def by_hand() -> gq.Problem:
    """Two states, two actions: action a leads to state a, whatever the state; action 0 pays 1. φ(s,a) = e_a.

    Uniform behaviour: μ = (½, ½), every row of the chain is (½, ½). C = ½ I, λ_C = ½. γ = ½, softmax with σ = 1.
    """
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = P[:, 1, 1] = 1.0
    mdp = gq.FiniteMDP(P, [[1.0, 0.0], [1.0, 0.0]], discount=0.5)
    return gq.Problem(mdp, [np.eye(2), np.eye(2)], target=gq.Softmax(1.0))


def control_problem(target: gq.Operator | None = None, discount: float = 0.2) -> gq.Problem:
    """The problem by hand with a smaller discount and reward: a control problem that the theorems certify with R = 1."""
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = P[:, 1, 1] = 1.0
    mdp = gq.FiniteMDP(P, [[discount, 0.0], [discount, 0.0]], discount=discount)
    return gq.Problem(mdp, [np.eye(2), np.eye(2)], target=target or gq.Softmax(1.0))
