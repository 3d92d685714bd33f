"""The update formulas of actor-critic and policy gradient, compiled.

The policy is π_θ(a|s) ∝ exp(σ φ(s,a)ᵀθ), that of the operator, with ∇ log π_θ(a|s) = σ (φ(s,a) − ψ(s)),
ψ(s) = Σ_b π_θ(b|s) φ(s,b). ``samples.behavior`` is π_b(a|s), one number for each row.
"""

from __future__ import annotations

import numpy as np

from gqlab.rules.dispatch import rule
from gqlab.rules.gradient import act, action_values, add, dot


@rule
def state_row(samples, row, A):
    """The first row of the state that ``row`` belongs to."""
    return row - (row - np.uint32(samples.first_row)) % np.uint32(A)


@rule
def policy(samples, row, theta, q, p, d, A):
    """π_θ(·|s) into ``p``, for the state whose rows begin at ``row``."""
    action_values(samples, row, theta, q, d, A)
    act(samples.operator, row, q, p, A)


@rule
def critic_value(samples, row, p, omega, d, A):
    """V_ω(s) = Σ_b π_θ(b|s) φ(s,b)ᵀω, for p = π_θ(·|s)."""
    V = omega.dtype.type(0)
    for a in range(A):
        V += p[a] * dot(samples.features, row + a, omega, d)
    return V


@rule
def score(samples, row, own, p, sigma, out, d, A):
    """∇ log π_θ(a|s) = σ (φ(s,a) − ψ(s)) into ``out``: φ(s,a) is row ``own`` of the state that begins at ``row``."""
    for i in range(d):
        out[i] = out.dtype.type(0)
    add(samples.features, own, sigma, out, d)
    for a in range(A):
        add(samples.features, row + a, -sigma * p[a], out, d)


@rule
def actor_critic(samples, x, point, sigma, q, p, G, H, d, A):
    """The directions of actor and critic, as what a move subtracts: G and H.

    G = −ρ (r + γV_ω(s') − V_ω(s)) ∇log π,   H = −(r + γV_ω(s') − Q_ω(s,a)) φ(s,a),   ρ = π_θ(a|s)/π_b(a|s)
    """
    own, next_row = samples.row[x], samples.next_row[x]
    row = state_row(samples, own, A)
    policy(samples, next_row, point.theta, q, p, d, A)
    backup = samples.reward[x] + samples.discount[x] * critic_value(samples, next_row, p, point.omega, d, A)
    policy(samples, row, point.theta, q, p, d, A)
    advantage = backup - critic_value(samples, row, p, point.omega, d, A)
    delta = backup - dot(samples.features, own, point.omega, d)
    rho = p[own - row] / samples.behavior[own]
    score(samples, row, own, p, sigma, G, d, A)
    for i in range(d):
        G[i] *= -rho * advantage
        H[i] = H.dtype.type(0)
    add(samples.features, own, -delta, H, d)


@rule
def policy_tables(samples, n_states, theta, sigma, work, d, A):
    """π_θ/π_b into ``work.ratio`` and ∇ log π_θ into ``work.scores``, for all rows of the problem: θ is fixed."""
    for k in range(n_states * A):
        own = np.uint32(samples.first_row + k)
        row = state_row(samples, own, A)
        if own == row:
            policy(samples, row, theta, work.q, work.p, d, A)
        work.ratio[k] = work.p[own - row] / samples.behavior[own]
        score(samples, row, own, work.p, sigma, work.score, d, A)
        for i in range(d):
            work.scores[k * d + i] = work.score[i]


@rule
def policy_gradient_add(samples, x, weight, work, d):
    """Add the term of one sample of a trajectory to ``work.g``.

    ``weight`` comes as Π_{k<t} γ_k ρ_k and leaves as Π_{k≤t} γ_k ρ_k; ``work.score`` is Σ_{k≤t} ∇ log π_θ(a_k|s_k).
    """
    k = samples.row[x] - np.uint32(samples.first_row)
    weight *= work.ratio[k]
    for i in range(d):
        work.score[i] += work.scores[k * d + i]
        work.g[i] += weight * samples.reward[x] * work.score[i]
    return weight * samples.discount[x]
