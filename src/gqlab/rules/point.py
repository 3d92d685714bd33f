"""The point (θ, ω) and its moves: a direction, the step sizes, QRC's decay of ω and the projection.

Every move is (θ, ω) ← (Π_R[θ − η_θ G], Π_{R_ω}[ω − η_ω (H + βω)]), both at the old (θ, ω). A move that would leave the
finite numbers is not made: the point stays where it was, and the move returns False.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.rules.dispatch import by_type, rule
from gqlab.rules.gradient import project, scatter
from gqlab.rules.memory import Array, Sizes, near


class Rates(NamedTuple):
    """The numbers of one move."""

    eta_theta: float
    eta_omega: float
    radius: float  # R
    radius_omega: float  # R_ω
    beta: float  # QRC's β; 0: Greedy-GQ


@by_type
def descend(self, samples, x, c, rates, d, A):
    """Move along (G, H) of sample x, given by the coefficients c."""


@by_type
def descend_from(self, samples, x, c, drift, rates, d, A):
    """Move along the sum of that and of two vectors, ``drift`` = (G̃, H̃)."""


@by_type
def descend_along(self, G, H, rates, d):
    """Move along two vectors."""


@by_type
def move_to(self, theta, omega, rates, d):
    """Move to a given point, or to its projection."""


@by_type
def put(self, runs, run, d):
    """Go where a run stands."""
    for i in range(d):
        self.theta[i] = runs.theta[run, i]
        self.omega[i] = runs.omega[run, i]


@by_type
def take(self, runs, run, d):
    """Save where the run stands."""
    for i in range(d):
        runs.theta[run, i] = self.theta[i]
        runs.omega[run, i] = self.omega[i]


@by_type
def follow(self, G, H, d):
    """From here on ``drift`` of :func:`descend_from` is (G, H), until this is called again."""


@by_type
def add_to_mean(self, drift, samples, x, c, n, d, A):
    """Update ``drift``, a mean of n − 1 pseudo-gradients, with that of sample x as the n-th."""
    G, H = drift
    share = G.dtype.type(1) / G.dtype.type(n)
    for i in range(d):
        G[i] -= G[i] * share
        H[i] -= H[i] * share
    scatter(samples, x, c, share, share, G, H, d, A)


@by_type
def start_mean(self, theta_bar, d):
    """Start a mean of iterates at θ."""
    for i in range(d):
        theta_bar[i] = self.theta[i]


@by_type
def descend_and_average(self, theta_bar, samples, x, c, rates, n, d, A):
    """Move like :func:`descend`, and add the new θ to the mean of iterates as the n-th."""
    moved = descend(self, samples, x, c, rates, d, A)
    share = theta_bar.dtype.type(1) / theta_bar.dtype.type(n)
    for i in range(d):
        theta_bar[i] += (self.theta[i] - theta_bar[i]) * share
    return moved


@by_type
def mean_entry(self, theta_bar, i):
    """Entry i of the mean of iterates."""
    return theta_bar[i]


class DensePoint(NamedTuple):
    """θ and ω as d numbers each."""

    theta: Any  # (d,)
    omega: Any  # (d,)
    theta_before: Any  # (d,)  the point before its last move
    omega_before: Any  # (d,)
    answer: Any  # (d,)  what the estimator offers as θ

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return dict.fromkeys(("theta", "omega", "theta_before", "omega_before", "answer"), near(n.d))

    def descend(self, samples, x, c, rates, d, A):
        shrink = self.omega.dtype.type(1) - rates.eta_omega * rates.beta
        for i in range(d):
            self.theta_before[i] = self.theta[i]
            self.omega_before[i] = self.omega[i]
            self.omega[i] *= shrink
        scatter(samples, x, c, -rates.eta_theta, -rates.eta_omega, self.theta, self.omega, d, A)
        return settle(self, rates, d)

    def descend_from(self, samples, x, c, drift, rates, d, A):
        G_tilde, H_tilde = drift
        shrink = self.omega.dtype.type(1) - rates.eta_omega * rates.beta
        for i in range(d):
            self.theta_before[i] = self.theta[i]
            self.omega_before[i] = self.omega[i]
            self.theta[i] -= rates.eta_theta * G_tilde[i]
            self.omega[i] = shrink * self.omega[i] - rates.eta_omega * H_tilde[i]
        scatter(samples, x, c, -rates.eta_theta, -rates.eta_omega, self.theta, self.omega, d, A)
        return settle(self, rates, d)

    def descend_along(self, G, H, rates, d):
        shrink = self.omega.dtype.type(1) - rates.eta_omega * rates.beta
        for i in range(d):
            self.theta_before[i] = self.theta[i]
            self.omega_before[i] = self.omega[i]
            self.theta[i] -= rates.eta_theta * G[i]
            self.omega[i] = shrink * self.omega[i] - rates.eta_omega * H[i]
        return settle(self, rates, d)

    def move_to(self, theta, omega, rates, d):
        for i in range(d):
            self.theta_before[i] = self.theta[i]
            self.omega_before[i] = self.omega[i]
            self.theta[i] = theta[i]
            self.omega[i] = omega[i]
        return settle(self, rates, d)


@rule
def settle(point, rates, d):
    """Project θ and ω; where one is not finite, go back to the point before the move and return False."""
    if project(point.theta, rates.radius, d) and project(point.omega, rates.radius_omega, d):
        return True
    for i in range(d):
        point.theta[i] = point.theta_before[i]
        point.omega[i] = point.omega_before[i]
    return False
