"""How far the mean of a batch of M consecutive samples lies from its expectation, whatever state the batch begins in.

For X(x) of a sample x = (s, a, s'), F = X − E[X], F̄(s) = E[F|s] and the chain P of the states,

    E‖Σ_{i<M} F(x_i)‖² = Σ_i E‖F(x_i)‖² + 2 Σ_{i<j} E⟨F(x_i), (P^{j−i−1} F̄)(s_{i+1})⟩ ≤ M v_X
    v_X = max_s E[‖F‖²|s] + 2 Σ_{k≥1} max_s c_k(s)⁺          c_k(s) = E[⟨F(x), (P^{k−1} F̄)(s⁺)⟩ | s]

(s⁺ is the state of the next sample: s', or a restart). So E‖mean − E[X]‖² ≤ v_X/M. The sum over k is taken exactly as
far as it matters, and the rest is bounded with the certified (Λ, ρ): |c_k| ≤ 2 max‖F‖ max‖F̄‖ d(k−1).

Everything that G_x and H_x average is linear in three such X:

    B = r φ (d,)          C = φφᵀ (d, d)          K_t = γ 1{s' = t} φ (d,), one for each next state t
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gqlab.checks import FloatArray
from gqlab.problem import Problem
from gqlab.theory.ergodicity import Ergodicity, behaviour_chain

#: The rest of the sum over k is bounded instead of added up once it is this small a part of v.
NEGLIGIBLE = 1e-9

#: … or once the sum has cost this many multiplications: then the bound on the rest is looser, but as true.
MOST_WORK = 5e9


@dataclass(frozen=True)
class Deviation:
    """√v of B and C, and Σ_t √v of the columns K_t: M·E‖batch mean − mean‖² ≤ v."""

    B: float
    C: float
    K: float


def deviation(problem: Problem, pair: Ergodicity) -> Deviation:
    """The three square roots, for the behaviour policy's chain.

    Examples
    --------
    One state, one action: every sample is the same, and no mean deviates.

    >>> import gqlab as gq
    >>> from gqlab.theory.ergodicity import certify
    >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
    >>> deviation(problem, certify(problem))
    Deviation(B=0.0, C=0.0, K=0.0)
    """
    states, chain = behaviour_chain(problem)
    mdp, phi = problem.mdp, problem.features[states]
    joint = problem.behavior[states][..., None] * mdp.transition[states]  # P(a, s'|s), (n, A, S)
    mu = problem.exact.stationary[states]
    # Where the next sample is drawn after s': in s', or in a restarted state. (S, n)
    follow = np.where(mdp.terminal[:, None], mdp.start, np.eye(mdp.n_states))[:, states]
    square = np.einsum("sai,saj->saij", phi, phi).reshape(*phi.shape[:2], -1)
    v_B = _single(phi, mdp.reward[states], joint, follow, chain, mu, pair)
    v_C = _single(square, np.ones_like(joint), joint, follow, chain, mu, pair)
    v_K = _columns(problem, states, joint, chain, mu, pair)
    return Deviation(float(np.sqrt(v_B)), float(np.sqrt(v_C)), float(np.sqrt(v_K).sum()))


def _single(
    xi: FloatArray, psi: FloatArray, joint: FloatArray, follow: FloatArray, chain: FloatArray, mu: FloatArray,
    pair: Ergodicity,
) -> float:  # fmt: skip
    """v of X(s, a, s') = psi(s, a, s') xi(s, a)."""
    X_hat = np.einsum("sat,sat,saq->sq", joint, psi, xi)
    X_bar = mu @ X_hat
    second = np.einsum("sat,sat,saq->s", joint, psi**2, xi**2) - 2 * X_hat @ X_bar + X_bar @ X_bar
    first = max(float(second.max()), 0.0)
    F = (psi[..., None] * xi[:, :, None, :] - X_bar)[joint > 0]
    F_bar = X_hat - X_bar
    scale = 2 * _largest(F) * _largest(F_bar)
    pairs = np.einsum("san,saq->snq", (joint * psi) @ follow, xi, optimize=True).reshape(len(chain), -1)
    Y = F_bar  # P^{k−1} F̄
    total = 0.0
    for k in range(1, _lags(chain, F_bar)):
        c = pairs @ Y.ravel() - chain @ (Y @ X_bar)  # E[⟨X, Y(s⁺)⟩|s] − ⟨E[X], E[Y(s⁺)|s]⟩
        total += max(float(c.max()), 0.0)
        rest = scale * pair.tail(k)
        if rest <= NEGLIGIBLE * (first + 2 * total) or scale == 0:
            break
        Y = chain @ Y
    return first + 2 * (total + rest)


def _columns(
    problem: Problem, states: NDArray[np.intp], joint: FloatArray, chain: FloatArray, mu: FloatArray, pair: Ergodicity
) -> FloatArray:
    """v of each K_t, (n_t,), for the next states t on which something is discounted."""
    gamma = problem.mdp.discount[states]
    position = {int(s): i for i, s in enumerate(states)}
    used = [t for t in range(problem.mdp.n_states) if (joint[:, :, t] * gamma[:, :, t]).any()]
    if not used:
        return np.zeros(0)
    here = np.array([position[t] for t in used])  # a discounted next state is not terminal: its sample follows
    phi, weight = problem.features[states], joint[:, :, used] * gamma[:, :, used]
    X_hat = np.einsum("sat,sai->sti", weight, phi)
    X_bar = np.einsum("s,sti->ti", mu, X_hat)
    norms = np.einsum("sai,sai->sa", phi, phi)
    second = np.einsum("sat,sat,sa->st", weight, gamma[:, :, used], norms)
    second = second - 2 * np.einsum("sti,ti->st", X_hat, X_bar) + (X_bar**2).sum(axis=-1)
    first = np.maximum(second.max(axis=0), 0.0)
    F_bar = X_hat - X_bar
    largest = float(gamma.max()) * np.sqrt(norms.max()) + np.sqrt((X_bar**2).sum(axis=-1))
    scale = 2 * largest * np.sqrt((F_bar**2).sum(axis=-1)).max(axis=0)
    Y = F_bar
    total = np.zeros(len(used))
    for k in range(1, _lags(chain, F_bar)):
        at_t = Y[here, np.arange(len(used))]  # Y_t(t), (n_t, d)
        later = (chain @ Y.reshape(len(chain), -1)).reshape(Y.shape)
        c = np.einsum("sti,ti->st", X_hat, at_t) - np.einsum("sti,ti->st", later, X_bar)
        total += np.maximum(c.max(axis=0), 0.0)
        rest = scale * pair.tail(k)
        if (rest <= NEGLIGIBLE * (first + 2 * total)).all():
            break
        Y = later
    return np.asarray(first + 2 * (total + rest))


def _lags(chain: FloatArray, F_bar: FloatArray) -> int:
    return 2 + int(min(20_000, MOST_WORK / (len(chain) * F_bar.size)))


def _largest(rows: FloatArray) -> float:
    return float(np.sqrt((rows**2).sum(axis=-1)).max())
