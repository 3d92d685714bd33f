"""Step sizes that were tried: fractions of the edge of stability of the mean dynamics, each run, the best one kept.

The edge (:mod:`gqlab.theory.practical`) is a limit for dynamics without noise; sampled runs need less, and how much
less is a matter of measurement. Nothing is promised beyond the runs that are reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gqlab.algorithms import Algorithm, GreedyGQ, VRGreedyGQ
from gqlab.lab.run import DEFAULT_RUNS, run
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.theory.inputs import checked
from gqlab.theory.practical import mean_dynamics_step_sizes

#: The fractions of the edge that are tried, of both steps alike.
FRACTIONS = tuple(4.0**-k for k in range(7))


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
        raise ValueError("theta0: ‖∇J‖² leaves the finite numbers there; some entry is too large") from None
