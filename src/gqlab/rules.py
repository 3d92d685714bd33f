"""The update formulas, compiled: the only place where one stands.

A sample x = (s, a, r, s') is a row of four columns: ``pair[x]`` (the index s·A + a of φ(s,a)), ``s_next[x]``,
``reward[x]``, ``gamma[x]``. With δ_x(θ) = r + γ V̄_{s'}(θ) − φ(s,a)ᵀθ,

    G_x(θ, ω) = −δ_x(θ) φ(s,a) + γ (ωᵀφ(s,a)) φ̂_{s'}(θ)
    H_x(θ, ω) = (φ(s,a)ᵀω − δ_x(θ)) φ(s,a)

An operator is the scalar function V̄(q) of one state's action values and its gradient w; φ̂_s = Σ_a w_a φ(s,a).

The functions are scalar loops without allocation, objects, exceptions or random state, so that one source serves a
CPU thread and a GPU thread. ``d`` and ``A``, the numbers of features and actions, come as arguments: where the caller
knows them at compile time the loops unroll and the work arrays live in registers. Numbers are written in the dtype of
the arrays (``theta.dtype.type(0)``), so that single precision stays single.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import overload

#: All that speed needs and nothing that assumes away NaN or infinity: divergence must stay visible.
FASTMATH = {"reassoc", "contract", "arcp", "nsz"}

#: The decorator of every compiled function of an update.
rule = numba.njit(nogil=True, error_model="numpy", fastmath=FASTMATH, forceinline=True, _nrt=False)

SOFTMAX, MELLOWMAX, GREEDY, EPSILON_GREEDY, FIXED_POLICY = range(5)


class Samples(NamedTuple):
    """What G_x and H_x read."""

    phi: Any  # (n_pairs · d,)  φ, one row after another; the rows of state s are s·A … s·A + A − 1
    pair: Any  # (n,)  unsigned: the row of φ(s,a)
    s_next: Any  # (n,)  unsigned
    reward: Any  # (n,)
    gamma: Any  # (n,)
    operator: int  # SOFTMAX, …
    parameter: float  # σ, κ, ε
    target: Any  # (n_pairs,)  π(a|s), read for FIXED_POLICY alone
    first_state: int  # the first state of the problem, where several share the columns


# --- Operators: q ↦ V̄, and w = ∂V̄/∂q into ``w`` --------------------------------------------------------------------


@rule
def boltzmann(q, sigma, w, A):
    """exp(σ(q_a − max q)) into ``w``; returns max q, 1/Z with Z = Σ_a of them, and the mean of q − max q under w/Z."""
    top = q[0]
    for a in range(A):
        top = max(top, q[a])
    Z = q.dtype.type(0)
    mean = q.dtype.type(0)
    for a in range(A):
        w[a] = exp(sigma * (q[a] - top))
        Z += w[a]
        mean += w[a] * (q[a] - top)
    over_Z = q.dtype.type(1) / Z
    return top, over_Z, mean * over_Z


@rule
def softmax(q, sigma, w, A):
    """V̄ = Σ p_a q_a,  w_a = p_a (1 + σ(q_a − V̄)),  p = softmax(σq)."""
    top, over_Z, mean = boltzmann(q, sigma, w, A)
    for a in range(A):
        p = w[a] * over_Z
        w[a] = p + p * (sigma * ((q[a] - top) - mean))
    return top + mean


@rule
def mellowmax(q, kappa, w, A):
    """V̄ = log(mean exp(κq))/κ,  w = softmax(κq)."""
    top, over_Z, _ = boltzmann(q, kappa, w, A)
    for a in range(A):
        w[a] *= over_Z
    return top - math.log(over_Z * q.dtype.type(A)) / kappa


@rule
def epsilon_greedy(q, epsilon, w, A):
    """V̄ = (1−ε) max q + ε mean q,  w the same mixture; ε = 0 is the greedy operator, with the first maximiser."""
    best = 0
    top = q[0]
    for a in range(A):
        if q[a] > top:
            best = a
            top = q[a]
    each = epsilon / q.dtype.type(A)
    rest = q.dtype.type(1) - epsilon
    V = rest * top
    for a in range(A):  # no index that only the running program knows: that would keep w out of the registers
        w[a] = each + rest if a == best else each
        V += each * q[a]
    return V


@rule
def fixed_policy(q, target, row, w, A):
    """V̄ = Σ π(a|s) q_a,  w = π(·|s)."""
    V = q.dtype.type(0)
    for a in range(A):
        w[a] = target[row + a]
        V += w[a] * q[a]
    return V


@rule
def improve(samples, s, q, w, A):
    """V̄ of state s, and w: the operator that ``samples`` names."""
    if samples.operator == SOFTMAX:
        return softmax(q, samples.parameter, w, A)
    if samples.operator == MELLOWMAX:
        return mellowmax(q, samples.parameter, w, A)
    if samples.operator == FIXED_POLICY:
        return fixed_policy(q, samples.target, s * A, w, A)
    return epsilon_greedy(q, samples.parameter, w, A)  # GREEDY has ε = 0


@rule
def value_and_gradient(samples, s, theta, q, w, phi_hat, d, A):
    """V̄_s(θ), and φ̂_s(θ) = ∇_θ V̄_s(θ) = Σ_a w_a φ(s,a) into ``phi_hat``."""
    phi = samples.phi
    for a in range(A):
        row = (s * A + a) * d
        q[a] = q.dtype.type(0)
        for i in range(d):
            q[a] += phi[row + i] * theta[i]
    V = improve(samples, s, q, w, A)
    for i in range(d):
        phi_hat[i] = theta.dtype.type(0)
    for a in range(A):
        row = (s * A + a) * d
        for i in range(d):
            phi_hat[i] += w[a] * phi[row + i]
    return V


# --- The pseudo-gradients --------------------------------------------------------------------------------------------


@rule
def td_terms(samples, x, V_next, theta, omega, d):
    """δ_x(θ) = r + γ V̄_{s'}(θ) − φᵀθ, and φᵀω."""
    row = samples.pair[x] * d
    phi_theta = theta.dtype.type(0)
    phi_omega = theta.dtype.type(0)
    for i in range(d):
        phi_theta += samples.phi[row + i] * theta[i]
        phi_omega += samples.phi[row + i] * omega[i]
    return samples.reward[x] + samples.gamma[x] * V_next - phi_theta, phi_omega


@rule
def G(delta, phi_omega, gamma, phi_i, phi_hat_i):
    """One component of G_x(θ, ω) = −δ φ + γ (ωᵀφ) φ̂_{s'}."""
    return gamma * phi_omega * phi_hat_i - delta * phi_i


@rule
def H(delta, phi_omega, phi_i):
    """One component of H_x(θ, ω) = (φᵀω − δ) φ."""
    return (phi_omega - delta) * phi_i


@rule
def project(theta, radius, d):
    """Π_R[θ] in place; False if ‖θ‖² is not a finite number."""
    norm_squared = theta.dtype.type(0)
    for i in range(d):
        norm_squared += theta[i] * theta[i]
    if not norm_squared < theta.dtype.type(np.inf):  # NaN too
        return False
    if norm_squared > radius * radius:
        scale = radius / math.sqrt(norm_squared)
        for i in range(d):
            theta[i] *= scale
    return True


# --- exp -------------------------------------------------------------------------------------------------------------


def exp(x):
    """e^x for x ≤ 0.

    In double precision a polynomial that is compiled into the step: a call of the system's exp in its middle would
    send every register to memory and back (a fifth of the whole step). Relative error below 3e-16; below −708 the
    result stays at 3e-308 instead of falling to 0.
    """
    return math.exp(x)


@overload(exp)
def _exp(x):
    if x != types.float64:
        return lambda x: math.exp(x)

    def exp64(x):
        x = max(x, -708.0)
        k = math.floor(x * 1.4426950408889634 + 0.5)  # x = k log 2 + y, |y| ≤ ½ log 2
        y = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
        y2 = y * y
        y4 = y2 * y2
        low = (1.0 + y) + y2 * (1 / 2 + y * (1 / 6)) + y4 * ((1 / 24 + y * (1 / 120)) + y2 * (1 / 720 + y * (1 / 5040)))
        high = (1 / 40320 + y * (1 / 362880)) + y2 * (1 / 3628800 + y * (1 / 39916800))
        high += y4 * (1 / 479001600 + y * (1 / 6227020800))
        return (low + y4 * y4 * high) * np.int64((np.int64(k) + 1023) << 52).view(np.float64)

    return exp64
