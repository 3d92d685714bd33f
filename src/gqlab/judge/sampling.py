"""Off-policy evaluation along episodes: weighted importance sampling, one step at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.data.transitions import Transitions
from gqlab.judge.estimator import Estimator
from gqlab.judge.features import features_of
from gqlab.judge.importance import Walk, weighed
from gqlab.judge.labels import matched
from gqlab.judge.rows import look
from gqlab.judge.walks import log_ratio, walk_of
from gqlab.policies import Policy
from gqlab.support import checks


class ImportanceSampling(NamedTuple):
    """What importance sampling says of a policy."""

    value: float  # of the policy, from where the episodes begin
    low: float  # two-sided, with Student's t of the effective episodes
    high: float
    effective_episodes: float  # (Σ w)² / Σ w², of the weights of whole episodes
    n_episodes: int


def importance_sampling(
    data: Transitions, policy: Any, *, discount: float = 0.99, features: Any = "trees", confidence: float = 0.95
) -> ImportanceSampling:
    """The value of a policy from logged episodes, by weighted importance sampling step by step.

        V = Σ_t γ^t Σ_i w_{i,t} r_{i,t} / Σ_i w_{i,t},        w_{i,t} = Π_{u ≤ t} π(a_u|s_u) / p_u

    The sums at time t go over all episodes: one that is over keeps its last weight, and a reward of 0. Behind the last
    row of an episode that was cut off comes the value that :func:`gqlab.decide` finds for the policy there, which needs
    features; episodes that all ended need none.

    Parameters
    ----------
    data : Transitions
        With the behaviour's probabilities.
    policy : policy
        A LinearQ, an Agent, a function of observations (n, size) that gives probabilities (n, n_actions), or a
        FixedPolicy or a table where the observation is the state.
    discount : float
    features : {"trees", "tabular"}, encoder or None
        For what lies behind cuts, as of :func:`gqlab.decide`. None: data with episodes that were cut off are refused.
    confidence : float
        Of the interval: infinite where one episode has all the weight, and too short where few have most of it. That
        of :func:`gqlab.decide` holds there too.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> data = gq.collect("CartPole-v1", n_steps=2000, seed=0)
    >>> uniform = gq.importance_sampling(data, lambda observations: np.full((len(observations), 2), 0.5), discount=0.9)
    >>> bool(abs(uniform.effective_episodes - uniform.n_episodes) < 1e-9)  # the policy that collected them
    True
    >>> uniform.low < uniform.value < uniform.high
    True
    """
    checks.instance("data", data, Transitions, "a gqlab.Transitions")
    asked = matched("policy", policy, data)
    gamma = checks.number("discount", discount, least=0, most=1)
    outside = (1 - checks.number("confidence", confidence, above=0, below=1)) / 2
    walk = _walk(data, asked, gamma, features)
    found, effective = weighed("wpdis", walk, gamma)
    return ImportanceSampling(
        found.estimate, found.bound(outside), found.bound(1 - outside), effective, len(walk.first)
    )


def _walk(data: Transitions, policy: Policy, gamma: float, features: Any) -> Walk:
    """The episodes, with what comes behind cuts."""
    chunk = data.to_chunk()
    if chunk.probability is None:
        raise ValueError("data have no behaviour probabilities: importance sampling needs them")
    new = np.append(True, np.diff(chunk.episode) != 0)
    cut = np.append(new[1:], True) & ~chunk.terminated
    if not cut.any():
        pi = policy.probabilities(np.asarray(chunk.observations, dtype=np.float64))
        ratio = log_ratio(pi[np.arange(len(pi)), chunk.actions], chunk.probability)
        rewards, first = np.asarray(chunk.rewards, dtype=np.float64), np.flatnonzero(new)
        return Walk(ratio, rewards, rewards, np.zeros(len(first)), first)
    if features is None:
        raise ValueError(
            f"features is None, but {int(cut.sum()):,} of {int(new.sum()):,} episodes of the data were cut off; "
            "expected features to value what lies behind"
        )
    if gamma == 1 and not chunk.terminated.any():
        raise ValueError("discount is 1, but no episode of the log ends: the values are infinite; expected below 1")
    seen = look(data, 0)
    made = features_of(features, data, np.asarray(seen.sample.observations, dtype=np.float64), 0)
    judge = Estimator(data, seen, made, [policy], gamma)
    judge.sum_up()
    theta = judge.solve(0, judge.policy_sums[0]).solution.theta
    return walk_of(judge, 0, theta.reshape(judge.A, -1))
