"""The largest norms, Lipschitz ratios and variances at random points of the ball: they show the slack of a constant.

A sampled value never exceeds a true constant; the report prints how close it comes.

C₁ … C₄ bound variances of batch means. For one θ the deviation F(x) = G_x(θ, ω*(θ)) − ∇J(θ) has
M·E‖mean F‖² = max_s E[‖F‖²|s] for M = 1 and the worst first state, and, for M → ∞, E[2⟨F, U⟩ − ‖F‖²], U the solution of
Poisson's equation. Both are at most C₁; the larger one over the points is what was reached. C₂ and C₄ are about
H_x(θ, ω*(θ)), C₃ about (φφᵀ − C)(ω − ω*(θ)).
"""

from __future__ import annotations

import numpy as np

from gqlab.operators import Softmax
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.ergodicity import behaviour_chain
from gqlab.theory.greedy import solve_poisson

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


def _policy_gradient(problem: Problem, pi: FloatArray) -> FloatArray:
    """∇π_a(s), (n, S, A, d), of a softmax policy."""
    mean = np.einsum("nsa,sai->nsi", pi, problem.features)
    assert isinstance(problem.target, Softmax)
    return problem.target.sigma * pi[..., None] * (problem.features - mean[:, :, None])


def _policy_ratios(problem: Problem, theta: FloatArray, theta2: FloatArray, radius: float) -> dict[str, float]:
    """k₁ and k₂ of the softmax policy itself: ∇π_a = σπ_a(φ_a − φ̄)."""
    pi, pi2 = problem.policy(theta), problem.policy(theta2)
    step = np.linalg.norm(theta - theta2, axis=1)
    slopes = _policy_gradient(problem, pi) - _policy_gradient(problem, pi2)
    return {"k1": _largest_ratio((pi - pi2)[..., None], step, radius), "k2": _largest_ratio(slopes, step, radius)}


def _largest(vectors: FloatArray) -> float:
    return float(np.linalg.norm(vectors, axis=-1).max())


def _largest_ratio(difference: FloatArray, steps: FloatArray, radius: float) -> float:
    """The largest ‖difference‖/step over points (the first axis) and what is compared at each."""
    norms = np.linalg.norm(difference, axis=-1).reshape(len(steps), -1).max(axis=1)
    apart = steps > 1e-9 * radius  # points that the projection made coincide are useless
    return float((norms[apart] / steps[apart]).max(initial=0.0))


def sampled(problem: Problem, radius: float, n_points: int = 600, seed: int = 0) -> dict[str, float]:
    """The largest value of each constant's quantity over random points, by the constant's name."""
    exact, x, d = problem.exact, problem.exact.transitions, problem.dim
    n = max(12, min(n_points, MOST_NUMBERS // (len(x.s) * d)))
    rng = np.random.default_rng([seed, 11])
    theta, omega = random_points(rng, n, d, radius), random_points(rng, n, d, radius)
    theta2, omega2 = neighbours(rng, theta, radius), neighbours(rng, omega, radius)
    star, star2 = exact.omega_star(theta), exact.omega_star(theta2)
    step = np.linalg.norm(theta - theta2, axis=1)
    step_omega = np.linalg.norm(omega - omega2, axis=1)

    def ratio(difference: FloatArray, steps: FloatArray) -> float:
        return _largest_ratio(difference, steps, radius)

    smoothness = _policy_ratios(problem, theta, theta2, radius) if isinstance(problem.target, Softmax) else {}
    phi_hat, phi_hat2 = exact.phi_hat(theta), exact.phi_hat(theta2)
    G, H = exact.sample_gradients(theta, omega)
    G_omega2, H_omega2 = exact.sample_gradients(theta, omega2)
    G_star, H_star = exact.sample_gradients(theta, star)
    G_star2, H_star2 = exact.sample_gradients(theta2, star2)
    reached = np.unique(x.s_next[x.gamma > 0])
    return smoothness | {
        "phi_hat": _largest(phi_hat[:, reached]) if len(reached) else 0.0,
        "L_phi_hat": ratio(phi_hat[:, reached] - phi_hat2[:, reached], step) if len(reached) else 0.0,
        "delta_max": float(np.abs(exact.delta(theta)).max()),
        "omega_star": _largest(star),
        "G": _largest(G),
        "H": _largest(H),
        "C_grad_J": _largest(exact.gradient(theta)),
        "L1": ratio(G - G_omega2, step_omega),
        "L2": ratio(G_star - G_star2, step),
        "L3": ratio(star - star2, step),
        "L4": ratio(H - H_omega2, step_omega),
        "L5": ratio(H_star - H_star2, step),
        "L": ratio(exact.gradient(theta) - exact.gradient(theta2), step),
    }


def sampled_deviations(
    problem: Problem, radius: float, radius_omega: float, sampling: str = "markov", n_points: int = 100, seed: int = 0
) -> dict[str, float | None]:
    """The largest value of what C₁, C₂, C₃ and C₄ bound, over random points.

    Examples
    --------
    Rewards ±1 that persist with probability 0.95, φ = 1, γ = 0: C₁ = C₂ = 19, the variance itself, all of it reached.

    >>> import gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.95, 0.05]], [[0.05, 0.95]]], [[1.0], [-1.0]], discount=0.0)
    >>> found = sampled_deviations(gq.Problem(mdp, [[[1.0]], [[1.0]]]), 1.0, 1.0)
    >>> round(found["C1"], 6), found["C3"]
    (19.0, 0.0)
    """
    exact, x, d = problem.exact, problem.exact.transitions, problem.dim
    n = max(4, min(n_points, MOST_NUMBERS // (4 * len(x.s) * d)))
    rng = np.random.default_rng([seed, 12])
    theta, omega = random_points(rng, n, d, radius), random_points(rng, n, d, radius_omega)
    star = exact.omega_star(theta)
    G, H = exact.sample_gradients(theta, star)
    track = omega - star
    shift = (track @ x.phi.T)[..., None] * x.phi - (track @ exact.feature_covariance)[:, None]
    lam = float(np.linalg.eigvalsh(exact.feature_covariance)[0])
    spread = independent_variance if sampling == "iid" else variance
    C1, C2, C3 = (spread(problem, F) for F in (G - exact.gradient(theta)[:, None], H, shift))
    return {"C1": C1, "C2": C2, "C3": 2 / lam * C3, "C4": 2 / lam * C2}


def independent_variance(problem: Problem, F: FloatArray) -> float:
    """The largest E‖F‖² over the points: M·E‖mean F‖² of independent samples, for every M."""
    return float(((F**2).sum(axis=-1) @ problem.exact.transitions.probability).max())


def variance(problem: Problem, F: FloatArray) -> float:
    """The largest M·E‖mean F‖² over the points, for M = 1 and for M → ∞; F (n, N, d) of mean 0."""
    x = problem.exact.transitions
    n, N, d = F.shape
    U = solve_poisson(problem, F.transpose(1, 0, 2).reshape(N, -1)).reshape(N, n, d).transpose(1, 0, 2)
    limit = ((2 * F * U - F**2).sum(axis=-1) @ x.probability).max()
    p = problem.behavior[x.s, x.a] * problem.mdp.transition[x.s, x.a, x.s_next]
    first = np.zeros((problem.mdp.n_states, n))
    np.add.at(first, x.s, p[:, None] * (F**2).sum(axis=-1).T)
    return float(max(limit, first[behaviour_chain(problem)[0]].max()))
