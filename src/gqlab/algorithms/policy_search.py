"""Baselines that search for a policy: actor-critic and policy gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gqlab.algorithms.base import Algorithm
from gqlab.algorithms.schedules import StepSize
from gqlab.estimators.policy_search import ActorCriticStep, PolicyGradientStep
from gqlab.operators import Softmax
from gqlab.problems.problem import Problem
from gqlab.support import checks


@dataclass(frozen=True)
class ActorCritic(Algorithm):
    """Off-policy actor-critic with a linear critic in action values (after Degris, White and Sutton, 2012).

    The actor is π_θ(a|s) ∝ exp(σ φ(s,a)ᵀθ), so the problem's target must be ``Softmax``. The critic is
    Q_ω(s,a) = φ(s,a)ᵀω, with V_ω(s) = Σ_b π_θ(b|s) Q_ω(s,b). For a sample x = (s, a, r, s') of the behaviour policy,
    with the importance ratio ρ = π_θ(a|s)/π_b(a|s) and ∇ log π_θ(a|s) = σ (φ(s,a) − Σ_b π_θ(b|s) φ(s,b)),

        θ ← Π_R[θ + η_θ ρ (r + γ V_ω(s') − V_ω(s)) ∇ log π_θ(a|s)]
        ω ← Π_R[ω + η_ω (r + γ V_ω(s') − Q_ω(s,a)) φ(s,a)]

    both at the old (θ, ω). The critic needs no ratio: its error is conditional on (s, a), and V_ω(s') is already the
    expectation under π_θ. In the mean over D and P the actor's step is
    Σ_s μ(s) Σ_a π_θ(a|s) ∇ log π_θ(a|s) (E[r + γ V_ω(s') | s, a] − V_ω(s)). Like every semi-gradient critic this one
    has no guarantee off-policy; ``radius`` bounds it.

    Examples
    --------
    With a feature for every pair it finds the optimum:

    >>> import numpy as np, gqlab as gq
    >>> problem = gq.Problem(gq.garnet(seed=0), np.eye(15).reshape(5, 3, 15))
    >>> result = gq.run(problem, gq.ActorCritic(0.05, 0.05), n_samples=300_000, n_runs=2)
    >>> value = problem.exact.value(result.theta[:, -1]).mean(axis=0)
    >>> bool((value > 0.99 * problem.exact.optimal_value).all())
    True
    """

    estimator: ClassVar[type] = ActorCriticStep
    reads_operator: ClassVar[bool] = True

    eta_theta: StepSize = 0.02
    eta_omega: StepSize = 0.01
    radius: float = math.inf

    def check(self, problem: Problem) -> None:
        _check_softmax(self, problem)


@dataclass(frozen=True)
class PolicyGradient(Algorithm):
    """Off-policy policy gradient with per-decision importance ratios (Precup, Sutton and Singh, 2000).

    Every update takes ``n_trajectories`` independent trajectories s₀, a₀, r₀, s₁, … of ``horizon`` steps under the
    behaviour policy, each from the distribution of first states, and climbs the discounted return of
    π_θ(a|s) ∝ exp(σ φ(s,a)ᵀθ):

        g = Σ_t (Π_{k<t} γ_k) (Π_{k≤t} π_θ(a_k|s_k)/π_b(a_k|s_k)) r_t Σ_{k≤t} ∇ log π_θ(a_k|s_k)
        θ ← Π_R[θ + η_θ · mean of g over the trajectories]

    g is an unbiased estimate of the gradient of E_π[Σ_{t<horizon} (Π_{k<t} γ_k) r_t]. A trajectory that arrives in a
    terminal state ends there; it still counts in full, so an update always counts n_trajectories·horizon
    samples. The problem's target must be ``Softmax``.

    Examples
    --------
    >>> import gqlab as gq
    >>> gq.PolicyGradient().n_updates(18_000)  # 30 · 60 samples each
    10
    """

    estimator: ClassVar[type] = PolicyGradientStep
    reads_operator: ClassVar[bool] = True
    has_omega: ClassVar[bool] = False
    follows_trajectory: ClassVar[bool] = False

    eta_theta: StepSize = 0.02
    n_trajectories: int = 30
    horizon: int = 60
    radius: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_trajectories", "horizon"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), least=1, below=2**24))

    def check(self, problem: Problem) -> None:
        _check_softmax(self, problem)

    @property
    def samples_per_update(self) -> int:
        """n_trajectories · horizon."""
        return self.n_trajectories * self.horizon


def _check_softmax(algorithm: Algorithm, problem: Problem) -> None:
    if type(problem.target) is not Softmax:
        raise ValueError(
            f"target is {problem.target!r}, but {type(algorithm).__name__} needs a softmax policy, gqlab.Softmax(sigma)"
        )
