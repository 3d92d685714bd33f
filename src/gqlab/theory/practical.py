"""Step sizes without a theorem: the edge of stability of the mean dynamics, and fractions of it that were tried.

The edge is the largest pair of step sizes for which the *exact mean dynamics* are stable:

    θ ← θ − η_θ E[G_x(θ, ω)]          ω ← ω − η_ω E[H_x(θ, ω)]

Near a stationary point (θ°, ω*(θ°)) the dynamics are linear, z ← (I − diag(η_θ, η_ω) 𝒥) z with the Jacobian 𝒥 of (E[G],
E[H]); they are stable where the spectral radius of that matrix is below 1. Runs are noisy as well and need far smaller
steps; how much smaller is a matter of measurement: :func:`try_steps` runs fractions of this pair and keeps the best.
Nothing is promised beyond the runs that are reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gqlab.algorithms import Algorithm, GreedyGQ, VRGreedyGQ
from gqlab.lab.run import DEFAULT_RUNS, run
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.theory.inputs import checked

#: The fractions of the edge that are tried, the same for both steps.
FRACTIONS = tuple(4.0**-k for k in range(7))


@dataclass(frozen=True)
class StationaryPoint:
    """Where a descent from θ_0 ended: a stationary point if ‖∇J‖ is practically zero."""

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
        raise ValueError("theta0: a search from it overflows: some entry is too large") from None
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
    """The spectral radius of the linearised mean dynamics."""
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
        # The stable η_θ need not form an interval from 0: take the end of the first stable stretch.
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


@dataclass(frozen=True)
class Attempt:
    """One pair and what its runs did: ‖∇J‖² over their last tenth, and the share of runs with a record on the ball."""

    fraction: float
    eta_theta: float
    eta_omega: float
    outcome: float
    on_sphere: float

    def __str__(self) -> str:
        sphere = f", {100 * self.on_sphere:.0f} % of the runs touched the ball" if self.on_sphere else ""
        return (
            f"η_θ = {self.eta_theta:.3g}, η_ω = {self.eta_omega:.3g} (the edge over {1 / self.fraction:g}): "
            f"‖∇J‖² = {self.outcome:.3g}{sphere}"
        )


@dataclass(frozen=True)
class Tried:
    """All attempts, and the setting they share."""

    attempts: tuple[Attempt, ...]
    algorithm: str
    start: float
    n_samples: int
    n_runs: int
    seed: int

    @property
    def best(self) -> Attempt:
        return min(self.attempts, key=lambda attempt: attempt.outcome)

    def __str__(self) -> str:
        others = "; ".join(str(attempt) for attempt in self.attempts if attempt is not self.best)
        return (
            f"{self.best}, the best of {len(self.attempts)} pairs tried, each in {self.n_runs} runs of "
            f"{self.n_samples} samples of {self.algorithm} (seed {self.seed}; ‖∇J(θ_0)‖² = {self.start:.3g}; "
            f"outcome: the mean over the last tenth). Tried too: {others}"
        )


@checked
def try_steps(
    problem: Problem, radius: float, *, theta0: ArrayLike | None = None, batch_size: int | None = 3000,
    n_samples: int = 30_000, n_runs: int = DEFAULT_RUNS, seed: int = 0,
) -> Tried | None:  # fmt: skip
    """Run VR-Greedy-GQ (``batch_size`` None: Greedy-GQ) with fractions of the edge; None where there is no edge.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> tried = gq.theory.try_steps(problem, radius=100.0, theta0=[1, 1, 1, 1], batch_size=500, n_samples=5000)
    >>> tried.best.outcome < tried.start, tried.attempts[0].on_sphere
    (True, 1.0)
    """
    n_samples = checks.integer("n_samples", n_samples, least=1)
    edge = mean_dynamics_step_sizes(problem, theta0)
    if edge is None:
        return None
    theta = np.zeros(problem.dim) if theta0 is None else checks.array("theta0", theta0, (problem.dim,))
    start = _squared_gradient(problem, theta)
    attempts, name = [], ""
    for fraction in FRACTIONS:
        steps = fraction * edge.eta_theta, fraction * edge.eta_omega
        algorithm: Algorithm = (
            GreedyGQ(*steps, radius=radius)
            if batch_size is None
            else VRGreedyGQ(*steps, batch_size=min(batch_size, n_samples), radius=radius)
        )
        name = type(algorithm).__name__
        every = max(1, n_samples // 100)
        result = run(problem, algorithm, n_samples, n_runs=n_runs, seed=seed, theta0=theta, record_every=every)
        late = result.theta[:, -max(1, result.theta.shape[1] // 10) :]
        outcome = float((problem.exact.gradient(late) ** 2).sum(axis=-1).mean())
        touched = (np.linalg.norm(result.theta, axis=-1) >= radius * (1 - 1e-9)).any(axis=1)
        attempts.append(Attempt(fraction, *steps, outcome, float(touched.mean())))
    return Tried(tuple(attempts), name, start, n_samples, n_runs, seed)


def _squared_gradient(problem: Problem, theta0: FloatArray) -> float:
    """‖∇J(θ_0)‖²."""
    try:
        with np.errstate(over="raise"):
            return float((problem.exact.gradient(theta0) ** 2).sum())
    except (ValueError, FloatingPointError):
        raise ValueError("theta0: ‖∇J‖² overflows there: some entry is too large") from None
