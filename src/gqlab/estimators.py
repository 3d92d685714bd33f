"""How sampled pseudo-gradients become a step (θ, ω) ← Π_R[(θ, ω) − η·g].

* plain (Greedy-GQ):   g = G_x(θ, ω)
* SVRG (Algorithm 1):  g = G_x(θ, ω) − G_x(θ̃, ω̃) + G̃,  G̃ the mean of G_x(θ̃, ω̃) over the batch

and likewise for ω with H. Both updates are evaluated at the old (θ, ω). A step that would leave the finite numbers is
not taken: the functions return False and (θ, ω) stay where they were.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.rules import G, H, project, rule, td_terms, value_and_gradient

#: ``Reference.slot`` of a next state that the batch has not visited.
EMPTY = 0xFFFFFFFF


class Rates(NamedTuple):
    """η_θ, η_ω and R."""

    eta_theta: float
    eta_omega: float
    radius: float


class Work(NamedTuple):
    """Scratch arrays of one run."""

    q: Any  # (A,)
    w: Any  # (A,)
    phi_hat: Any  # (d,)
    theta: Any  # (d,)  the next iterate, until it is known to be finite
    omega: Any  # (d,)


class Reference(NamedTuple):
    """The reference point of an epoch, and what SVRG needs there.

    V̄ and φ̂ at θ̃ are kept once for each next state that the batch visits: ``slot[s' − first_state]`` says where.
    """

    theta_tilde: Any  # (d,)
    omega_tilde: Any  # (d,)
    G_tilde: Any  # (d,)
    H_tilde: Any  # (d,)
    slot: Any  # (S,)  unsigned, EMPTY between epochs
    visited: Any  # (n_slots,)  unsigned: which entry of ``slot`` points to each slot
    V: Any  # (n_slots,)
    phi_hat: Any  # (n_slots · d,)


@rule
def accept(theta, omega, rates, work, d):
    """(θ, ω) ← Π_R of the proposed iterate in ``work``, if it is finite."""
    if not (project(work.theta, rates.radius, d) and project(work.omega, rates.radius, d)):
        return False
    for i in range(d):
        theta[i] = work.theta[i]
        omega[i] = work.omega[i]
    return True


@rule
def plain_step(samples, x, theta, omega, rates, work, d, A):
    """Greedy-GQ: θ ← Π_R[θ − η_θ G_x(θ, ω)], ω ← Π_R[ω − η_ω H_x(θ, ω)]."""
    V = value_and_gradient(samples, samples.s_next[x], theta, work.q, work.w, work.phi_hat, d, A)
    delta, phi_omega = td_terms(samples, x, V, theta, omega, d)
    gamma = samples.gamma[x]
    row = samples.pair[x] * d
    for i in range(d):
        phi_i = samples.phi[row + i]
        work.theta[i] = theta[i] - rates.eta_theta * G(delta, phi_omega, gamma, phi_i, work.phi_hat[i])
        work.omega[i] = omega[i] - rates.eta_omega * H(delta, phi_omega, phi_i)
    return accept(theta, omega, rates, work, d)


@rule
def svrg_start(reference, theta, omega, d):
    """θ̃, ω̃ ← the last iterate; G̃, H̃ ← 0."""
    for i in range(d):
        reference.theta_tilde[i] = theta[i]
        reference.omega_tilde[i] = omega[i]
        reference.G_tilde[i] = theta.dtype.type(0)
        reference.H_tilde[i] = theta.dtype.type(0)


@rule
def svrg_add(samples, x, reference, n_visited, work, d, A):
    """Add G_x, H_x(θ̃, ω̃) to G̃, H̃; returns how many next states have a slot now."""
    s_next = samples.s_next[x]
    k = reference.slot[s_next - samples.first_state]
    if k == EMPTY:
        k = n_visited
        n_visited += 1
        reference.slot[s_next - samples.first_state] = k
        reference.visited[k] = s_next - samples.first_state
        reference.V[k] = value_and_gradient(samples, s_next, reference.theta_tilde, work.q, work.w, work.phi_hat, d, A)
        for i in range(d):
            reference.phi_hat[k * d + i] = work.phi_hat[i]
    delta, phi_omega = td_terms(samples, x, reference.V[k], reference.theta_tilde, reference.omega_tilde, d)
    gamma = samples.gamma[x]
    row = samples.pair[x] * d
    for i in range(d):
        phi_i = samples.phi[row + i]
        reference.G_tilde[i] += G(delta, phi_omega, gamma, phi_i, reference.phi_hat[k * d + i])
        reference.H_tilde[i] += H(delta, phi_omega, phi_i)
    return n_visited


@rule
def svrg_mean(reference, batch_size, d):
    """G̃, H̃ ← the batch means."""
    for i in range(d):
        reference.G_tilde[i] /= reference.G_tilde.dtype.type(batch_size)
        reference.H_tilde[i] /= reference.H_tilde.dtype.type(batch_size)


@rule
def svrg_step(samples, x, theta, omega, reference, rates, work, d, A):
    """Algorithm 1's inner step: G_x(θ, ω) − G_x(θ̃, ω̃) + G̃ and H_x(θ, ω) − H_x(θ̃, ω̃) + H̃."""
    s_next = samples.s_next[x]
    k = reference.slot[s_next - samples.first_state]
    V = value_and_gradient(samples, s_next, theta, work.q, work.w, work.phi_hat, d, A)
    delta, phi_omega = td_terms(samples, x, V, theta, omega, d)
    delta_ref, phi_omega_ref = td_terms(samples, x, reference.V[k], reference.theta_tilde, reference.omega_tilde, d)
    gamma = samples.gamma[x]
    row = samples.pair[x] * d
    for i in range(d):
        phi_i = samples.phi[row + i]
        g = G(delta, phi_omega, gamma, phi_i, work.phi_hat[i])
        g_ref = G(delta_ref, phi_omega_ref, gamma, phi_i, reference.phi_hat[k * d + i])
        h = H(delta, phi_omega, phi_i)
        h_ref = H(delta_ref, phi_omega_ref, phi_i)
        work.theta[i] = theta[i] - rates.eta_theta * (g - g_ref + reference.G_tilde[i])
        work.omega[i] = omega[i] - rates.eta_omega * (h - h_ref + reference.H_tilde[i])
    return accept(theta, omega, rates, work, d)


@rule
def svrg_end(reference, n_visited):
    """Empty the slots that the epoch filled."""
    for k in range(n_visited):
        reference.slot[reference.visited[k]] = EMPTY
