"""How much of C₁ … C₄ is reached: the exact variance of batch means at random points of the balls.

For one θ the deviation F(x) = G_x(θ, ω*(θ)) − ∇J(θ) has M·E‖mean F‖² = max_s E[‖F‖²|s] for M = 1 and the worst first
state, and, for M → ∞, E[2⟨F, U⟩ − ‖F‖²], U the solution of Poisson's equation. Both are at most C₁; the larger one over
the points is what was reached. C₂ and C₄ are about H_x(θ, ω*(θ)), C₃ about (φφᵀ − C)(ω − ω*(θ)).
"""

from __future__ import annotations

import numpy as np

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.ergodicity import behaviour_chain
from gqlab.theory.greedy import solve_poisson
from gqlab.theory.sampled import MOST_NUMBERS, random_points


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
