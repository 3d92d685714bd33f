"""The largest norms and Lipschitz ratios that random points of the ball show: how much slack a constant has.

A sampled value never exceeds a true constant; how near it comes is printed beside it in the report.
"""

from __future__ import annotations

import numpy as np

from gqlab.checks import FloatArray
from gqlab.operators import Softmax
from gqlab.problem import Problem
from gqlab.theory.constants import possible_transitions

#: Numbers that one array of samples may hold.
MOST_NUMBERS = 2_000_000


def random_points(rng: np.random.Generator, n: int, d: int, radius: float) -> FloatArray:
    """(n, d): directions uniform; a third on the sphere, a third uniform in the ball, a third log-uniform in radius."""
    direction = rng.standard_normal((n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = np.ones(n)
    length[n // 3 :] = rng.random(n - n // 3) ** (1 / d)
    length[2 * n // 3 :] = 10 ** (-4 * rng.random(n - 2 * n // 3))
    return radius * length[:, None] * direction


def neighbours(rng: np.random.Generator, points: FloatArray, radius: float) -> FloatArray:
    """A second point for each: near it (where ratios approach derivatives) for half of them, anywhere for the rest."""
    other = random_points(rng, len(points), points.shape[1], radius)
    near = np.arange(len(points)) % 2 == 0
    step = 1e-4 * rng.standard_normal(points.shape) * (1 + np.linalg.norm(points, axis=1, keepdims=True)) * 0.1
    moved = points + step
    moved *= np.minimum(1, radius / np.linalg.norm(moved, axis=1, keepdims=True))
    return np.where(near[:, None], moved, other)


class Samples:
    """G_x, H_x and what they are made of, at many points and for every sample x that can happen."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.s, self.a, self.s_next = possible_transitions(problem)
        self.phi = problem.features[self.s, self.a]  # (N, d)
        self.reward = problem.mdp.reward[self.s, self.a, self.s_next]
        self.gamma = problem.mdp.discount[self.s, self.a, self.s_next]

    def values(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """V̄ (n, S) and φ̂ (n, S, d)."""
        q = np.einsum("ni,sai->nsa", theta, self.problem.features)
        return self.problem.target.value(q), np.einsum(
            "nsa,sai->nsi", self.problem.target.weights(q), self.problem.features
        )

    def delta(self, theta: FloatArray) -> FloatArray:
        """δ_x(θ), (n, N)."""
        V, _ = self.values(theta)
        return self.reward + self.gamma * V[:, self.s_next] - theta @ self.phi.T

    def G(self, theta: FloatArray, omega: FloatArray) -> FloatArray:
        """G_x(θ, ω), (n, N, d)."""
        V, phi_hat = self.values(theta)
        delta = self.reward + self.gamma * V[:, self.s_next] - theta @ self.phi.T
        correction = (self.gamma * (omega @ self.phi.T))[..., None] * phi_hat[:, self.s_next]
        return correction - delta[..., None] * self.phi

    def H(self, theta: FloatArray, omega: FloatArray) -> FloatArray:
        """H_x(θ, ω), (n, N, d)."""
        return (omega @ self.phi.T - self.delta(theta))[..., None] * self.phi


def _policy_gradient(problem: Problem, pi: FloatArray) -> FloatArray:
    """∇π_a(s), (n, S, A, d), of a softmax policy."""
    mean = np.einsum("nsa,sai->nsi", pi, problem.features)
    return problem.target.sigma * pi[..., None] * (problem.features - mean[:, :, None])


def sampled(problem: Problem, radius: float, n_points: int = 600, seed: int = 0) -> dict[str, float]:
    """The largest value of each constant's quantity over random points, by the constant's name."""
    x = Samples(problem)
    d = problem.dim
    n = max(12, min(n_points, MOST_NUMBERS // (len(x.s) * d)))
    rng = np.random.default_rng([seed, 11])
    theta, omega = random_points(rng, n, d, radius), random_points(rng, n, d, radius)
    theta2, omega2 = neighbours(rng, theta, radius), neighbours(rng, omega, radius)
    exact = problem.exact
    star, star2 = exact.omega_star(theta), exact.omega_star(theta2)
    step = np.linalg.norm(theta - theta2, axis=1)
    step_omega = np.linalg.norm(omega - omega2, axis=1)

    def ratio(difference: FloatArray, steps: FloatArray) -> float:
        norms = np.linalg.norm(difference.reshape(n, -1, d), axis=-1).max(axis=1)
        apart = steps > 1e-9 * radius  # points that the ball pushed together say nothing
        return float((norms[apart] / steps[apart]).max(initial=0.0))

    def norm(vectors: FloatArray) -> float:
        return float(np.linalg.norm(vectors, axis=-1).max())

    smoothness: dict[str, float] = {}
    if isinstance(problem.target, Softmax):  # k₁ and k₂ of the policy itself: ∇π_a = σπ_a(φ_a − φ̄)
        pi, pi2 = problem.policy(theta), problem.policy(theta2)
        change = np.abs(pi - pi2).reshape(n, -1).max(axis=1)
        apart = step > 1e-9 * radius
        slopes = _policy_gradient(problem, pi) - _policy_gradient(problem, pi2)
        smoothness = {"k1": float((change[apart] / step[apart]).max(initial=0.0)), "k2": ratio(slopes, step)}
    phi_hat, phi_hat2 = x.values(theta)[1], x.values(theta2)[1]
    reached = np.unique(x.s_next[x.gamma > 0])
    return smoothness | {
        "phi_hat": norm(phi_hat[:, reached]) if len(reached) else 0.0,
        "L_phi_hat": ratio(phi_hat[:, reached] - phi_hat2[:, reached], step) if len(reached) else 0.0,
        "delta_max": float(np.abs(x.delta(theta)).max()),
        "omega_star": norm(star),
        "G": norm(x.G(theta, omega)),
        "H": norm(x.H(theta, omega)),
        "C_grad_J": norm(exact.gradient(theta)),
        "L1": ratio(x.G(theta, omega) - x.G(theta, omega2), step_omega),
        "L2": ratio(x.G(theta, star) - x.G(theta2, star2), step),
        "L3": ratio(star - star2, step),
        "L4": ratio(x.H(theta, omega) - x.H(theta, omega2), step_omega),
        "L5": ratio(x.H(theta, star) - x.H(theta2, star2), step),
        "L": ratio(exact.gradient(theta) - exact.gradient(theta2), step),
    }
