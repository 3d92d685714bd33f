"""The update formulas, compiled: each is written here and nowhere else.

A sample x is ``(row, next_row, reward, discount)``: the row of φ(s,a), the first of the A rows φ(s',·), r and γ. With
δ_x(θ) = r + γ V̄_{s'}(θ) − φ(s,a)ᵀθ,

    G_x(θ, ω) = −δ_x(θ) φ(s,a) + γ (ωᵀφ(s,a)) φ̂_{s'}(θ)          φ̂_{s'} = Σ_a w_a φ(s',a)
    H_x(θ, ω) = (φ(s,a)ᵀω − δ_x(θ)) φ(s,a)

so that both are A + 2 coefficients c on A + 1 rows of features:

    G_x = c₀ φ(s,a) + Σ_a c_{2+a} φ(s',a)          H_x = c₁ φ(s,a)

The functions are scalar loops without allocation, objects, exceptions or random state, so that one source serves a
CPU thread and a GPU thread. ``d`` and ``A``, the numbers of features and actions, come as arguments: where the caller
knows them at compile time the loops unroll and the work arrays live in registers. Numbers are written in the dtype of
the arrays (``theta.dtype.type(0)``), so that single precision stays single.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gqlab.rules.dispatch import by_type, rule
from gqlab.rules.memory import Sizes


class Samples(NamedTuple):
    """What an update reads: every sample that can be drawn, and the parts that turn rows into numbers."""

    features: Any  # a part with ``dot`` and ``add``
    operator: Any  # a part with ``improve``
    row: Any  # (n,)  unsigned: the row of φ(s,a)
    next_row: Any  # (n,)  unsigned: the row of φ(s',0); the other actions' rows follow it
    reward: Any  # (n,)
    discount: Any  # (n,)
    behavior: Any  # (n_rows,)  π_b(a|s), for the rules that need a ratio
    first_row: int  # the first row of the problem, where several share the columns,
    first_sample: int  # and its first sample

    def ranges(self, n: Sizes) -> dict[str, tuple[float, float]]:
        rows = n.states * n.A
        return {"row": (0, rows), "next_row": (0, rows - n.A + 1)}


# --- What the parts can do ------------------------------------------------------------------------------------------


@by_type
def dot(self, row, v, d):
    """Features: φ_rowᵀ v."""


@by_type
def add(self, row, c, out, d):
    """Features: out += c φ_row."""


@by_type
def add_block(self, row, c, scale, out, d, A):
    """Features: out += scale Σ_a c_{2+a} φ_{row+a}, for the A rows of a state."""
    for a in range(A):
        add(self, row + a, scale * c[2 + a], out, d)


@by_type
def improve(self, row, q, w, A):
    """Operator: V̄(q), and w = ∂V̄/∂q into ``w``, for the action values q of the state whose rows begin at ``row``."""


@by_type
def act(self, row, q, p, A):
    """Operator: the policy π(·; q) into ``p``."""


class Dense(NamedTuple):
    """Features as one row of d numbers after another."""

    phi: Any  # (n_rows · d,)

    def dot(self, row, v, d):
        first = np.uint32(row) * d  # an index that the compiler knows not to be negative: it can vectorise the loop
        out = v.dtype.type(0)
        for i in range(d):
            out += self.phi[first + i] * v[i]
        return out

    def add(self, row, c, out, d):
        first = np.uint32(row) * d
        for i in range(d):
            out[i] += c * self.phi[first + i]

    def add_block(self, row, c, scale, out, d, A):
        for a in range(0, A - 1, 2):  # two rows at a time: half the loads and stores of ``out``
            first, second = np.uint32(row + a) * d, np.uint32(row + a + 1) * d
            c_first, c_second = scale * c[2 + a], scale * c[3 + a]
            for i in range(d):
                out[i] += c_first * self.phi[first + i] + c_second * self.phi[second + i]
        if A % 2 == 1:
            add(self, row + A - 1, scale * c[1 + A], out, d)


# --- The pseudo-gradients -------------------------------------------------------------------------------------------


@rule
def action_values(samples, row, theta, q, d, A):
    """q_a = φ(s,a)ᵀθ for the state whose rows begin at ``row``."""
    for a in range(A):
        q[a] = dot(samples.features, row + a, theta, d)


@rule
def next_value(samples, x, theta, q, w, d, A):
    """V̄_{s'}(θ), and its weights w: φ̂_{s'}(θ) = Σ_a w_a φ(s',a)."""
    row = samples.next_row[x]
    action_values(samples, row, theta, q, d, A)
    return improve(samples.operator, row, q, w, A)


@rule
def td_terms(samples, x, V_next, theta, omega, d):
    """δ_x(θ) = r + γ V̄_{s'}(θ) − φᵀθ, and φᵀω."""
    row = samples.row[x]
    phi_theta = dot(samples.features, row, theta, d)
    phi_omega = dot(samples.features, row, omega, d)
    return samples.reward[x] + samples.discount[x] * V_next - phi_theta, phi_omega


@rule
def coefficients(delta, phi_omega, gamma, w, c, A):
    """The coefficients of G_x and H_x: c₀ = −δ, c₁ = φᵀω − δ, c_{2+a} = γ (ωᵀφ) w_a."""
    c[0] = -delta
    c[1] = phi_omega - delta
    for a in range(A):
        c[2 + a] = gamma * phi_omega * w[a]


@rule
def evaluate(samples, x, theta, omega, q, w, c, d, A):
    """G_x(θ, ω) and H_x(θ, ω) as their coefficients, into ``c``; q and w are scratch space for A numbers each."""
    V = next_value(samples, x, theta, q, w, d, A)
    delta, phi_omega = td_terms(samples, x, V, theta, omega, d)
    coefficients(delta, phi_omega, samples.discount[x], w, c, A)


@rule
def scatter(samples, x, c, eta_theta, eta_omega, theta, omega, d, A):
    """θ += η_θ G_x, ω += η_ω H_x for the pseudo-gradients with the coefficients c."""
    add(samples.features, samples.row[x], eta_theta * c[0], theta, d)
    add(samples.features, samples.row[x], eta_omega * c[1], omega, d)
    add_block(samples.features, samples.next_row[x], c, eta_theta, theta, d, A)


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
