"""The edge of stability: the largest step sizes for which the *exact mean dynamics* are stable. Not a theorem.

    θ ← θ − η_θ E[G_x(θ, ω)]          ω ← ω − η_ω E[H_x(θ, ω)]

Near a stationary point (θ°, ω*(θ°)) the dynamics are linear, z ← (I − diag(η_θ, η_ω) 𝒥) z with the Jacobian 𝒥 of
(E[G], E[H]); they are stable where the spectral radius of that matrix is below 1. Runs see noise as well and need far
less: :mod:`gqlab.theory.tried` runs fractions of this pair and reports what came of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.inputs import checked


@dataclass(frozen=True)
class StationaryPoint:
    """Where a descent from θ_0 ended: a stationary point if ‖∇J‖ is as good as zero."""

    theta: FloatArray
    gradient_norm: float

    @property
    def found(self) -> bool:
        return self.gradient_norm <= 1e-6


@dataclass(frozen=True)
class Practical:
    """Of the pairs on the edge of stability, the one with the largest product η_θ η_ω."""

    eta_theta: float
    eta_omega: float
    label: str = (
        "largest step sizes stable for the exact mean dynamics; not a guarantee, and too large for sampled runs"
    )

    def __str__(self) -> str:
        return f"η_θ = {self.eta_theta:.4g}, η_ω = {self.eta_omega:.4g} ({self.label})"


def stationary_point(problem: Problem, theta0: ArrayLike | None = None) -> StationaryPoint:
    """A stationary point of J, by BFGS from θ_0 (default 0)."""
    from scipy.optimize import minimize

    start = np.zeros(problem.dim) if theta0 is None else np.asarray(theta0, dtype=np.float64)
    exact = problem.exact
    try:
        found = minimize(
            lambda th: float(exact.mspbe(th[None])[0]), start, jac=lambda th: exact.gradient(th[None])[0],
            method="BFGS", options={"gtol": 1e-10, "maxiter": 2000},
        )  # fmt: skip
    except ValueError:
        raise ValueError("theta0: a search from it leaves the finite numbers; some entry is too large") from None
    return StationaryPoint(found.x, float(np.linalg.norm(problem.exact.gradient(found.x[None])[0])))


def mean_field(problem: Problem, theta: FloatArray, omega: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(E[G_x(θ, ω)], E[H_x(θ, ω)]), two (d,) arrays."""
    return problem.exact.mean_field(theta, omega)


def jacobian(problem: Problem, theta: FloatArray, omega: FloatArray) -> FloatArray:
    """𝒥, (2d, 2d), by central differences."""
    d = problem.dim
    point = np.concatenate([theta, omega])
    step = 1e-5 * (1 + float(np.abs(point).max()))
    columns = []
    for i in range(2 * d):
        shift = step * np.eye(2 * d)[i]
        plus, minus = (np.concatenate(mean_field(problem, z[:d], z[d:])) for z in (point + shift, point - shift))
        columns.append((plus - minus) / (2 * step))
    return np.array(columns).T


def spectral_radius(J: FloatArray, eta_theta: float, eta_omega: float) -> float:
    """Of the linearised mean dynamics."""
    d = len(J) // 2
    steps = np.repeat([eta_theta, eta_omega], d)
    return float(np.abs(np.linalg.eigvals(np.eye(2 * d) - steps[:, None] * J)).max())


@checked
def mean_dynamics_step_sizes(problem: Problem, theta0: ArrayLike | None = None) -> Practical | None:
    """The edge of stability at the stationary point that a descent from θ_0 finds; None if it finds none.

    Examples
    --------
    With γ = 0 the mean dynamics of θ are θ ← θ − η_θ(Cθ − b): stable up to 2/λ_max(C) = 4.

    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[1.0], [0.0]], discount=0.0)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :])
    >>> print(round(gq.theory.mean_dynamics_step_sizes(problem).eta_theta, 3))
    4.0
    """
    point = stationary_point(problem, theta0)
    if not point.found:
        return None
    J = jacobian(problem, point.theta, problem.exact.omega_star(point.theta[None])[0])
    most = 2 / float(np.linalg.eigvalsh(problem.exact.feature_covariance)[-1])  # ω alone is stable below this

    def largest(eta_omega: float) -> float:
        # Stability in η_θ need not be an interval from 0 (nothing says so): take the end of the first stable stretch.
        grid = np.geomspace(1e-8, 1e3, 89)
        stable = [spectral_radius(J, eta, eta_omega) < 1 for eta in grid]
        if not stable[0]:
            return 0.0
        k = stable.index(False) if False in stable else len(grid)
        if k == len(grid):
            return float(grid[-1])
        low, high = float(grid[k - 1]), float(grid[k])
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if spectral_radius(J, middle, eta_omega) < 1 else (low, middle)
        return low

    candidates = most * np.concatenate([np.geomspace(1e-3, 0.5, 12), np.linspace(0.55, 0.99, 10)])
    best = [largest(float(eta_omega)) for eta_omega in candidates]
    k = int(np.argmax(best * candidates))
    return Practical(best[k], float(candidates[k])) if best[k] > 0 else None
