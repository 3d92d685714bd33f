"""The problems that are timed."""

from __future__ import annotations

import numpy as np

import gqlab as gq

RADIUS = 100.0
VR = gq.VRGreedyGQ(0.02, 0.01, batch_size=3000, radius=RADIUS)
PLAIN = gq.GreedyGQ(0.02, 0.01, radius=RADIUS)


def paper_garnet() -> gq.Problem:
    """Garnet(5, 3, 2, 4), softmax with σ = 1: the paper's problem, and that of the anchors."""
    mdp = gq.garnet(5, 3, 2, discount=0.95, seed=0)
    return gq.Problem(mdp, gq.random_features(mdp, dim=4))


def sized_garnet(d: int, A: int) -> gq.Problem:
    """A Garnet with d features and A actions, with just enough states for a covariance of full rank."""
    S = max(5, -(-2 * d // A))
    mdp = gq.garnet(S, A, 2, discount=0.95, seed=1)
    return gq.Problem(mdp, gq.random_features(mdp, dim=d, kind="gaussian"))


def tabular_lake() -> gq.Problem:
    """FrozenLake with one feature for every pair, greedy: what a tabular agent sees."""
    mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
    S, A = mdp.n_states, mdp.n_actions
    live = np.flatnonzero(~mdp.terminal)
    phi = np.zeros((S, A, len(live) * A))
    for k, s in enumerate(live):
        phi[s, np.arange(A), k * A + np.arange(A)] = 1.0
    return gq.Problem(mdp, phi, target=gq.Greedy())
