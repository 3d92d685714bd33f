"""The companion theorem on plain Greedy-GQ: one sample at a time, constant or decaying steps with a fixed η_θ = x η_ω.

Ψ = J(θ) + b‖ω − ω*(θ)‖² with b = xL₁²/(λ_C − 2xL₁L₃) falls, in expectation and up to noise, by ρη_θ‖∇J(θ)‖² a step,
ρ = ¾ − bxL₃²/λ_C, so that

    Σ_t η_t E[‖∇J(θ_t)‖²; I_t]/Σ_t η_t ≤ (1/ρ)(J(θ_0) + b‖ω_0 − ω*(θ_0)‖² + 2η_0 M_U + N Σ_t η_t²)/Σ_t η_t,

where I_t is the event that no iterate up to θ_t came within Gη_0 of the sphere: a run that leaves early makes the left
side small. N is the noise of a step; M_U and a part of N are what the correlation of consecutive samples costs, through
the solution of Poisson's equation: 0 for independent ones. Constant steps of order T^{−1/2} give O(T^{−1/2}), so O(ε⁻²)
samples; steps that decay like t^{−1/2} give O(log T/√T).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.ergodicity import behaviour_chain
from gqlab.theory.inputs import checked
from gqlab.theory.search import room, zoom
from gqlab.theory.sharp import Sharp

#: The smallest admissible ρ, as in the other theorems.
LEAST_RHO = 0.25

#: log x is sought between these.
RATIOS = [(math.log(1e-12), math.log(1e6))]


@dataclass(frozen=True)
class Poisson:
    """max_x‖U_x‖ for the solutions U of Poisson's equation U − QU = X − E[X], X = rφ, φφᵀ and γ1{s'=t}φ (summed)."""

    B: float
    C: float
    K: float


@dataclass(frozen=True)
class GreedyBound:
    """The bound for one ratio x = η_θ/η_ω: (1/ρ)(J_0 + b Δ_0 + 2η_0 M_U + N Ση²)/Ση."""

    x: float
    b: float
    rho: float
    M_U: float
    N: float
    U_theta: float = 0.0  # the Lipschitz constants of the solution of Poisson's equation, in θ and in ω
    U_omega: float = 0.0

    @property
    def holds(self) -> bool:
        return self.b >= 0 and self.rho >= LEAST_RHO

    def total(self, etas: FloatArray, J0: float, tracking0: float) -> float:
        """The bound for the steps η_0, η_1, … of θ, which must not increase."""
        if (np.diff(etas) > 0).any():
            raise ValueError("etas: the step sizes must not increase")
        start = J0 + self.b * tracking0 + 2 * float(etas[0]) * self.M_U
        return (start + self.N * float((etas**2).sum())) / (self.rho * float(etas.sum()))

    def best(self, n_samples: float, J0: float, tracking0: float, most: float = 1.0) -> tuple[float, float]:
        """The constant η_θ ≤ ``most`` with the least bound after ``n_samples`` samples, and that bound."""
        start = J0 + self.b * tracking0
        eta = min(most, math.sqrt(start / (self.N * n_samples))) if self.N > 0 else most
        eta = max(eta, 1e-300)
        return eta, (start / (eta * n_samples) + 2 * self.M_U / n_samples + self.N * eta) / self.rho

    def samples(self, epsilon: float, J0: float, tracking0: float, most: float = 1.0) -> float:
        """The least number of samples after which ``best`` is at most ε.

        With η = √(s/(Nn)) the bound is (2√(Ns)z + 2M_U z²)/ρ, z = n^{−1/2}: ε is reached where that is a root.
        """
        start, room = J0 + self.b * tracking0, epsilon * self.rho
        root = math.sqrt(self.N * start)
        z = room / (root + math.sqrt(root**2 + 2 * self.M_U * room)) if room > 0 else 0.0
        if z > 0 and start * z**2 > self.N * most**2:  # that η is too large: use the largest instead
            left = room - self.N * most
            return max(1.0, (start / most + 2 * self.M_U) / left) if left > 0 else math.inf
        return max(1.0, z**-2) if z > 0 else math.inf


def poisson(problem: Problem) -> Poisson:
    """The three sizes, for the chain of samples that the behaviour policy makes.

    Examples
    --------
    Two states that are left with probability 0.05, φ = 1, r = ±1: U = 1 now, and 1 + 0.9 + 0.9² + … from s' = s on.

    >>> import gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.95, 0.05]], [[0.05, 0.95]]], [[1.0], [-1.0]], discount=0.5)
    >>> round(poisson(gq.Problem(mdp, [[[1.0]], [[1.0]]])).B, 9)
    11.0
    """
    x, exact = problem.exact.transitions, problem.exact
    C, b, K = exact.moments
    d = problem.dim
    square = np.einsum("ni,nj->nij", x.phi, x.phi).reshape(len(x.s), -1) - C.ravel()
    reward = x.reward[:, None] * x.phi - b
    columns = [(x.gamma * (x.s_next == t))[:, None] * x.phi - K[:, t] for t in np.unique(x.s_next[x.gamma > 0])]
    solved = solve_poisson(problem, np.concatenate([reward, square, *columns], axis=1))
    parts = np.split(solved, np.cumsum([d, d * d] + [d] * len(columns))[:-1], axis=1) if columns else [solved]
    if not columns:
        parts = np.split(solved, [d], axis=1)
    sizes = [float(np.linalg.norm(part, axis=1).max()) for part in parts]
    return Poisson(sizes[0], sizes[1], sum(sizes[2:]))


def solve_poisson(problem: Problem, F: FloatArray) -> FloatArray:
    """U with U_x − E[U_{x⁺}|x] = F_x for every sample x that can happen, F (N, m) of mean 0, (N, m).

    U_x = F_x + E[(Z F̄)(s⁺)|x], where F̄(s) = E[F|s] and Z = (I − P + 1μᵀ)⁻¹ − 1μᵀ.
    """
    states, chain = behaviour_chain(problem)
    mdp, x = problem.mdp, problem.exact.transitions
    mu = problem.exact.stationary[states]
    position = np.full(mdp.n_states, -1)
    position[states] = np.arange(len(states))
    inside = position[x.s] >= 0
    p = problem.behavior[x.s, x.a] * mdp.transition[x.s, x.a, x.s_next] * inside
    F_bar = np.zeros((len(states), F.shape[1]))
    np.add.at(F_bar, np.maximum(position[x.s], 0), p[:, None] * F)
    Z_F = np.linalg.solve(np.eye(len(states)) - chain + mu, F_bar) - mu @ F_bar
    follow = np.where(mdp.terminal[:, None], mdp.start, np.eye(mdp.n_states))[:, states]
    return np.asarray((F + follow[x.s_next] @ Z_F) * inside[:, None])


def greedy_bound(c: Sharp, x: float, solved: Poisson | None) -> GreedyBound:
    """The coefficients for the ratio x; ``solved`` None: independent samples."""
    lam, R, R_omega = c.lambda_C, c.R, c.R_omega
    slack = lam - 2 * x * c.L1 * c.L3
    b = x * c.L1**2 / slack if slack > 0 else -1.0
    rho = 0.75 - b * x * c.L3**2 / lam
    reach = R_omega + c.omega_star  # ‖Δ‖
    N = 0.5 * c.L * c.G**2 + b * ((2 * c.L3**2 + reach * c.L6) * c.G**2 + 2 * c.H**2 / x**2)
    if solved is None or b < 0:
        return GreedyBound(x, b, rho, 0.0, N)
    # ‖U‖ and the Lipschitz constants of z ↦ U_x(z), for the deviations of G_x and of H_x.
    G_size = solved.B + R * solved.C + (R + c.phi_hat * R_omega) * solved.K
    G_theta, G_omega = solved.C + (c.phi_hat + c.L_phi_hat * R_omega) * solved.K, c.phi_hat * solved.K
    H_size = solved.B + (R + R_omega) * solved.C + R * solved.K
    H_theta, H_omega = solved.C + c.phi_hat * solved.K, solved.C
    M_U = c.C_grad_J * G_size + 2 * b / x * reach * H_size + 2 * b * reach * c.L3 * G_size
    theta = (
        c.L * G_size + c.C_grad_J * G_theta
        + 2 * b / x * (c.L3 * H_size + reach * H_theta)
        + 2 * b * ((c.L3**2 + reach * c.L6) * G_size + reach * c.L3 * G_theta)
    )  # fmt: skip
    omega = c.C_grad_J * G_omega + 2 * b / x * (H_size + reach * H_omega) + 2 * b * c.L3 * (G_size + reach * G_omega)
    return GreedyBound(x, b, rho, M_U, N + theta * c.G + omega * c.H / x, theta, omega)


def largest_step(c: Sharp, theta0_norm: float) -> float:
    """The largest η_θ ≤ 1 with which θ_0 lies Gη_θ inside the sphere."""
    return min(1.0, room(c, theta0_norm) / c.G)


@checked
def best_greedy(
    problem: Problem, c: Sharp, n_samples: float, *, start: tuple[float, float], theta0_norm: float = 0.0
) -> tuple[GreedyBound, float, float]:
    """The ratio x and the constant η_θ with the least bound after ``n_samples`` samples, and that bound.

    ``theta0_norm`` is ‖θ_0‖, which must be Gη_θ inside the sphere: η_θ ≤ (R − ‖θ_0‖)/G.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> c = sharp_constants(problem, 1.0)
    >>> bounds = [best_greedy(problem, c, n, start=(0.1, 0.1))[2] for n in (1e10, 1e12)]
    >>> round(float(np.log10(bounds[0] / bounds[1])), 2)  # n^{−1/2}
    1.0
    """
    solved = None if c.sampling == "iid" else poisson(problem)
    most = largest_step(c, theta0_norm)

    def value(log_x: FloatArray) -> FloatArray:
        out = np.full(len(log_x), math.inf)
        for k, log in enumerate(log_x):
            found = greedy_bound(c, math.exp(log), solved)
            if found.holds:
                out[k] = math.log(max(found.best(n_samples, *start, most)[1], 1e-300))
        return out

    x = math.exp(float(zoom(value, RATIOS)[0]))
    found = greedy_bound(c, x, solved)
    return found, *found.best(n_samples, *start, most)


def samples_for(
    problem: Problem, c: Sharp, epsilon: float, start: tuple[float, float], theta0_norm: float = 0.0
) -> float:
    """The least number of samples after which the best constant steps bring the bound to ε.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> c = sharp_constants(problem, 1.0)
    >>> n = samples_for(problem, c, 1e-3, (0.1, 0.1))
    >>> enough, fewer = (best_greedy(problem, c, m, start=(0.1, 0.1))[2] for m in (n, 0.9 * n))
    >>> enough <= 1e-3 < fewer
    True
    """
    solved = None if c.sampling == "iid" else poisson(problem)
    most = largest_step(c, theta0_norm)

    def value(log_x: FloatArray) -> FloatArray:
        found = [greedy_bound(c, math.exp(log), solved) for log in log_x]
        return np.array(
            [math.log(bound.samples(epsilon, *start, most)) if bound.holds else math.inf for bound in found]
        )

    x = math.exp(float(zoom(value, RATIOS)[0]))
    return float(math.ceil(greedy_bound(c, x, solved).samples(epsilon, *start, most)))
