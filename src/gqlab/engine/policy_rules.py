"""The update formulas of actor-critic and policy gradient, compiled.

The policy is π_θ(a|s) ∝ exp(σ φ(s,a)ᵀθ), with ∇ log π_θ(a|s) = σ (φ(s,a) − ψ(s)), ψ(s) = Σ_b π_θ(b|s) φ(s,b).
Samples are the rows of :mod:`gqlab.rules`; ``behavior`` is π_b(a|s), one number for each pair.
"""

from __future__ import annotations

import numpy as np

from gqlab.estimators import accept
from gqlab.rules import boltzmann, rule


@rule
def policy(samples, s, theta, q, p, d, A):
    """π_θ(·|s) into ``p``."""
    for a in range(A):
        row = (s * A + a) * d
        q[a] = theta.dtype.type(0)
        for i in range(d):
            q[a] += samples.phi[row + i] * theta[i]
    _, over_Z, _ = boltzmann(q, samples.parameter, p, A)
    for a in range(A):
        p[a] *= over_Z


@rule
def critic_value(samples, s, p, omega, d, A):
    """V_ω(s) = Σ_b π_θ(b|s) φ(s,b)ᵀω, for p = π_θ(·|s)."""
    V = omega.dtype.type(0)
    for a in range(A):
        row = (s * A + a) * d
        Q = omega.dtype.type(0)
        for i in range(d):
            Q += samples.phi[row + i] * omega[i]
        V += p[a] * Q
    return V


@rule
def mean_features(samples, s, p, psi, d, A):
    """ψ(s) = Σ_b π_θ(b|s) φ(s,b) into ``psi``, for p = π_θ(·|s)."""
    for i in range(d):
        psi[i] = psi.dtype.type(0)
    for a in range(A):
        row = (s * A + a) * d
        for i in range(d):
            psi[i] += p[a] * samples.phi[row + i]


@rule
def actor_critic_step(samples, behavior, x, theta, omega, rates, work, d, A):
    """θ ← Π_R[θ + η_θ ρ (r + γV_ω(s') − V_ω(s)) ∇log π],  ω ← Π_R[ω + η_ω (r + γV_ω(s') − Q_ω(s,a)) φ(s,a)]."""
    pair, s_next = samples.pair[x], samples.s_next[x]
    s = pair // np.uint32(A)
    row = pair * d
    policy(samples, s_next, theta, work.q, work.w, d, A)
    backup = samples.reward[x] + samples.gamma[x] * critic_value(samples, s_next, work.w, omega, d, A)
    policy(samples, s, theta, work.q, work.w, d, A)
    advantage = backup - critic_value(samples, s, work.w, omega, d, A)
    delta = backup
    for i in range(d):
        delta -= samples.phi[row + i] * omega[i]
    rho = work.w[pair - s * np.uint32(A)] / behavior[pair]
    mean_features(samples, s, work.w, work.phi_hat, d, A)  # ψ(s)
    for i in range(d):
        phi_i = samples.phi[row + i]
        score_i = samples.parameter * (phi_i - work.phi_hat[i])
        work.theta[i] = theta[i] + rates.eta_theta * rho * advantage * score_i
        work.omega[i] = omega[i] + rates.eta_omega * delta * phi_i
    return accept(theta, omega, rates, work, d)


@rule
def policy_tables(samples, behavior, first, last, theta, q, p, psi, ratio, score, d, A):
    """π_θ/π_b into ``ratio`` and ∇ log π_θ into ``score``, for the states ``first`` … ``last − 1``.

    θ is fixed during an update; both have the rows of ``first`` at their beginning.
    """
    for s in range(first, last):
        policy(samples, s, theta, q, p, d, A)
        mean_features(samples, s, p, psi, d, A)
        for a in range(A):
            pair = s * A + a
            row = pair - first * A
            ratio[row] = p[a] / behavior[pair]
            for i in range(d):
                score[row * d + i] = samples.parameter * (samples.phi[pair * d + i] - psi[i])


@rule
def policy_gradient_add(samples, x, first, weight, ratio, score, total_score, g, d, A):
    """Add the term of one sample of a trajectory to ``g``.

    ``weight`` comes as Π_{k<t} γ_k ρ_k and leaves as Π_{k≤t} γ_k ρ_k; ``total_score`` is Σ_{k≤t} ∇ log π_θ(a_k|s_k).
    """
    row = samples.pair[x] - first * A
    weight *= ratio[row]
    for i in range(d):
        total_score[i] += score[row * d + i]
        g[i] += weight * samples.reward[x] * total_score[i]
    return weight * samples.gamma[x]
