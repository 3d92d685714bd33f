"""How far the mean of a batch of M consecutive samples lies from its expectation, whatever state the batch begins in.

For X(x) of a sample x = (s, a, s'), F = X − E[X], F̄(s) = E[F|s] and the chain P of the states,

    E‖Σ_{i<M} F(x_i)‖² = Σ_i E[ E[‖F‖²|s_i] + 2 Σ_{k<M−i} c_k(s_i) ] ≤ M v_X
    v_X = max_n max_s ( E[‖F‖²|s] + 2 Σ_{1≤k≤n} c_k(s) )          c_k(s) = E[⟨F(x), (P^{k−1} F̄)(s⁺)⟩ | s]

(s⁺ is the state of the next sample: s', or a restart). So E‖mean − E[X]‖² ≤ v_X/M. The largest partial sum is taken,
not the sum of the positive parts, so that correlations of alternating sign cancel. The sums are computed exactly as far
as they matter, and the rest is bounded with the certified (Λ, ρ): |c_k| ≤ 2 max‖F‖ max‖F̄‖ d(k−1).

With independent samples of D and P in place of a trajectory nothing is correlated: v_X = E‖F‖².

Everything that G_x and H_x average is linear in three such X:

    B = r φ (d,)          C = φφᵀ (d, d)          K_t = γ 1{s' = t} φ (d,), one for each next state t
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.ergodicity import Ergodicity, behaviour_chain

#: The rest of the sum over k is bounded instead of computed once it is this small a fraction of v.
NEGLIGIBLE = 1e-9

#: … or once the sum has cost this many multiplications: then the bound on the rest is looser, but still valid.
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


def discounted_features(problem: Problem, pair: Ergodicity | None) -> float:
    """√v of the batch mean of γφ, the sum of all K_t; without a ``pair``, for independent samples.

    Examples
    --------
    The same next state again and again: K_t does not deviate, nor does their sum.

    >>> import gqlab as gq
    >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
    >>> discounted_features(problem, None)
    0.0
    """
    x = problem.exact.transitions
    if pair is None:
        X = x.gamma[:, None] * x.phi
        mean = x.probability @ X
        return float(np.sqrt(max(x.probability @ (X**2).sum(axis=1) - mean @ mean, 0.0)))
    states, chain = behaviour_chain(problem)
    mdp, phi = problem.mdp, problem.features[states]
    joint = problem.behavior[states][..., None] * mdp.transition[states]
    follow = np.where(mdp.terminal[:, None], mdp.start, np.eye(mdp.n_states))[:, states]
    mu = problem.exact.stationary[states]
    return float(np.sqrt(_single(phi, mdp.discount[states], joint, follow, chain, mu, pair)))


def independent(problem: Problem) -> Deviation:
    """The three square roots for batches of independent samples of D and P: v_X = E‖X − E[X]‖².

    Examples
    --------
    A reward of ±1, each half of the time: v = 1, where the trajectory of a slow chain has much more.

    >>> import gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.95, 0.05]], [[0.05, 0.95]]], [[1.0], [-1.0]], discount=0.5)
    >>> independent(gq.Problem(mdp, [[[1.0]], [[1.0]]]))
    Deviation(B=1.0, C=0.0, K=0.5)
    """
    mdp, phi = problem.mdp, problem.features
    D = problem.exact.stationary[:, None] * problem.behavior
    joint = D[..., None] * mdp.transition  # (S, A, S)
    C, b, K = problem.exact.moments
    norms = (phi**2).sum(axis=-1)
    v_B = np.einsum("sat,sat,sa->", joint, mdp.reward**2, norms) - b @ b
    v_C = (D * norms**2).sum() - (C**2).sum()
    v_K = np.einsum("sat,sat,sa->t", joint, mdp.discount**2, norms) - (K**2).sum(axis=0)
    roots = [np.sqrt(np.maximum(v, 0.0)) for v in (v_B, v_C, v_K)]
    return Deviation(float(roots[0]), float(roots[1]), float(roots[2].sum()))


def _single(
    xi: FloatArray, psi: FloatArray, joint: FloatArray, follow: FloatArray, chain: FloatArray, mu: FloatArray,
    pair: Ergodicity,
) -> float:  # fmt: skip
    """v of X(s, a, s') = psi(s, a, s') xi(s, a)."""
    X_hat = np.einsum("sat,sat,saq->sq", joint, psi, xi)
    X_bar = mu @ X_hat
    second = np.einsum("sat,sat,saq->s", joint, psi**2, xi**2) - 2 * X_hat @ X_bar + X_bar @ X_bar
    second = np.maximum(second, 0.0)
    F = (psi[..., None] * xi[:, :, None, :] - X_bar)[joint > 0]
    F_bar = X_hat - X_bar
    scale = 2 * _largest(F) * _largest(F_bar)
    pairs = np.einsum("san,saq->snq", (joint * psi) @ follow, xi, optimize=True).reshape(len(chain), -1)
    Y = F_bar  # P^{k−1} F̄
    partial, largest = second, float(second.max())
    for k in range(1, _lags(chain, F_bar)):
        # c_k = E[⟨X, Y(s⁺)⟩|s] − ⟨E[X], E[Y(s⁺)|s]⟩
        partial = partial + 2 * (pairs @ Y.ravel() - chain @ (Y @ X_bar))
        largest = max(largest, float(partial.max()))
        rest = scale * pair.tail(k)
        if rest <= NEGLIGIBLE * largest or scale == 0:
            break
        Y = chain @ Y
    return largest + 2 * rest


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
    partial = np.maximum(second, 0.0)
    largest = partial.max(axis=0)
    F_bar = X_hat - X_bar
    longest = float(gamma.max()) * np.sqrt(norms.max()) + np.sqrt((X_bar**2).sum(axis=-1))
    scale = 2 * longest * np.sqrt((F_bar**2).sum(axis=-1)).max(axis=0)
    Y = F_bar
    for k in range(1, _lags(chain, F_bar)):
        at_t = Y[here, np.arange(len(used))]  # Y_t(t), (n_t, d)
        later = (chain @ Y.reshape(len(chain), -1)).reshape(Y.shape)
        c = np.einsum("sti,ti->st", X_hat, at_t) - np.einsum("sti,ti->st", later, X_bar)
        partial = partial + 2 * c
        largest = np.maximum(largest, partial.max(axis=0))
        rest = scale * pair.tail(k)
        if (rest <= NEGLIGIBLE * largest).all():
            break
        Y = later
    return np.asarray(largest + 2 * rest)


def _lags(chain: FloatArray, F_bar: FloatArray) -> int:
    return 2 + int(min(20_000, MOST_WORK / (len(chain) * F_bar.size)))


def _largest(rows: FloatArray) -> float:
    return float(np.sqrt((rows**2).sum(axis=-1)).max())
