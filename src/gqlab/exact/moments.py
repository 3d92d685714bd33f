"""What the exact quantities are made from: means over D(s,a) = μ(s) π_b(a|s) and P, and the possible transitions."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gqlab.mdp.finite import FiniteMDP
from gqlab.support import checks
from gqlab.support.checks import FloatArray


class Means(Protocol):
    """What expectations are taken over: an MDP, the policy that generates the data, and the features."""

    @property
    def mdp(self) -> FiniteMDP: ...
    @property
    def rows(self) -> Any: ...  # (S·A, d)
    @property
    def behavior(self) -> FloatArray: ...  # (S, A)
    @property
    def dim(self) -> int: ...


class FeatureMoments(NamedTuple):
    """All that J needs of D, P, r and γ."""

    C: FloatArray  # (d, d)  E[φφᵀ]
    b: FloatArray  # (d,)    E[rφ]
    K: FloatArray  # (d, S)  E[γ φ 1{s'}ᵀ]


class PossibleTransitions(NamedTuple):
    """Every x = (s, a, s') that the behaviour policy can make, N of them."""

    s: NDArray[np.intp]  # (N,)
    a: NDArray[np.intp]  # (N,)
    s_next: NDArray[np.intp]  # (N,)
    phi: FloatArray  # (N, d)  φ(s,a)
    reward: FloatArray  # (N,)
    gamma: FloatArray  # (N,)
    probability: FloatArray  # (N,)    D(s,a) P(s'|s,a); 0 where s is left for good


def moments(problem: Means, mu: FloatArray) -> FeatureMoments:
    """C, b and K for the stationary distribution μ; ``ValueError`` for a singular C."""
    mdp, phi, d = problem.mdp, problem.rows, problem.dim
    checks.memory("features", f"of dimension {d}", d * (3 * d + mdp.n_states))  # C and its rank, and K
    D_phi = weighted(phi, (mu[:, None] * problem.behavior).reshape(-1))  # D(s,a) φ(s,a), (S·A, d)
    C = as_dense(D_phi.T @ phi)
    C = 0.5 * (C + C.T)  # rounding in a matrix product need not be symmetric
    b = D_phi.T @ mdp.expected_reward.reshape(-1)
    K = as_dense(mdp.discounted.T @ D_phi).T
    rank = int(np.linalg.matrix_rank(C, hermitian=True))
    if rank < len(C):
        raise ValueError(
            f"features: C = E[φφᵀ] is singular (rank {rank} of {len(C)}); "
            "the features are linearly dependent on the pairs that the behaviour policy visits"
        )
    return FeatureMoments(*(checks.frozen(moment) for moment in (C, b, K)))


def possible_transitions(problem: Means, mu: FloatArray) -> PossibleTransitions:
    """The samples that can happen, in the order of s, a, s'."""
    arcs, row = problem.mdp.arcs, problem.mdp.arcs.row
    taken = np.flatnonzero(problem.behavior.reshape(-1)[row] * arcs.probability)
    row = row[taken]
    checks.memory("features", f"of dimension {problem.dim}", len(row) * problem.dim)
    s, a = np.divmod(row, problem.mdp.n_actions)
    return PossibleTransitions(
        s=checks.frozen(s),
        a=checks.frozen(a),
        s_next=checks.frozen(arcs.s_next[taken]),
        phi=checks.frozen(as_dense(problem.rows[row])),
        reward=checks.frozen(arcs.reward[taken]),
        gamma=checks.frozen(arcs.discount[taken]),
        probability=checks.frozen(mu[s] * problem.behavior[s, a] * arcs.probability[taken]),
    )


def weighted(rows: Any, weights: FloatArray) -> Any:
    """Rows of features, dense or sparse, times one number each."""
    return rows.multiply(weights[:, None]).tocsr() if sparse.issparse(rows) else weights[:, None] * rows


def as_dense(matrix: Any) -> FloatArray:
    """A matrix as an array."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
