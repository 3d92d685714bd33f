"""Suprema over all θ, and over all policies that an operator can produce, at once.

V̄_s(θ) lies between the action values of its state, so V̄_s(θ) = ⟨ψ_s, θ⟩ with ψ_s in the convex hull of φ(s, ·). The
derivative φ̂_s = Σ_a w_a φ(s,a) has Σ_a w_a = 1 and Σ_a |w_a| ≤ 1 + 2o, where o is the operator's overshoot: such w are
mixtures of (1 + o)e_a − o e_b. Every map below is affine in the ψ_s (or φ̂_s) and every norm of it convex, so its
largest value over all states at once is attained where each state is at a vertex: finitely many matrices have to be
examined.

Bounds on the deviation of the batch means of G and H for all θ at once, after cancellation:

ω*(θ) + θ is the linear fit of r + γV̄_{s'}(θ) by φ, so H_x(θ, ω*(θ)) is minus φ times the residual of that fit, and the
residual is linear in the values: with the residuals ε_0 of r and ε_t of γ1{s'=t}, each fitted by φ on its own,

    Ĥ(θ, ω*) = −(Δ_0 + Σ_t V̄_t(θ) Δ_t)              Δ_j the batch mean of ε_j φ
    Ĝ(θ, ω*) − ∇J = Ĥ(θ, ω*) + (Σ_t φ̂_t ΔK_tᵀ − ΔC) ω*(θ)

and Σ_t φ̂_t ΔK_tᵀ − ΔC = ΔY + Σ_t (φ̂_t − φ̄)ΔK_tᵀ with Y = (γφ̄ − φ)φᵀ, for any vector φ̄: the mean feature is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.deviation import MOST_WORK, NEGLIGIBLE, Deviation
from gqlab.theory.ergodicity import Ergodicity, behaviour_chain

#: The most combinations of vertices that are enumerated; beyond, the caller keeps a looser bound.
MOST_VERTICES = 50_000

#: Matrices that are examined at a time.
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


@dataclass(frozen=True)
class Roots:
    """√v, or the sizes in one batch, of Δ_0, of the Δ_t (summed), of Σ_t Δ_t, of ΔC, of the ΔK_t (summed) and of ΔY."""

    reward: Any
    columns: Any
    total: Any
    C: Any
    K: Any
    Y: Any


def pieces(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """ε_jφ (N, 1 + S, d), reward first, their sum over t (N, d), and Y (N, d²), at every possible transition."""
    x, d = problem.exact.transitions, problem.dim
    C, b, K = problem.exact.moments
    ends = (x.s_next[:, None] == np.arange(problem.mdp.n_states)) * x.gamma[:, None]
    targets = np.concatenate([x.reward[:, None], ends], axis=1)
    residual = targets - x.phi @ np.linalg.solve(C, np.concatenate([b[:, None], K], axis=1))
    each = residual[..., None] * x.phi[:, None, :]
    Y = (x.gamma[:, None] * centre(problem) - x.phi)[:, :, None] * x.phi[:, None, :]
    return each, each[:, 1:].sum(axis=1), Y.reshape(-1, d * d)


def centre(problem: Problem) -> FloatArray:
    """φ̄, the mean of the features."""
    return problem.features.reshape(-1, problem.dim).mean(axis=0)


def uniform(problem: Problem, phi_hat: float, R: float, W: float, u: Roots) -> tuple[Any, Any]:
    """Bounds on sup‖Ĝ(θ, ω*) − ∇J‖ and sup‖Ĥ(θ, ω*)‖ over ‖θ‖ ≤ R, from the sizes of the pieces."""
    middle = centre(problem)
    size, wide = float(np.linalg.norm(middle)), float(np.linalg.norm(problem.features - middle, axis=-1).max())
    ends = [corners(phi, (phi_hat - 1) / 2) for phi in problem.features]
    wider = max(float(np.linalg.norm(end - middle, axis=-1).max()) for end in ends)
    H = u.reward + R * np.minimum(u.columns, size * u.total + wide * u.columns)
    return H + W * np.minimum(phi_hat * u.K + u.C, u.Y + wider * u.K), H


def roots(problem: Problem, pair: Ergodicity | None, u: Deviation) -> Roots | None:
    """The pieces' √v; without a ``pair``, for independent samples. None where they would take too long.

    Examples
    --------
    One-hot features of states that determine the action: r + γV̄ is fitted exactly, and H(θ, ω*) never deviates.

    >>> import numpy as np, gqlab as gq
    >>> P = np.zeros((2, 2, 2)); P[:, 0, 0] = P[:, 1, 1] = 1.0
    >>> problem = gq.Problem(gq.FiniteMDP(P, [[1.0, 0.0], [1.0, 0.0]], discount=0.5), [np.eye(2), np.eye(2)])
    >>> found = roots(problem, None, Deviation(0.5, 0.7, 0.5))
    >>> found.reward, found.columns
    (0.0, 0.0)
    """
    n, d, S = len(problem.exact.transitions.s), problem.dim, problem.mdp.n_states
    if 50.0 * n * problem.mdp.n_states * (S * d + d * d) > MOST_WORK:
        return None
    each, together, Y = pieces(problem)
    sizes = [np.sqrt(transition_variance(problem, pair, each[:, j])) for j in range(S + 1)]
    total, wide = (float(np.sqrt(transition_variance(problem, pair, X))) for X in (together, Y))
    return Roots(float(sizes[0]), float(sum(sizes[1:])), total, u.C, u.K, wide)


def transition_variance(problem: Problem, pair: Ergodicity | None, X: FloatArray) -> float:
    """v of X (N, q), given at every possible transition: see :mod:`gqlab.theory.deviation`.

    Examples
    --------
    >>> import gqlab as gq
    >>> from gqlab.theory.ergodicity import certify
    >>> mdp = gq.FiniteMDP([[[0.95, 0.05]], [[0.05, 0.95]]], [[1.0], [-1.0]], discount=0.5)
    >>> problem = gq.Problem(mdp, [[[1.0]], [[1.0]]])
    >>> X = problem.exact.transitions.reward[:, None]
    >>> round(transition_variance(problem, certify(problem), X), 6), transition_variance(problem, None, X)
    (19.0, 1.0)
    """
    x, mdp = problem.exact.transitions, problem.mdp
    F = X - x.probability @ X
    F = np.where(np.abs(F) <= 1e-14 * np.abs(X).max(initial=1.0), 0.0, F)  # rounding is not a deviation
    square = (F**2).sum(axis=1)
    if pair is None:
        return float(x.probability @ square)
    states, chain = behaviour_chain(problem)
    position = np.full(mdp.n_states, -1)
    position[states] = np.arange(len(states))
    kept = position[x.s] >= 0
    F, square, at = F[kept], square[kept], position[x.s[kept]]
    p = (problem.behavior[x.s, x.a] * mdp.transition[x.s, x.a, x.s_next])[kept]
    follow = np.where(mdp.terminal[:, None], mdp.start, np.eye(mdp.n_states))[:, states][x.s_next[kept]]

    def given_state(values: FloatArray) -> FloatArray:
        out = np.zeros((len(states), *values.shape[1:]))
        np.add.at(out, at, p.reshape(-1, *(1,) * (values.ndim - 1)) * values)
        return out

    Y = given_state(F)  # P^{k−1} F̄
    scale = 2 * float(np.sqrt(square.max())) * float(np.sqrt((Y**2).sum(axis=1)).max())
    partial = given_state(square)
    largest, rest = float(partial.max()), 0.0
    for k in range(1, 2 + int(min(20_000, MOST_WORK / (len(p) * F.size)))):
        partial = partial + 2 * given_state((F * (follow @ Y)).sum(axis=1))
        largest = max(largest, float(partial.max()))
        rest = scale * pair.tail(k)
        if rest <= NEGLIGIBLE * largest or scale == 0:
            break
        Y = chain @ Y
    return largest + 2 * rest
