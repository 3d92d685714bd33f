"""What a reader would pick instead: LSPI on the same samples, and averaged Q-learning. Both solve E[δφ] = 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm
from gqlab.algorithms.schedules import StepSize
from gqlab.estimators.averaged import Averaged
from gqlab.lab.floor import empirical_objective
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray

#: Policy iterations, at most, and the change of θ at which they end, relative to θ.
MOST_ITERATIONS, CONVERGED = 200, 1e-10


@dataclass(frozen=True)
class AveragedQLearning(Algorithm):
    """Semi-gradient Q-learning with falling steps, and the mean of its iterates as the answer."""

    estimator: ClassVar[type] = Averaged
    has_omega: ClassVar[bool] = False

    eta_theta: StepSize | None = None
    radius: float = math.inf


@dataclass(frozen=True)
class Iterated:
    """Where policy iteration ended, for n runs."""

    theta: FloatArray  # (n, d)
    converged: NDArray[np.bool_]  # (n,)


def lspi(problem: Problem, counts: NDArray[np.int64], theta0: FloatArray) -> Iterated:
    """Least-squares policy iteration on counts (n, K) of transitions, with the operator's own policy.

    LSTD-Q for π_θ, the policy of the θ before:  Ĉθ' = b̂ + Σ_s K̂_s Σ_a π_θ(a|s) φ(s,a)ᵀθ'.
    """
    objective = empirical_objective(problem, counts)
    C, b, K = objective.means
    theta = np.tile(theta0, (len(counts), 1))
    converged = np.zeros(len(counts), dtype=bool)
    for _ in range(MOST_ITERATIONS):
        policy = problem.target.policy(objective.q(theta[:, None])[:, 0])
        phi_bar = np.einsum("nsa,sai->nsi", policy, problem.features)
        A = C - K @ phi_bar
        new = np.einsum("nij,nj->ni", np.linalg.pinv(A, rcond=1e-13), b)
        change = np.linalg.norm(new - theta, axis=-1)
        theta = np.where(converged[:, None], theta, new)
        converged |= change <= CONVERGED * np.maximum(np.linalg.norm(new, axis=-1), 1.0)
        if converged.all():
            break
    return Iterated(theta, converged)
