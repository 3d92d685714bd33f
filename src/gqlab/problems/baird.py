"""Baird's counterexample (1995), as a problem of control."""

from __future__ import annotations

import numpy as np

from gqlab.mdp.finite import FiniteMDP
from gqlab.operators import Greedy
from gqlab.problems.problem import Problem


def baird(discount: float = 0.99) -> Problem:
    """Baird's star: seven states, no reward, so Q = 0 is exact; yet Q-learning diverges from θ₀ = (1, …, 1, 10).

    Action 0 ("dashed") goes to one of the six upper states, action 1 ("solid") to the lower one; the behaviour policy
    takes them with probability 6/7 and 1/7, so that all states are equally frequent. With the shared weight θ₇,

        Q(upper i, solid) = 2θ_i + θ₇        Q(lower, solid) = 2θ₇        Q(·, dashed) = 0

    Baird's lower state has a weight of its own in addition to 2θ₇, which makes the features linearly dependent and C
    singular. Without it the mean update still has a growing direction, all of whose components are positive, so that
    "solid" stays the greedy action on the way to infinity.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> problem = gq.baird()
    >>> problem.exact.stationary.round(3).tolist()
    [0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143]
    >>> theta0 = np.array([1, 1, 1, 1, 1, 1, 10])
    >>> result = gq.run(problem, gq.GreedyGQ(0.05, 0.05), n_samples=100_000, n_runs=4, theta0=theta0)
    >>> bool((problem.exact.mspbe(result.theta[:, -1]) < 1e-3 * problem.exact.mspbe(theta0)).all())
    True
    """
    S, upper, lower = 7, slice(0, 6), 6
    transition = np.zeros((S, 2, S))
    transition[:, 0, upper] = 1 / 6
    transition[:, 1, lower] = 1.0
    features = np.zeros((S, 2, S))
    features[upper, 1, upper] = 2 * np.eye(6)
    features[upper, 1, lower] = 1.0
    features[lower, 1, lower] = 2.0
    behavior = np.tile([6 / 7, 1 / 7], (S, 1))
    return Problem(FiniteMDP(transition, np.zeros((S, 2)), discount), features, behavior, Greedy())
