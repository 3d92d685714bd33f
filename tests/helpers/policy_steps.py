"""Single steps of actor-critic and policy gradient by the compiled rules, on samples (s, a, s') that a test gives."""

from __future__ import annotations

import numpy as np

import gqlab as gq
from gqlab.engine.compiled import entry
from gqlab.engine.memory import part
from gqlab.estimators.policy_search import ActorCriticStep, PolicyGradientStep
from gqlab.rules.dispatch import at
from gqlab.rules.gradient import Samples
from gqlab.rules.memory import Sizes
from gqlab.rules.point import DensePoint
from gqlab.rules.policies import actor_critic, policy_gradient_add, policy_tables
from gqlab.samples.tables import sample_table


def actor_critic_direction(problem: gq.Problem, theta, omega, sample) -> tuple[np.ndarray, np.ndarray]:
    """The steps of actor and critic for one sample, at η = 1 without projection: two (d,) arrays."""
    d, A = problem.dim, problem.mdp.n_actions
    work = part(ActorCriticStep, Sizes(d, A))
    _actor_critic(_table(problem, [sample]), _point(problem, theta, omega), work, d, A)
    return -work.G, -work.H


def policy_gradient_estimate(problem: gq.Problem, theta, path) -> np.ndarray:
    """g of one trajectory, rows (s, a, s'): (d,)."""
    d, A, S = problem.dim, problem.mdp.n_actions, problem.mdp.n_states
    work = part(PolicyGradientStep, Sizes(d, A, S), n_trajectories=1, horizon=len(path))
    _policy_gradient(_table(problem, path), S, _point(problem, theta, np.zeros(d)), work, d, A)
    return np.array(work.g)


def _table(problem: gq.Problem, rows) -> Samples:
    """Samples as a table, with the operator itself, whose σ the rules read."""
    return at(sample_table(problem, *np.array(rows).T, [problem.target.compiled]), 0)


def _point(problem: gq.Problem, theta, omega) -> DensePoint:
    vectors = {"theta": np.array(theta, dtype=float), "omega": np.array(omega, dtype=float)}
    return part(DensePoint, Sizes(problem.dim, problem.mdp.n_actions))._replace(**vectors)


@entry
def _actor_critic(samples, point, work, d, A):
    actor_critic(samples, 0, point, samples.operator.sigma, work.q, work.p, work.G, work.H, d, A)


@entry
def _policy_gradient(samples, n_states, point, work, d, A):
    policy_tables(samples, n_states, point.theta, samples.operator.sigma, work, d, A)
    work.score[:] = 0.0
    weight = 1.0
    for x in range(len(samples.row)):
        weight = policy_gradient_add(samples, x, weight, work, d)
