"""Garnet(S, A, b): random MDPs with b successors of every state and action (Archibald et al., 1995)."""

from __future__ import annotations

import numpy as np

from gqlab import chains, checks
from gqlab.checks import FloatArray
from gqlab.mdp import FiniteMDP

#: Draws after which an ergodic chain is declared out of reach (branching 1 over many states).
MOST_DRAWS = 10_000


def garnet(
    n_states: int = 5, n_actions: int = 3, branching: int = 2, discount: float = 0.95, seed: int = 0
) -> FiniteMDP:
    """A random MDP: ``branching`` distinct successors of every (s, a), weights uniform on [0, 1] and normalised.

    Rewards are uniform on [0, 1] for every (s, a, s'). The kernel is redrawn until the uniform policy's chain is
    irreducible and aperiodic (the paper's Assumption 4).

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(n_states=5, n_actions=3, branching=2, seed=0)
    >>> (mdp.transition > 0).sum(axis=-1).tolist()
    [[2, 2, 2], [2, 2, 2], [2, 2, 2], [2, 2, 2], [2, 2, 2]]
    """
    S = checks.integer("n_states", n_states, least=1)
    A = checks.integer("n_actions", n_actions, least=1)
    b = checks.integer("branching", branching, least=1, below=S + 1)
    rng = np.random.default_rng([checks.integer("seed", seed, least=0, below=2**64), 0])
    discount = checks.number("discount", discount, least=0, below=1)
    checks.memory("n_states", S, 6 * S * A * S)  # the kernel, its successors, rewards and discounts, and their checks
    for _ in range(MOST_DRAWS):
        P = _kernel(rng, S, A, b)
        support = P.max(axis=1) > 0
        if len(chains.recurrent_classes(support)[0]) == S and chains.period(support) == 1:
            return FiniteMDP(P, rng.random((S, A, S)), discount)
    raise ValueError(f"branching is {b}: no ergodic kernel in {MOST_DRAWS} draws with {S} states and {A} actions")


def _kernel(rng: np.random.Generator, S: int, A: int, b: int) -> FloatArray:
    P = np.zeros((S, A, S))
    successors = rng.permuted(np.broadcast_to(np.arange(S), (S, A, S)), axis=-1)[..., :b]
    weights = 1 - rng.random((S, A, b))  # in (0, 1]: a successor has a positive probability
    np.put_along_axis(P, successors, weights / weights.sum(axis=-1, keepdims=True), axis=-1)
    return P
