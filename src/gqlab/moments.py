"""What the exact quantities are made of: means over D(s,a) = μ(s) π_b(a|s) and P, and the transitions behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab import checks
from gqlab.checks import FloatArray

if TYPE_CHECKING:
    from gqlab.problem import Problem


class Moments(NamedTuple):
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


def moments(problem: Problem, mu: FloatArray) -> Moments:
    """C, b and K for the stationary distribution μ; ``ValueError`` for a singular C."""
    mdp, phi = problem.mdp, problem.features.reshape(-1, problem.dim)
    D_phi = (mu[:, None] * problem.behavior).reshape(-1, 1) * phi  # D(s,a) φ(s,a), (S·A, d)
    C = D_phi.T @ phi
    C = 0.5 * (C + C.T)  # rounding in a matrix product need not be symmetric
    b = D_phi.T @ (mdp.transition * mdp.reward).sum(axis=-1).ravel()
    K = D_phi.T @ (mdp.transition * mdp.discount).reshape(len(phi), -1)
    rank = int(np.linalg.matrix_rank(C, hermitian=True))
    if rank < len(C):
        raise ValueError(
            f"features: C = E[φφᵀ] is singular (rank {rank} of {len(C)}); "
            "the features are linearly dependent on the pairs that the behaviour policy visits"
        )
    return Moments(*(checks.frozen(moment) for moment in (C, b, K)))


def possible_transitions(problem: Problem, mu: FloatArray) -> PossibleTransitions:
    """The samples that can happen, in the order of s, a, s'."""
    mdp = problem.mdp
    acting = problem.behavior * ~mdp.terminal[:, None]
    x = s, a, s_next = np.nonzero(acting[..., None] * mdp.transition)
    probability = mu[s] * problem.behavior[s, a] * mdp.transition[x]
    return PossibleTransitions(
        s=checks.frozen(s),
        a=checks.frozen(a),
        s_next=checks.frozen(s_next),
        phi=checks.frozen(problem.features[s, a]),
        reward=checks.frozen(mdp.reward[x]),
        gamma=checks.frozen(mdp.discount[x]),
        probability=checks.frozen(probability),
    )
