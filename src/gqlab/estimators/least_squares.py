"""Least squares: the samples become sufficient statistics, and Newton's method minimises their J from time to time.

Each sample adds to C += φφᵀ, b += rφ and K_{s'} += γφ. When n reaches first·growth^k the empirical objective, with
C, b and K over n,

    m(θ) = b + Σ_s K_s V̄_s(θ) − Cθ      ω = C⁺m      J = ½ mᵀω      A = C − Σ_s K_s φ̂_sᵀ      ∇J = −Aᵀω

is descended from the last θ, by steps θ − U(|e| + λ)⁻¹Uᵀ∇J with ∇²J = U diag(e) Uᵀ and λ raised from 0 until J falls
and θ stays inside the ball. If that does not end at a stationary point, and whenever n has doubled, the search also
starts from θ₀: of the two ends a stationary one is taken, and of two stationary ones that with the smaller J. ∇²V̄
comes from differences of w, so that any operator works: it only steers the steps, ∇J is exact.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gqlab.estimators.epochs import moment_from
from gqlab.estimators.needs import Need, Needs
from gqlab.rules.dispatch import routine, rule
from gqlab.rules.gradient import action_values, add, improve
from gqlab.rules.linear_algebra import eigen, pseudo_inverse
from gqlab.rules.memory import COUNT, DOUBLE, MOST, Array, Sizes, far
from gqlab.rules.point import move_to
from gqlab.samples.streams import draw

#: Eigenvalues of C below this fraction of the largest belong to directions that no sample has shown.
CUTOFF = 1e-13
#: ‖∇J‖ at which a search ends, and at which its end counts as stationary.
TOLERANCE, STATIONARY = 1e-13, 1e-10
#: Newton steps from the last θ and from θ₀.
MOST_STEPS, MOST_STEPS_ANEW = 20, 60
#: The values of λ that a step tries after 0, in units of the largest |e|: each ten times the one before.
FIRST_DAMPING, LAST_DAMPING = 1e-8, 1e8
#: The step of the differences of w.
DIFFERENCE = 1e-5


class LeastSquares(NamedTuple):
    """d² + dS + 2d numbers are kept, and 2S + 3 counts."""

    first: int
    growth_units: int  # growth, in units of 2⁻³²
    C: Any  # (d · d,)
    b: Any  # (d,)
    K: Any  # (S · d,)  one row for each next state that was met
    theta_start: Any  # (d,)  θ₀
    state: Any  # (S,)  the state of each row of K
    row_of: Any  # (S,)  and back; −1: not met
    n_met: Any  # (1,)
    next: Any  # (1,)  the n of the next solution,
    next_anew: Any  # (1,)  and of the next one that begins at θ₀ too
    C_inverse: Any  # (d · d,)  (C/n)⁺
    jacobian: Any  # (d · d,)  A
    H: Any  # (d · d,)  ∇²J
    U: Any  # (d · d,)
    product: Any  # (d · d,)
    q: Any  # (A,)
    w_above: Any  # (A,)
    w_below: Any  # (A,)
    phi: Any  # (d,)
    phi_hat: Any  # (d,)
    m: Any  # (d,)
    omega: Any  # (d,)
    gradient: Any  # (d,)
    rotated: Any  # (d,)  Uᵀ∇J
    theta: Any  # (d,)  where a search stands,
    tried: Any  # (d,)  the point that it tries,
    found: Any  # (d,)  and the end of another search

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.STATES, Need.CPU})

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        d, A, S = n.d, n.A, n.states
        kept = {"C": d * d, "b": d, "K": S * d, "theta_start": d}
        work = dict.fromkeys(("C_inverse", "jacobian", "H", "U", "product"), d * d)
        work |= dict.fromkeys(("q", "w_above", "w_below"), A)
        vectors = ("phi", "phi_hat", "m", "omega", "gradient", "rotated", "theta", "tried", "found")
        return {
            **{name: far(size, DOUBLE, kept=True) for name, size in kept.items()},
            "state": far(S, COUNT, kept=True, within=(0, S)),
            "row_of": far(S, COUNT, kept=True, fill=-1, within=(-1, S)),
            "n_met": far(1, COUNT, kept=True, within=(0, S + 1)),
            **dict.fromkeys(("next", "next_anew"), far(1, COUNT, kept=True, within=(0, 2 * MOST))),
            **{name: far(size, DOUBLE) for name, size in (work | dict.fromkeys(vectors, d)).items()},
        }

    def fault(self, n: Sizes) -> str:
        """``state`` and ``row_of`` are each other's inverse."""
        n_met = int(self.n_met[0])
        alike = np.array_equal(self.row_of[self.state[:n_met]], np.arange(n_met))
        return "" if alike and np.count_nonzero(self.row_of >= 0) == n_met else "row_of is not the inverse of state"

    def begin(self, world, point, cursor, u, d, A):
        for i in range(d):
            self.theta_start[i] = point.theta[i]
        self.next[0] = self.first
        return cursor

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        absorb(self, world.samples, x, d, A)
        if u + 1 < self.next[0]:
            return True, cursor
        self.next[0] = moment_from(self.first, self.growth_units, u + 2)
        solve(self, world.samples, point.theta, np.float64(u + 1), np.float64(rates.radius), d, A)
        return move_to(point, self.theta, self.omega, rates, d), cursor


@rule
def absorb(ls, samples, x, d, A):
    """Add one sample to C, b and K."""
    s = (np.int64(samples.next_row[x]) - samples.first_row) // A
    k = ls.row_of[s]
    if k < 0:
        k = ls.n_met[0]
        ls.row_of[s], ls.state[k] = k, s
        ls.n_met[0] = k + 1
    for i in range(d):
        ls.phi[i] = 0.0
    add(samples.features, samples.row[x], 1.0, ls.phi, d)
    for i in range(d):
        ls.b[i] += samples.reward[x] * ls.phi[i]
        ls.K[k * d + i] += samples.discount[x] * ls.phi[i]
        for j in range(d):
            ls.C[i * d + j] += ls.phi[i] * ls.phi[j]


@routine
def solve(ls, samples, theta, n, radius, d, A):
    """The stationary point of the empirical J into ``theta``, and its ω into ``omega``."""
    for k in range(d * d):
        ls.H[k] = ls.C[k] / n
    pseudo_inverse(ls.H, ls.U, ls.C_inverse, CUTOFF, d)
    copy(theta, ls.theta, d)
    J, norm = search(ls, samples, n, radius, MOST_STEPS, d, A)
    ends = norm <= STATIONARY
    if not ends or n >= ls.next_anew[0]:
        ls.next_anew[0] = int(2.0 * n)
        copy(ls.theta, ls.found, d)
        copy(ls.theta_start, ls.theta, d)
        J_anew, norm_anew = search(ls, samples, n, radius, MOST_STEPS_ANEW, d, A)
        ends_anew = norm_anew <= STATIONARY
        if not (J_anew < J if ends == ends_anew else ends_anew):
            copy(ls.found, ls.theta, d)
    objective(ls, samples, ls.theta, n, d, A)


@rule
def copy(source, target, d):
    for i in range(d):
        target[i] = source[i]


@routine
def search(ls, samples, n, radius, most, d, A):
    """Descend from ``theta``, which becomes the point that is reached; returns J and ‖∇J‖ there."""
    J, norm, rounding = objective(ls, samples, ls.theta, n, d, A)
    for _ in range(most):
        if not norm > TOLERANCE:  # NaN too
            break
        hessian(ls, samples, n, d, A)
        eigen(ls.H, ls.U, d)
        largest = 0.0
        for k in range(d):
            largest = max(largest, abs(ls.H[k * d + k]))
            ls.rotated[k] = 0.0
            for i in range(d):
                ls.rotated[k] += ls.U[i * d + k] * ls.gradient[i]
        damping, moved = 0.0, False
        while not moved and damping <= LAST_DAMPING:
            if propose(ls, damping * largest, 1e-16 * largest, d) <= radius * radius:
                J_tried, norm_tried, _ = objective(ls, samples, ls.tried, n, d, A)
                # Near the end J cannot tell two points apart any more, but a plain Newton step still halves the
                # gradient.
                closer = damping == 0.0 and J_tried <= J + rounding and norm_tried <= 0.5 * norm
                if J_tried < J - rounding or closer:
                    J, norm, moved = J_tried, norm_tried, True
                    copy(ls.tried, ls.theta, d)
            damping = max(10.0 * damping, FIRST_DAMPING)
        if not moved:
            break
    return J, norm


@routine
def propose(ls, damping, least, d):
    """θ − U(|e| + λ)⁻¹Uᵀ∇J into ``tried``; returns its squared norm."""
    norm_squared = 0.0
    for i in range(d):
        ls.tried[i] = ls.theta[i]
        for k in range(d):
            ls.tried[i] -= ls.U[i * d + k] * ls.rotated[k] / (max(abs(ls.H[k * d + k]), least) + damping)
        norm_squared += ls.tried[i] ** 2
    return norm_squared


@routine
def objective(ls, samples, theta, n, d, A):
    """J(θ), ‖∇J(θ)‖ and how exactly J is known; ω, A and ∇J stay in their arrays."""
    for i in range(d):
        ls.m[i] = ls.b[i] / n
        for j in range(d):
            ls.jacobian[i * d + j] = ls.C[i * d + j] / n
    size = norm(ls.m, d)
    for k in range(ls.n_met[0]):
        row = samples.first_row + ls.state[k] * A
        action_values(samples, row, theta, ls.q, d, A)
        V = improve(samples.operator, row, ls.q, ls.w_above, A)
        for i in range(d):
            ls.phi_hat[i] = 0.0
        for a in range(A):
            add(samples.features, row + a, ls.w_above[a], ls.phi_hat, d)
        for i in range(d):
            share = ls.K[k * d + i] / n
            ls.m[i] += share * V
            for j in range(d):
                ls.jacobian[i * d + j] -= share * ls.phi_hat[j]
    for i in range(d):
        ls.phi[i] = 0.0
        for j in range(d):
            ls.phi[i] += ls.C[i * d + j] * theta[j] / n
        ls.m[i] -= ls.phi[i]
    size += norm(ls.phi, d)
    J = 0.0
    for i in range(d):
        ls.omega[i] = 0.0
        for j in range(d):
            ls.omega[i] += ls.C_inverse[i * d + j] * ls.m[j]
        J += 0.5 * ls.m[i] * ls.omega[i]
    for j in range(d):
        ls.gradient[j] = 0.0
        for i in range(d):
            ls.gradient[j] -= ls.jacobian[i * d + j] * ls.omega[i]
    return J, norm(ls.gradient, d), 3.6e-15 * size * norm(ls.omega, d)


@rule
def norm(v, d):
    total = 0.0
    for i in range(d):
        total += v[i] * v[i]
    return math.sqrt(total)


@routine
def hessian(ls, samples, n, d, A):
    """∇²J = AᵀC⁺A + Σ_s (K_sᵀω) ∇²V̄_s at ``theta``, where ``objective`` has just been, into ``H``."""
    for i in range(d):
        for j in range(d):
            ls.product[i * d + j] = 0.0
            for k in range(d):
                ls.product[i * d + j] += ls.C_inverse[i * d + k] * ls.jacobian[k * d + j]
    for i in range(d):
        for j in range(d):
            ls.H[i * d + j] = 0.0
            for k in range(d):
                ls.H[i * d + j] += ls.jacobian[k * d + i] * ls.product[k * d + j]
    for k in range(ls.n_met[0]):
        weight = 0.0
        for i in range(d):
            weight += ls.K[k * d + i] * ls.omega[i] / n
        row = samples.first_row + ls.state[k] * A
        action_values(samples, row, ls.theta, ls.q, d, A)
        for a in range(A):
            q_a = ls.q[a]
            ls.q[a] = q_a + DIFFERENCE
            improve(samples.operator, row, ls.q, ls.w_above, A)
            ls.q[a] = q_a - DIFFERENCE
            improve(samples.operator, row, ls.q, ls.w_below, A)
            ls.q[a] = q_a
            for i in range(d):  # Σ_b ∂²V̄/∂q_a∂q_b φ(s,b), in phi_hat
                ls.phi[i] = ls.phi_hat[i] = 0.0
            for b in range(A):
                slope = weight * (ls.w_above[b] - ls.w_below[b]) / (2.0 * DIFFERENCE)
                add(samples.features, row + b, slope, ls.phi_hat, d)
            add(samples.features, row + a, 1.0, ls.phi, d)
            for i in range(d):
                for j in range(d):
                    ls.H[i * d + j] += 0.5 * (ls.phi[i] * ls.phi_hat[j] + ls.phi_hat[i] * ls.phi[j])
