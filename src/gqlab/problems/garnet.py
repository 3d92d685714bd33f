"""Garnet(S, A, b): random MDPs with b successors of every state and action (Archibald et al., 1995)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gqlab.mdp import chains
from gqlab.mdp.arcs import WHOLE_ROWS, SparseEntries
from gqlab.mdp.finite import FiniteMDP
from gqlab.support import checks

#: Draws after which the search for an ergodic chain gives up (branching 1 over many states): up to ``WHOLE_ROWS``
#: states, and above.
MOST_DRAWS, MOST_LARGE_DRAWS = 10_000, 100


def garnet(
    n_states: int = 5, n_actions: int = 3, branching: int = 2, discount: float = 0.95, seed: int = 0
) -> FiniteMDP:
    """A random MDP: ``branching`` distinct successors of every (s, a), weights uniform on [0, 1] and normalised.

    Rewards are uniform on [0, 1] for every (s, a, s'). The kernel is redrawn until the uniform policy's chain is
    irreducible and aperiodic (the paper's Assumption 4). Above 2,000 states time and memory are linear in the number of
    transitions, and the random numbers differ.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(n_states=5, n_actions=3, branching=2, seed=0)
    >>> (mdp.transition > 0).sum(axis=-1).tolist()
    [[2, 2, 2], [2, 2, 2], [2, 2, 2], [2, 2, 2], [2, 2, 2]]
    >>> len(gq.garnet(n_states=10_000, n_actions=4, branching=5).arcs.s_next)
    200000
    """
    S = checks.integer("n_states", n_states, least=1)
    A = checks.integer("n_actions", n_actions, least=1)
    b = checks.integer("branching", branching, least=1, below=S + 1)
    seed = checks.integer("seed", seed, least=0, below=2**64)
    discount = checks.number("discount", discount, least=0, below=1)
    if S <= WHOLE_ROWS:
        checks.memory("n_states", S, 4 * S * A * S)  # the successors, rewards, and their checks
        draws = _small_draws(np.random.default_rng([seed, 0]), S, A, b)
    else:
        checks.memory("n_states", S, 12 * S * A * b)
        draws = _large_draws(np.random.default_rng([seed, 2]), S, A, b)
    for successors, weights, rewards in draws:
        if _ergodic(successors.reshape(S, -1)):
            order = np.argsort(successors, axis=-1)
            place = (np.arange(S * A).reshape(S, A, 1) * S + np.take_along_axis(successors, order, -1)).reshape(-1)
            P = SparseEntries(S, A, place, np.take_along_axis(weights, order, -1).reshape(-1))
            return FiniteMDP(P, rewards(place), discount)
    most = MOST_DRAWS if S <= WHOLE_ROWS else MOST_LARGE_DRAWS
    raise ValueError(f"branching is {b}: no ergodic kernel in {most} draws with {S} states and {A} actions")


def _small_draws(rng: np.random.Generator, S: int, A: int, b: int) -> Iterator[tuple[Any, Any, Any]]:
    """Successors and weights, (S, A, b), and what draws rewards: here one for every (s, a, s'), used or not."""
    for _ in range(MOST_DRAWS):
        successors = rng.permuted(np.broadcast_to(np.arange(S), (S, A, S)), axis=-1)[..., :b]
        weights = 1 - rng.random((S, A, b))  # in (0, 1]: a successor has a positive probability
        yield successors, weights / weights.sum(axis=-1, keepdims=True), lambda _: rng.random((S, A, S))


def _large_draws(rng: np.random.Generator, S: int, A: int, b: int) -> Iterator[tuple[Any, Any, Any]]:
    """The same, with rewards for the transitions only."""
    for _ in range(MOST_LARGE_DRAWS):
        successors = np.empty((S, A, b), dtype=np.int64)
        for k in range(b):  # Floyd's sample of b different numbers: a repeated one becomes S − b + k, which is new
            drawn = rng.integers(S - b + k + 1, size=(S, A))
            taken = (successors[..., :k] == drawn[..., None]).any(axis=-1)
            successors[..., k] = np.where(taken, S - b + k, drawn)
        weights = 1 - rng.random((S, A, b))
        weights /= weights.sum(axis=-1, keepdims=True)
        yield successors, weights, lambda place: SparseEntries(S, A, place, rng.random(len(place)))


def _ergodic(successors: NDArray[np.int64]) -> bool:
    """Whether the chain with these moves, (S, n), is irreducible and aperiodic."""
    S, n = successors.shape
    if not np.bincount(successors.reshape(-1), minlength=S).all():
        return False  # a state without predecessors: cheaper to find than the classes
    graph = sparse.csr_array(
        (np.ones(successors.size, dtype=bool), successors.reshape(-1), np.arange(0, successors.size + 1, n)),
        shape=(S, S),
    )
    return len(chains.recurrent_classes(graph)[0]) == S and chains.period(graph) == 1
