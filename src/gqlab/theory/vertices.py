"""Suprema over everything an operator can do, taken at the vertices of a polytope.

V̄_s(θ) lies between the action values of its state, so V̄_s(θ) = ⟨ψ_s, θ⟩ with ψ_s in the convex hull of φ(s, ·). The
derivative φ̂_s = Σ_a w_a φ(s,a) has Σ_a w_a = 1 and Σ_a |w_a| ≤ 1 + 2o, where o is the operator's overshoot: such w
are mixtures of (1 + o)e_a − o e_b. Every map below is affine in the ψ_s (or φ̂_s) and every norm of it convex, so its
largest value over all states at once is reached where each state sits at a vertex: finitely many matrices are seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray

#: Combinations of vertices up to which the enumeration is done; beyond it the caller keeps a looser bound.
MOST_VERTICES = 50_000

#: Matrices that are looked at in one go.
AT_ONCE = 4096


@dataclass(frozen=True)
class Norms:
    """Suprema over the polytope, X running through E[γφψᵀ] = Σ_s K_s ψ_sᵀ."""

    towards: float  # sup ‖C⁻¹X‖
    away: float  # sup ‖C⁻¹X − I‖
    whitened: float  # sup ‖C^{−1/2}(X − C)‖


def norms(problem: Problem, overshoot: float = 0.0) -> Norms | None:
    """The three suprema; None where there are too many vertices.

    Examples
    --------
    One state, one action, φ = 1, γ = 0.9: X = 0.9 and C = 1.

    >>> import gqlab as gq
    >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[1.0]], discount=0.9), [[[1.0]]])
    >>> found = norms(problem)
    >>> round(found.towards, 9), round(found.away, 9), round(found.whitened, 9)
    (0.9, 0.1, 0.1)
    """
    C, _, K = problem.exact.moments
    used = np.flatnonzero(np.abs(K).max(axis=0) > 0)
    ends = [corners(problem.features[s], overshoot) for s in used]
    if np.prod([float(len(end)) for end in ends]) > MOST_VERTICES:
        return None
    inverse, root = np.linalg.inv(C), np.linalg.inv(np.linalg.cholesky(C))
    largest = np.zeros(3)
    for choice in _chunks(itertools.product(*(range(len(end)) for end in ends))):
        X = np.zeros((len(choice), *C.shape))
        for k, s in enumerate(used):
            X += K[:, s][:, None] * ends[k][choice[:, k]][:, None, :]
        for i, matrix in enumerate((inverse @ X, inverse @ X - np.eye(len(C)), root @ (X - C))):
            largest[i] = max(largest[i], float(np.linalg.norm(matrix, 2, axis=(1, 2)).max()))
    return Norms(*(float(value) for value in largest))


def corners(phi: FloatArray, overshoot: float) -> FloatArray:
    """(n, d): φ_a, or (1 + o)φ_a − oφ_b for all pairs where the operator overshoots."""
    n = len(phi)
    if overshoot == 0 or n == 1:
        return phi
    return np.array([(1 + overshoot) * phi[a] - overshoot * phi[b] for a, b in itertools.permutations(range(n), 2)])


def _chunks(choices: Iterator[tuple[int, ...]]) -> Iterator[np.ndarray]:
    while rows := list(itertools.islice(choices, AT_ONCE)):
        yield np.array(rows, dtype=np.intp).reshape(len(rows), -1)
